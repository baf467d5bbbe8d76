"""PostgreSQL goes away under load and comes back: whoever waits is told to try again, nothing acknowledged is lost, and
the same process goes on."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from ledger.errors import Unavailable
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.settings import Settings
from tests.crash.child import Ack, Story
from tests.crash.harness import examine
from tests.engines import PostgresServer
from tests.running import Writer

CALLERS = 6


class Load:
    """Callers that submit all the time, and the same again when they are told to."""

    def __init__(self, ledger: Ledger) -> None:
        self.acks: list[Ack] = []
        self.refusals: list[Unavailable] = []
        self._ledger = ledger
        self._stop = Event()
        self._pool = ThreadPoolExecutor(CALLERS)
        self._callers: list[Future[None]] = [self._pool.submit(self._call, seed) for seed in range(CALLERS)]

    def wait_for(self, more: int) -> None:
        """Until so many more entries are acknowledged."""
        enough = len(self.acks) + more
        while len(self.acks) < enough:
            self._stop.wait(0.01)
            assert not any(caller.done() for caller in self._callers), [caller.exception() for caller in self._callers]

    def end(self) -> None:
        self._stop.set()
        self._pool.shutdown()
        for caller in self._callers:
            caller.result()

    def _call(self, seed: int) -> None:
        story = Story(Writer(seed))
        while not self._stop.is_set():
            try:
                self.acks.append(Ack.of(story.submit(self._ledger.sequencer)))
            except Unavailable as error:
                self.refusals.append(error)
                self._stop.wait(0.02)


def test_the_server_restarts_under_load(postgres: PostgresServer, tmp_path: Path) -> None:
    settings = Settings.of(tmp_path / "data", postgres.url("restarted_under_load"))
    init_folder(settings)
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.start()
        ledger.reader.follow()
        load = Load(ledger)
        try:
            for immediate in (True, False, True):
                load.wait_for(30)
                postgres.restart(immediate)
            load.wait_for(30)
        finally:
            load.end()
        assert {error.code for error in load.refusals} == {"storage_unavailable"}
        assert len(load.refusals) >= CALLERS
        assert ledger.sequencer.halted is None
        # A caller that was refused has its entry once, whether its first try was kept or not.
        places = [ack.index for ack in load.acks]
        assert len(places) == len(set(places))
        examine(ledger, load.acks)
    postgres.drop("restarted_under_load")


@pytest.mark.parametrize("immediate", [True, False])
def test_a_server_that_is_away_refuses_and_reads_fail_plainly(
    postgres: PostgresServer, tmp_path: Path, writer: Writer, immediate: bool
) -> None:
    settings = Settings.of(tmp_path / "data", postgres.url("away"))
    init_folder(settings)
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.start()
        done = ledger.sequencer.submit(writer.review()).result(30)
        postgres.stop(immediate)
        try:
            for _ in range(3):
                refused = ledger.sequencer.submit(writer.review()).exception(30)
                assert isinstance(refused, Unavailable)
                assert refused.code == "storage_unavailable"
                with pytest.raises(Unavailable):
                    ledger.reader.entries(0, 2)
            assert ledger.reader.published == done.published
            with pytest.raises(Unavailable):
                open_ledger(settings)
        finally:
            postgres.start()
        # Connections of before are found dead one by one: by a reader, then by the writer.
        later = ledger.sequencer.submit(writer.review())
        if later.exception(30) is not None:
            later = ledger.sequencer.submit(writer.review())
        assert later.result(30).index == done.index + 2
        examine(ledger, [Ack.of(done), Ack.of(later.result())])
    postgres.drop("away")
