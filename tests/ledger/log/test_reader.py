"""What is read is published, and not withdrawn."""

import pytest
from sqlalchemy import delete

from ledger.errors import NotStored
from ledger.log.openings import Opening
from ledger.store import tables
from tests.running import Running, Writer


def test_openings_are_of_published_entries(running: Running, writer: Writer) -> None:
    """Not yet when an entry is committed: until it is signed it does not exist for others."""
    seen: list[dict[int, Opening]] = []

    def look(step: str) -> None:
        if step == "committed":
            seen.append(running.ledger.reader.openings(0, 256))

    reader = running.reopen(on_step=look).reader
    first, second = writer.review(level="unconfirmed"), writer.review(text="Loud.")
    running.add(first, writer.policy(), writer.review(text=None))
    running.add(second)
    assert seen == [{}, {2: first.opening}]
    assert reader.openings(0, 256) == {2: first.opening, 6: second.opening}
    assert list(reader.openings(0, 256)) == [2, 6]


def test_openings_are_of_the_range_that_is_asked_for(running: Running, writer: Writer) -> None:
    drafts = [writer.review() for _ in range(4)]
    running.add(*drafts)
    reader = running.ledger.reader
    assert reader.openings(3, 5) == {3: drafts[1].opening, 4: drafts[2].opening}
    assert reader.openings(0, 2) == {}
    assert reader.openings(7, 300) == reader.openings(1 << 70, (1 << 70) + 256) == {}


def test_openings_are_of_today(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review())
    response = writer.response(review)
    [placed] = running.add(response)
    reader = running.ledger.reader
    running.add(writer.redaction(review))
    assert reader.openings(0, 256) == {placed.index: response.opening}
    running.add(writer.redaction(review, "response"))
    assert reader.openings(0, 256) == {}


def test_openings_that_are_lost_are_not_withheld(running: Running, writer: Writer) -> None:
    running.add(writer.review())
    with running.ledger.store.write() as connection:
        connection.execute(delete(tables.entry).where(tables.entry.c.idx == 2))
    with pytest.raises(NotStored, match="entries 0 to 3 are not all stored"):
        running.ledger.reader.openings(0, 256)
