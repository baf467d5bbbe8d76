"""New events of watched hosts: each is told once, in words."""

from pathlib import Path

from audits.monitor.watched import describe
from ledger.log.entries import parse_entry
from tests.audits.forger import Forger
from tests.audits.monitoring import DOWN, switch, watching
from tests.running import HOST, OTHER, Writer


def test_each_new_event_of_a_watched_host_is_told_once(forger: Forger, tmp_path: Path, writer: Writer) -> None:
    with watching(forger, tmp_path, hosts=[HOST]) as watcher:
        assert watcher.codes() == (0, [])
        review = forger.add(
            writer.review(ratings={"overall": 4.5, "value": 2, "accuracy": 4, "cleanliness": 3, "communication": 5})
        )
        forger.add(writer.review(OTHER))
        forger.add(writer.response(review))
        forger.head()
        status, told = watcher.look()
        assert (status, [each["code"] for each in told]) == (4, ["event", "event"])
        assert [each["event"]["type"] for each in told] == ["review", "response"]
        first = told[0]["event"]
        assert (first["host"], first["index"], first["level"]) == (HOST, review.index, "guest_verified")
        assert first["review_id"] == review.entry.members["review_id"]
        assert "4.5 of 5" in told[0]["message"]
        assert "by a verified guest" in told[0]["message"]
        assert watcher.codes() == (0, [])
        forger.add(writer.redaction(review))
        forger.head()
        watcher.restart()
        assert watcher.codes() == (4, ["event"])
        watcher.restart()
        assert watcher.codes() == (0, [])


def test_history_is_told_to_who_asks_for_it(forger: Forger, tmp_path: Path) -> None:
    with watching(forger, tmp_path, hosts=[HOST], history=True) as watcher:
        assert watcher.codes() == (4, ["event", "event"])
        assert watcher.codes() == (0, [])


def test_events_that_cannot_be_read_are_told_later(forger: Forger, tmp_path: Path, writer: Writer) -> None:
    with watching(forger, tmp_path, hosts=[HOST]) as watcher:
        assert watcher.codes() == (0, [])
        for _ in range(2):
            forger.add(writer.review())
        forger.head()
        source = switch(watcher)
        source.failing, source.spare = ("entries", DOWN), 1
        assert watcher.codes() == (2, [])
        source.failing = None
        assert watcher.codes() == (4, ["event", "event"])


def test_every_kind_of_event_has_its_words(forger: Forger, writer: Writer) -> None:
    shown = forger.add(writer.review(level="unconfirmed"))
    drafts = (
        writer.response(shown),
        writer.upgrade(shown),
        writer.redaction(shown),
        writer.redaction(shown, "response"),
    )
    entries = [shown, *map(forger.add, drafts)]
    entries += [
        forger.add(writer.check(outcome=outcome)) for outcome in ("denied", "unanswered", "contradicted", "conflict")
    ]
    entries += [forger.add(writer.review(level="host_attested", repeat=True))]
    said = [describe(each.index, parse_entry(each.entry.data))[0] for each in entries]
    assert len({line.partition(": ")[2] for line in said}) == len(said)
    assert all(HOST in line and "None" not in line for line in said)
