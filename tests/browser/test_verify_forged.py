"""What only an operator could try, or a reader overlook: the page refuses it by the same code as Python's verifier."""

import json
from hashlib import sha256
from typing import Any

import pytest

from ledger.canon import base64, jcs
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.entries import make_entry
from ledger.log.face import summary
from ledger.log.note import Note, Verifier, sign
from ledger.log.record import HostFold, sublog_leaf
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import leaf_hash, root_of
from tests.audits.test_receipts import RECEIPT, TAMPERED
from tests.browser.browser import Browser
from tests.browser.cosigning import BOTH, W1, cosigned
from tests.browser.verifying import (
    ANSWERS,
    FORGED,
    FORGER,
    RECEIPTS,
    Case,
    agree,
    answer_case,
    forged,
    forged_tree,
    pages_case,
    receipt_case,
    refusal,
    reports,
)
from tests.interop.vectors import golden
from tests.ledger.log.worked_example import LOG
from tests.world import HOSTS, World
from tests.world import LOG as WORLD_LOG

RECORD = golden("record.json")
ENTRIES = golden("log-32.json")["entries"]
pytestmark = pytest.mark.usefixtures("verify_page")


def test_receipts(browser: Browser) -> None:
    cases = [
        receipt_case(f"{number}: {changes}", {**RECEIPT, **changes}, str(WORLD_LOG))
        for number, (_, changes) in enumerate([("", {}), *TAMPERED])
    ]
    texts = {"list": f"[{json.dumps(RECEIPT)}]", "text": '"tlog_proof":', "empty": '{"tlog_proof": ""}'}
    cases += [receipt_case(name, text, str(WORLD_LOG)) for name, text in texts.items() if name != "list"]
    codes = agree(browser, cases)
    assert codes[: len(TAMPERED) + 1] == [None, *(code for code, _ in TAMPERED)]


@pytest.mark.parametrize("kind", ["review", "response", "upgrade"])
def test_receipts_of_every_kind(browser: Browser, kind: str) -> None:
    world = World(4).grow(12, 12)
    own = "statement" if kind == "response" else "evidence"
    size, state = len(world.log.entries), world.log.published[-1]
    cases = []
    for index, entry in enumerate(world.log.entries):
        if entry.type != kind:
            continue
        opening = world.log.openings.get(index)
        proof = TlogProof(index, tuple(world.log.tree.inclusion(index, size)), state.note)
        receipt: dict[str, Any] = {
            "review_id": entry.members["review_id"],
            "status": "accepted",
            "index": index,
            "entry": entry.data.decode(),
            "openings": {"text": opening and opening.as_json(), own: {"salt": base64.encode(bytes(32))}},
            "checkpoint": state.note,
            "tlog_proof": str(proof),
            **({"verification_level": entry.members["level"]} if "level" in entry.members else {}),
        }
        lies: list[dict[str, Any]] = [
            {"openings": {"text": None, "other": {"salt": base64.encode(bytes(32))}}},
            {"verification_level": "x"},
        ]
        lies += [{"openings": {**receipt["openings"], "text": {"text": "x", "salt": base64.encode(bytes(32))}}}]
        cases += [receipt_case(f"{index} {lie}", {**receipt, **lie}, str(WORLD_LOG)) for lie in [{}, *lies]]
    codes = agree(browser, cases)
    assert codes.count(None) == len(codes) // 4 > 0
    assert {"receipt_malformed", "receipt_mismatch"} <= set(codes)


def test_a_receipt_of_the_last_leaf_of_a_tree(browser: Browser) -> None:
    """Nothing is published without a map head after it, so there the operator hides it from the map."""
    review = json.loads(next(text for text in ENTRIES if '"type":"review"' in text))
    leaves = [
        leaf_hash(data.encode()) for data in (ENTRIES[0], json.dumps(review, separators=(",", ":"), sort_keys=True))
    ]
    note = sign_checkpoint(Checkpoint(FORGED.name, 2, root_of(leaves)), FORGER)
    receipt = {
        "review_id": review["review_id"],
        "status": "accepted",
        "verification_level": review["level"],
        "index": 1,
        "entry": json.dumps(review, separators=(",", ":"), sort_keys=True),
        "openings": {"text": None, "evidence": {"salt": base64.encode(bytes(32))}},
        "checkpoint": note,
        "tlog_proof": str(TlogProof(1, (leaves[0],), note)),
    }
    assert agree(browser, [receipt_case("last", receipt, str(FORGED))]) == ["map_head_not_last"]


