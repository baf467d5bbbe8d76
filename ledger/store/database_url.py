"""The URL of a database, in SQLAlchemy's spelling or in libpq's, which may name several hosts."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from ledger.errors import Misconfigured

_DRIVER = "postgresql+psycopg"
_POSTGRESQL = ("postgresql", "postgres", _DRIVER)


def parse_database_url(url: str) -> URL:
    """The URL as SQLAlchemy has it. Raises Misconfigured when it names neither of the two engines."""
    try:
        parsed = _several_hosts(url) or make_url(url)
        if parsed.drivername in _POSTGRESQL:
            parsed = parsed.set(drivername=_DRIVER)
        name = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError, psycopg.ProgrammingError):
        name = ""
    if name not in ("sqlite", "postgresql") or (name == "sqlite" and not parsed.database):
        raise Misconfigured(
            "settings_invalid",
            "a database URL is sqlite:///FILE, postgresql://USER@HOST/NAME or, with a standby, "
            "postgresql://USER@HOST:PORT,HOST:PORT/NAME?target_session_attrs=read-write",
        )
    return parsed


def connection_parameters(url: URL) -> dict[str, Any]:
    """What libpq is given, for a URL of PostgreSQL."""
    _, parameters = url.get_dialect()().create_connect_args(url)
    return dict(parameters)


def _several_hosts(url: str) -> URL | None:
    """`USER@HOST:PORT,HOST:PORT`, which only libpq reads; None for any other URL."""
    scheme, _, rest = url.partition("://")
    hosts = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    if scheme not in _POSTGRESQL or "," not in hosts:
        return None
    found = {name: str(value) for name, value in conninfo_to_dict(f"postgresql://{rest}").items() if value is not None}
    own = (found.pop("user", None), found.pop("password", None))
    return URL.create(_DRIVER, *own, database=found.pop("dbname", None), query=found)
