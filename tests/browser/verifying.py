"""Documents for `/verify`: valid, tampered and forged ones, what Python says of them, and what the page says."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from api import verifying
from audits.receipts import verify_receipt
from audits.verify import verify_answer, verify_pages
from ledger.canon import base64
from ledger.errors import StaylogError
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.entries import make_entry
from ledger.log.hostmap import HostMap, map_key, map_value
from ledger.log.note import ED25519, Verifier
from ledger.log.policy import Policy
from ledger.log.tiles import TileTree
from ledger.log.tree import leaf_hash
from schemas.vectors import make
from tests.browser.browser import Browser
from tests.interop.vectors import golden, tree_of
from tests.patches import apply_patch

PAGE = Path(verifying.__file__).with_name("verify.html")
VECTORS = Path(make.__file__).parent
STEPS = ("read", "signature", "witnesses", "inclusion", "texts", "completeness", "averages", "list", "age")

# At which step a code turns the page red.
STEP_OF = {
    **dict.fromkeys(
        (
            *("malformed_json", "duplicate_key", "too_deep", "not_utf8", "number_out_of_range"),
            *("answer_malformed", "receipt_malformed", "base64_invalid", "hash_length", "wrong_kind"),
            *("map_path_length", "map_zeros_spelled_out", "map_other_malformed", "opening_malformed"),
            *("entry_too_large", "entry_malformed", "entry_not_canonical", "entry_unknown_type", "entry_invalid"),
            *("receipt_mismatch", "tlog_proof_malformed", "tlog_proof_extra", "did_not_canonical"),
        ),
        "read",
    ),
    **dict.fromkeys(("vkey_malformed", "note_malformed", "signer_unknown", "signature_invalid"), "signature"),
    **dict.fromkeys(("checkpoint_malformed", "origin_mismatch"), "signature"),
    **dict.fromkeys(("policy_malformed", "cosignature_invalid", "quorum_missing"), "witnesses"),
    **dict.fromkeys(("index_out_of_range", "index_order", "proof_length", "root_mismatch"), "inclusion"),
    **dict.fromkeys(("map_head_not_last", "foreign_event", "time_falls"), "inclusion"),
    **dict.fromkeys(("opening_unexpected", "opening_mismatch"), "texts"),
    **dict.fromkeys(("map_root_mismatch", "map_other_unexpected", "map_other_elsewhere"), "completeness"),
    **dict.fromkeys(("absent_with_events", "record_invalid", "sub_root_mismatch"), "completeness"),
    **dict.fromkeys(("pages_differ", "pages_incomplete"), "completeness"),
    **dict.fromkeys(("review_id_reused", "review_unknown", "response_repeated", "response_late"), "averages"),
    **dict.fromkeys(("upgrade_not_unconfirmed", "redaction_of_nothing", "redaction_repeated"), "averages"),
    **dict.fromkeys(("record_mismatch", "face_mismatch"), "averages"),
    **dict.fromkeys(("history_mismatch", "history_unproved"), "list"),
}
# A page's proof inside of the host's own tree is looked at with the map, and has the same codes as that in the log.
IN_OWN_TREE = {
    *("page-beyond-end", "page-beyond-the-end", "page-empty", "page-sub-proof-extra"),
    *("page-event-left-out", "page-event-omitted"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """What is given to a verifier; `code` is what Python's refuses it with, or None."""

    name: str
    documents: tuple[str, ...]
    key: str
    host: str = ""
    kind: str | None = None
    policy: str = ""
    code: str | None = None

    def options(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in ("key", "host", "kind", "policy")}
        return {**given, "documents": list(self.documents)}


@dataclass(slots=True)
class Report:
    """What the page says, as far as tests look at it."""

    verdict: str
    code: str | None
    step: str | None
    states: dict[str, str]
    says: dict[str, str]
    texts: dict[str, str] = field(default_factory=dict)
    summary: dict[str, Any] | None = None
    statistics: dict[str, Any] | None = None
    reviews: list[dict[str, Any]] = field(default_factory=list)


