"""For commands that ask others: the guarded fetcher, and the warning when names lead to a developer's own machine."""

import os
from typing import TYPE_CHECKING

import click

from ledger.settings import DEFAULT_BASE_URL, check_base_url
from ledger.user_agent import USER_AGENT

if TYPE_CHECKING:
    from ledger.net.development import Development
    from ledger.net.fetch import Fetcher


def stated_base_url() -> str | None:
    """How the world reaches the operator's own ledger, if the environment says; else the ledger itself knows."""
    stated = os.environ.get("STAYLOG_BASE_URL")
    return check_base_url(stated) if stated else None


def command_fetcher() -> "Fetcher":
    from ledger.net.development import from_environment
    from ledger.net.fetch import Fetcher

    base_url = stated_base_url() or DEFAULT_BASE_URL
    development = from_environment(os.environ, base_url)
    warn(development)
    return Fetcher(USER_AGENT, development)


def warn(development: "Development") -> None:
    if development.warning:
        click.secho(development.warning, fg="black", bg="yellow", err=True)
