"""What becomes of submissions that wait, and what the log then says of their host."""

from typing import Any

from ledger.reviews import pending
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import stored_receipt
from tests.hosting import Hosted
from tests.reviewing import GUEST


def silent(hosted: Hosted, **changes: Any) -> Waiting:
    """A review of a host that does not answer; with the site's `down` at None it does."""
    hosted.site.down = 503
    return hosted.wait(hosted.review(**{"guest": GUEST, **changes}))


def become(hosted: Hosted, waiting: Waiting) -> dict[str, Any]:
    """What became of it, with its receipt as it is served."""
    found = pending.look_up(hosted.desk, waiting.id)
    assert not isinstance(found, Waiting)
    if "index" not in found:
        return dict(found)
    return {**found, "receipt": {**(stored_receipt(hosted.desk.reader, found["index"]) or {}), **found["beside"]}}


def waits(hosted: Hosted, waiting: Waiting) -> bool:
    return isinstance(pending.look_up(hosted.desk, waiting.id), Waiting)


def checks(hosted: Hosted) -> dict[str, int]:
    """How often the log tells what of the host."""
    statistics = hosted.record()["statistics"] or {"checks": {}}
    return {outcome: count for outcome, count in statistics["checks"].items() if count}