def refusal(check: Callable[..., Any], *arguments: Any, **options: Any) -> str | None:
    """The code with which Python refuses."""
    try:
        check(*arguments, **options)
    except StaylogError as error:
        return error.code
    return None


def answer_case(name: str, answer: Any, key: str, host: str, kind: str | None = None) -> Case:
    """`answer` is text already, or what becomes text."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    code = refusal(verify_answer, text.encode("utf-8", "surrogatepass"), Verifier.parse(key), host, kind=kind)
    return Case(name, (text,), key, host, kind, code=code)


def pages_case(name: str, pages: Sequence[Any], key: str, host: str) -> Case:
    texts = tuple(json.dumps(page) for page in pages)
    code = refusal(verify_pages, [text.encode() for text in texts], Verifier.parse(key), host)
    # A set of one is a list of one: alone it would be a page.
    return Case(name, texts if len(texts) > 1 else (f"[{','.join(texts)}]",), key, host, code=code)


def receipt_case(name: str, receipt: Any, key: str, policy: str = "") -> Case:
    def check(data: bytes) -> None:
        verify_receipt(data, Verifier.parse(key), policy=Policy.parse(policy) if policy else None)

    text = receipt if isinstance(receipt, str) else json.dumps(receipt)
    return Case(name, (text,), key, policy=policy, code=refusal(check, text.encode()))


def read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text("utf-8"))


GOLDEN, OWN = golden("answers.json"), read("answers.json")
ANSWERS = {
    f"{about} {case['name']}": (case, given["vkey"])
    for about, given in (("golden", GOLDEN), ("own", OWN))
    for case in given["answers"]
}
RECEIPTS = {"golden": golden("receipt.json"), "own": read("receipt.json")}


def _answer_cases(about: str, vectors: dict[str, Any]) -> Iterator[Case]:
    key, bases = vectors["vkey"], {case["name"]: case for case in vectors["answers"]}
    for case in [*vectors["answers"], *vectors.get("rejected_signed", ())]:
        yield answer_case(f"{about} {case['name']}", case["answer"], key, case["did"], case.get("kind", "full"))
    for name in ("accepted_patches", "rejected_patches", "tampered"):
        for case in vectors.get(name, ()):
            base, answer = bases[case["base"]], apply_patch(bases[case["base"]]["answer"], case["patch"])
            yield answer_case(f"{about} {case['name']}", answer, key, base["did"], base["kind"])
    for case in vectors["page_sets"]:
        pages = [bases[name] for name in case["pages"]]
        yield pages_case(f"{about} set {'+'.join(case['pages'])}", [p["answer"] for p in pages], key, pages[0]["did"])
    for case in vectors.get("other_dids", ()):
        yield answer_case(f"{about} {case['did']}", bases[case["base"]]["answer"], key, case["did"])


def _receipt_cases(about: str, vectors: dict[str, Any]) -> Iterator[Case]:
    receipt, key = vectors["receipt"], vectors["vkey"]
    yield receipt_case(f"{about} receipt", receipt, key)
    for case in vectors.get("tlog_proof_reject", ()):
        yield receipt_case(f"{about} receipt {case['reason']}", {**receipt, "tlog_proof": case["tlog_proof"]}, key)
    for case in vectors.get("tampered", ()):
        yield receipt_case(f"{about} receipt {case['name']}", apply_patch(receipt, case["patch"]), key)


def vector_cases() -> list[Case]:
    """Every answer, page set and receipt of the golden vectors and of the project's own."""
    cases = [*_answer_cases("golden", GOLDEN), *_answer_cases("own", OWN)]
    for about, vectors in RECEIPTS.items():
        cases += _receipt_cases(about, vectors)
    return cases


def expected_step(case: Case, code: str | None) -> str | None:
    name = case.name.split(" ", 1)[-1]
    return "completeness" if name in IN_OWN_TREE else STEP_OF[code] if code else None


