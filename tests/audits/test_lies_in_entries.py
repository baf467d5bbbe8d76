"""Every rule that entries can break, broken by whoever holds the key: found at its place, and proved by few entries."""

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from audits import broken_rules
from audits.audit import Audit, Options
from audits.evidence import Audited
from audits.mirror import Mirror
from audits.source import FolderSource
from audits.state import opened
from ledger.canon import jcs
from ledger.canon.times import format_time
from ledger.log.checkpoint import open_checkpoint
from ledger.log.drafts import make_draft
from ledger.log.entries import make_entry
from ledger.log.replay import MAX_BATCH
from ledger.log.tiles import TileTree
from tests.audits.bent import Bent
from tests.audits.convicting import DECLARED, audit, convict_here, shows
from tests.audits.forger import HASH, TRUST, VOUCHER, Forger, genesis
from tests.ledger.log.test_entries import VALID
from tests.running import OTHER, Writer
from tests.world import LOG

# Adds the lie to a log that is right, and says where it stands.
Lie = Callable[[Forger, Writer], int]


class Case(NamedTuple):
    """What is found, and whether the audit can go on after it."""

    code: str
    lie: Lie
    kind: str = "entries"
    goes_on: bool = False


def raw(data: bytes) -> Lie:
    return lambda forger, _: forger.put(data)


def spelled(type_: str, **changes: Any) -> Lie:
    """An entry that no writer of ours would write."""
    members = {"type": type_, "v": 1, **VALID.get(type_, {}), **changes}
    return raw(jcs.dumps(members))


def reused(host: str) -> Lie:
    def lie(forger: Forger, writer: Writer) -> int:
        first = forger.add(writer.review())
        return forger.add(writer.review(host, review_id=first.entry.members["review_id"])).index

    return lie


def about(type_: str, at: int | None = None, **changes: Any) -> Lie:
    """An entry about a review that it does not name, or not rightly; `at` is how far its place is from its own."""

    def lie(forger: Forger, writer: Writer) -> int:
        review = forger.add(writer.review())
        make = {"response": writer.response, "redaction": writer.redaction, "upgrade": writer.upgrade}[type_]
        members = {**make(review).members, **changes}
        if at is not None:
            members["review"] = forger.size + at
        return forger.add(make_draft(type_, members)).index

    return lie


def late_response(forger: Forger, writer: Writer) -> int:
    review = forger.add(writer.review())
    forger.head()
    forger.clock.forward(days=30, seconds=1)
    return forger.add(writer.response(review)).index


def second_response(forger: Forger, writer: Writer) -> int:
    review = forger.add(writer.review())
    forger.add(writer.response(review))
    forger.head()
    return forger.add(writer.response(review, "We never said that.")).index


def redacted(part: str, *, twice: bool, text: str | None = "Quiet.") -> Lie:
    def lie(forger: Forger, writer: Writer) -> int:
        review = forger.add(writer.review(text=text))
        if part == "response" and twice:
            forger.add(writer.response(review))
        forger.add(writer.policy())
        for _ in range(twice):
            forger.add(writer.redaction(review, part))
        return forger.add(writer.redaction(review, part)).index

    return lie


def upgraded(level: str, times: int) -> Lie:
    def lie(forger: Forger, writer: Writer) -> int:
        review = forger.add(writer.review(level=level))
        return [forger.add(writer.upgrade(review)).index for _ in range(times)][-1]

    return lie


def upgraded_by_another(forger: Forger, writer: Writer) -> int:
    review = forger.add(writer.review(level="unconfirmed"))
    evidence = {**writer.evidence("stay_receipt"), "issuer": EVIL}
    members = {**writer.upgrade(review).members, "evidence": evidence}
    return forger.add(make_draft("upgrade", members)).index


