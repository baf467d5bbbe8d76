"""For commands that ask others: the guarded fetcher, and the warning when names lead to a developer's own machine."""

import os
from typing import TYPE_CHECKING

import click

from ledger.settings import DEFAULT_BASE_URL, check_base_url

if TYPE_CHECKING:
    from ledger.net.development import Development
    from ledger.net.fetch import Fetcher


def own_base_url() -> str:
    """How the world reaches the ledger of whoever runs the command, as the environment says."""
    return check_base_url(os.environ.get("STAYLOG_BASE_URL") or DEFAULT_BASE_URL)


def command_fetcher() -> "Fetcher":
    from ledger.net.development import from_environment
    from ledger.net.fetch import Fetcher, user_agent

    development = from_environment(os.environ, own_base_url())
    warn(development)
    return Fetcher(user_agent(own_base_url()), development)


def warn(development: "Development") -> None:
    if development.warning:
        click.secho(development.warning, fg="black", bg="yellow", err=True)
