"""Answers of random ledgers verify; lies about them never do, in either verifier."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits import standalone_verify
from audits.verify import verify_answer, verify_pages
from ledger.canon import base64, jcs, strict_json
from ledger.errors import Malformed, NotProved, StaylogError
from ledger.log import answers
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.entries import make_entry
from ledger.log.face import Event, statistics, summary
from ledger.log.hostmap import map_key, map_value
from ledger.log.pages import MemoryPages, PagedMap
from ledger.log.record import fold
from ledger.log.tiles import Appender, MemoryTiles, TileTree
from tests.audits.mutations import RECORD_MEMBERS, mutate
from tests.world import HOSTS, KEY, LOG, ORIGIN, World

NOBODY = "did:web:nobody.example"


def encoded(answer: Any) -> bytes:
    return json.dumps(answer).encode()


def standalone(*pages: bytes, host: str, max_age: float | None = None) -> list[str]:
    lines: list[str] = standalone_verify.verify([page.decode() for page in pages], str(LOG), host, max_age)
    return lines


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_every_answer_of_every_published_size_verifies(seed: int) -> None:
    world = World(seed, HOSTS[:3]).grow(8)
    for size in (state.size for state in world.log.published):
        for host in (*HOSTS[:3], NOBODY):
            for kind in ("full", "aggregate", "page"):
                answer = encoded(world.log.answer(host, kind, size=size, count=3))
                report = verify_answer(answer, LOG, host)
                assert report.size == size
                assert standalone(answer, host=host)


@given(st.integers(0, 10_000), st.integers(2, 7))
@settings(max_examples=12)
def test_pages_together_are_a_full_answer(seed: int, count: int) -> None:
    world = World(seed, HOSTS[:1]).grow(6)
    full = world.log.answer(HOSTS[0])
    total = len(full["proof"]["events"])
    pages = [encoded(world.log.answer(HOSTS[0], "page", start=at, count=count)) for at in range(0, total, count)]
    if not pages:
        return
    report = verify_pages(pages[::-1], LOG, HOSTS[0])
    assert report.texts == verify_answer(encoded(full), LOG, HOSTS[0]).texts
    if len(pages) > 1:
        assert standalone(*pages, host=HOSTS[0])
        for missing in range(len(pages)):
            part = pages[:missing] + pages[missing + 1 :]
            with pytest.raises(NotProved) as refusal:
                verify_pages(part, LOG, HOSTS[0])
            assert refusal.value.code == "pages_incomplete"
            if len(part) > 1:
                with pytest.raises(standalone_verify.Wrong):
                    standalone(*part, host=HOSTS[0])


def with_statistics(answer: dict[str, Any]) -> dict[str, Any]:
    """As the service gives it."""
    record = answer["proof"]["record"]
    return {**answer, "statistics": statistics(strict_json.loads(record) if record else None)}


@pytest.mark.parametrize("kind", ["full", "aggregate", "page"])
def test_the_statistics_are_those_of_the_record(kind: str) -> None:
    world = World(3, HOSTS[:2]).grow(8)
    for host in (HOSTS[0], NOBODY):
        answer = with_statistics(world.log.answer(host, kind))
        verify_answer(encoded(answer), LOG, host)
        standalone(encoded(answer), host=host)
        answer["statistics"] = {**(answer["statistics"] or {}), "repeats": 77}
        with pytest.raises(NotProved, match="statistics"):
            verify_answer(encoded(answer), LOG, host)
        with pytest.raises(standalone_verify.Wrong, match="statistics"):
            standalone(encoded(answer), host=host)


# 12 runs of 500 lies; the runs are what parallel workers share.
LIES = 500


@pytest.mark.parametrize("seed", range(12))
def test_no_lie_verifies(seed: int) -> None:
    random = Random(seed)
    world = World(seed, HOSTS[:3]).grow(6)
    truths = [
        (host, with_statistics(world.log.answer(host, kind, start=start, count=4)))
        for host in (*HOSTS[:3], NOBODY)
        for kind, start in (("full", 0), ("full", 0), ("aggregate", 0), ("page", 1))
        if kind != "page" or len(world.log.answer(host)["proof"]["events"]) > 1
    ]
    first_failures: Counter[str] = Counter()
    parsed = 0
    for _ in range(LIES):
        host, truth = random.choice(truths)
        lie = encoded(mutate(random, truth))
        with pytest.raises(StaylogError) as refusal:
            verify_answer(lie, LOG, host)
        first_failures[refusal.value.code] += 1
        parsed += not isinstance(refusal.value, Malformed)
        with pytest.raises(Exception):
            standalone(lie, host=host)
    assert parsed >= 0.9 * LIES, first_failures
    assert len(first_failures) >= 12, first_failures


@given(st.integers(0, 10_000), st.data())
@settings(max_examples=60)
def test_an_operator_cannot_sign_a_false_record(seed: int, data: st.DataObject) -> None:
    """The log key itself signs a map in which one host's record is embellished; the hashes are all right."""
    world = World(seed, HOSTS[:1]).grow(6)
    events = [
        Event(index, entry, world.log.openings.get(index))
        for index, entry in enumerate(world.log.entries)
        if entry.host == HOSTS[0]
    ]
    if not events:
        return
    truth = fold(HOSTS[0], ((event.index, event.entry) for event in events))
    lie = strict_json.loads(truth)
    name = data.draw(st.sampled_from(RECORD_MEMBERS))
    if name in ("reviews", "checks"):
        lie[name][data.draw(st.sampled_from(sorted(lie[name])))] += 1
    elif name == "ratings":
        lie[name]["guest_verified"]["location"] = [99, 990]
    elif name == "histogram":
        lie[name][8] += 1
    elif name == "root":
        lie[name] = base64.encode(bytes(32))
    elif name in ("first_stay", "last_event"):
        lie[name] = "2020-01-01" if name == "first_stay" else "2030-01-01T00:00:00Z"
    else:
        lie[name] += data.draw(st.integers(1, 3))
    answer = encoded(signed_answer(world, events, jcs.dumps(lie)))
    with pytest.raises(StaylogError):
        verify_answer(answer, LOG, HOSTS[0])
    with pytest.raises(Exception):
        standalone(answer, host=HOSTS[0])
    assert verify_answer(encoded(signed_answer(world, events, truth)), LOG, HOSTS[0])


