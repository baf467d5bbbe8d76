"""How much the log holds: the numbers that the front page draws."""

from litestar import get
from litestar.di import NamedDependency

from api.caching import SECOND
from api.openapi import responses
from api.shapes import DayStatistics, ReviewsByLevel, Statistics
from ledger.folder import Ledger
from ledger.log.census import Counted


@get(
    "/v1/log/statistics",
    response_headers={"Cache-Control": SECOND},
    responses=responses(),
    sync_to_thread=True,
    tags=["log"],
)
def log_statistics(ledger: NamedDependency[Ledger]) -> Statistics:
    """Entries, reviews by level, responses, upgrades, redactions and booking checks, in all and by day. All of it
    follows from the entries, so nothing said here needs to be believed: an audit counts for itself."""
    return statistics_of(ledger.census.now())


def statistics_of(counted: Counted) -> Statistics:
    total = counted.total
    return Statistics(
        counted.size,
        counted.at,
        total["entries"],
        ReviewsByLevel(**counted.levels),
        total["responses"],
        total["upgrades"],
        total["redactions"],
        total["checks"],
        [
            DayStatistics(
                date,
                day["entries"],
                ReviewsByLevel(**day["reviews"]),
                day["responses"],
                day["upgrades"],
                day["redactions"],
                day["checks"],
            )
            for date, day in counted.days.items()
        ],
    )


HANDLERS = [log_statistics]
