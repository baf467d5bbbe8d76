"""`staylog serve`. What needs the `server` extra is imported when it runs."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import click

from ledger.commands.common import accept_clock_option, opening_options, refusals, settings_to_open
from ledger.commands.network import stated_base_url, warn
from ledger.errors import Misconfigured
from ledger.settings import CLOCK_BOUND, DEFAULT_HOST, DEFAULT_PORT, Settings, check_base_url


@click.command()
@opening_options
@click.option("--host", default=DEFAULT_HOST, show_default=True, envvar="STAYLOG_HOST", help="Address to listen on.")
@click.option("--port", default=DEFAULT_PORT, show_default=True, envvar="STAYLOG_PORT", type=click.IntRange(1, 65535))
@click.option(
    "--trusted-proxies",
    metavar="NETWORK,...",
    default="",
    envvar="STAYLOG_TRUSTED_PROXIES",
    show_envvar=True,
    help="Proxies whose X-Forwarded-For says who asks. Without them a proxy is limited as one client.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(16, 60_000),
    default=1024,
    show_default=True,
    envvar="STAYLOG_MAX_CONNECTIONS",
    show_envvar=True,
    help="Connections at once; fewer where the limit of open files leaves no room for them beside the database.",
)
@click.option(
    "--max-connections-per-address",
    type=click.IntRange(1, 60_000),
    default=128,
    show_default=True,
    envvar="STAYLOG_MAX_CONNECTIONS_PER_ADDRESS",
    show_envvar=True,
    help="Of one IPv4 address or IPv6 /64; four times as many of a /48. Not for trusted proxies, nor with --no-limits.",
)
@click.option(
    "--idle-seconds",
    type=click.FloatRange(1, 3600),
    default=60,
    show_default=True,
    envvar="STAYLOG_IDLE_SECONDS",
    show_envvar=True,
    help="For how long a connection is kept that has no request. Longer than a proxy in front keeps its own.",
)
@click.option(
    "--limits/--no-limits",
    default=True,
    show_default=True,
    envvar="STAYLOG_LIMITS",
    help="Limit how often one address may ask. Turn it off only where something in front does that.",
)
@click.option(
    "--unanswered",
    type=click.Choice(["publish", "reject"]),
    default="publish",
    show_default=True,
    envvar="STAYLOG_UNANSWERED",
    show_envvar=True,
    help="What becomes of reviews whose hosts never say whether the stay was booked: published as unconfirmed, or "
    "rejected. It is part of the policy, and the log says so.",
)
@click.option(
    "--clock-bound",
    type=click.FloatRange(min=0, min_open=True, max=24 * 365),
    default=CLOCK_BOUND / timedelta(hours=1),
    show_default=True,
    metavar="HOURS",
    envvar="STAYLOG_CLOCK_BOUND",
    show_envvar=True,
    help="How far the clock may be past the last entry at the start. Beyond that nothing is added until a witness or "
    "--accept-clock confirms it.",
)
@accept_clock_option
def serve(
    data: Path,
    database_url: str | None,
    host: str,
    port: int,
    trusted_proxies: str,
    max_connections: int,
    max_connections_per_address: int,
    idle_seconds: float,
    limits: bool,
    unanswered: str,
    clock_bound: float,
    accept_clock: bool,
) -> None:
    """Run the service. An empty folder is initialised first.

    The base URL, which statements and problem types name, is STAYLOG_BASE_URL, or the one that the ledger was made
    with. Without either, or when that is a loopback address, it is http://HOST:PORT. Stop it with Ctrl-C: what is
    queued is finished. Several services may run on one database.

    \b
      staylog serve --data ./data --port 8080
      curl http://127.0.0.1:8080/log/checkpoint
    """
    with refusals():
        from api.app import create_app
        from api.server import run
        from api.socket_limits import SocketLimits
        from ledger.folder import init_folder, is_empty, open_ledger
        from ledger.net.addresses import parse_proxies, too_wide
        from ledger.net.development import from_environment
        from ledger.store.schema import upgrade

        proxies = parse_proxies(trusted_proxies)
        for network in too_wide(proxies):
            click.echo(f"warning: trusted proxies include {network}: any client can claim any address", err=True)
        stated, local = stated_base_url(), _local_url(host, port)
        settings = settings_to_open(
            data,
            database_url,
            stated,
            publishes_unanswered=unanswered == "publish",
            clock_bound=timedelta(hours=clock_bound),
        )
        if is_empty(settings):
            settings = replace(settings, base_url=stated or local)
            # Before a log is begun that could not be served.
            from_environment(os.environ, settings.base_url)
            if host in ("0.0.0.0", "::") and not stated:  # noqa: S104 (compared, not bound)
                raise Misconfigured(
                    "settings_invalid",
                    "a new log is named after its address for ever: say which one with STAYLOG_BASE_URL",
                )
            click.echo(f"{data} has no ledger yet; starting a new log")
            init_folder(settings)
        else:
            upgrade(settings.database_url)
        ledger = open_ledger(settings, served_at=local, accept_clock=accept_clock)
        _protect(settings)
        warn(ledger.fetcher.development)
        _say_base_url(ledger.settings, ledger.made_as, local)
        if ledger.adopt_policy():
            click.echo("the admission policy has changed; an entry in the log says so")
        per_address = max_connections_per_address if limits else None
        sockets = SocketLimits(connections=max_connections, per_address=per_address, idle=idle_seconds)
        run(create_app(ledger, proxies=proxies, limits=limits), host, port, sockets, proxies)


def _protect(settings: Settings) -> None:
    from ledger.keys import add_checksum

    try:
        add_checksum(settings.service_keys)
    except OSError as error:
        click.echo(f"{settings.service_keys.name} gets no checksum: {error.strerror}", err=True)


def _say_base_url(settings: Settings, made_as: str, local: str) -> None:
    now = settings.base_url
    if settings.base_url_stated and now != made_as:
        click.echo(f"the base URL is {now}, as STAYLOG_BASE_URL says; the ledger was made as {made_as}")
    elif not settings.base_url_stated and now != local:
        click.echo(f"the base URL is {now}, as the ledger was made; STAYLOG_BASE_URL can name another one")


def _local_url(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host.lower()
    return check_base_url(f"http://{name}" if port == 80 else f"http://{name}:{port}")