def signed_answer(world: World, events: list[Event], record: bytes) -> dict[str, Any]:
    """The full answer of an operator whose newest map has `record` for the host."""
    paged = PagedMap(MemoryPages())
    top, root = paged.update(None, {map_key(HOSTS[0]): map_value(record)})
    head = make_entry("map_head", size=len(world.log.entries), root=base64.encode(root), at=world.tick())
    tiles = MemoryTiles()
    appender = Appender(tiles)
    for entry in (*world.log.entries, head):
        appender.append(entry.leaf_hash)
    tiles.update(appender.take_rows())
    note = sign_checkpoint(Checkpoint(ORIGIN, appender.size, appender.root()), KEY)
    path = paged.prove(top, map_key(HOSTS[0]))
    view = answers.View(HOSTS[0], note, appender.size, head.data.decode(), path, record)
    return {**answers.full(view, TileTree(tiles), events), **summary(HOSTS[0], strict_json.loads(record))}


@pytest.fixture(scope="module")
def world() -> World:
    return World(7, HOSTS[:2]).grow(10)


def test_what_is_not_proved_is_said(world: World) -> None:
    full = verify_answer(encoded(world.log.answer(HOSTS[0])), LOG, HOSTS[0])
    assert any("nothing is left out" in line for line in full.proved)
    assert any("replay" in line for line in full.not_proved)
    assert any("domain" in line for line in full.not_proved)
    aggregate = verify_answer(encoded(world.log.answer(HOSTS[0], "aggregate")), LOG, HOSTS[0])
    assert any("sums are right" in line for line in aggregate.not_proved)
    assert not any("nothing is left out" in line for line in aggregate.proved)
    nobody = verify_answer(encoded(world.log.answer(NOBODY)), LOG, NOBODY)
    assert any("no reviews" in line for line in nobody.proved)
    key = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd"
    assert not any("domain" in line for line in verify_answer(encoded(world.log.answer(key)), LOG, key).not_proved)
    assert full.as_json()["proved"] == full.proved


def test_another_kind_than_asked_for_is_refused(world: World) -> None:
    with pytest.raises(NotProved) as refusal:
        verify_answer(encoded(world.log.answer(HOSTS[0], "aggregate")), LOG, HOSTS[0], kind="full")
    assert refusal.value.code == "wrong_kind"
    with pytest.raises(NotProved) as refusal:
        verify_pages([encoded(world.log.answer(HOSTS[0]))], LOG, HOSTS[0])
    assert refusal.value.code == "wrong_kind"
    with pytest.raises(NotProved) as refusal:
        verify_pages([], LOG, HOSTS[0])
    assert refusal.value.code == "pages_incomplete"


