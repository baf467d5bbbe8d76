"""Where a ledger lives and what it is called: from the command line or from STAYLOG_* in the environment."""

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from ledger.errors import Misconfigured

DEFAULT_DATA = "./data"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
DEFAULT_DEADLINE = 4.0
SHORTEST_DEADLINE, LONGEST_DEADLINE = 0.2, 60.0
DEFAULT_BASE_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
# A log that runs makes an entry every 24 hours.
CLOCK_BOUND = timedelta(hours=25)

_BASE_URL = re.compile(r"(https?)://([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class Settings:
    """`base_url` is how the world reaches the service; statements and problem types name it. Where it was not
    `base_url_stated`, a ledger that exists keeps the one that it was made with. `publishes_unanswered` is whether
    reviews are published whose hosts never answered: a part of the policy. `clock_bound` is how far the clock may be
    past the last entry when the service starts. `database_deadline` is how many seconds a statement may take, from
    STAYLOG_DATABASE_DEADLINE. `mark_url` is where the services of this log share a mark (STAYLOG_MARK_URL); `accepted`
    is the checkpoint, as SIZE:ROOT, that the operator lets the log go on from."""

    data: Path
    database_url: str
    base_url: str
    publishes_unanswered: bool = True
    base_url_stated: bool = True
    clock_bound: timedelta = CLOCK_BOUND
    database_deadline: float = DEFAULT_DEADLINE
    mark_url: str | None = None
    accepted: str | None = None

    @classmethod
    def of(
        cls,
        data: Path,
        database_url: str | None = None,
        base_url: str | None = None,
        *,
        publishes_unanswered: bool = True,
        clock_bound: timedelta = CLOCK_BOUND,
        accepted: str | None = None,
    ) -> "Settings":
        where = database_url or f"sqlite:///{data / 'ledger.db'}"
        checked = check_base_url(base_url or DEFAULT_BASE_URL)
        stated = base_url is not None
        mark_url = os.environ.get("STAYLOG_MARK_URL") or None
        return cls(data, where, checked, publishes_unanswered, stated, clock_bound, _deadline(), mark_url, accepted)

    @property
    def log_key(self) -> Path:
        return self.data / "log.key"

    @property
    def unused_log_key(self) -> Path:
        """The log key until a log was begun with it."""
        return self.data / "log.key.unused"

    @property
    def service_keys(self) -> Path:
        return self.data / "service.key"

    @property
    def tlog_policy(self) -> Path:
        """Which witnesses are asked (c2sp.org/tlog-policy); without the file, none."""
        return self.data / "tlog-policy"

    @property
    def mark(self) -> Path:
        return self.data / "last-signed"


def _deadline() -> float:
    stated = os.environ.get("STAYLOG_DATABASE_DEADLINE", "")
    try:
        seconds = float(stated or DEFAULT_DEADLINE)
    except ValueError:
        seconds = 0
    if not SHORTEST_DEADLINE <= seconds <= LONGEST_DEADLINE:
        raise Misconfigured(
            "settings_invalid",
            f"STAYLOG_DATABASE_DEADLINE is {stated!r}; it is a number of seconds from {SHORTEST_DEADLINE:g} to "
            f"{LONGEST_DEADLINE:g}, and with more than 4 clients may wait for longer than ten seconds",
        )
    return seconds


def check_base_url(url: str) -> str:
    """`url` itself if it has the one spelling that statements are compared with."""
    match = _BASE_URL.fullmatch(url)
    if not match or match[3] == _DEFAULT_PORTS[match[1]] or int(match[3] or 1) > 65535:
        raise Misconfigured(
            "settings_invalid",
            f"{url!r} is not a base URL: http or https, a lower-case host, a port unless it is the default one, and "
            "nothing behind it, as https://ledger.example",
        )
    return url


def is_loopback(base_url: str) -> bool:
    """Whether only this machine reaches the service."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def service_did(base_url: str) -> str:
    """The service as a did:web; its document is at /.well-known/did.json."""
    return "did:web:" + base_url.partition("://")[2].replace(":", "%3A")


def origin_of(base_url: str) -> str:
    """The log's name for ever: the base URL without its scheme, and /log."""
    return base_url.partition("://")[2] + "/log"


def base_url_of(origin: str) -> str:
    """The base URL that `origin_of` most likely made `origin` from: https, or http on this machine alone."""
    rest = origin.removesuffix("/log")
    return f"http://{rest}" if is_loopback(f"http://{rest}") else f"https://{rest}"
