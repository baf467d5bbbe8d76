"""Values on a page that are also served as JSON: each says where its twin is, so that whoever doubts it can compare."""

from datetime import datetime, timedelta

from ledger.canon.times import parse_time
from ledger.pictures.markup import visible

_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def code(twin: str, value: str) -> str:
    """`twin` is an address with a JSON pointer (RFC 6901) as its fragment."""
    return f'<code data-twin="{visible(twin)}">{visible(value)}</code>'


def number(twin: str, value: int) -> str:
    """With commas for people, and as it is for programs."""
    return f'<data data-twin="{visible(twin)}" value="{value}">{value:,}</data>'


def moment(twin: str, at: str, now: datetime) -> str:
    shown = visible(at.replace("T", " ").replace("Z", " UTC"))
    return f'<time data-twin="{visible(twin)}" datetime="{visible(at)}">{shown}</time>, {age(now - parse_time(at))}'


def age(passed: timedelta) -> str:
    """In the largest unit of which there are two, so that it is never off by half; clocks may differ a little."""
    seconds = max(int(passed.total_seconds()), 0)
    name, unit = next(((name, unit) for name, unit in _UNITS if seconds >= 2 * unit), ("", 0))
    return f"{seconds // unit:,} {name}s ago" if unit else "just now"
