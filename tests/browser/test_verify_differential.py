"""The page and Python's verifier agree: about lies at random, forged logs, odd spellings, keys, notes and policies."""

import json
from contextlib import suppress
from hashlib import sha256, sha512
from random import Random
from typing import Any

import pytest

from ledger.canon import base64, jcs
from ledger.errors import StaylogError
from ledger.log.cosignature import cosign
from ledger.log.entries import parse_entry
from ledger.log.hostmap import KEY_BITS
from ledger.log.note import COSIGNATURE, ED25519, Note, Signature, Verifier
from ledger.log.record import HostFold, sublog_leaf
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import root_of
from tests.audits.mutations import flipped, mutate
from tests.browser.browser import Browser
from tests.browser.verifying import (
    ANSWERS,
    AT,
    FORGED,
    PAGE,
    RECEIPTS,
    Case,
    answer_case,
    check_report,
    forged,
    receipt_case,
    refusal,
    reports,
)
from tests.interop.test_speccheck import cases as speccheck
from tests.interop.vectors import KEY, golden
from tests.ledger.log.test_witnessing import LOG, OTHER, OTHER_KEY, OTHER_LOG, WITNESS, WITNESS_KEY, spaced
from tests.world import HOSTS, World
from tests.world import LOG as WORLD_LOG

LIES = 600
# What Python finds in the fold, the page may find in the number and the root of the events, which it looks at before.
FOLDED = {
    *("review_id_reused", "review_unknown", "response_repeated", "response_late", "upgrade_not_unconfirmed"),
    *("redaction_of_nothing", "redaction_repeated", "record_mismatch"),
}
RECORD = golden("record.json")


@pytest.fixture(autouse=True)
def page(browser: Browser) -> None:
    browser.show(PAGE)


def agree(browser: Browser, cases: list[Case]) -> list[str | None]:
    """The codes, once the verdicts are the same and so are the codes, but for what is said above."""
    codes = []
    for case, report in zip(cases, reports(browser, cases), strict=True):
        assert (report.code is None) == (case.code is None), (case.name, case.code, report.code, report.says)
        counted = report.code == "sub_root_mismatch" and case.code in FOLDED
        assert counted or report.code == case.code, (case.name, case.code, report.code, report.says)
        codes.append(case.code)
    assert browser.messages() == []
    return codes


def test_lies_at_random(browser: Browser) -> None:
    random, cases = Random(46), []
    for number in range(LIES):
        name = random.choice(sorted(ANSWERS))
        base, key = ANSWERS[name]
        lie = mutate(random, base["answer"])
        cases.append(answer_case(f"{number}: {name}", lie, key, base["did"], base["kind"]))
    codes = agree(browser, cases)
    # Most get past parsing, and some are none: a list may be shorter.
    assert len(set(codes)) > 15
    assert sum(code is not None for code in codes) > 0.9 * LIES


def test_letters_at_random(browser: Browser) -> None:
    """Anywhere in the text of an answer or receipt: also where no member of it is."""
    random, cases = Random(7), []
    for number in range(120):
        name = random.choice([*sorted(ANSWERS), "golden receipt", "own receipt"])
        is_receipt = name.endswith("receipt")
        given: Any = RECEIPTS[name.split()[0]] if is_receipt else ANSWERS[name][0]
        text = json.dumps(given["receipt" if is_receipt else "answer"], ensure_ascii=random.random() < 0.5)
        at = random.randrange(len(text))
        letters = random.choice(
            ['"', "\\", "0", "1", "a", "A", ",", "}", " ", "\u200b", "\n", "=", "-", ".5", "e1", ""]
        )
        text = text[:at] + letters + text[at + random.randrange(2) :]
        if is_receipt:
            cases.append(receipt_case(f"{number}: {name}", text, given["vkey"]))
        else:
            cases.append(answer_case(f"{number}: {name}", text, ANSWERS[name][1], given["did"], given["kind"]))
    for case, report in zip(cases, reports(browser, cases), strict=True):
        # A text with two faults may be refused for either.
        assert (report.code is None) == (case.code is None), (case.name, case.code, report.code, report.says)


