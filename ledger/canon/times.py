"""Dates `YYYY-MM-DD` and times `YYYY-MM-DDTHH:MM:SSZ`: one spelling, so that text order is time order."""

import re
from datetime import UTC, date, datetime
from typing import Any

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


def check_date(value: Any) -> None:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError("a date YYYY-MM-DD expected")
    date.fromisoformat(value)


def check_time(value: Any) -> None:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError("a time YYYY-MM-DDTHH:MM:SSZ expected")
    datetime.fromisoformat(value[:-1])


def parse_time(time: str) -> datetime:
    check_time(time)
    return datetime.fromisoformat(time[:-1]).replace(tzinfo=UTC)


def parse_moment(value: Any) -> datetime:
    """A time as others write it: with its offset, which may not be left out, and perhaps fractions of a second."""
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise ValueError("a time with its offset from UTC expected, as 2026-07-04T09:30:00Z")
    moment = datetime.fromisoformat(value)
    # Beyond, there is no room to add or take away a few minutes.
    if not 1900 <= moment.year <= 9000:
        raise ValueError("a time in the years 1900 to 9000 expected")
    return moment.astimezone(UTC)


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def seconds(time: str) -> int:
    """Seconds since 1970."""
    return int(parse_time(time).timestamp())
