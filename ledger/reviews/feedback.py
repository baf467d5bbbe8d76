"""Private words of guests for their hosts: sealed when they come in, fetched by who holds the host's key, and kept
until the host says that it has them, or for a year."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ledger import metrics
from ledger.canon import base64, jcs
from ledger.identity import statements
from ledger.log.hostmap import map_key
from ledger.reviews.desk import Desk, counted
from ledger.store.limiter import HOUR, Limit
from ledger.store.rows import run

KIND = "FeedbackRequest"
REQUESTS_PER_HOST = Limit("feedback/host", 12, HOUR, 12, "quota_exceeded", "one host may ask 12 times in an hour")
# In one answer: the oldest, and after these are acknowledged the next.
MOST = 100

_OLDEST = (
    "SELECT e.review_id, f.sealed, f.method FROM feedback f JOIN entry e ON e.idx = f.idx WHERE f.host_key = ? "
    "AND f.idx < ? ORDER BY f.idx LIMIT ?"
)
_TAKE = (
    "DELETE FROM feedback WHERE host_key = ? AND idx IN (SELECT idx FROM entry WHERE review_id IN ({})) RETURNING idx"
)
_FORGET = "DELETE FROM feedback WHERE forget_on <= ? RETURNING idx"


@dataclass(frozen=True, slots=True)
class Item:
    """One message: of which review, the sealed words in base64, and the name of the key that opens them."""

    review_id: str
    sealed: str
    key: str


async def collect(desk: Desk, data: bytes) -> list[Item]:
    """What is there for a host, once what it acknowledges is erased."""
    with counted("feedback"):
        body: Any = statements.parse(data)
        statements.check(body, KIND)
        host = statements.claimed(body, KIND, domain=desk.domain, now=desk.clock())
        keys = await desk.asked(desk.dids.host(host))
        statements.authenticate(body, keys.now())
        with desk.signing_refusals(jcs.dumps(body)), desk.limiter.spending(REQUESTS_PER_HOST, host):
            if body.get("acknowledge"):
                await desk.aside(lambda: acknowledge(desk, host, body["acknowledge"]))
            items = _items(desk, host)
        metrics.SUBMISSIONS.labels("feedback", "accepted").inc()
        return items


def acknowledge(desk: Desk, host: str, review_ids: Sequence[str]) -> int:
    """Erase what the host has; how many."""
    marks = ", ".join("?" * len(review_ids))
    with desk.store.erase("feedback") as connection:
        return len(run(connection, _TAKE.format(marks), (map_key(host), *review_ids)))


def forget(desk: Desk, today: date) -> int:
    """Erase what nobody came for; how many."""
    with desk.store.erase("feedback") as connection:
        return len(run(connection, _FORGET, (str(today),)))


def _items(desk: Desk, host: str) -> list[Item]:
    """Only of reviews that are published."""
    with desk.store.read() as connection:
        rows = run(connection, _OLDEST, (map_key(host), desk.reader.published.size, MOST))
    return [Item(review_id, base64.encode(bytes(sealed)), method) for review_id, sealed, method in rows]
