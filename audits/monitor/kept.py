"""The replay of a log that a monitor keeps open between its rounds."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from audits.audit import PAUSE, Audit, Options
from audits.monitor.gossip import Signed
from audits.replayer import Progress, Replayer
from audits.result import Result
from audits.source import Source
from audits.state import State
from ledger.errors import Misconfigured, NotStored, StaylogError
from ledger.log.note import Verifier


class Given:
    """A source whose checkpoint was read already. Of several processes the next one that is asked may be behind."""

    def __init__(self, source: Source, note: str) -> None:
        self.name, self.far = source.name, source.far
        self._source = source
        self._notes = [note.encode()]

    def get(self, path: str) -> bytes:
        return self._notes.pop() if path == "log/checkpoint" and self._notes else self._source.get(path)


class KeptReplay:
    """An audit that is broken off goes back to what was saved: half a batch must not be taken for a whole one."""

    def __init__(
        self,
        folder: Path,
        log: Verifier,
        progress: Progress = lambda _what, _done, _total: None,
        *,
        clock: Callable[[], datetime],
        pause: float = PAUSE,
    ) -> None:
        self.folder = folder
        self._log = log
        self._progress = progress
        self._clock = clock
        self._pause = pause
        self.state = State(folder, log)
        # From now on it is the folder of this log, whether anything of it can be read or not.
        self.state.commit()
        # Loaded by the first who has something to replay.
        self._replayer: Replayer | None = None

    def close(self) -> None:
        self.state.close()

    def audit(self, source: Source, shown: Signed, options: Options) -> tuple[Audit, Result]:
        """Replay what is new up to the checkpoint that was shown, and hold all that is served against it."""
        self._replayer = self._replayer or Replayer(self.state)
        given = (Given(source, shown.note), self._log, self.state, options, self._progress)
        audit = Audit(*given, clock=self._clock, pause=self._pause, replayer=self._replayer)
        try:
            return audit, audit.run()
        except (Misconfigured, NotStored):
            # It is ours that is damaged.
            raise
        except StaylogError:
            self.close()
            self.state, self._replayer = State(self.folder, self._log), None
            raise