def earlier_time(forger: Forger, writer: Writer) -> int:
    forger.clock.forward(days=3)
    forger.add(writer.check())
    forger.head()
    index = forger.add(writer.policy(), at="2026-06-02T12:00:00Z").index
    forger.head()
    return index


def index_heads(*seqs: int) -> Lie:
    def lie(forger: Forger, _writer: Writer) -> int:
        at = format_time(forger.clock())
        heads = [make_entry("index_head", seq=seq, count=0, root=HASH, at=at) for seq in seqs]
        index = [forger.put(head.data) for head in heads][-1]
        forger.head()
        return index

    return lie


def backdated_for_its_host(forger: Forger, writer: Writer) -> int:
    review = forger.add(writer.review())
    forger.clock.forward(days=40)
    forger.add(writer.check())
    forger.head()
    return forger.add(writer.response(review), at="2026-06-02T12:00:00Z").index


def long_batch(forger: Forger, writer: Writer) -> int:
    return [forger.add(writer.policy()).index for _ in range(MAX_BATCH + 1)][-1]


def vouched(*entries: dict[str, Any], **evidence: Any) -> Lie:
    """A review after these entries about its issuer."""

    def lie(forger: Forger, writer: Writer) -> int:
        for members in entries:
            forger.add(make_draft("issuer", {**TRUST, **members}))
        return forger.add(writer.review(evidence={**writer.evidence("stay_receipt"), **evidence})).index

    return lie


def committed(type_: str, member: str, commitment: str | None = None) -> Lie:
    """An entry of this type with the commitment of a review before it, or with another one; after some other entries."""

    def lie(forger: Forger, writer: Writer) -> int:
        draft = writer.review(level="unconfirmed")
        review = forger.add(draft)
        forger.add(writer.check())
        evidence = review.entry.members["evidence"]
        again = commitment or evidence["commitment"]
        drafts = {
            "review": writer.review(),
            "booking_check": writer.check(),
            "response": writer.response(review),
            "redaction": writer.redaction(review),
            "upgrade": writer.upgrade(review),
        }
        members = drafts[type_].members
        if member == "text":
            opened = {**members, "text": review.entry.members["text"]}
            return forger.add(make_draft(type_, opened, opening=draft.opening)).index
        changed = {**members[member], "commitment": again} if member == "evidence" else again
        return forger.add(make_draft(type_, {**members, member: changed}, opening=drafts[type_].opening)).index

    return lie


def same_twice(forger: Forger, writer: Writer) -> int:
    response = writer.response(forger.add(writer.review()))
    members = {**response.members, "statement": response.members["text"]}
    return forger.add(make_draft("response", members, opening=response.opening)).index