def test_answers(browser: Browser) -> None:
    host, event = RECORD["host"], RECORD["no_record"][0]["entries"][0]
    base, key = ANSWERS["own full"]
    page_of, page_key = ANSWERS["own page-3"]
    absent = forged(host, None, [event])
    empty = forged(host, "{}")
    empty["proof"]["events"] = []
    early: dict[str, Any] = json.loads(json.dumps(base["answer"]))
    early["proof"]["events"][0]["index"] = 1
    cases = [
        answer_case("events without a record", absent, str(FORGED), host),
        answer_case("a record without events", empty, str(FORGED), host),
        answer_case("before the first review", early, key, base["did"]),
    ]
    starts: list[Any] = [None, "0", 1.5, -1, True, [], 2**53]
    for start in starts:
        changed = {**page_of["answer"], "proof": {**page_of["answer"]["proof"], "from": start}}
        cases.append(answer_case(f"from {start}", changed, page_key, page_of["did"]))
    for text in (
        "[]",
        "5",
        "null",
        '"x"',
        "",
        "{",
        '{"x":"' + "y" * 65536 + '"}',
        "sha256:" + "0" * 64,
        "sha256:" + "A" * 64,
    ):
        cases.append(answer_case(f"entry {text[:20]}", forged(host, "{}", [text]), str(FORGED), host))
        head = {**base["answer"]["proof"], "map_head": text}
        cases.append(answer_case(f"head {text[:20]}", {**base["answer"], "proof": head}, key, base["did"]))
    codes = set(agree(browser, cases))
    assert {"absent_with_events", "record_invalid", "index_out_of_range", "answer_malformed"} <= codes
    assert {"entry_too_large", "entry_malformed", "foreign_event", "map_head_not_last"} <= codes


