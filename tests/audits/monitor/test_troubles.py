"""What is wrong with a log and may be over tomorrow: told once it has lasted, and once more when it has ended."""

from datetime import timedelta
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from ledger.log.note import COSIGNATURE, Note, Signature, Verifier
from ledger.log.policy import Policy
from tests.audits.forger import Forger
from tests.audits.monitoring import DOWN, switch, watching
from tests.running import Writer
from tests.world import LOG

WITNESS_KEY = SigningKey(b"w" * 32)
WITNESS = Verifier("witness.example/w", COSIGNATURE, bytes(WITNESS_KEY.verify_key))
POLICY = Policy.parse(f"log {LOG}\nwitness w {WITNESS}\nquorum w\n")


class TestTimes:
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


class TestWitnesses:
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


class TestAnswers:
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
