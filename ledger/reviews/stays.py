"""When a stay begins, when it is over, and when it is too long ago (RFC-005 7.3.3)."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import Any

from ledger.errors import BadForm, NotYet

# Where no time zone is known: the last place on Earth where a day ends. And the first.
EVERYWHERE = timezone(timedelta(hours=-12))
ANYWHERE = timezone(timedelta(hours=14))
LONGEST_AGO = timedelta(days=365)
# Nobody books further ahead, and what is kept of a booking has an end.
FURTHEST_AHEAD = timedelta(days=730)


def is_over(body: Mapping[str, Any], now: datetime) -> bool:
    """Whether that is plain wherever the listing is, as it is of nearly all stays: nobody has to look where."""
    left = date.fromisoformat(body["check_out"])
    return now.astimezone(EVERYWHERE).date() > left and now.astimezone(ANYWHERE).date() - left <= LONGEST_AGO


def require_over(body: Mapping[str, Any], now: datetime, zone: tzinfo = EVERYWHERE) -> None:
    """The day of check-out is over where the listing is, and not more than a year ago."""
    today, left = require_left(body, now, zone)
    if today - left > LONGEST_AGO:
        raise NotYet("too_late", f"the stay ended on {left}, more than {LONGEST_AGO.days} days ago")


def require_left(body: Mapping[str, Any], now: datetime, zone: tzinfo = EVERYWHERE) -> tuple[date, date]:
    """The day of check-out is over where the listing is: what day it is there, and the day that it was."""
    today, left = now.astimezone(zone).date(), date.fromisoformat(body["check_out"])
    if today <= left:
        where = "everywhere on Earth" if zone is EVERYWHERE else f"in the listing's time zone, {zone}"
        raise NotYet(
            "stay_not_over", f"the day of check-out, {left}, is not over {where}: submit the review on the day after it"
        )
    return today, left


def require_foreseeable(body: Mapping[str, Any], now: datetime) -> None:
    """The stay ends within two years."""
    if date.fromisoformat(body["check_out"]) > now.astimezone(ANYWHERE).date() + FURTHEST_AHEAD:
        message = f"more than {FURTHEST_AHEAD.days} days ahead"
        raise BadForm("date_invalid", f"check_out: {message}", errors=[("check_out", message)])


def begins(check_in: str, zone: tzinfo | None) -> datetime:
    """The first moment of the day of check-in where the listing is; where nobody knows, the first anywhere: what must
    be said before it is said too late rather than too early."""
    return datetime.combine(date.fromisoformat(check_in), time(), zone or ANYWHERE)


def lies_within(stay: Mapping[str, Any], booked: Mapping[str, Any]) -> bool:
    """Whether the days of a stay are among those that were booked."""
    return bool(booked["check_in"] <= stay["check_in"] < stay["check_out"] <= booked["check_out"])