EVIL = "https://evil.example"
NOTHING = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
COMMITMENTS = [
    ("review", "text"), ("review", "evidence"), ("response", "text"), ("response", "statement"), ("upgrade", "evidence"),
    ("redaction", "decision"), ("booking_check", "booking"),
]  # fmt: skip
UNCONFIRMED = {"booking": "none", "commitment": HASH, "idv_level": None, "issuer": None}
CASES = {
    "no text at all": Case("entry_malformed", raw(b"\xff\xfe\x00")),
    "no JSON": Case("entry_malformed", raw(b"Five stars.")),
    "a member twice": Case("entry_malformed", raw(b'{"type":"policy","type":"policy","v":1}')),
    "JSON with spaces": Case("entry_not_canonical", raw(json.dumps({"type": "policy", "v": 1, **VALID["policy"]}).encode())),
    "a type of its own": Case("entry_unknown_type", spelled("hearsay")),
    "a version of its own": Case("entry_unknown_type", spelled("policy", v=2)),
    "a rating of six stars": Case("entry_invalid", spelled("review", ratings={**VALID["review"]["ratings"], "overall": 6})),
    "an upgrade that lowers a level": Case("entry_invalid", spelled("upgrade", level="unconfirmed")),
    "a second genesis": Case("genesis_repeated", raw(genesis().data)),
    "a map head of another place": Case("map_head_size", spelled("map_head", at="2026-06-01T12:00:00Z")),
    "a guest whom nobody vouched for": Case("issuer_missing", vouched(issuer=None), goes_on=True),
    "an unconfirmed guest whom nobody vouched for": Case(
        "issuer_missing", lambda forger, writer: forger.add(writer.review(level="unconfirmed", evidence=UNCONFIRMED)).index,
        goes_on=True,
    ),
    "an id used twice": Case("review_id_reused", reused("did:web:cottage.example")),
    "an id used for another host": Case("review_id_reused", reused(OTHER)),
    "a response to itself": Case("review_unknown", about("response", 0)),
    "a response to what comes later": Case("review_unknown", about("response", 5)),
    "a response to no review": Case("review_unknown", about("response", -4)),
    "a response to a review of another name": Case("review_unknown", about("response", review_id="rev-" + "a" * 26)),
    "a response to another host's review": Case("review_unknown", about("response", host_did=OTHER)),
    "a redaction of another host's review": Case("review_unknown", about("redaction", host_did=OTHER)),
    "an upgrade of no review": Case("review_unknown", about("upgrade", -3)),
    "a second response": Case("response_repeated", second_response),
    "a response after 30 days": Case("response_late", late_response),
    "a text redacted twice": Case("redaction_repeated", redacted("text", twice=True)),
    "a response redacted twice": Case("redaction_repeated", redacted("response", twice=True)),
    "a redaction of no text": Case("redaction_of_nothing", redacted("text", twice=False, text=None)),
    "a redaction of a response that never was": Case("redaction_of_nothing", redacted("response", twice=False), "prefix"),
    "an upgrade of what is verified": Case("upgrade_not_unconfirmed", upgraded("guest_verified", 1)),
    "an upgrade of what the host attested": Case("upgrade_not_unconfirmed", upgraded("host_attested", 1)),
    **{
        f"the commitment of another entry as the {member} of a {type_}": Case(
            "commitment_repeated", committed(type_, member), goes_on=True
        )
        for type_, member in COMMITMENTS
    },
    **{
        f"nothing as the {member} of a {type_}": Case(
            "commitment_of_nothing", committed(type_, member, NOTHING), goes_on=True
        )
        for type_, member in COMMITMENTS
        if member != "text"
    },
    "one commitment twice in an entry": Case("commitment_repeated", same_twice, goes_on=True),
    "an upgrade by another issuer": Case("issuer_changed", upgraded_by_another, goes_on=True),
    "a second upgrade": Case("upgrade_not_unconfirmed", upgraded("unconfirmed", 2)),
    "a response that is older than the host's last event": Case("time_falls", backdated_for_its_host),
    "a time that falls": Case("time_falls", earlier_time, goes_on=True),
    "a number of an index head that falls": Case("index_seq_falls", index_heads(0, 7, 7, 6), goes_on=True),
    "a batch without an end": Case("batch_too_long", long_batch),
    "an issuer that nobody trusted": Case("issuer_untrusted", vouched(issuer=EVIL), "prefix", goes_on=True),
    "an issuer that is trusted for hosts only": Case(
        "issuer_untrusted", vouched({"issuer": EVIL, "role": "host"}, issuer=EVIL), "prefix", goes_on=True
    ),
    "an issuer that was removed": Case("issuer_untrusted", vouched({"action": "removed"}), "prefix", goes_on=True),
    "an issuer that was in other hands": Case(
        "issuer_untrusted", vouched({"action": "compromised", "since": "2026-05-01T00:00:00Z"}), "prefix", goes_on=True
    ),
    "an issuer that is trusted for less": Case(
        "issuer_untrusted", vouched({"max_idv_level": "email_verified"}, issuer=VOUCHER), "prefix", goes_on=True
    ),
}  # fmt: skip
DECLARED["test_the_entry_that_breaks_a_rule_is_found"] = frozenset((case.kind, case.code) for case in CASES.values())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_entry_that_breaks_a_rule_is_found(case: Case, writer: Writer) -> None:
    forger = Forger.begun(writer)
    index = case.lie(forger, writer)
    forger.head()
    forger.add(writer.check(OTHER))
    forger.head()
    found = audit(forger)
    [finding] = found.found
    assert (finding.fraud.kind, finding.fraud.code, finding.index, finding.count) == (case.kind, case.code, index, 1)
    convict_here(finding.fraud.as_json(LOG))
    assert found.unchecked == []
    assert bool(found.figures["answers"]) == case.goes_on


