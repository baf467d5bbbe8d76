"""`python -m demo`, which is `make demo`."""

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

import click

from demo.actors import Cast
from demo.host_site import HostSite
from demo.service import NotRunning, Service, is_free
from demo.stage import Stage, Unexpected
from demo.story import Story
from demo.watching import Watching
from ledger.errors import StaylogError
from ledger.settings import DEFAULT_PORT


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--port", type=click.IntRange(1024, 65535), default=DEFAULT_PORT, show_default=True, help="To listen on.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep everything in DIR, which must not exist yet.  [default: a temporary folder that goes at the end]",
)
@click.option("--once", is_flag=True, help="End with the story, and do not leave the service running.")
def main(port: int, data: Path | None, once: bool) -> None:
    """Tell the story of some stays from end to end, then leave the service running until Ctrl-C.

    Everything happens while it is told: an issuer, hosts and guests make keys and sign, a service takes what they send
    or turns it away and asks hosts about bookings, and a verifier checks its answers offline. Exit status 1 means that
    something did not come out as told.
    """
    if not is_free(port):
        other = 8090 if port != 8090 else 8091
        raise click.ClickException(f"port {port} is in use; choose another one: make demo ARGS='--port {other}'")
    began, cast = time.monotonic(), Cast()
    with (
        _folder(data) as folder,
        closing(HostSite(folder / "hosts", cast.with_domains)) as site,
        closing(Service(folder, port, site.environment)) as service,
        closing(Watching(Stage(folder), service)) as watching,
    ):
        stage = watching.stage
        try:
            stage.say("Staylog from end to end. Everything below happens now, and what comes out is checked.")
            site.start()
            story = Story(stage, service, cast, site, watching)
            story.tell()
            stage.heading(f"All of it came out as told, in {time.monotonic() - began:.0f} seconds")
            if not once:
                story.what_to_try()
                _stay(stage, service, temporary=data is None)
        except (Unexpected, NotRunning, StaylogError) as reason:
            raise click.ClickException(f"this did not come out as told: {reason}") from reason


def _stay(stage: Stage, service: Service, *, temporary: bool) -> None:
    kept = ", until the demo ends (--data DIR keeps them)" if temporary else ""
    try:
        stage.facts(("files", f"{stage.folder}{kept}"), ("service", f"{service.url} until you press Ctrl-C"))
        service.wait()
    except KeyboardInterrupt:
        stage.say("\nThe service stops.")


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is None:
        with tempfile.TemporaryDirectory(prefix="staylog-demo-") as name:
            yield Path(name)
        return
    try:
        data.mkdir(parents=True)
    except OSError as error:
        raise click.ClickException(f"{data}: {error.strerror}; name a folder that is not there yet") from None
    yield data.resolve()


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    # As Ctrl-C does: what was started is ended first.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _leave)
    main(prog_name="python -m demo")
