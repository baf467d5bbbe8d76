"""What an operator who holds the log key can try. Signatures and hashes are right here; only a rule is broken."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from audits import standalone_verify
from audits.report import Report
from audits.verify import verify_answer, verify_pages
from ledger.canon import base64, jcs, strict_json
from ledger.errors import StaylogError
from ledger.log import answers
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.entries import Entry, make_entry
from ledger.log.face import Event, summary
from ledger.log.hostmap import HostMap, map_key, map_value
from ledger.log.record import HostFold, fold, sublog_leaf
from ledger.log.tiles import TileTree
from ledger.log.tree import root_of
from tests.ledger.log.test_record import about, redact, review
from tests.ledger.log.test_tree import stored
from tests.world import KEY, LOG, ORIGIN

HOST = "did:web:host.example"
AT = "2026-04-02T00:00:00Z"
CHECK = make_entry("booking_check", host_did=HOST, outcome="denied", booking=base64.encode(bytes(32)), at=AT)
POLICY = make_entry("policy", policy=base64.encode(bytes(32)), at="2026-01-01T00:00:00Z")


@dataclass
class Forgery:
    """A signed tree of any entries, under a map that has any record of the host, or none."""

    entries: list[Entry]
    record: bytes | None
    host: str = HOST
    at: str = "2026-06-01T00:00:00Z"
    filler: list[Entry] = field(default_factory=lambda: [POLICY, POLICY])

    def __post_init__(self) -> None:
        leaves = [(map_key(self.host), map_value(self.record))] if self.record is not None else []
        hosts = HostMap([*leaves, (map_key("did:web:other.example"), bytes(32))])
        entries = [*self.filler, *self.entries]
        head = make_entry("map_head", size=len(entries), root=base64.encode(hosts.root()), at=self.at)
        tiles = stored(entry.leaf_hash for entry in (*entries, head))
        self.tree = TileTree(tiles)
        size = len(entries) + 1
        note = sign_checkpoint(Checkpoint(ORIGIN, size, self.tree.root(size)), KEY)
        path = hosts.prove(map_key(self.host))
        self.view = answers.View(self.host, note, size, head.data.decode(), path, self.record)

    def events(self, *places: int) -> list[Event]:
        """The events at these places of `entries`, all by default."""
        every = [Event(index, entry) for index, entry in enumerate(self.entries, len(self.filler))]
        return [every[place] for place in places] if places else every

    def full(self, events: list[Event] | None = None) -> bytes:
        events = self.events() if events is None else events
        proof = {**answers._proof(self.view, self.tree, events), "events": [answers._event(event) for event in events]}
        return json.dumps({**self._summary(), "review_history": [], "proof": proof}).encode()

    def aggregate(self) -> bytes:
        return json.dumps({**self._summary(), "proof": answers._proof(self.view, self.tree, ())}).encode()

    def page(self, events: list[Event], start: int, sublog: list[bytes]) -> bytes:
        shown = answers.page(self.view, self.tree, events, start, answers.Leaves(sublog))
        return json.dumps({**self._summary(), **shown}).encode()

    def _summary(self) -> dict[str, Any]:
        return summary(self.host, strict_json.loads(self.record) if self.record else None)


def both_refuse(*documents: bytes, host: str = HOST) -> str:
    """The code of the library's refusal; the standalone verifier must refuse too."""
    with pytest.raises(Exception):
        standalone_verify.verify([document.decode() for document in documents], str(LOG), host)
    with pytest.raises(StaylogError) as refusal:
        library(documents, host)
    return refusal.value.code


def both_accept(*documents: bytes) -> None:
    assert standalone_verify.verify([document.decode() for document in documents], str(LOG), HOST)
    assert library(documents, HOST).proved


def library(documents: tuple[bytes, ...], host: str) -> Report:
    return verify_answer(documents[0], LOG, host) if len(documents) == 1 else verify_pages(documents, LOG, host)


def record_of(*entries: Entry, first: int = 2) -> bytes:
    return fold(HOST, enumerate(entries, first))


def changed(record: bytes, **members: Any) -> bytes:
    return jcs.dumps({**strict_json.loads(record), **members})


def sub(index: int, entry: Entry) -> bytes:
    return sublog_leaf(index, entry.leaf_hash)


