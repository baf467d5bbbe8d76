"""Round after round of a monitor: what it finds, what it tells once, and what it does not tell at all."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from audits.fraud import check_fraud
from audits.monitor.watched import describe
from ledger.errors import NotFetched, StaylogError, Unavailable
from ledger.log.entries import parse_entry
from ledger.log.note import COSIGNATURE, Note, Signature, Verifier
from ledger.log.policy import Policy
from tests.audits.convicting import convict_here
from tests.audits.forger import Forger, serving
from tests.audits.monitoring import Switched, Watcher, switch, watching, web
from tests.audits.test_lies_in_views import views
from tests.running import HOST, OTHER, Writer
from tests.world import LOG

WITNESS_KEY = SigningKey(b"w" * 32)
WITNESS = Verifier("witness.example/w", COSIGNATURE, bytes(WITNESS_KEY.verify_key))
POLICY = Policy.parse(f"log {LOG}\nwitness w {WITNESS}\nquorum w\n")
DOWN = Unavailable("ledger_unreachable", "nobody answers")


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


class TestQuiet:
    def test_a_round_without_news_asks_for_the_checkpoint_alone(self, forger: Forger, tmp_path: Path) -> None:
        with watching(forger, tmp_path, hosts=[HOST]) as watcher:
            assert watcher.codes() == (0, [])
            for restart in (False, True):
                if restart:
                    watcher.restart()
                switch(watcher).asked.clear()
                assert watcher.codes() == (0, [])
                assert switch(watcher).asked == ["log/checkpoint"]
            assert watcher.lines == []

    def test_what_is_new_is_audited_and_only_that_is_read(self, forger: Forger, tmp_path: Path, writer: Writer) -> None:
        for _ in range(3):
            for _ in range(200):
                forger.add(writer.policy())
            forger.head()
        with watching(forger, tmp_path) as watcher:
            assert watcher.codes() == (0, [])
            forger.add(writer.review())
            forger.head()
            switch(watcher).asked.clear()
            assert watcher.codes() == (0, [])
            bundles = [path for path in switch(watcher).asked if "entries" in path]
            assert bundles == [f"log/tile/entries/002.p/{forger.size - 512}"]


class TestInconsistencies:
    @pytest.mark.parametrize("batches", [1, 2, 5])
    def test_a_past_that_was_rewritten(self, batches: int, tmp_path: Path) -> None:
        """Whether the new history is shorter than the old one, as long, or longer."""
        before, after = views(2, batches)
        with watching(before, tmp_path / "state") as watcher:
            assert watcher.codes() == (0, [])
        with watching(after, tmp_path / "state") as watcher:
            status, [alert] = watcher.look()
            assert (status, alert["code"], alert["finding"]) == (1, "inconsistency", "log_forked")
            assert alert["claim"] in alert["message"]
            assert alert["file"] in alert["message"]
            proof = Path(alert["file"]).read_bytes()
            convict_here(json.loads(proof))
            # It is told once, and never over.
            for _ in range(2):
                assert watcher.codes() == (1, [])
                watcher.restart()
            assert [file.read_bytes() for file in watcher.proofs()] == [proof]
        with watching(before, tmp_path / "state") as watcher:
            assert watcher.look()[0] == 1

    def test_what_an_audit_finds(self, forger: Forger, tmp_path: Path, writer: Writer) -> None:
        with watching(forger, tmp_path) as watcher:
            assert watcher.codes() == (0, [])
            forger.add(writer.review())
            forger.head(root=writer.hash())
            status, [alert, *_] = watcher.look()
            assert (status, alert["finding"], alert["index"]) == (1, "map_root_mismatch", forger.size - 1)
            check_fraud(Path(alert["file"]).read_bytes(), LOG)

    def test_what_was_only_observed_ends_when_it_is_served_as_it_must_be(self, forger: Forger, tmp_path: Path) -> None:
        with watching(forger, tmp_path, patience=timedelta(0)) as watcher:
            opening = forger.openings.pop(4)
            status, [alert] = watcher.look()
            assert (status, alert["finding"], alert["proof"]) == (1, "text_withheld", "observed")
            forger.openings[4] = opening
            assert watcher.codes() == (0, ["recovered inconsistency"])

    def test_a_log_that_goes_back_is_given_time(self, tmp_path: Path) -> None:
        """Of several processes one may lag, or a cache on the way."""
        [newer], [older] = views(3), views(2)
        with watching(newer, tmp_path / "state") as watcher:
            assert watcher.codes() == (0, [])
        with watching(older, tmp_path / "state") as watcher:
            assert watcher.codes() == (2, [])
            older.clock.forward(minutes=4)
            assert watcher.codes() == (2, [])
        with watching(newer, tmp_path / "state") as watcher:
            assert watcher.codes() == (0, [])
        with watching(older, tmp_path / "state") as watcher:
            older.clock.forward(minutes=2)
            assert watcher.codes() == (2, [])
            older.clock.forward(minutes=5)
            status, told = watcher.look()
            assert (status, [each["code"] for each in told]) == (1, ["behind", "inconsistency"])
            assert (told[1]["finding"], told[1]["proof"]) == ("rolled_back", "observed")
            check_fraud(Path(told[1]["file"]).read_bytes(), LOG)
        newer.clock.now = older.clock.now
        with watching(newer, tmp_path / "state") as watcher:
            assert watcher.codes() == (0, ["recovered behind", "recovered inconsistency"])
            assert watcher.codes() == (0, [])

    def test_two_moments_around_an_outage_are_no_rollback(self, tmp_path: Path) -> None:
        """Whether the log was down, the monitor was, or its clock was set."""
        [newer], [older] = views(3), views(2)
        older.clock.forward(hours=2)
        with watching(newer, tmp_path / "state") as watcher:
            assert watcher.codes() == (0, [])
        with watching(older, tmp_path / "state") as watcher:
            assert watcher.codes() == (2, [])
            switch(watcher).failing = ("", DOWN)
            for expected in ((2, []), (2, []), (3, ["unreachable"])):
                older.clock.forward(minutes=4)
                assert watcher.codes() == expected
            switch(watcher).failing = None
            assert watcher.codes() == (2, ["recovered unreachable"])
            older.clock.forward(minutes=-60)
            assert watcher.codes() == (2, [])
            older.clock.forward(minutes=4)
            assert watcher.codes() == (2, [])
            assert not watcher.monitor.is_over
            # That is patience enough; but what was observed is no end.
            older.clock.forward(minutes=1)
            assert watcher.codes() == (1, ["behind", "inconsistency"])
            assert not watcher.monitor.is_over
            assert watcher.codes() == (1, [])

    def test_what_is_there_whenever_somebody_looks_is_told_though_that_is_seldom(
        self, forger: Forger, tmp_path: Path
    ) -> None:
        with watching(forger, tmp_path, max_age=timedelta(days=9)) as watcher:
            switch(watcher).failing = ("", DOWN)
            for expected in ((2, []), (2, []), (3, ["unreachable"])):
                assert watcher.codes() == expected
                watcher.restart()
                forger.clock.forward(hours=1)
        # Who knows that it looks seldom does not wonder.
        with watching(forger, tmp_path / "b", interval=timedelta(hours=1)) as watcher:
            switch(watcher).failing = ("", DOWN)
            assert watcher.codes() == (2, [])
            forger.clock.forward(hours=1)
            assert watcher.codes() == (3, ["unreachable"])

    @pytest.mark.parametrize("restart", [False, True])
    def test_a_proof_that_cannot_be_written_is_told_and_written_later(self, restart: bool, tmp_path: Path) -> None:
        seen, other = views(1, 4)
        (tmp_path / "findings").write_text("in the way")
        with serving(other) as url, watching(seen, tmp_path, gossip=[url]) as watcher:
            status, [alert] = watcher.look()
            assert (status, alert["code"], alert["file"]) == (1, "inconsistency", None)
            assert "findings" in alert["why"]
            assert "cannot be written" in alert["message"]
            assert watcher.codes() == (1, [])
            assert not watcher.monitor.is_over
            if restart:
                watcher.restart()
            (tmp_path / "findings").unlink()
            status, [alert] = watcher.look()
            assert (status, alert["code"], alert["file"]) == (1, "inconsistency", str(watcher.proofs()[0]))
            check_fraud(Path(alert["file"]).read_bytes(), LOG)
            assert watcher.monitor.is_over
            assert watcher.codes() == (1, [])

    def test_a_second_fork_is_told_too(self, tmp_path: Path) -> None:
        seen, other, third = views(1, 4, 4)
        for number, each in enumerate((other, third, other), 1):
            with serving(each) as url, watching(seen, tmp_path, gossip=[url]) as watcher:
                assert watcher.codes() == (1, ["inconsistency"] if number < 3 else [])
                assert len(watcher.proofs()) == min(number, 2)

    def test_of_two_processes_the_one_that_is_asked_next_may_lag(self, tmp_path: Path) -> None:
        """Between the look at the checkpoint and the audit of what is new."""
        [older], [newer] = views(2), views(3)

        class Lagging(Switched):
            def get(self, path: str) -> bytes:
                if path == "log/checkpoint" and path in self.asked:
                    return older.notes[older.size].encode()
                return super().get(path)

        with serving(newer) as url, Watcher(Switched(web(url)), tmp_path, newer.clock) as watcher:
            assert watcher.codes() == (0, [])
            newer.add(Writer(9).review())
            newer.head()
            watcher.source = Lagging(web(url))
            watcher.restart()
            assert watcher.codes() == (0, [])
            # Now it is what is shown; that is given time.
            assert watcher.codes() == (2, [])


class TestTroubles:
    def test_a_log_that_stands_still(self, forger: Forger, tmp_path: Path) -> None:
        with watching(forger, tmp_path) as watcher:
            assert watcher.codes() == (0, [])
            forger.clock.forward(hours=25)
            assert watcher.codes() == (0, [])
            forger.clock.forward(seconds=1)
            assert watcher.codes() == (3, ["stalled"])
            for _ in range(2):
                forger.clock.forward(hours=3)
                assert watcher.codes() == (3, [])
                watcher.restart()
            forger.head()
            assert watcher.codes() == (0, ["recovered stalled"])
            assert watcher.codes() == (0, [])

    def test_a_map_head_from_the_future(self, forger: Forger, tmp_path: Path) -> None:
        """It would keep anybody from noticing that the log stands still."""
        with watching(forger, tmp_path) as watcher:
            forger.clock.forward(minutes=-5)
            assert watcher.codes() == (0, [])
            forger.clock.forward(seconds=-1)
            status, [alert] = watcher.look()
            assert (status, alert["code"], alert["level"]) == (3, "future", "error")
            assert watcher.codes() == (3, [])
            forger.clock.forward(seconds=1)
            assert watcher.codes() == (0, ["recovered future"])

    def test_what_is_ahead_is_kept_once_whatever_stands_below_it(self, tmp_path: Path) -> None:
        [mine], [theirs] = views(1), views(3)
        note, file = Note.parse(theirs.notes[theirs.size]), tmp_path / "note"
        with watching(mine, tmp_path, gossip=[str(_written(file, str(note)))]) as watcher:
            for number in range(3):
                junk = Signature("junk.example/j", bytes(4), bytes([number]) * 64)
                _written(file, str(Note(note.text, (*note.signatures, junk))))
                assert watcher.codes() == (0, [])
                assert len(watcher.memory.ahead) == 1

    def test_a_checkpoint_without_its_quorum(self, forger: Forger, tmp_path: Path) -> None:
        with watching(forger, tmp_path, policy=POLICY) as watcher:
            for _ in range(2):
                assert watcher.codes() == (0, [])
                forger.clock.forward(minutes=5)
            status, [alert] = watcher.look()
            assert (status, alert["code"]) == (3, "unwitnessed")
            assert "0 of 1 witnesses" in alert["message"]
            watcher.restart()
            assert watcher.codes() == (3, [])
            forger.cosign(forger.size, WITNESS, WITNESS_KEY, forger.clock())
            assert watcher.codes() == (0, ["recovered unwitnessed"])

    def test_a_log_that_is_always_a_little_ahead_of_its_witnesses(
        self, forger: Forger, tmp_path: Path, writer: Writer
    ) -> None:
        """Whenever one looks the newest has no cosignature, and the one before has."""
        with watching(forger, tmp_path, policy=POLICY) as watcher:
            for _ in range(6):
                assert watcher.codes() == (0, [])
                forger.cosign(forger.size, WITNESS, WITNESS_KEY, forger.clock())
                forger.add(writer.review())
                forger.head()
                forger.clock.forward(minutes=4)
            # Then the witness is gone.
            assert watcher.codes() == (0, [])
            forger.clock.forward(minutes=10)
            assert watcher.codes() == (3, ["unwitnessed"])

    def test_a_cosignature_that_is_not_good(self, forger: Forger, tmp_path: Path) -> None:
        note = Note.parse(forger.notes[forger.size])
        bad = Signature(WITNESS.name, WITNESS.key_id, bytes(72))
        forger.notes[forger.size] = str(Note(note.text, (*note.signatures, bad)))
        with watching(forger, tmp_path, policy=POLICY) as watcher:
            # Nor can it be looked at in full what witnesses saw when.
            assert watcher.codes() == (2, ["cosignature_invalid"])
            forger.notes[forger.size] = str(note)
            forger.cosign(forger.size, WITNESS, WITNESS_KEY, forger.clock())
            forger.clock.forward(minutes=6)
            assert watcher.codes() == (0, ["recovered cosignature_invalid"])

    def test_a_log_that_cannot_be_reached(self, forger: Forger, tmp_path: Path, writer: Writer) -> None:
        with watching(forger, tmp_path) as watcher:
            assert watcher.codes() == (0, [])
            switch(watcher).failing = ("", DOWN)
            for minutes in (0, 4):
                forger.clock.forward(minutes=minutes)
                assert watcher.codes() == (2, [])
            forger.clock.forward(minutes=1)
            assert watcher.codes() == (3, ["unreachable"])
            watcher.restart()
            assert watcher.codes() == (3, [])
            switch(watcher).failing = None
            forger.add(writer.review())
            forger.head()
            assert watcher.codes() == (0, ["recovered unreachable"])

    @pytest.mark.parametrize(
        "served", [b"<html>", b"\xff\xfe", b"", Forger().sign().replace("\n1\n", "\n7\n").encode()], ids=range(4)
    )
    def test_what_the_key_did_not_sign(self, served: bytes, forger: Forger, tmp_path: Path) -> None:
        forger.instead["log/checkpoint"] = served
        with watching(forger, tmp_path) as watcher:
            assert watcher.codes() == (2, ["unsigned"])
            assert watcher.codes() == (2, [])
            forger.instead.clear()
            assert watcher.codes() == (0, ["recovered unsigned"])

    def test_what_cannot_be_looked_at(self, forger: Forger, tmp_path: Path) -> None:
        forger.missing.add("v1/log/checkpoints")
        with watching(forger, tmp_path) as watcher:
            assert watcher.codes() == (2, [])
            # Not every minute: it would be asked for all of it again and again.
            switch(watcher).asked.clear()
            assert watcher.codes() == (2, [])
            assert switch(watcher).asked == ["log/checkpoint"]
            forger.clock.forward(minutes=5)
            status, [alert] = watcher.look()
            assert (status, alert["code"], alert["level"]) == (2, "incomplete", "warning")
            assert "the list of signed checkpoints" in alert["message"]
            forger.missing.clear()
            forger.clock.forward(minutes=5)
            assert watcher.codes() == (0, ["recovered incomplete"])

    @pytest.mark.parametrize("error", [DOWN, NotFetched("fetch_status", "it answers 500", status=500)])
    def test_an_audit_that_breaks_off_leaves_nothing_half(
        self, error: StaylogError, forger: Forger, tmp_path: Path, writer: Writer
    ) -> None:
        """In the middle of a batch that has reviews of hosts: read again, they are not taken for repeated ones."""
        with watching(forger, tmp_path) as watcher:
            assert watcher.codes() == (0, [])
            for _ in range(255):
                forger.add(writer.review())
            forger.head()
            switch(watcher).failing = ("entries/001", error)
            for restart in (False, True, False):
                assert watcher.codes() == (2, [])
                if restart:
                    watcher.restart()
            switch(watcher).failing = None
            assert watcher.codes() == (0, [])
            watcher.restart()
            forger.add(writer.review())
            forger.head()
            assert watcher.codes() == (0, [])


class TestEvents:
    def test_each_new_event_of_a_watched_host_is_told_once(
        self, forger: Forger, tmp_path: Path, writer: Writer
    ) -> None:
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

    def test_history_is_told_to_who_asks_for_it(self, forger: Forger, tmp_path: Path) -> None:
        with watching(forger, tmp_path, hosts=[HOST], history=True) as watcher:
            assert watcher.codes() == (4, ["event", "event"])
            assert watcher.codes() == (0, [])

    def test_events_that_cannot_be_read_are_told_later(self, forger: Forger, tmp_path: Path, writer: Writer) -> None:
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

    def test_every_kind_of_event_has_its_words(self, forger: Forger, writer: Writer) -> None:
        shown = forger.add(writer.review(level="unconfirmed"))
        drafts = (
            writer.response(shown),
            writer.upgrade(shown),
            writer.redaction(shown),
            writer.redaction(shown, "response"),
        )
        entries = [shown, *map(forger.add, drafts)]
        entries += [
            forger.add(writer.check(outcome=outcome))
            for outcome in ("denied", "unanswered", "contradicted", "conflict")
        ]
        entries += [forger.add(writer.review(level="host_attested", repeat=True))]
        said = [describe(each.index, parse_entry(each.entry.data))[0] for each in entries]
        assert len({line.partition(": ")[2] for line in said}) == len(said)
        assert all(HOST in line and "None" not in line for line in said)
