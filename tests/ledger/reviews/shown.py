"""What shows the stays of reviews: for the tests beside this."""

import json
from collections.abc import Mapping
from typing import Any

from ledger.errors import Refused
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted
from ledger.store.rows import run
from tests.hosting import BOOKED, Hosted
from tests.identities import NOW
from tests.outcomes import become


def entry_of(taken: Accepted | Waiting) -> dict[str, Any]:
    assert isinstance(taken, Accepted)
    return dict(json.loads(taken.receipt["entry"]))


def outcome(hosted: Hosted, body: Mapping[str, Any]) -> str:
    """What shows the stay of a review that is taken in, that it waits, or why it is refused."""
    try:
        taken = hosted.take(body)
    except Refused as refused:
        return refused.code
    return "waiting" if isinstance(taken, Waiting) else str(entry_of(taken)["evidence"]["booking"])


def before_check_in(hosted: Hosted, *bodies: Mapping[str, Any]) -> None:
    """Notices and claims that come when the stay is booked; then it is over."""
    hosted.clock.now = BOOKED
    for body in bodies:
        hosted.book(body)
    hosted.clock.now = NOW


def unconfirmed(hosted: Hosted, body: Mapping[str, Any]) -> str:
    """The id of a review whose host was silent for three days."""
    hosted.site.down = 503
    waiting = hosted.wait(body)
    hosted.time_out()
    return str(become(hosted, waiting)["receipt"]["review_id"])


def rows(hosted: Hosted, table: str) -> list[Any]:
    with hosted.desk.store.read() as connection:
        return [tuple(row) for row in run(connection, f"SELECT * FROM {table}")]