def test_the_forger_can_also_tell_the_truth() -> None:
    honest = Forgery([CHECK, CHECK], record_of(CHECK, CHECK))
    leaves = [sub(2, CHECK), sub(3, CHECK)]
    both_accept(honest.full())
    both_accept(honest.aggregate())
    both_accept(honest.page(honest.events(0), 0, leaves), honest.page(honest.events(1), 1, leaves))


def test_one_entry_counted_three_times_on_three_pages() -> None:
    leaves = [sub(2, CHECK)] * 3
    checks = {"conflict": 0, "contradicted": 0, "denied": 3, "unanswered": 0}
    record = changed(record_of(CHECK), events=3, checks=checks, root=base64.encode(root_of(leaves)))
    forged = Forgery([CHECK], record)
    assert both_refuse(*(forged.page(forged.events(), place, leaves) for place in range(3))) == "index_order"


def test_events_in_another_order_on_two_pages() -> None:
    leaves = [sub(3, CHECK), sub(2, CHECK)]
    forged = Forgery([CHECK, CHECK], changed(record_of(CHECK, CHECK), root=base64.encode(root_of(leaves))))
    assert (
        both_refuse(forged.page(forged.events(1), 0, leaves), forged.page(forged.events(0), 1, leaves)) == "index_order"
    )


def test_one_entry_shown_twice_in_a_full_answer() -> None:
    record = changed(record_of(CHECK), events=2, root=base64.encode(root_of([sub(2, CHECK)] * 2)))
    document = json.loads(Forgery([CHECK], record).full())
    document["proof"]["events"] *= 2
    assert both_refuse(json.dumps(document).encode()) == "index_order"


def test_pages_of_two_forks_of_one_size() -> None:
    record, leaves = record_of(CHECK, CHECK), [sub(2, CHECK), sub(3, CHECK)]
    other = make_entry("policy", policy=base64.encode(bytes([1]) * 32), at="2026-01-01T00:00:00Z")
    one, two = Forgery([CHECK, CHECK], record), Forgery([CHECK, CHECK], record, filler=[POLICY, other])
    pages = one.page(one.events(0), 0, leaves), two.page(two.events(1), 1, leaves)
    assert both_refuse(*pages) == "pages_differ"


def test_time_falls_between_pages() -> None:
    later = make_entry(
        "booking_check", host_did=HOST, outcome="denied", booking=base64.encode(bytes(32)), at="2026-05-01T00:00:00Z"
    )
    leaves = [sub(2, later), sub(3, CHECK)]
    record = changed(record_of(CHECK, CHECK), root=base64.encode(root_of(leaves)), last_event=AT)
    forged = Forgery([later, CHECK], record)
    assert (
        both_refuse(forged.page(forged.events(0), 0, leaves), forged.page(forged.events(1), 1, leaves)) == "time_falls"
    )


def test_a_record_without_events() -> None:
    nothing = HostFold(HOST).record()
    assert both_refuse(Forgery([CHECK], nothing).full([])) == "record_invalid"
    assert both_refuse(Forgery([CHECK], nothing).aggregate()) == "record_invalid"
    dated = changed(nothing, last_event=AT)
    assert both_refuse(Forgery([CHECK], dated).aggregate()) == "record_invalid"


def test_a_host_left_out_of_the_map_although_it_has_events() -> None:
    assert both_refuse(Forgery([CHECK], None).full()) == "absent_with_events"


def test_an_event_where_the_genesis_stands() -> None:
    forged = Forgery([CHECK, POLICY], record_of(CHECK, first=0), filler=[])
    assert both_refuse(forged.full(forged.events(0))) == "index_out_of_range"
    forged = Forgery([CHECK], record_of(CHECK, first=1), filler=[POLICY])
    assert both_refuse(forged.full()) == "index_out_of_range"


def test_the_record_of_another_host() -> None:
    record = changed(record_of(CHECK), host="did:web:other.example")
    assert both_refuse(Forgery([CHECK], record).aggregate()) == "record_invalid"
    assert both_refuse(Forgery([CHECK], record).full()) == "record_mismatch"


@pytest.mark.parametrize(
    "members",
    [
        {"ratings": {"guest_verified": {"overall": [1, 100]}, "host_attested": {}, "unconfirmed": {}}},
        {"ratings": {"guest_verified": {"charm": [1, 9]}, "host_attested": {}, "unconfirmed": {}}},
        {"ratings": {"guest_verified": {"overall": [7, 63]}, "host_attested": {}, "unconfirmed": {}}},
        {"events": 0},
    ],
)
def test_impossible_sums_in_an_aggregate(members: dict[str, Any]) -> None:
    record = changed(record_of(review(0)), **members)
    assert both_refuse(Forgery([review(0)], record).aggregate()) == "record_invalid"


