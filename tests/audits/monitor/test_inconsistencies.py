"""What a monitor proves against a log: told once, written so that anybody can check it, and given time where honest logs
need it."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from audits.fraud import check_fraud
from tests.audits.convicting import convict_here
from tests.audits.forger import Forger, serving
from tests.audits.monitoring import DOWN, switch, watching
from tests.audits.views import views
from tests.running import Writer
from tests.world import LOG


class TestProofs:
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


class TestGoingBack:
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
