"""`staylog witness`: run a witness, whose cosignatures keep logs from showing two histories."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import click
from nacl.signing import SigningKey

from audits.terminal import FOLDER, printable, say_refusal
from audits.witness.folder import init as init_folder
from audits.witness.folder import is_initialised, read_key
from audits.witness.folder import trust as trust_log
from audits.witness.http import MAX_CONNECTIONS, MAX_PER_ADDRESS, SPARE_THREADS
from audits.witness.judge import Witness
from audits.witness.memory import Logs, last_cosigned
from audits.witness.page import policy_line, tell
from audits.witness.server import WitnessServer
from ledger.errors import Misconfigured, StaylogError
from ledger.log.note import Verifier
from ledger.net.addresses import parse_proxies, too_wide
from ledger.net.descriptors import connections_allowed

DEFAULT_PORT = 8090
# Seconds by which clocks may differ.
CLOCK_SKEW = 300
# The folder's files, the standard streams, connections that are just ending.
RESERVED_FILES = 32 + SPARE_THREADS

data_option = click.option(
    "--data",
    type=FOLDER,
    default=Path("witness"),
    show_default=True,
    envvar="STAYLOG_WITNESS",
    show_envvar=True,
    help="The folder of the witness.",
)


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except StaylogError as error:
        say_refusal(error)
        raise SystemExit(1) from None


@click.group()
def witness() -> None:
    """Run a witness: a small service that keeps logs from showing two histories.

    A witness (c2sp.org/tlog-witness) remembers the last checkpoint of each log that it trusts, and cosigns the next one
    only when it is shown that the log has grown and nothing in it was changed. Whoever demands the cosignatures of some
    witnesses need not believe the log alone. It serves any log that speaks C2SP, and sees no entries, only hashes.

    \b
      staylog witness init --data ./witness --name witness.example/w1
      staylog witness trust VKEY --data ./witness
      staylog witness serve --data ./witness --port 8090

    A log is told of it by a line in its tlog-policy, which `init` prints. Back up the key; never run two copies of a
    witness, and never restore an older copy of its folder: what it has forgotten, it could cosign otherwise.
    """


@witness.command()
@data_option
@click.option("--name", required=True, help="For ever; best an address without its scheme, as witness.example/w1.")
def init(data: Path, name: str) -> None:
    """Make a new witness: a folder with a key, which trusts no log yet.

    \b
      staylog witness init --data ./witness --name witness.example/w1
    """
    with refusals():
        made = init_folder(data, name, SigningKey.generate())
    _tell_new(data, made, f"https://{name}")


@witness.command()
@click.argument("vkey")
@data_option
def trust(vkey: str, data: Path) -> None:
    """Cosign checkpoints of the log with the key VKEY, `name+id+base64`, from now on.

    A running witness need not be started again. A log may have several keys: trust each. To end it, delete the line
    from the file `logs` in the folder; what was cosigned stays known.
    """
    with refusals():
        log = Verifier.parse(vkey)
        new = trust_log(data, log)
    click.echo(f"{printable(log.name)} is trusted{'' if new else ' already'}")


@witness.command()
@data_option
def key(data: Path) -> None:
    """Print the public key of the witness, by which others know its cosignatures."""
    with refusals():
        verifier, _ = read_key(data)
    click.echo(str(verifier))


@witness.command()
@data_option
def show(data: Path) -> None:
    """List the trusted logs, and what was cosigned last of each. Works while the witness runs."""
    with refusals():
        verifier, logs = last_cosigned(data)
    click.echo(str(verifier))
    _tell_logs(logs)


@witness.command()
@data_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0 is any that is free."
)
@click.option("--url", help="How the world reaches it, for the line that is shown.  [default: http://HOST:PORT]")
@click.option("--name", help="Of a new witness: an empty folder is initialised first.")
@click.option("--log", "logs", metavar="VKEY", multiple=True, help="A log to trust, as `staylog witness trust` does.")
@click.option(
    "--max-connections",
    type=click.IntRange(4, 4096),
    default=MAX_CONNECTIONS,
    show_default=True,
    help="Connections at once; each has a thread. A full witness ends the one that has waited for its client longest.",
)
@click.option(
    "--max-connections-per-address",
    type=click.IntRange(1, 4096),
    default=MAX_PER_ADDRESS,
    show_default=True,
    help="Of one IPv4 address or IPv6 /64; four times as many of a /48.",
)
@click.option(
    "--trusted-proxies",
    metavar="NETWORK,...",
    default="",
    envvar="STAYLOG_WITNESS_TRUSTED_PROXIES",
    show_envvar=True,
    help="Addresses of the web server in front, which may have all the connections.",
)
def serve(
    data: Path,
    host: str,
    port: int,
    url: str | None,
    name: str | None,
    logs: Sequence[str],
    max_connections: int,
    max_connections_per_address: int,
    trusted_proxies: str,
) -> None:
    """Answer logs until Ctrl-C; requests under way are finished.

    Logs post to /add-checkpoint, anybody may read /<hex SHA-256 of a log's origin>/checkpoint; / is a page about the
    witness, /metrics has figures for Prometheus. Put a web server with TLS before it when it is for others.

    \b
      staylog witness serve --data ./witness --name witness.example/w1 --log VKEY
      curl http://127.0.0.1:8090/
    """
    with refusals():
        trusted = [Verifier.parse(vkey) for vkey in logs]
        if name is not None and not is_initialised(data):
            init_folder(data, name, SigningKey.generate())
        if name not in (None, (own := read_key(data)[0].name)):
            raise Misconfigured("key_mismatch", f"the witness in {data} is {own}: its name cannot be changed")
        for log in trusted:
            trust_log(data, log)
        proxies = parse_proxies(trusted_proxies)
        for network in too_wide(proxies):
            click.echo(f"warning: trusted proxies include {network}: no address has a bound of its own", err=True)
        connections = connections_allowed(max_connections, reserved=RESERVED_FILES, least=4)
        running = Witness(data)
        try:
            server = _server(
                running,
                host,
                port,
                url,
                connections=connections,
                per_address=max_connections_per_address,
                proxies=proxies,
            )
            _serve(running, server)
        finally:
            running.close()


def _server(running: Witness, host: str, port: int, url: str | None, **bounds: Any) -> WitnessServer:
    try:
        return WitnessServer(running, host, port, url, **bounds)
    except OSError as error:
        raise Misconfigured("settings_invalid", f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _serve(running: Witness, server: WitnessServer) -> None:
    with server, _until_told(server.shutdown):
        click.echo(f"Witness {running.verifier.name} listens on {server.listens_on}")
        click.echo(f"Its line in a tlog-policy:\n  {policy_line(running.verifier, server.url)}")
        _tell_logs(running.logs())
        _warn_of_the_future(running.logs())
        server.serve_forever(poll_interval=0.1)


def _warn_of_the_future(logs: Logs) -> None:
    for origin, latest in logs:
        if latest is not None and latest.timestamp > time.time() + CLOCK_SKEW:
            why = "this machine's clock is wrong now, or was then; until it gets there, that time is said again"
            click.echo(f"warning: {printable(tell(origin, latest))}, which is to come: {why}", err=True)


@contextmanager
def _until_told(stop: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM stop what runs inside, in order."""

    def told(*_: Any) -> None:
        # It waits for the loop that this thread is in.
        Thread(target=stop, daemon=True).start()

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_new(data: Path, made: Verifier, url: str) -> None:
    click.echo(f"New witness {made.name}\nIts public key, for everyone who relies on it:\n  {made}")
    click.echo(f"Its line in a tlog-policy, with the address where it will be reached:\n  {policy_line(made, url)}")
    click.echo(f"Its secret key is in {data}. Next: staylog witness trust VKEY --data {data}")


def _tell_logs(logs: Logs) -> None:
    for origin, latest in logs:
        click.echo(f"  {printable(tell(origin, latest))}")
    if not logs:
        click.echo("  no log is trusted yet: staylog witness trust VKEY")