def test_sets_of_pages(browser: Browser) -> None:
    pages = {name: ANSWERS[f"golden {name}"][0]["answer"] for name in ("page-0", "page-5", "page-10")}
    base, key = ANSWERS["golden page-0"]
    # Twelve events in all, but not the twelve.
    cases = [pages_case("a gap filled", [pages["page-0"], pages["page-0"], pages["page-10"]], key, base["did"])]
    world = World(3, HOSTS[:2]).grow(4)
    size = len(world.log.entries)
    world.publish()
    count = json.loads(world.log.answer(HOSTS[0])["proof"]["record"])["events"]
    of_two_sizes = [
        world.log.answer(HOSTS[0], "page", size=size, start=0, count=count // 2),
        world.log.answer(HOSTS[0], "page", start=count // 2, count=count),
    ]
    cases.append(pages_case("of two sizes", of_two_sizes, str(WORLD_LOG), HOSTS[0]))
    whole = [world.log.answer(HOSTS[0], "page", start=at, count=1) for at in range(count)]
    cases.append(pages_case("one by one", whole, str(WORLD_LOG), HOSTS[0]))
    assert agree(browser, cases) == ["pages_incomplete", "pages_differ", None]
    [none] = reports(browser, [Case("no page", ("[]",), key, base["did"])])
    assert none.code == "pages_incomplete"


def swapped_pages(times: tuple[str, str], order: tuple[int, int]) -> list[dict[str, Any]]:
    """Two reviews, each on a page of its own, in an order of the operator's choice under a record that fits it."""
    review = json.loads(next(text for text in ENTRIES if '"type":"review"' in text))
    host, ids = review["host_did"], ("rev-" + "a" * 26, "rev-" + "a" * 25 + "e")
    entries = [make_entry(review["type"], **{**_plain(review), "review_id": ids[at], "at": times[at]}) for at in (0, 1)]
    texts = [entry.data.decode() for entry in entries]
    own = [sublog_leaf(2 + at, entries[at].leaf_hash) for at in order]
    state = HostFold(host)
    for at in (0, 1):
        state.add(2 + at, make_entry(review["type"], **{**_plain(review), "review_id": ids[at], "at": max(times)}))
    record = {**state.members(), "root": base64.encode(root_of(own)), "last_event": times[order[1]]}
    text = jcs.dumps(record).decode()
    base = forged(host, text, texts, summary(host, record))
    tree, size = forged_tree(host, text, texts)
    pages = []
    for place, at in enumerate(order):
        proof = {
            **base["proof"],
            "events": [base["proof"]["events"][at]],
            "log_proof": [base64.encode(node) for node in tree.multiproof([2 + at, size - 1], size)],
            "sub_proof": [base64.encode(own[1 - place])],
            "from": place,
        }
        pages.append({**base, "proof": proof})
    return pages


def _plain(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name not in ("type", "v")}


def test_the_order_from_page_to_page(browser: Browser) -> None:
    host = json.loads(next(text for text in ENTRIES if '"type":"review"' in text))["host_did"]
    early, late = "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"
    cases = [
        pages_case("in order", swapped_pages((early, early), (0, 1)), str(FORGED), host),
        pages_case("swapped", swapped_pages((early, early), (1, 0)), str(FORGED), host),
        pages_case("older", swapped_pages((late, early), (0, 1)), str(FORGED), host),
    ]
    assert agree(browser, cases) == [None, "index_order", "time_falls"]


def test_keys(browser: Browser) -> None:
    base, log = ANSWERS["golden aggregate"]
    name, key_id, key = log.split("+", 2)
    point = base64.decode(key)[1:]

    def vkey(name: str, data: bytes) -> str:
        key_id = sha256(name.encode() + b"\n" + data).hexdigest()[:8]
        return f"{name}+{key_id}+{base64.encode(data)}"

    keys = [
        log,
        f"{name}+00000000+{key}",
        f"{name}+{key_id.upper()}+{key}",
        f"{name}+{key_id}+{key[:-1]}",
        name,
        "",
        "++",
    ]
    keys += [
        f"+{key_id}+{key}",
        vkey("a b", b"\x01" + point),
        vkey("", b"\x01" + point),
        vkey("a\u2003b", b"\x01" + point),
    ]
    keys += [vkey(name, bytes([kind]) + point) for kind in (0, 2, 4, 255)]
    keys += [vkey(name, b"\x01" + point[:31]), vkey(name, b"\x01" + point + b"\0"), vkey(name, b"")]
    cases = []
    for given in keys:
        code = refusal(Verifier.parse, given)
        if code is None:
            cases.append(answer_case(given, base["answer"], given, base["did"]))
        else:
            cases.append(Case(given, (json.dumps(base["answer"]),), given, base["did"], code=code))
    codes = agree(browser, cases)
    assert codes[0] is None
    assert set(codes[1:]) == {"vkey_malformed", "signer_unknown"}


def test_notes_under_a_good_signature(browser: Browser) -> None:
    """The operator signs texts that are no checkpoints."""
    answer = forged(HOSTS[0], None)
    root = Note.parse(answer["proof"]["checkpoint"]).text.split("\n")[2]
    bodies = [
        f"a b\n3\n{root}\n",
        f"a+b\n3\n{root}\n",
        f"\n3\n{root}\n",
        f"{FORGED.name}\n3\n{root}\n\n",
        f"{FORGED.name}\n3\n",
    ]
    bodies += [f"{FORGED.name}\n{size}\n{root}\n" for size in ("0", "1", "2", "4", "03", "9007199254740992", "x", "")]
    notes = [str(sign(body, FORGED.name, FORGER)) for body in bodies]
    good = answer["proof"]["checkpoint"]
    notes += [good + "— x.example AAAAAAA=", good[:-1], good[good.index("\n\n") :], good.replace("\n\n", "\n \n")]
    cases = [
        answer_case(note, {**answer, "proof": {**answer["proof"], "checkpoint": note}}, str(FORGED), HOSTS[0])
        for note in notes
    ]
    codes = set(agree(browser, cases))
    assert {"vkey_malformed", "checkpoint_malformed", "note_malformed", "index_out_of_range"} <= codes


def test_policies_with_too_many_words(browser: Browser) -> None:
    policies = [
        f"log {LOG} https://log.example more\n{W1}\nquorum w1",
        f"log {LOG}\n{W1} https://w1.example more\nquorum w1",
    ]
    policies += [f"{BOTH}quorum", f"{BOTH}witness w4\nquorum w1", f"{BOTH}group g\nquorum w1", "quorum none"]
    key = RECEIPTS["golden"]["vkey"]
    codes = agree(browser, [receipt_case(policy, cosigned(), key, policy) for policy in policies])
    assert set(codes) == {"policy_malformed", "signer_unknown"}


def test_a_map_head_is_made_by_nobody_else(browser: Browser) -> None:
    """Its own index is in it: one of another place does not stand for the last."""
    answer = forged(HOSTS[0], None)
    other = make_entry(
        "map_head", size=7, root=json.loads(answer["proof"]["map_head"])["root"], at="2099-01-01T00:00:00Z"
    )
    changed = {**answer, "proof": {**answer["proof"], "map_head": other.data.decode()}}
    assert agree(browser, [answer_case("elsewhere", changed, str(FORGED), HOSTS[0])]) == ["map_head_not_last"]
