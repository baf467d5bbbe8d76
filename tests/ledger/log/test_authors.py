"""By what the log knows guests and bookings again, though neither is in it: within a batch and across them."""

from dataclasses import replace
from typing import Any

import pytest

from ledger.errors import Done, Outdated
from ledger.log.drafts import Author, Draft, Feedback
from ledger.log.integrate import SomeRefused
from ledger.store.rows import run
from tests.running import HOST, Running, Writer

BOOKING = "A" * 43 + "="


def by(draft: Draft, **author: Any) -> Draft:
    return replace(draft, author=Author(**{"booking": BOOKING, **author}))


def told(running: Running) -> list[str]:
    """What the log says of bookings."""
    events = running.ledger.reader.events(HOST, running.ledger.reader.refresh().size)
    return [event.entry.members["outcome"] for event in events if event.entry.type == "booking_check"]


def add(running: Running, drafts: list[Draft], *, together: bool) -> list[Any]:
    if together:
        return running.add(*drafts)
    return [running.add(draft)[0] for draft in drafts]


@pytest.mark.parametrize("together", [True, False])
def test_a_booking_has_one_review_of_each_guest(running: Running, writer: Writer, together: bool) -> None:
    """By whichever of the keys it is known again."""
    first = by(writer.review(), bookings=(b"a", b"b"))
    second = by(writer.review(), bookings=(b"c", b"b"))
    with pytest.raises(SomeRefused) as refused:
        add(running, [first, second], together=together)
    [reason] = refused.value.refusals.values()
    assert isinstance(reason, Done)
    assert reason.code == "already_reviewed"


@pytest.mark.parametrize("together", [True, False])
def test_a_guest_who_comes_again_is_marked(running: Running, writer: Writer, together: bool) -> None:
    drafts = [
        by(writer.review(), guests=(b"person", b"old")),
        by(writer.review(), guests=(b"other",)),
        by(writer.review(), guests=(b"new", b"old")),
        by(writer.review(), guests=(b"new",)),
    ]
    placed = add(running, drafts, together=together)
    assert [each.entry.members["repeat"] for each in placed] == [False, False, True, True]


@pytest.mark.parametrize("together", [True, False])
def test_two_that_are_shown_to_have_one_booking(running: Running, writer: Writer, together: bool) -> None:
    """One of which nothing is shown is in conflict with nobody."""
    drafts = [by(writer.review(level="unconfirmed")), by(writer.review(), stay=b"stay")]
    add(running, drafts, together=together)
    assert told(running) == []
    add(running, [by(writer.review(), stay=b"stay"), by(writer.review(), stay=b"another")], together=together)
    assert told(running) == ["conflict"]


def test_a_denial_that_is_contradicted(running: Running, writer: Writer) -> None:
    running.add(replace(writer.check(), key=b"denied"))
    running.add(by(writer.review(), denials=(b"something else",)))
    assert told(running) == ["denied"]
    running.add(by(writer.review(), denials=(b"denied", b"not")))
    assert told(running) == ["denied", "contradicted"]
    # A denial is not known by what it was looked for by.
    running.add(by(writer.review(), denials=(b"not",)))
    assert told(running) == ["denied", "contradicted"]
    assert running.fsck().findings == []


def test_both_are_told(running: Running, writer: Writer) -> None:
    draft = by(writer.review(), stay=b"stay", denials=(b"denied",))
    assert (draft.most_entries, writer.review().most_entries) == (3, 1)
    running.add(replace(writer.check(), key=b"denied"), by(writer.review(), stay=b"stay"), draft)
    assert told(running) == ["denied", "conflict", "contradicted"]


def test_an_upgrade_tells_the_same(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review(level="unconfirmed"))
    running.add(by(writer.review(), stay=b"stay"))
    running.add(by(writer.upgrade(review), stay=b"stay"))
    assert told(running) == ["conflict"]


def test_trust_that_has_changed_since(running: Running, writer: Writer) -> None:
    """None where nobody had to be trusted."""
    running.add(by(writer.review(), trusted_at=-1), by(writer.review()))
    with pytest.raises(SomeRefused) as refused:
        running.add(by(writer.review(), trusted_at=7))
    [reason] = refused.value.refusals.values()
    assert isinstance(reason, Outdated)


def test_private_words_are_kept_with_the_review(running: Running, writer: Writer) -> None:
    """And not when it is refused."""
    words = Feedback(b"sealed", "did:web:cottage.example#key-1", "2027-06-01")
    [placed] = running.add(replace(by(writer.review(), bookings=(b"a",)), feedback=words))
    with pytest.raises(SomeRefused):
        running.add(replace(by(writer.review(), bookings=(b"a",)), feedback=words))
    with running.ledger.store.read() as connection:
        [row] = run(connection, "SELECT idx, sealed, method, forget_on FROM feedback")
    assert (row[0], bytes(row[1]), *row[2:]) == (placed.index, b"sealed", words.method, words.forget_on)