_RUN = """(async () => {
    const reports = [];
    for (const options of arguments[0]) reports.push(await staylog.verify(options));
    return reports.map(({ verdict, code, step, steps, texts, summary, statistics, reviews }) => ({
        verdict, code, step, texts, summary, statistics, reviews,
        states: steps.map(({ id, state }) => [id, state]), says: steps.map(({ id, says }) => [id, says]) }));
})()"""


def reports(browser: Browser, cases: Sequence[Case]) -> list[Report]:
    """What the page that is open says of each."""
    made = browser.evaluate(_RUN, [case.options() for case in cases])
    # The driver sorts the members of objects; the steps have an order.
    return [Report(**{**each, "states": dict(each["states"]), "says": dict(each["says"])}) for each in made]


def check_report(case: Case, report: Report, code: str | None, step: str | None) -> None:
    """The verdict, the first step that is wrong, and that none after it was looked at."""
    assert (report.code, report.step) == (code, step), (case.name, report.says)
    assert report.verdict == ("wrong" if code else "proved")
    order = list(report.states)
    if step is None:
        assert not {"wrong", "unreached"} & set(report.states.values())
        return
    at = order.index(step)
    assert report.states[step] == "wrong"
    assert not {"wrong", "unreached"} & {report.states[name] for name in order[:at]}
    assert {report.states[name] for name in order[at + 1 :]} <= {"unreached"}
    assert (report.summary, report.reviews) == (None, [])


def agree(browser: Browser, cases: list[Case]) -> list[str | None]:
    """The codes, once both have given the same ones."""
    codes = []
    for case, report in zip(cases, reports(browser, cases), strict=True):
        assert report.code == case.code, (case.name, case.code, report.code, report.says)
        codes.append(case.code)
    assert browser.messages() == []
    return codes


# A log whose operator signs anything: its key, and a host.
FORGER = SigningKey(bytes(range(32, 64)))
FORGED = Verifier("forged.example/log", ED25519, bytes(FORGER.verify_key))
AT, LATER = "2026-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


def forged_leaves(host: str, record: str | None, entries: Sequence[str]) -> tuple[list[bytes], HostMap]:
    """The whole log of a forged answer: genesis, a map head, the entries, and a map head with the record."""
    genesis = make_entry("genesis", origin=FORGED.name, policy=base64.encode(bytes(32)), previous=None, at=AT)
    first = make_entry("map_head", size=1, root=base64.encode(HostMap().root()), at=AT)
    hosts = HostMap([] if record is None else [(map_key(host), map_value(record.encode("utf-8", "surrogatepass")))])
    leaves = [genesis.data, first.data, *(text.encode() for text in entries)]
    head = make_entry("map_head", size=len(leaves), root=base64.encode(hosts.root()), at=LATER)
    return [*leaves, head.data], hosts


def forged_tree(host: str, record: str | None, entries: Sequence[str]) -> tuple[TileTree, int]:
    leaves, _ = forged_leaves(host, record, entries)
    return tree_of([leaf_hash(leaf) for leaf in leaves])[1], len(leaves)


def forged(host: str, record: str | None, entries: Sequence[str] = (), face: Mapping[str, Any] | None = None) -> Any:
    """An answer about `host` under a good signature, with good paths: whatever it says, only its rules can refuse it.

    Without `entries` it is an aggregate, else a full answer.
    """
    (leaves, hosts), (tree, size) = forged_leaves(host, record, entries), forged_tree(host, record, entries)
    indices = [*range(2, 2 + len(entries)), size - 1]
    proof: dict[str, Any] = {
        "checkpoint": sign_checkpoint(Checkpoint(FORGED.name, size, tree.root(size)), FORGER),
        "map_head": leaves[-1].decode(),
        "log_proof": [base64.encode(node) for node in tree.multiproof(indices, size)],
        "map_proof": hosts.prove(map_key(host)).as_json(),
        "record": record,
        "map_other": None,
    }
    if entries:
        proof["events"] = [{"index": 2 + at, "entry": text, "opening": None} for at, text in enumerate(entries)]
    return {**(face or {}), "proof": proof}