def test_pages_of_two_checkpoints_do_not_mix(world: World) -> None:
    sizes = [state.size for state in world.log.published][-2:]
    old, new = (
        encoded(world.log.answer(HOSTS[0], "page", size=size, start=start, count=2))
        for size, start in zip(sizes, (0, 2), strict=True)
    )
    with pytest.raises(NotProved) as refusal:
        verify_pages([old, new], LOG, HOSTS[0])
    assert refusal.value.code == "pages_differ"


@pytest.mark.parametrize("kind", ["aggregate", "page"])
def test_reviews_are_not_listed_without_their_events(world: World, kind: str) -> None:
    answer = encoded({**world.log.answer(HOSTS[0], kind), "review_history": []})
    with pytest.raises(NotProved) as refusal:
        verify_answer(answer, LOG, HOSTS[0])
    assert refusal.value.code == "history_unproved"
    with pytest.raises(standalone_verify.Wrong):
        standalone(answer, host=HOSTS[0])


def test_a_missing_text_is_withheld_unless_it_was_not_asked_for() -> None:
    world = World(1, HOSTS[:1])
    texts = {}
    for level, booking in (("guest_verified", "stay_receipt"), ("unconfirmed", "none")):
        index = world.next_index
        committed = world.commit(index, "Quiet.")
        world.review(HOSTS[0], level=level, evidence=world.evidence(booking), text=committed)
        texts[level] = index
    world.publish()
    world.log.openings.clear()
    answer = encoded(world.log.answer(HOSTS[0]))
    verified, unconfirmed = texts["guest_verified"], texts["unconfirmed"]
    for asked, states in (
        ("verified", {verified: "withheld", unconfirmed: "unasked"}),
        ("all", {verified: "withheld", unconfirmed: "withheld"}),
        ("none", {verified: "unasked", unconfirmed: "unasked"}),
    ):
        report = verify_answer(answer, LOG, HOSTS[0], text=asked)
        assert report.texts == states
        assert len(report.withheld) == list(states.values()).count("withheld")
    lines = [line.split("  ")[0] for line in standalone(answer, host=HOSTS[0])]
    assert lines.count("withheld") == lines.count("not asked") == 1


def test_age_is_bounded_on_both_sides(world: World) -> None:
    answer = encoded(world.log.answer(HOSTS[0]))
    at = verify_answer(answer, LOG, HOSTS[0]).at
    assert at is not None
    assert verify_answer(answer, LOG, HOSTS[0], oldest=at, newest=at).at == at
    both: tuple[dict[str, Any], ...] = ({"oldest": "2999-01-01T00:00:00Z"}, {"newest": "2026-01-01T00:00:00Z"})
    for bounds in both:
        with pytest.raises(NotProved) as refusal:
            verify_answer(answer, LOG, HOSTS[0], **bounds)
        assert refusal.value.code == ("too_old" if "oldest" in bounds else "from_the_future")
    assert standalone(answer, host=HOSTS[0], max_age=24 * 365 * 100)
    with pytest.raises(standalone_verify.Wrong, match="not fresh"):
        standalone(answer, host=HOSTS[0], max_age=0.001)


def test_too_many_events_for_one_answer(world: World) -> None:
    event = Event(2, world.log.entries[0])
    path = world.log.map.prove(None, map_key(HOSTS[0]))
    view = answers.View(HOSTS[0], "", 2, "", path, None)
    with pytest.raises(StaylogError) as refusal:
        answers.full(view, world.log.tree, [event] * 1001)
    assert refusal.value.code == "proof_too_large"


@pytest.mark.parametrize(("start", "count"), [(-1, 5), (10_000, 5), (0, 0)])
def test_a_page_is_inside_the_events(world: World, start: int, count: int) -> None:
    with pytest.raises(StaylogError) as refusal:
        world.log.answer(HOSTS[0], "page", start=start, count=count)
    assert refusal.value.code == "page_out_of_range"


def test_a_large_host_pages_and_proves() -> None:
    world = World(5, HOSTS[:2])
    for _ in range(10):
        for _ in range(120):
            world.review()
        world.publish()
    host = HOSTS[0]
    with pytest.raises(StaylogError) as refusal:
        world.log.answer(host, "page", count=501)
    assert refusal.value.code == "page_out_of_range"
    events = sum(entry.host == host for entry in world.log.entries)
    pages = [encoded(world.log.answer(host, "page", start=at, count=250)) for at in range(0, events, 250)]
    assert verify_pages(pages, LOG, host)
    assert standalone(*pages, host=host)