@pytest.mark.parametrize("seed", range(3))
def test_honest_worlds_turn_green_with_the_same_values(browser: Browser, seed: int) -> None:
    world = World(seed).grow(12, 12)
    answers = [world.log.answer(host, kind, count=5) for host in HOSTS for kind in ("full", "aggregate", "page")]
    hosts = [host for host in HOSTS for _ in range(3)]
    cases = [answer_case(host, answer, str(WORLD_LOG), host) for host, answer in zip(hosts, answers, strict=True)]
    for case, answer, report in zip(cases, answers, reports(browser, cases), strict=True):
        check_report(case, report, None, None)
        assert report.summary == {name: answer[name] for name in report.summary or ()}
        if "review_history" in answer:
            assert report.reviews[::-1] == answer["review_history"]
            record = answer["proof"]["record"]
            assert (report.statistics or {}).get("checks") == (json.loads(record)["checks"] if record else None)


def test_rules_that_a_signing_operator_breaks(browser: Browser) -> None:
    """Sequences without a record, under a good signature, each with the last record that there was."""
    host, cases = RECORD["host"], []
    for case in RECORD["no_record"]:
        texts, state = case["entries"], HostFold(host)
        with suppress(StaylogError):
            for at, text in enumerate(texts, 2):
                state.add(at, parse_entry(text.encode()))
        record = state.record().decode()
        cases.append(answer_case(case["name"], forged(host, record, texts), str(FORGED), host))
    codes = agree(browser, cases)
    assert len(codes) == len(RECORD["no_record"]) > 40
    assert None not in codes


def broken_rules_found(browser: Browser) -> set[str | None]:
    """Which rules the page itself finds broken, where number and root of the events are right."""
    host, cases = RECORD["host"], []
    for case in RECORD["no_record"]:
        try:
            entries = [parse_entry(text.encode()) for text in case["entries"]]
        except StaylogError:
            continue
        root = root_of([sublog_leaf(2 + at, entry.leaf_hash) for at, entry in enumerate(entries)])
        record = jcs.dumps({"events": len(entries), "root": base64.encode(root)}).decode()
        cases.append(answer_case(case["name"], forged(host, record, case["entries"]), str(FORGED), host))
    return {report.code for report in reports(browser, cases)}


def test_the_page_finds_each_broken_rule_itself(browser: Browser) -> None:
    assert broken_rules_found(browser) >= FOLDED - {"record_mismatch"}


HUGE = 2**53 - 1
FACE = {"host_did": HOSTS[0], "host_since": "2026-01-01", "total_reviews": 2, "verified_reviews": 2}
SUMS = {"accuracy": [2, 17], "cleanliness": [2, 18], "communication": [2, 19], "overall": [2, 17], "value": [2, 20]}
GOOD_RECORD: dict[str, Any] = {
    "v": 1,
    "host": HOSTS[0],
    "events": 2,
    "root": base64.encode(bytes(32)),
    "last_event": AT,
    "reviews": {"guest_verified": 2, "host_attested": 0, "unconfirmed": 0},
    "ratings": {"guest_verified": SUMS, "host_attested": {}, "unconfirmed": {}},
    "histogram": [0, 0, 0, 0, 0, 0, 1, 1, 0],
    "repeats": 0,
    "responses": 0,
    "redactions": 0,
    "checks": {"conflict": 0, "contradicted": 0, "denied": 0, "unanswered": 0},
    "first_stay": "2026-01-01",
}
MEANS = {"overall": 4.3, "accuracy": 4.3, "cleanliness": 4.5, "communication": 4.8, "value": 5.0, "location": None}


