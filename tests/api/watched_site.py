"""A service on a socket whose log has a witness."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from audits.witness.folder import trust
from ledger.log.policy import Policy
from tests.api.site import Site, serving
from tests.audits.witnessing import Running as RunningWitness
from tests.audits.witnessing import witness_running
from tests.running import Running


@contextmanager
def watched(folder: Path, database_url: str, lines: Callable[[RunningWitness], str]) -> Iterator[tuple[Site, Policy]]:
    """A site with a policy of one honest witness, `w`, and whatever else `lines` says."""
    with witness_running(folder / "w", logs=[], clock=lambda: clocks[0]().timestamp()) as w:
        clocks = []

        def prepare(running: Running) -> None:
            clocks.append(running.clock)
            trust(folder / "w", running.ledger.verifier)
            text = f"log {running.ledger.verifier}\nwitness w {w.vkey} {w.url}\n{lines(w)}"
            running.settings.tlog_policy.write_text(text)
            running.reopen()

        with serving(folder, database_url, prepare) as site:
            yield site, Policy.parse(site.running.settings.tlog_policy.read_text())