def test_a_second_redaction() -> None:
    entries = [review(0), redact("text")]
    record = changed(
        record_of(*entries),
        events=3,
        redactions=2,
        root=base64.encode(root_of([sub(i, e) for i, e in enumerate([*entries, redact("text")], 2)])),
    )
    assert both_refuse(Forgery([*entries, redact("text")], record).full()) == "redaction_repeated"


def raw(entry: Entry, **members: Any) -> Entry:
    """An entry with members that no reader takes."""
    data = jcs.dumps({**entry.members, **members})
    return Entry(data, entry.type, strict_json.loads(data))


@pytest.mark.parametrize(
    "issuer",
    ["did:WEB:foo.example", "did:web:A.example", "did:web:a.example%3A443", "did:x:y", "https://a.example/\u202e", "https://", "https://" + "a" * 300, ""],
)  # fmt: skip
def test_issuers_that_no_entry_may_name(issuer: str) -> None:
    good = review(0)
    bad = raw(good, evidence={**good.members["evidence"], "issuer": issuer})
    assert both_refuse(Forgery([bad], record_of(bad)).full()) == "entry_invalid"


def test_an_entry_that_is_too_large() -> None:
    good = review(0)
    bad = raw(good, listing_id="a" * 70_000)
    assert both_refuse(Forgery([bad], record_of(bad)).full()) == "entry_too_large"


def test_a_map_head_from_the_future() -> None:
    document = Forgery([CHECK], record_of(CHECK), at="2999-01-01T00:00:00Z").full()
    both_accept(document)
    with pytest.raises(standalone_verify.Wrong, match="not fresh"):
        standalone_verify.verify([document.decode()], str(LOG), HOST, max_age=24)


def test_absence_is_not_proved_for_another_spelling() -> None:
    host = "did:web:Host.example"
    assert both_refuse(Forgery([CHECK], None, host=host).full([]), host=host) == "did_not_canonical"


def test_an_upgrade_of_an_unconfirmed_review_may_be_told() -> None:
    unconfirmed = review(0, level="unconfirmed", evidence={**review(0).members["evidence"], "booking": "none"})
    upgrade = make_entry("upgrade", **about(0, 2, level="guest_verified", evidence=review(0).members["evidence"]))
    both_accept(Forgery([unconfirmed, upgrade], record_of(unconfirmed, upgrade)).full())


@pytest.mark.parametrize("size", ["1", "9007199254740992", "9999999999999999"])
def test_sizes_no_published_checkpoint_has(size: str) -> None:
    text = f"{ORIGIN}\n{size}\n{base64.encode(bytes(32))}\n"
    signature = base64.encode(LOG.key_id + KEY.sign(text.encode()).signature)
    with pytest.raises(standalone_verify.Wrong):
        standalone_verify.open_checkpoint(f"{text}\n— {ORIGIN} {signature}\n", str(LOG))


def both_refuse_changed(change: Any) -> str:
    document = json.loads(Forgery([CHECK, CHECK], record_of(CHECK, CHECK)).full())
    change(document)
    return both_refuse(json.dumps(document).encode())


# What anybody between the log and the reader can try with the form of an answer.
LOOSE = {
    "null behind a proof": lambda d: d["proof"]["log_proof"].append(None),
    "junk behind null": lambda d: d["proof"]["log_proof"].extend([None, "junk"]),
    "zeros as null": lambda d: d["proof"].update(
        map_proof=[None if text == "" else text for text in ["", *d["proof"]["map_proof"]]]
    ),
    "zeros as false": lambda d: d["proof"].update(map_proof=[False, *d["proof"]["map_proof"]]),
    "history as text": lambda d: d.update(review_history=""),
    "history as object": lambda d: d.update(review_history={}),
    "no history": lambda d: d.pop("review_history"),
    "events as object": lambda d: d["proof"].update(events={}),
    "signature with loose bits": lambda d: d["proof"].update(
        checkpoint=d["proof"]["checkpoint"].replace("=\n", "==\n")
    ),
}


@pytest.mark.parametrize("change", LOOSE.values(), ids=LOOSE)
def test_loose_forms(change: Any) -> None:
    assert both_refuse_changed(change)