def test_accepts_index_heads_whose_numbers_do_not_fall(writer: Writer, tmp_path: Path) -> None:
    forger = Forger.begun(writer)
    index_heads(0, 0, 7, 2**53 - 1)(forger, writer)
    assert audit(forger).verdict == "clean"
    Mirror(Bent(forger), tmp_path / "copy", LOG, lambda *_: None, hosts=1, pause=0).update()
    with opened(None, LOG) as kept:
        checking = Audit(FolderSource(tmp_path / "copy"), LOG, kept, Options(), clock=forger.clock, pause=0)
        checking.run()
    assert checking.findings.verdict == "clean"


def test_goes_on_from_a_kept_state_with_the_number_of_the_last_index_head(writer: Writer, tmp_path: Path) -> None:
    forger = Forger.begun(writer)
    index_heads(7)(forger, writer)
    assert audit(forger, state=tmp_path).verdict == "clean"
    index = index_heads(6)(forger, writer)
    [finding] = audit(forger, state=tmp_path).found
    assert (finding.fraud.code, finding.index) == ("index_seq_falls", index)


def test_the_forger_can_also_tell_the_truth(writer: Writer) -> None:
    found = audit(Forger.begun(writer))
    assert (found.verdict, found.figures["answers"], found.figures["checkpoints"]) == ("clean", 1, 3)


@shows(("entries", "genesis_missing"), ("entries", "genesis_batch"), ("entries", "origin_mismatch"))
def test_how_a_log_has_to_begin(writer: Writer) -> None:
    policy = writer.policy()
    first, second = Forger(policy.at("2026-06-01T12:00:00Z").data), Forger()
    second.add(policy)
    foreign = Forger(genesis("other.example/log").data)
    begun = {"genesis_missing": (first, 0), "genesis_batch": (second, 1), "origin_mismatch": (foreign, 0)}
    for code, (forger, index) in begun.items():
        forger.head()
        [finding] = audit(forger).found
        assert (finding.fraud.code, finding.index) == (code, index)
        convict_here(finding.fraud.as_json(LOG))


@shows(("entries", "map_head_not_last"))
def test_a_checkpoint_ends_in_a_map_head(writer: Writer) -> None:
    forger = Forger.begun(writer)
    index = forger.add(writer.policy()).index
    forger.sign()
    # The answer about a host has no map head to show either.
    finding, answered = sorted(audit(forger).found, key=lambda each: each.fraud.proof, reverse=True)
    assert answered.fraud.code == finding.fraud.code == "map_head_not_last"
    assert finding.index == index
    convict_here(finding.fraud.as_json(LOG))


@shows(("entries", "entry_too_large"))
def test_no_bundle_can_have_an_entry_that_is_too_large_but_who_has_it_can_show_it(writer: Writer) -> None:
    forger = Forger.begun(writer)
    index = forger.put(b"[" + b"0" * 70_000 + b"]")
    note = forger.head()

    def entries(start: int, stop: int) -> list[bytes]:
        return list(islice(forger.data, start, stop))

    log = Audited(note, open_checkpoint(note, LOG), TileTree(forger.tiles), entries)
    convict_here(broken_rules.prove(log, "entry_too_large", index, "a large entry").as_json(LOG))
