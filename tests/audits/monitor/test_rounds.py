"""Round after round of a monitor: what it asks for, and what it could not look at this time."""

from pathlib import Path

import pytest

from ledger.errors import NotFetched, StaylogError
from tests.audits.forger import Forger, serving
from tests.audits.monitoring import DOWN, Switched, Watcher, switch, watching, web
from tests.audits.views import views
from tests.running import HOST, Writer


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


class TestInterrupted:
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
