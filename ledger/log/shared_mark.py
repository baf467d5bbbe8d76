"""One mark for all services of a log, in etcd, by its JSON gateway (`/v3/kv/range`, `/v3/kv/txn`).

It is moved by compare-and-put before each signature, so two services can never sign two histories, however old the
database is that each of them reads. A mark that cannot be reached lets nothing be signed.
"""

import json
import logging
from threading import Lock
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from ledger.canon import base64, strict_json
from ledger.errors import Halted, Malformed, Misconfigured, NotFetched, Unavailable
from ledger.log.mark import Mark, another_history
from ledger.net import plain

_logger = logging.getLogger(__name__)

# For one address, and for all of them together: a submission must be answered in time.
SECONDS, SECONDS_IN_ALL = 1.5, 5.0
MOST_BYTES, MOST_ADDRESSES = 16 * 1024, 5


class SharedMark:
    """Held by the open ledger; threads may share it. `url` is http(s)://HOST:PORT[,HOST:PORT...]/KEY-PREFIX, and
    `origin` names the log, so that several logs may use one prefix."""

    def __init__(self, url: str, origin: str, agent: str) -> None:
        self._addresses, prefix = parse_mark_url(url)
        self._key = base64.encode(f"{prefix}/{origin}".encode())
        self._agent = agent
        self._lock = Lock()
        # The newest mark that was read, and etcd's number of that change; 0 while there is none.
        self._mark: Mark | None = None
        self._revision = 0
        self._is_away = False

    @property
    def known(self) -> Mark | None:
        """The newest mark that this process has read or written, without asking."""
        return self._mark

    def read(self) -> Mark | None:
        """The newest mark; None when etcd has none and never had one. Raises Unavailable when no address answers,
        Halted (`mark_missing`) when the mark was deleted, (`mark_unreadable`) when it is damaged."""
        with self._lock:
            return self._take(self._ask("range", {"key": self._key}))

    def write(self, mark: Mark) -> Mark:
        """`mark` stands in etcd when this returns it. When another service has moved the mark since this one read it,
        nothing is changed and the mark that stands there is returned. Raises as `read`, and Halted (`log_forked`) when
        another root is marked at the size."""
        with self._lock:
            if self._mark is not None and self._mark.size >= mark.size:
                return _agreeing(self._mark, mark)
            unmoved = {"key": self._key, "target": "MOD", "result": "EQUAL", "mod_revision": str(self._revision)}
            put = {"key": self._key, "value": base64.encode(mark.line())}
            steps = {
                "compare": [unmoved],
                "success": [{"request_put": put}, {"request_range": {"key": self._key}}],
                "failure": [{"request_range": {"key": self._key}}],
            }
            answer = self._ask("txn", steps)
            try:
                moved = answer["responses"][-1]["response_range"]
            except (KeyError, IndexError, TypeError):
                raise _unavailable() from None
            found = self._take(moved)
            if found is None:
                raise _missing()
            return _agreeing(found, mark)

    def _take(self, answer: Any) -> Mark | None:
        """What a range says of the key."""
        try:
            kept = answer.get("kvs", [])
            mark = Mark.parse(base64.decode(kept[0]["value"])) if kept else None
            revision = int(kept[0]["mod_revision"]) if kept else 0
        except (AttributeError, KeyError, TypeError, ValueError, Malformed):
            raise _unavailable() from None
        if not kept and self._mark is not None:
            raise _missing()
        if kept and mark is None:
            raise Halted(
                "mark_unreadable", "the shared mark in etcd is damaged, so it does not tell what was signed last"
            )
        self._mark, self._revision = mark, revision
        return mark

    def _ask(self, what: str, question: Any) -> Any:
        """The answer of the first address that gives one; that address is asked first from then on."""
        deadline, why = monotonic() + SECONDS_IN_ALL, ""
        body = json.dumps(question).encode()
        for address in list(self._addresses):
            left = min(SECONDS, deadline - monotonic())
            if left <= 0:
                break
            try:
                answer = plain.ask(f"{address}/v3/kv/{what}", body, agent=self._agent, seconds=left, most=MOST_BYTES)
                if answer.status == 200:
                    self._addresses.remove(address)
                    self._addresses.insert(0, address)
                    self._is_away = False
                    return strict_json.loads(answer.body)
                why = f"{address} answers {answer.status}"
            except NotFetched as error:
                why = error.message
            except Malformed:
                why = f"{address} does not answer as etcd does"
        if not self._is_away:
            self._is_away = True
            _logger.warning("the shared mark cannot be reached: %s", why)
        raise _unavailable()


def parse_mark_url(url: str) -> tuple[list[str], str]:
    """The addresses in a URL of etcd, and the prefix of its keys. Raises Misconfigured (`settings_invalid`)."""
    parts = urlsplit(url)
    prefix, places = parts.path.strip("/"), parts.netloc.split(",")
    if not prefix or not all(places) or len(places) > MOST_ADDRESSES or parts.query or parts.fragment:
        raise Misconfigured(
            "settings_invalid",
            f"{url[:200]!r} is no address of a shared mark: http(s)://HOST:PORT[,HOST:PORT...]/KEY-PREFIX",
        )
    return [plain.check_address(f"{parts.scheme}://{place}") for place in places], prefix


def _agreeing(found: Mark, mark: Mark) -> Mark:
    """`found`, unless it is of another history of the same size."""
    if found.size == mark.size and found.root != mark.root:
        raise another_history(found)
    return found


def _missing() -> Halted:
    return Halted("mark_missing", "the shared mark was deleted from etcd, so it does not tell what was signed last")


def _unavailable() -> Unavailable:
    """Why is for the operator: addresses inside the operator's network are not shown to clients."""
    return Unavailable("storage_unavailable", "the shared mark cannot be reached, so nothing is signed")
