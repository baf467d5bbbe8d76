"""A ledger that is killed while it asks its witness goes on: nothing that the witness saw is ever missing from it."""

from contextlib import closing
from pathlib import Path
from random import Random
from signal import SIGKILL
from time import sleep

import pytest

from ledger.folder import open_ledger
from ledger.settings import Settings
from tests.audits.witnessing import make_witness, witness_running
from tests.crash.harness import Child
from tests.crash.watched_child import writing

KILLS = 6


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_ledger_is_never_behind_its_witness(settings: Settings, tmp_path: Path, seed: int) -> None:
    with closing(open_ledger(settings)) as ledger:
        log = ledger.verifier
    random, seen = Random(seed), 0
    make_witness(tmp_path / "w", logs=[log])
    with witness_running(tmp_path / "w") as w:
        settings.tlog_policy.write_text(f"log {log}\nwitness w {w.vkey} {w.url}\nquorum w\n")
        for number in range(KILLS):
            child = Child(writing, settings, 100 * seed + number)
            # It has asked its witness before it wrote: otherwise nothing would come.
            acknowledged = int(child.channel.recv_bytes())
            sleep(random.random() * 0.2)
            child.kill()
            try:
                while True:
                    acknowledged = int(child.channel.recv_bytes())
            except (EOFError, ConnectionResetError):
                assert child.wait() == -SIGKILL
            with closing(open_ledger(settings)) as ledger:
                reader = ledger.reader
                assert ledger.witnesses.states()[0].state == "cosigned"
                [(_, latest)] = w.witness.logs()
                assert latest is not None
                # A head that was committed and not signed is signed after the witness was asked.
                assert seen < latest.checkpoint.size <= reader.published.size
                assert reader.tree.root(latest.checkpoint.size) == latest.checkpoint.root
                assert acknowledged <= reader.published.size
                seen = latest.checkpoint.size
