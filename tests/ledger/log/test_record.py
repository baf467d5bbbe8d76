"""The fold is deterministic, can be taken up again from a stored record, and refuses what no ledger may hold."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canon import jcs, strict_json
from ledger.errors import BrokenRule, NotProved, NotStored
from ledger.log.entries import Entry, make_entry
from ledger.log.face import average
from ledger.log.record import HostFold, Reviews, fold, mean_tenths
from ledger.log.record_form import read_record
from tests.ledger.log.test_entries import EVIDENCE, HASH, HOST, RATINGS
from tests.world import HOSTS, World


def events_of(world: World, host: str) -> list[tuple[int, Entry]]:
    return [(index, entry) for index, entry in enumerate(world.log.entries) if entry.host == host]


@given(st.integers(0, 10_000))
@settings(max_examples=40)
def test_the_fold_is_deterministic_and_its_record_is_self_consistent(seed: int) -> None:
    world = World(seed, HOSTS[:2]).grow(12)
    for host in HOSTS[:2]:
        events = events_of(world, host)
        if events:
            record = fold(host, events)
            assert record == fold(host, events)
            assert record == jcs.dumps(strict_json.loads(record))
            assert jcs.dumps(read_record(record.decode(), host)) == record


@given(st.integers(0, 10_000), st.integers(0, 30))
@settings(max_examples=40)
def test_it_can_be_taken_up_from_a_stored_record(seed: int, cut: int) -> None:
    world = World(seed, HOSTS[:1]).grow(12)
    events = events_of(world, HOSTS[0])
    whole, first = HostFold(HOSTS[0]), HostFold(HOSTS[0])
    for index, entry in events:
        whole.add(index, entry)
    for index, entry in events[:cut]:
        first.add(index, entry)
    if events[:cut]:
        first = HostFold.resume(HOSTS[0], first.members(), b"".join(first.edge.nodes), first.reviews)
    for index, entry in events[cut:]:
        first.add(index, entry)
    if events:
        assert first.record() == whole.record() == jcs.dumps(whole.members())


@pytest.mark.parametrize("damage", [lambda edge: edge[:-32], lambda edge: edge + edge[:32], lambda edge: edge[::-1]])
def test_an_edge_that_does_not_fit_its_record_is_damage(damage: Callable[[bytes], bytes]) -> None:
    fold = HostFold(HOST)
    for number in range(3):
        fold.add(number + 2, review(number))
    edge = b"".join(fold.edge.nodes)
    with pytest.raises(NotStored, match="edge"):
        HostFold.resume(HOST, fold.members(), damage(edge), Reviews())


def review(number: int, **members: Any) -> Entry:
    defaults = {
        "review_id": "rev-" + "abcdefgh"[number] * 25 + "a", "host_did": HOST, "listing_id": "l", "check_in": "2026-03-01",
        "check_out": "2026-03-02", "ratings": RATINGS, "level": "guest_verified", "evidence": EVIDENCE, "repeat": False,
        "text": HASH, "at": "2026-04-01T00:00:00Z",
    }  # fmt: skip
    return make_entry("review", **{**defaults, **members})


def about(number: int, index: int, at: str = "2026-04-02T00:00:00Z", **members: Any) -> dict[str, Any]:
    review_id = "rev-" + "abcdefgh"[number] * 25 + "a"
    return {"review_id": review_id, "review": index, "host_did": HOST, "at": at, **members}


UNCONFIRMED: dict[str, Any] = {"level": "unconfirmed", "evidence": {**EVIDENCE, "booking": "none"}}
RESPONSE: dict[str, Any] = {"text": HASH, "statement": HASH}
UPGRADE: dict[str, Any] = {"level": "guest_verified", "evidence": EVIDENCE}
REDACTION: dict[str, Any] = {"basis": "gdpr_17", "decision": HASH}


def respond(index: int = 2, **members: Any) -> Entry:
    return make_entry("response", **about(0, index, **{**RESPONSE, **members}))


def redact(part: str, index: int = 2) -> Entry:
    return make_entry("redaction", **about(0, index, part=part, **REDACTION))


BROKEN = [
    ("review_id_reused", [review(0), review(0)]),
    ("review_unknown", [respond()]),
    ("review_unknown", [review(0), respond(1)]),
    ("review_unknown", [review(0), respond(3)]),
    ("review_unknown", [review(0), review(1), make_entry("response", **about(1, 2, **RESPONSE))]),
    ("response_repeated", [review(0), respond(), respond()]),
    ("response_late", [review(0), respond(at="2026-05-01T00:00:01Z")]),
    ("upgrade_not_unconfirmed", [review(0), make_entry("upgrade", **about(0, 2, **UPGRADE))]),
    ("upgrade_not_unconfirmed", [review(0, **UNCONFIRMED)] + [make_entry("upgrade", **about(0, 2, **UPGRADE))] * 2),
    ("redaction_of_nothing", [review(0, text=None), redact("text")]),
    ("redaction_of_nothing", [review(0), redact("response")]),
    ("redaction_repeated", [review(0), redact("text"), redact("text")]),
    ("time_falls", [review(0), review(1, at="2026-03-31T23:59:59Z")]),
    ("foreign_event", [review(0, host_did="did:web:other.example")]),
    ("foreign_event", [make_entry("policy", policy=HASH, at="2026-04-01T00:00:00Z")]),
]


@pytest.mark.parametrize(("code", "entries"), BROKEN, ids=[f"{i} {code}" for i, (code, _) in enumerate(BROKEN)])
def test_a_broken_rule_is_named_and_leaves_the_fold_as_it_was(code: str, entries: list[Entry]) -> None:
    state = HostFold(HOST)
    for index, entry in enumerate(entries[:-1], 2):
        state.add(index, entry)
    before = state.record()
    for _ in range(2):
        with pytest.raises(BrokenRule) as refusal:
            state.add(len(entries) + 1, entries[-1])
        assert refusal.value.code == code
        assert state.record() == before


def test_a_response_may_come_up_to_the_last_second() -> None:
    state = HostFold(HOST)
    state.add(2, review(0))
    state.add(3, respond(at="2026-05-01T00:00:00Z"))
    assert read_record(state.record().decode(), HOST)["responses"] == 1


def test_an_upgrade_moves_ratings_and_never_mixes_levels() -> None:
    state = HostFold(HOST)
    state.add(2, review(0, repeat=True, check_in="2026-02-01", **UNCONFIRMED))
    state.add(3, review(1))
    before = read_record(state.record().decode(), HOST)
    assert (before["first_stay"], before["repeats"], before["reviews"]["guest_verified"]) == ("2026-03-01", 0, 1)
    assert before["ratings"]["unconfirmed"]["overall"] == [1, 9]
    state.add(4, make_entry("upgrade", **about(0, 2, **UPGRADE)))
    after = read_record(state.record().decode(), HOST)
    assert (after["first_stay"], after["repeats"], after["reviews"]["guest_verified"]) == ("2026-02-01", 1, 2)
    assert after["ratings"] == {
        "guest_verified": {category: [2, int(4 * rating)] for category, rating in RATINGS.items()},
        "host_attested": {},
        "unconfirmed": {},
    }


@given(st.integers(1, 1000), st.data())
def test_means_are_half_up_to_one_decimal(count: int, data: st.DataObject) -> None:
    from decimal import ROUND_HALF_UP, Decimal

    total = data.draw(st.integers(2 * count, 10 * count))
    exact = (Decimal(total) / 2 / count).quantize(Decimal("0.1"), ROUND_HALF_UP)
    assert mean_tenths(total, count) == int(exact * 10)
    assert average(count, total) == float(exact)


def test_nobody_rated_is_null() -> None:
    assert average(0, 0) is None


def test_a_record_that_no_fold_gives_is_refused() -> None:
    state = HostFold(HOST)
    for index, entry in enumerate([review(0), review(1, **UNCONFIRMED), respond()], 2):
        state.add(index, entry)
    good = strict_json.loads(state.record())
    wrong: list[dict[str, Any]] = [
        {"events": 0}, {"events": 99}, {"events": True}, {"events": -1}, {"v": 2}, {"v": True}, {"host": "did:web:x.example"}, {"root": "AA=="},
        {"repeats": 2}, {"responses": 3}, {"redactions": 9}, {"first_stay": None}, {"first_stay": "2026-02-30"}, {"last_event": "now"}, {"last_event": None},
        {"histogram": [0] * 9}, {"histogram": [*good["histogram"][1:], 0]}, {"histogram": [1] * 8}, {"reviews": {"guest_verified": 1}}, {"checks": {}}, {"checks": []}, {"ratings": {}}, {"note": 1},
        {"ratings": {**good["ratings"], "host_attested": {"charm": [0, 0]}}}, {"ratings": {**good["ratings"], "host_attested": {"overall": [0, 0]}}},
        {"ratings": {**good["ratings"], "guest_verified": {}}}, {"reviews": {**good["reviews"], "host_attested": 1}},
        {"ratings": {**good["ratings"], "unconfirmed": {**good["ratings"]["unconfirmed"], "location": [2, 4]}}},
        {"ratings": {**good["ratings"], "unconfirmed": {**good["ratings"]["unconfirmed"], "location": [1, 1]}}},
        {"ratings": {**good["ratings"], "unconfirmed": {**good["ratings"]["unconfirmed"], "location": [1]}}},
        {"ratings": {**good["ratings"], "unconfirmed": {**good["ratings"]["unconfirmed"], "value": [1, 11]}}},
    ]  # fmt: skip
    assert read_record(jcs.dumps(good).decode(), HOST) == good
    for changes in wrong:
        with pytest.raises(NotProved) as refusal:
            read_record(jcs.dumps({**good, **changes}).decode(), HOST)
        assert refusal.value.code == "record_invalid", changes
    for text in (
        "",
        "null",
        "[]",
        jcs.dumps(good).decode() + " ",
        jcs.dumps(good).decode().replace('"v":1', '"v":1.0'),
    ):
        with pytest.raises(NotProved):
            read_record(text, HOST)
