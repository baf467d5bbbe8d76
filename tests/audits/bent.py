"""A log as it is served by an operator who bends some of it, and its audit."""

from collections.abc import Callable
from pathlib import Path

from audits.audit import Audit, Options
from audits.findings import Findings
from audits.replayer import Replayer
from audits.state import opened
from ledger.errors import NotFound
from tests.audits.forger import Forger
from tests.world import LOG

Bend = Callable[[str], bytes | None]


class Bent:
    """A log as a forger has it, but for what `bend` gives."""

    far = False

    def __init__(self, forger: Forger, bend: Bend = lambda _path: None, name: str = "service") -> None:
        self.name = name
        self._forger = forger
        self._bend = bend

    def get(self, path: str) -> bytes:
        data = self._bend(path)
        data = self._forger.get(path) if data is None else data
        if data is None:
            raise NotFound("not_found", path)
        return data


def audit(
    forger: Forger,
    bend: Bend = lambda _path: None,
    state: Path | None = None,
    options: Options | None = None,
    name: str = "service",
    save_seconds: float = 20,
) -> Findings:
    with opened(state, LOG) as kept:
        replayer = Replayer(kept, save_seconds=save_seconds)
        source = Bent(forger, bend, name)
        checking = Audit(source, LOG, kept, options or Options(), clock=forger.clock, pause=0, replayer=replayer)
        checking.run()
    return checking.findings


def require_clean(findings: Findings) -> None:
    assert (findings.verdict, findings.unchecked, findings.found) == ("clean", [], [])
