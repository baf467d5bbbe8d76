"""One log that shows two histories: the witness cosigns one of them, and whoever gossips finds the fork."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audits.fraud import check_fraud
from audits.mirror import Mirror
from audits.source import FolderSource
from ledger.log.policy import Policy
from tests.audits.convicting import convict_here, staylog
from tests.audits.live import Live, Meanwhile, live
from tests.audits.monitoring import Watcher, add_checkpoint, ended_or_code, twin, web
from tests.audits.witnessing import Running, witness_running
from tests.running import SetClock

# Reviews after which each of the two goes its own way; each is two entries.
SIZES = [(1, 1), (1, 3), (3, 1)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path / "first") as made:
        made.review()
        yield made


def now() -> SetClock:
    clock = SetClock()
    clock.now = datetime.now(UTC)
    return clock


def mirror(log: Live, folder: Path) -> None:
    Mirror(log.source(), folder, log.log, lambda *_: None, hosts=3).update()


def policy_of(witness: Running, log: Live) -> str:
    return f"log {log.log}\nwitness w1 {witness.vkey} {witness.url}\nquorum w1\n"


@pytest.mark.parametrize(("first", "second"), SIZES)
def test_the_witness_refuses_the_second_history_and_gossip_finds_the_fork(
    first: int, second: int, log: Live, tmp_path: Path
) -> None:
    with witness_running(tmp_path / "witness", logs=[log.log]) as witness:
        assert witness.post(add_checkpoint(log))[0] == 200
        common = log.size
        with twin(log, tmp_path / "second") as other:
            for _ in range(first):
                log.review()
            for _ in range(second):
                other.review()
            assert log.log == other.log
            assert witness.post(add_checkpoint(log, common))[0] == 200
            refused, kind, answer = witness.post(add_checkpoint(other, common))
            assert (refused, kind, answer) == (409, "text/x.tlog.size", f"{log.size}\n")
            if other.size >= log.size:
                # Whatever it shows instead, the two histories do not fit.
                assert witness.post(add_checkpoint(other, log.size))[0] == 422
            (tmp_path / "policy").write_text(policy_of(witness, log))
            for number, (mine, theirs) in enumerate(((log, other), (other, log))):
                alone = tmp_path / f"monitor-{number}"
                alone.mkdir()
                command = ("monitor", mine.url, "--key", str(log.log), "--once", "--json", "--gossip", theirs.url)
                status, said = staylog(*command, "--state", "state", cwd=alone)
                assert status == 1, said
                alert = json.loads(said.splitlines()[0])
                assert (alert["code"], alert["level"], alert["proof"]) == ("inconsistency", "critical", "signed")
                proof = (alone / alert["file"]).read_bytes()
                report = check_fraud(proof, log.log)
                assert (report.subject.split(" against")[0], report.not_proved) == ("signed proof of log_forked", [])
                convict_here(json.loads(proof), log.log)


def test_a_monitor_that_follows_ends_with_the_proof(log: Live, tmp_path: Path) -> None:
    with twin(log, tmp_path / "second") as other:
        log.review()
        other.review()
        command = ("monitor", log.url, "--key", str(log.log), "--gossip", other.url, "--state", "state")
        status, said = staylog(*command, cwd=tmp_path)
        assert (status, said.count("critical inconsistency: log_forked")) == (1, 1), said
        # Started again it knows, and does not tell it once more.
        status, said = staylog(*command, cwd=tmp_path)
        assert (status, said.count("critical")) == (1, 0), said
        assert "inconsistency" in said
        [file] = (tmp_path / "state/findings").iterdir()
        checked, _ = staylog("audit", "check-fraud", str(file), "--key", str(log.log), cwd=tmp_path)
        assert checked == 0


@pytest.mark.parametrize(("first", "second"), SIZES)
def test_the_witness_alone_is_gossip_enough_for_who_is_shown_the_other_history(
    first: int, second: int, log: Live, tmp_path: Path
) -> None:
    with witness_running(tmp_path / "witness", logs=[log.log]) as witness, twin(log, tmp_path / "second") as other:
        for _ in range(first):
            log.review()
        for _ in range(second):
            other.review()
        assert witness.post(add_checkpoint(log))[0] == 200
        clock, policy = now(), Policy.parse(policy_of(witness, log))
        watch: dict[str, Any] = {
            "policy": policy,
            "patience": timedelta(minutes=5),
            "witness_patience": timedelta(minutes=10),
        }
        with Watcher(web(other.url), tmp_path / "state", clock, log.log, **watch) as watcher:
            if log.size <= other.size:
                assert watcher.codes() == (1, ["inconsistency"])
            else:
                # A witness has no tiles: that there is more than is shown is all that can be said, and it may come.
                assert watcher.codes() == (0, [])
                clock.forward(minutes=5)
                status, told = watcher.look()
                assert (status, [each["code"] for each in told]) == (3, ["behind"])
                assert "witness w1" in told[0]["message"]
                # Once the log shows as much, it is plain that it is not the same.
                while other.size < log.size:
                    other.review()
                status, told = watcher.look()
                assert (status, {ended_or_code(each) for each in told}) == (1, {"inconsistency", "recovered behind"})
            [file] = watcher.proofs()
            convict_here(json.loads(file.read_bytes()), log.log)


def test_what_was_heard_once_is_not_forgotten_when_nobody_says_it_any_more(log: Live, tmp_path: Path) -> None:
    """A guest shows a receipt of the other history while the log is still smaller, and never again."""
    with twin(log, tmp_path / "second") as other:
        log.review()
        other.review()
        other.review()
        file = tmp_path / "receipt.json"
        file.write_text(json.dumps({"checkpoint": other.source().get("log/checkpoint").decode()}))
        with Watcher(web(log.url), tmp_path / "state", now(), log.log, gossip=[str(file)]) as watcher:
            assert watcher.codes() == (0, [])
        with Watcher(web(log.url), tmp_path / "state", now(), log.log) as watcher:
            assert watcher.codes() == (0, [])
            log.review()
            log.review()
            assert watcher.codes() == (1, ["inconsistency"])
            watcher.restart()
            assert watcher.codes() == (1, [])


class TestHonest:
    """Whoever is ahead or behind, and whenever they are asked: nobody is accused."""

    @given(data=st.data())
    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_a_log_that_grows_while_it_and_its_copies_are_read(
        self, log: Live, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        folder = tmp_path_factory.mktemp("honest")
        copy, receipt = folder / "copy", folder / "receipt.json"
        moments = st.sampled_from(["checkpoint", "tile/entries", "tile/0", "checkpoints", "hosts", "openings"])
        mirror(log, copy)
        receipt.write_text(json.dumps({"checkpoint": log.source().get("log/checkpoint").decode()}))
        gossip, clock = [log.url, str(copy), str(receipt)], now()
        with Watcher(web(log.url), folder / "state", clock, log.log, gossip=gossip) as watcher:
            source = watcher.source
            for _ in range(3):
                step = data.draw(st.sampled_from(["grow", "mirror", "receipt", "restart", "later"]))
                if step == "grow":
                    log.review()
                elif step == "mirror":
                    mirror(log, copy)
                elif step == "receipt":
                    receipt.write_text(
                        json.dumps({"proof": {"checkpoint": log.source().get("log/checkpoint").decode()}})
                    )
                elif step == "restart":
                    watcher.restart()
                else:
                    clock.forward(minutes=data.draw(st.integers(1, 20)))
                pattern, times = data.draw(moments), data.draw(st.integers(0, 2))
                watcher.source = Meanwhile(source, pattern, log.review, times)
                watcher.restart()
                assert watcher.codes() == (0, [])

    def test_who_gossips_may_be_ahead_of_a_copy_for_a_while(self, log: Live, tmp_path: Path) -> None:
        """The copy is what is monitored: the log itself is ahead, and shown to begin with it."""
        copy = tmp_path / "copy"
        mirror(log, copy)
        log.review()
        clock = now()
        command: dict[str, Any] = {"gossip": [log.url], "patience": timedelta(hours=2)}
        with Watcher(FolderSource(copy), tmp_path / "state", clock, log.log, **command) as watcher:
            assert watcher.codes() == (0, [])
            clock.forward(hours=1)
            log.review()
            assert watcher.codes() == (0, [])
            mirror(log, copy)
            clock.forward(hours=1)
            # It has reached what was ahead an hour ago; what is ahead now has time again.
            log.review()
            assert watcher.codes() == (0, [])
            clock.forward(hours=2)
            assert watcher.codes() == (3, ["behind"])
            mirror(log, copy)
            assert watcher.codes() == (0, ["recovered behind"])
