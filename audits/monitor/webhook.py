"""Alerts as JSON to an address. Neither the path of that address nor the token is ever shown: both may be secrets."""

import re
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from audits.monitor.errands import Errands
from ledger.errors import Misconfigured, Unavailable
from ledger.user_agent import USER_AGENT

TOKEN = "STAYLOG_WEBHOOK_TOKEN"  # noqa: S105 (its name)
# Seconds for one try, and for all alerts of one round.
TIMEOUT, ROUND = 10.0, 60.0
TRIES, PAUSE = 3, 1.0

# About this alert, and no other: to send it again is of no use.
_REFUSED = (400, 413, 422)
_PRINTABLE = re.compile(r"[!-~]*")


class Refusal(Exception):
    """The receiver does not want this alert."""


class Webhook:
    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        seconds: float = TIMEOUT,
    ) -> None:
        try:
            self._parts = urlsplit(url)
            sound = bool(self._parts.scheme in ("http", "https") and self._parts.hostname and self._parts.port != 0)
        except ValueError:
            sound = False
        if not sound or "@" in self._parts.netloc or not _PRINTABLE.fullmatch(url):
            raise Misconfigured("settings_invalid", "--webhook is http:// or https://, a host and a path")
        if token is not None and (not token or not _PRINTABLE.fullmatch(token)):
            raise Misconfigured("settings_invalid", f"{TOKEN} has characters that no header may have")
        self.name = f"{self._parts.scheme}://{self._parts.netloc}"
        self._token = token
        self._sleep = sleep
        self._seconds = seconds
        self._errands: Errands[int] = Errands(seconds)

    def budget(self, seconds: float = ROUND) -> Callable[[], bool]:
        """Whether there is time left in this round: to watch is more important than to tell."""
        end = time.monotonic() + seconds
        return lambda: time.monotonic() < end

    def post(self, body: bytes) -> None:
        """Raises Refusal, or Unavailable after some tries."""
        trouble = ""
        for number in range(TRIES):
            if number:
                self._sleep(PAUSE * 2 ** (number - 1))
            answer = self._errands.run({self.name: lambda: self._post(body)})[self.name]
            if isinstance(answer, int) and 200 <= answer < 300:
                return
            if answer in _REFUSED:
                raise Refusal(f"{self.name} answers {answer}")
            trouble = f"it answers {answer}" if isinstance(answer, int) else str(answer)
        raise Unavailable("ledger_unreachable", f"{self.name} takes no alerts: {trouble}")

    def _post(self, body: bytes) -> int:
        """The status. Redirects are not followed: the token is for this address."""
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        connection = kind(self._parts.netloc, timeout=self._seconds)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        path = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        try:
            connection.request("POST", path, body, headers)
            with connection.getresponse() as response:
                return response.status
        except (OSError, HTTPException) as error:
            # What the library says may quote what was sent.
            raise Unavailable("ledger_unreachable", _reason(error)) from None
        finally:
            connection.close()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