def huge_record(verified: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """As many reviews as integers allow: ten times a sum of their stars is no integer of JavaScript."""
    stars = 2 * verified + 1
    sums = {name: [verified, stars] for name in SUMS}
    record = {
        **GOOD_RECORD,
        "events": verified,
        "reviews": {**GOOD_RECORD["reviews"], "guest_verified": verified},
        "ratings": {**GOOD_RECORD["ratings"], "guest_verified": sums},
        "histogram": [verified - 1, 1, 0, 0, 0, 0, 0, 0, 0],
    }
    means = dict.fromkeys(SUMS, (10 * stars + verified) // (2 * verified) / 10)
    face = {**FACE, "total_reviews": verified, "verified_reviews": verified}
    return record, {**face, "average_ratings": {**means, "location": None}}


def test_records_without_their_events(browser: Browser) -> None:
    face = {**FACE, "average_ratings": MEANS}
    records: list[tuple[Any, dict[str, Any]]] = [
        (GOOD_RECORD, face),
        huge_record(HUGE // 2 - 1),
        huge_record(10**15 + 1),
    ]
    records += [({**GOOD_RECORD, name: value}, face) for name, values in BAD_MEMBERS.items() for value in values]
    records += [({name: value for name, value in GOOD_RECORD.items() if name != left}, face) for left in GOOD_RECORD]
    records += [({**GOOD_RECORD, "more": 1}, face), ([], face), (5, face), (None, face)]
    texts = [(jcs.dumps(record).decode(), face) for record, face in records]
    texts += [("", face), ("{", face), (json.dumps(GOOD_RECORD), face), (f"{texts[0][0]} ", face)]
    cases = [
        answer_case(f"{number}: {text[:300]}", forged(HOSTS[0], text, (), face), str(FORGED), HOSTS[0])
        for number, (text, face) in enumerate(texts)
    ]
    codes = agree(browser, cases)
    assert codes[:3] == [None] * 3
    assert set(codes[3:]) == {"record_invalid", None, "face_mismatch"}
    assert codes[3:].count("record_invalid") > 50


BAD_MEMBERS: dict[str, list[Any]] = {
    "v": [2, True, "1", None],
    "host": [HOSTS[1], "did:web:UPPER.example", None, 7],
    "events": [0, 1, 3, 4, 5, HUGE, -1, 2.5, "2", None],
    "root": ["", base64.encode(bytes(31)), None, "A" * 43 + "B"],
    "last_event": ["2026-02-30T00:00:00Z", "2026-01-01", None, "0000-01-01T00:00:00Z", "2026-01-01T24:00:00Z"],
    "first_stay": [None, "2026-02-29", "2024-02-29", "0001-01-01", 1],
    "reviews": [
        {**GOOD_RECORD["reviews"], "guest_verified": 3},
        {**GOOD_RECORD["reviews"], "host_attested": 1},
        {**GOOD_RECORD["reviews"], "unconfirmed": HUGE},
        {"guest_verified": 2},
        [2, 0, 0],
        None,
    ],
    "ratings": [
        {**GOOD_RECORD["ratings"], "guest_verified": {**SUMS, **more}}
        for more in (
            *({"overall": [2, 18]}, {"overall": [2, 3]}, {"value": [2, 21]}, {"value": [1, 10]}, {"value": [2, 20, 1]}),
            *(
                {"location": [2, 20]},
                {"location": [1, 10]},
                {"location": [0, 0]},
                {"location": [3, 20]},
                {"charm": [2, 20]},
            ),
            *({"value": [2, HUGE]}, {"value": [True, 20]}, {"value": "ab"}, {"value": None}, {"value": [2, 19.5]}),
        )
    ]
    + [
        {"guest_verified": SUMS},
        {**GOOD_RECORD["ratings"], "unconfirmed": {"overall": [1, 2]}},
        None,
        {**GOOD_RECORD["ratings"], "unconfirmed": []},
    ],
    "histogram": [[0] * 9, [0] * 8, [0, 0, 0, 0, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 0.5], {}, None, [HUGE] * 9],
    "repeats": [1, 2, 3, HUGE, -1, None],
    "responses": [1, 3, HUGE],
    "redactions": [1, 3, "0"],
    "checks": [{**GOOD_RECORD["checks"], "denied": 1}, {}, {**GOOD_RECORD["checks"], "lost": 0}, None],
}


def test_spellings(browser: Browser) -> None:
    """Texts that readers of JSON read in different ways."""
    base, key = ANSWERS["own full"]
    text = json.dumps(base["answer"])
    deep = text[:-1] + ', "deep": ' + "[" * 15 + "]" * 15 + "}"
    index = base["answer"]["proof"]["events"][0]["index"]
    spelled = {
        "twice": text[:-1] + f', "host_did": "{base["did"]}"}}',
        "twice by an escape": text[:-1] + f', "host\\u005fdid": "{base["did"]}"}}',
        "proto": text[:-1] + ', "__proto__": 1}',
        "proto twice": text[:-1] + ', "__proto__": 1, "__proto__": {}}',
        "constructor": text[:-1] + ', "constructor": 1, "toString": 2, "hasOwnProperty": 3}',
        "sixteen levels": deep,
        "seventeen levels": deep.replace("[[", "[[[").replace("]]", "]]]"),
        "byte order mark": "\ufeff" + text,
        "half a pair": text[:-1] + ', "x": "\\ud800"}',
        "half a pair as a name": text[:-1] + ', "\\udc00": 1}',
        "a pair": text[:-1] + ', "x": "\\ud83c\\udf39"}',
        "large integer": text[:-1] + ', "x": 9007199254740992}',
        "largest integer": text[:-1]
        + ', "x": [9007199254740991, -9007199254740991, 1e21, -0, -0.0, 1E400]}'.replace(", 1E400", ""),
        "infinite": text[:-1] + ', "x": 1E400}',
        "large float": text[:-1] + ', "x": 9007199254740992.0}',
        "not a number": text[:-1] + ', "x": NaN}',
        "comment": text[:-1] + "/**/}",
        "trailing comma": text[:-1] + ",}",
        "leading zero": text[:-1] + ', "x": 01}',
        "control character": text[:-1] + ', "x": "\t"}',
        "blanks around": f"\r\n\t {text} \n",
        "no-break space": f"\u00a0{text}",
        "two values": text + text,
        "nothing": "",
        "index as a fraction": text.replace(f'"index": {index}, "opening"', f'"index": {index}.0, "opening"'),
        "index with an exponent": text.replace(f'"index": {index}, "opening"', f'"index": {index}e0, "opening"'),
        "index as text": text.replace(f'"index": {index}, "opening"', f'"index": "{index}", "opening"'),
        "listed index as a fraction": text.replace(
            f'"index": {index}, "listing_id"', f'"index": {index}.0, "listing_id"'
        ),
        "total as a fraction": text.replace('"total_reviews": 5', '"total_reviews": 5.0'),
        "total with an exponent": text.replace('"total_reviews": 5', '"total_reviews": 0.5E1'),
        "verified is true": text.replace('"verified_reviews": 4', '"verified_reviews": true'),
        "ascii": json.dumps(base["answer"], ensure_ascii=True),
        "letters": json.dumps(base["answer"], ensure_ascii=False),
        "list": f"[{text}]",
        "text": json.dumps(text),
        "proof is null": json.dumps({**base["answer"], "proof": None}),
    }
    cases = [answer_case(name, spelling, key, base["did"]) for name, spelling in spelled.items() if name != "list"]
    codes = dict(zip((case.name for case in cases), agree(browser, cases), strict=True))
    accepted = {name for name, code in codes.items() if code is None}
    assert accepted == {
        *("proto", "constructor", "sixteen levels", "a pair", "largest integer", "blanks around", "ascii", "letters"),
        *("listed index as a fraction", "total as a fraction", "total with an exponent"),
    }
    # Not even a list of one full answer is a set of pages.
    [report] = reports(browser, [Case("list", (spelled["list"],), key, base["did"])])
    assert report.code == "wrong_kind"


def test_entries_and_dids(browser: Browser) -> None:
    """Each member of each type of entry with values that do not belong there, under a good signature."""
    host, cases = RECORD["host"], []
    whole = {json.loads(text)["type"]: json.loads(text) for text in golden("log-32.json")["entries"] if text[0] == "{"}
    values: list[Any] = [
        None,
        True,
        0,
        -1,
        1.5,
        "",
        "x",
        [],
        {},
        HUGE,
        "did:web:A.example",
        AT,
        "2026-02-30",
        "2026-13-01T00:00:00Z",
    ]
    for entry in whole.values():
        for name in [*entry, "more"]:
            cases += [answer_case(f"{entry['type']}.{name}: {value}", forged(host, "{}", [text]), str(FORGED), host)
                      for value in values if (text := jcs.dumps({**entry, name: value}).decode()).count('"at":"')]  # fmt: skip
    issuers = [
        "https://idv.example",
        "https://IDV.example:8443/a?b#c",
        "http://idv.example",
        "https://a b",
        "did:web:x",
    ]
    for issuer in [*issuers, "https://é.example", "did:web:x#y", "https://", f"https://a/{'b' * 1801}"]:
        changed = {**whole["review"], "evidence": {**whole["review"]["evidence"], "issuer": issuer}}
        cases.append(answer_case(issuer, forged(host, "{}", [jcs.dumps(changed).decode()]), str(FORGED), host))
    dids = [
        "did:web:a.example",
        "did:web:a..b",
        "did:web:a.",
        "did:web:-a",
        "did:web:a%3A443",
        "did:web:a%3A4430",
        "did:web:a%3A65535",
    ]
    dids += [
        "did:web:a%3A65536",
        "did:web:a%3A08",
        "did:web:a:b%20c",
        "did:web:a:b%2ec",
        "did:web:a:b%2Ec",
        "did:web:a:",
        "did:web:a%3A1%3A2",
    ]
    dids += [
        "did:web:a:%41",
        "did:web:a/b",
        "did:web:a?b",
        "did:key:z6Mk",
        "did:key:z0",
        "did:key:z",
        "did:key:x6Mk",
        "did:key:z1",
        "did:jwk:a_-9",
    ]
    dids += [
        "did:jwk:a=",
        "did:plc:abc",
        "DID:web:a",
        "did:web:é",
        "did:web:a" * 40,
        "",
        "did:jwk:",
        "did:web:",
        "did:web:a_b",
        "did:web:a\n",
    ]
    for did in dids:
        cases.append(answer_case(f"did {did}", forged(did, None), str(FORGED), did))
    assert len(set(agree(browser, cases))) >= 7
    assert len(cases) > 400


def test_notes(browser: Browser) -> None:
    base, key = ANSWERS["golden aggregate"]
    notes = golden("checkpoint.json")["accept"] + golden("checkpoint.json")["reject"]
    more = {
        "fifty": "— x.example AAAAAAA=\n" * 50,
        "sixty-four": "— x.example AAAAAAA=\n" * 64,
        "no signature": "— x.example AAAA\n",
    }
    more |= {
        "plus": "— x+y AAAAAAA=\n",
        "blank": "— x\u2003y AAAAAAA=\n",
        "next line": "— x\x85y AAAAAAA=\n",
        "letters": "— ünï.example AAAAAAA=\n",
    }
    more |= {
        "byte order mark": "— x\ufeffy AAAAAAA=\n",
        "no name": "—  AAAAAAA=\n",
        "base64": "— x AAAAAAB=\n",
        "three": "— x y AAAAAAA=\n",
        "tab": "— x\tAAAAAAA=\n",
    }
    note = base["answer"]["proof"]["checkpoint"]
    cases = [(case["case"], case["note"]) for case in notes] + [(name, note + lines) for name, lines in more.items()]
    cases += [
        ("long", note + "— " + "x" * 65536 + " AAAAAAA=\n"),
        ("empty", ""),
        ("blank lines", "\n\n\n"),
        ("text", note.replace("\n\n", "\n\n\n")),
    ]
    made = [answer_case(name, {**base["answer"], "proof": {**base["answer"]["proof"], "checkpoint": text}}, key, base["did"])
            for name, text in cases]  # fmt: skip
    assert {"note_malformed", "signature_invalid", "origin_mismatch", None} <= set(agree(browser, made))


def test_checkpoints_and_proofs_alone(browser: Browser) -> None:
    vectors = golden("checkpoint.json")
    alone = [Case(case["case"], (case["note"],), vectors["vkey"]) for case in vectors["accept"] + vectors["reject"]]
    found = [report.verdict for report in reports(browser, alone)]
    assert found == ["proved"] * len(vectors["accept"]) + ["wrong"] * len(vectors["reject"])
    proof = RECEIPTS["own"]["receipt"]["tlog_proof"]
    [good, bad] = reports(
        browser, [Case("", (text,), RECEIPTS["own"]["vkey"]) for text in (proof, proof.replace("\n35\n", "\n36\n"))]
    )
    assert (good.verdict, good.states["inclusion"]) == ("proved", "unchecked")
    assert bad.verdict == "wrong" or "\n35\n" not in proof


def test_keys_that_bind_nobody(browser: Browser) -> None:
    """Keys of small and of mixed order, and such that are no point or another spelling of one."""
    base, log = ANSWERS["golden aggregate"]
    keys = {key for key, _, _ in speccheck()} | {bytes(31) + b"\x80", b"\x01" + bytes(31), b"\xff" * 32, bytes(32)}
    keys |= {(2**255 - 19 + low).to_bytes(32, "little") for low in range(19)} | {
        Random(1).randbytes(32) for _ in range(20)
    }
    name, cases = Verifier.parse(log).name, []
    for key in keys:
        key_id = sha256(name.encode() + b"\n\x01" + key).hexdigest()[:8]
        vkey = f"{name}+{key_id}+{base64.encode(bytes([ED25519]) + key)}"
        code = refusal(Verifier.parse, vkey) or "signer_unknown"
        cases.append(Case(key.hex(), (json.dumps(base["answer"]),), vkey, base["did"], code=code))
    assert set(agree(browser, cases)) == {"vkey_malformed", "signer_unknown"}


ORDER = 2**252 + 27742317777372353535851937790883648493
SMALL = {"the identity": b"\x01" + bytes(31), "the identity, another spelling": (2**255 - 18).to_bytes(32, "little")}


def small_signature(message: bytes, point: bytes) -> bytes:
    """A signature of small order by the golden log's key: its R is chosen, not drawn."""
    scalar = int.from_bytes(sha512(bytes(KEY)).digest()[:32], "little") & ~(7 | 1 << KEY_BITS - 1) | 1 << 254
    challenge = int.from_bytes(sha512(point + bytes(KEY.verify_key) + message).digest(), "little")
    return point + (challenge * scalar % ORDER).to_bytes(32, "little")


def test_signatures_that_webcrypto_takes_and_libsodium_does_not(browser: Browser) -> None:
    base, key = ANSWERS["golden aggregate"]
    log, note = Verifier.parse(key), Note.parse(base["answer"]["proof"]["checkpoint"])
    signatures = {name: small_signature(note.text.encode(), point) for name, point in SMALL.items()}
    good = note.signatures[0].value
    signatures["S above the order"] = good[:32] + (int.from_bytes(good[32:], "little") + ORDER).to_bytes(32, "little")
    signatures["short"], signatures["long"] = good[:63], good + b"\0"
    cases = []
    for name, value in signatures.items():
        line = f"— {log.name} {base64.encode(log.key_id + value)}\n"
        proof = {**base["answer"]["proof"], "checkpoint": f"{note.text}\n{line}"}
        cases.append(answer_case(name, {**base["answer"], "proof": proof}, key, base["did"]))
    assert set(agree(browser, cases)) == {"signature_invalid"}
    taken = browser.evaluate(
        """crypto.subtle.importKey("raw", new Uint8Array(arguments[0]), "Ed25519", false, ["verify"]).then(key =>
        crypto.subtle.verify("Ed25519", key, new Uint8Array(arguments[1]), new Uint8Array(arguments[2])))""",
        *(list(part) for part in (log.public_key, signatures["the identity"], note.text.encode())),
    )
    assert taken, "were WebCrypto this strict, the page could leave it to it"


def cosigned(*lines: str) -> dict[str, Any]:
    """The golden receipt under a checkpoint with these lines too."""
    receipt = RECEIPTS["golden"]["receipt"]
    proof = TlogProof.parse(receipt["tlog_proof"])
    note = proof.checkpoint + "".join(lines)
    return {**receipt, "checkpoint": note, "tlog_proof": str(TlogProof(proof.index, proof.path, note))}


TEXT = Note.parse(RECEIPTS["golden"]["receipt"]["checkpoint"]).text
FIRST = cosign(TEXT, WITNESS.name, WITNESS_KEY, 1_771_147_800).line()
SECOND = cosign(TEXT, OTHER.name, OTHER_KEY, 2**63 - 1).line()
STRANGER = cosign(TEXT, "stranger.example", OTHER_KEY, 1).line()
ELSEWHERE = cosign(TEXT.replace("\n7\n", "\n8\n"), WITNESS.name, WITNESS_KEY, 1).line()
W1, W2, L = f"witness w1 {WITNESS}", f"witness w2 {OTHER}", f"log {LOG}"
BOTH = f"{L}\n{W1}\n{W2}\n"
# The log of the notes has one more key, which signed some of them too.
SECOND_LOG = Verifier(LOG.name, ED25519, OTHER.public_key)
BY_SECOND_LOG = Signature(LOG.name, SECOND_LOG.key_id, OTHER_KEY.sign(TEXT.encode()).signature).line()
POLICIES = {
    "all": BOTH + "group g all w1 w2\nquorum g\n",
    "any": BOTH + "group g any w1 w2\nquorum g\n",
    "one": BOTH + "group g 1 w1 w2\nquorum g",
    "two": BOTH + "group g 2 w1 w2\nquorum g",
    "the first": BOTH + "quorum w1",
    "the second": BOTH + "quorum w2",
    "none": BOTH + "quorum none",
    "groups of groups": BOTH + "group a all w2\ngroup b any a w1\ngroup c 1 b\nquorum c",
    "member of two groups": BOTH + "group a any w1\ngroup b any w1 w2\nquorum b",
    "group in two groups": BOTH + "group a any w1\ngroup b any a\ngroup c any a w2\nquorum c",
    "deep": BOTH + "group a0 any w1\n" + "".join(f"group a{n} any a{n - 1}\n" for n in range(1, 999)) + "quorum a998",
    "blanks in words": f"{L} a\xa0b\nwitness w\u20031 {WITNESS}\twww\u3000\n#\x85\u2028\ufeff\nquorum w\u20031",
    "next line as a blank": f"{L}\nwitness\x85w1 {WITNESS}\nquorum w1",
    "wide blank": f"{L}\n{W1}\nquorum\u2003w1",
    "no-break space at the end": f"{L}\n{W1}\nquorum w1\xa0",
    "line of a no-break space": f"{L}\n{W1}\n\xa0\nquorum w1",
    "blank in a key": f"{L}\n{W1}\n{spaced(chr(0x2003))}\nquorum w1",
    **{f"control {n:02x}": f"{L}\n{W1}\n# {chr(n)}\nquorum w1" for n in [*range(0x20), 0x7F, 0x80, 0x9F] if n != 10},
    "form feed as a blank": f"{L}\n{W1}\nquorum\fw1",
    "carriage returns": f"{L}\r\n{W1}\r\nquorum w1\r\n",
    "comments and blanks": f"# a policy\n\n  \t{L}  https://log.example\n{W1}\thttps://w1.example\n#\nquorum w1\n",
    "another key of the log": f"log {SECOND_LOG}\n{W1}\nquorum w1",
    "both keys of the log": f"log {SECOND_LOG}\n{L}\n{W1}\nquorum w1",
    "log twice, renamed": f"{L}\nlog {Verifier('other.example/log', ED25519, LOG.public_key)}\n{W1}\nquorum w1",
    "log with the key of a witness": f"{L}\nlog {OTHER_LOG}\n{W1}\n{W2}\nquorum w1",
    "another log": f"log {Verifier('other.example/log', ED25519, LOG.public_key)}\n{W1}\nquorum w1",
    "no quorum line": BOTH,
    "two quorum lines": BOTH + "quorum w1\nquorum w1",
    "unknown quorum": BOTH + "quorum w3",
    "unknown member": BOTH + "group g all w1 w3\nquorum g",
    "member twice": BOTH + "group g 2 w1 w1\nquorum g",
    "group of itself": BOTH + "group g any g\nquorum g",
    "group below": BOTH + "quorum g\ngroup g any w1",
    "threshold 0": BOTH + "group g 0 w1 w2\nquorum g",
    "threshold 3": BOTH + "group g 3 w1 w2\nquorum g",
    "threshold 01": BOTH + "group g 01 w1 w2\nquorum g",
    "threshold toString": BOTH + "group g toString w1 w2\nquorum g",
    "empty group": BOTH + "group g any\nquorum g",
    "name taken": BOTH + f"witness w1 {Verifier('third.example', COSIGNATURE, LOG.public_key)}\nquorum w1",
    "key twice": f"{L}\n{W1}\nwitness w3 {Verifier('third.example', COSIGNATURE, WITNESS.public_key)}\nquorum w1",
    "the name none": f"{L}\nwitness none {WITNESS}\nquorum none",
    "log twice": f"{L}\n{L}\n{W1}\nquorum w1",
    "witness as log": f"log {WITNESS}\nquorum none",
    "log as witness": f"{L}\nwitness w1 {LOG}\nquorum w1",
    "bad key": f"{L}\nwitness w1 {str(WITNESS)[:-4]}\nquorum w1",
    "unknown word": BOTH + "constructor x\nquorum w1",
    "too many words": BOTH + "quorum w1 w2",
    "too few words": f"log\n{W1}\nquorum w1",
    "long": "#" * 65537 + f"\n{BOTH}quorum w1",
}


def test_policies(browser: Browser) -> None:
    notes = {
        "none": (),
        "first": (FIRST,),
        "both": (SECOND, FIRST),
        "strangers": (STRANGER, FIRST),
        "twice": (FIRST, FIRST),
        "second key": (BY_SECOND_LOG, FIRST),
    }
    notes |= {"of another tree": (ELSEWHERE,), "one of another tree": (FIRST, ELSEWHERE), "cut": (FIRST[:-6] + "=\n",)}
    log = RECEIPTS["golden"]["vkey"]
    cases = [receipt_case(f"{name}, {by}", cosigned(*lines), log, policy)
             for name, policy in POLICIES.items() for by, lines in notes.items()]  # fmt: skip
    codes = agree(browser, cases)
    assert {"policy_malformed", "quorum_missing", "cosignature_invalid", "signer_unknown", None} <= set(codes)
    found = {case.name: code for case, code in zip(cases, codes, strict=True)}
    accepted = {name for name in POLICIES if found[f"{name}, second key"] is None}
    assert accepted >= {
        "blanks in words",
        "deep",
        "both keys of the log",
        "log with the key of a witness",
        "control 09",
    }
    assert {name for name in accepted if name.startswith("control")} == {"control 09", "control 80", "control 9f"}
    assert found["another key of the log, second key"] == "signer_unknown"
    for name in ("member of two groups", "group in two groups", "log twice, renamed", "wide blank", "carriage returns"):
        assert found[f"{name}, second key"] == "policy_malformed"


def test_flipped_receipts(browser: Browser) -> None:
    random, cases = Random(3), []
    vectors = RECEIPTS["own"]
    for number in range(60):
        proof = TlogProof.parse(vectors["receipt"]["tlog_proof"])
        path = list(proof.path)
        at = random.randrange(len(path))
        kind, index = random.randrange(4), proof.index
        if kind == 0:
            path[at] = base64.decode(flipped(random, base64.encode(path[at])))
        elif kind == 1:
            path[at : at + 1] = random.choice(([], [path[at]] * 2))
        elif kind == 2:
            index = random.randrange(60)
        else:
            random.shuffle(path)
        changed = TlogProof(index, tuple(path), proof.checkpoint)
        receipt = {**vectors["receipt"], "index": index, "tlog_proof": str(changed)}
        cases.append(receipt_case(f"{number}: {kind}", receipt, vectors["vkey"]))
    assert {"root_mismatch", "proof_length", "index_out_of_range"} <= set(agree(browser, cases))
