"""Days of logs to be drawn, and what a drawing shows."""

import random
import re
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from xml.etree import ElementTree

from hypothesis import strategies as st

from ledger.log.members import BASES, LEVELS, OUTCOMES
from ledger.pictures.timeline import Timeline, timeline

Day = dict[str, Any]

POINT = re.compile(r"[ML](-?[\d.]+) (-?[\d.]+)")


def quiet_day() -> Day:
    return {
        "entries": 0,
        "reviews": dict.fromkeys(LEVELS, 0),
        "overall": {level: [0, 0] for level in LEVELS},
        "responses": 0,
        "upgrades": 0,
        "redactions": {},
        "checks": {},
        "hosts": 0,
    }


def grown(first: date, days: int, seed: int = 7) -> dict[str, Day]:
    """Days of a log that more and more people use. On some, nothing happens."""
    chance = random.Random(seed)
    made = {}
    for n in range(days):
        day = quiet_day()
        busy = 1 + n / 40
        for level, share in zip(LEVELS, (6, 1, 2), strict=True):
            count = int(chance.random() * busy * share)
            day["reviews"][level] = count
            drift = 6 if level == "unconfirmed" else 8
            day["overall"][level] = [count, sum(min(10, max(2, round(chance.gauss(drift, 1.4)))) for _ in range(count))]
        day["responses"], day["upgrades"] = int(chance.random() * busy), int(chance.random() * 1.2)
        day["hosts"] = int(chance.random() * 3)
        day["redactions"] = {basis: 1 for basis in BASES[:3] if chance.random() < 0.03}
        day["checks"] = {outcome: 1 for outcome in OUTCOMES if chance.random() < 0.08}
        day["entries"] = 2 * (sum(day["reviews"].values()) + day["responses"] + day["upgrades"]) + 1
        if chance.random() < 0.93:
            made[(first + timedelta(n)).isoformat()] = day
    return made


def one_day(**changes: object) -> Timeline:
    return timeline({"2026-07-04": {**quiet_day(), **changes}})


def true_mean(days: dict[str, Day], level: str) -> int | None:
    count, half_stars = (sum(day["overall"][level][part] for day in days.values()) for part in (0, 1))
    if not count:
        return None
    mean = Decimal(half_stars) / 2 / count
    return int(mean.quantize(Decimal("0.1"), ROUND_HALF_UP) * 10)


def parsed(drawn: str) -> ElementTree.Element:
    """What any reader of XML makes of it, without the name of its namespace."""
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def of_class(drawn: str, *names: str) -> list[ElementTree.Element]:
    return [element for element in parsed(drawn).iter() if set(names) <= set(element.get("class", "").split())]


def said(element: ElementTree.Element) -> str:
    return element.findtext("title", "")


def bars(drawn: str, kind: str) -> list[ElementTree.Element]:
    """Those with numbers; the legend has one of each kind as well."""
    return [bar for bar in of_class(drawn, "bar", kind) if ":" in said(bar)]


def marks(drawn: str, kind: str) -> list[ElementTree.Element]:
    return [mark for mark in of_class(drawn, "mark", kind) if ":" in said(mark)]


counts = st.integers(0, 40) | st.integers(0, 10**12)


@st.composite
def _rated(draw: st.DrawFn) -> list[int]:
    count = draw(counts)
    return [count, draw(st.integers(2 * count, 10 * count))]


def _some(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, values))


def _all(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(names, values))


_happenings = st.fixed_dictionaries(
    {
        **dict.fromkeys(("entries", "responses", "upgrades", "hosts"), counts),
        "reviews": _all(LEVELS, counts),
        "overall": _all(LEVELS, _rated()),
        "redactions": _some(BASES, counts),
        "checks": _some(OUTCOMES, counts),
    }
)


@st.composite
def days(draw: st.DrawFn) -> dict[str, Day]:
    """Near each other, or anywhere in the calendar."""
    first = draw(st.dates())
    near = st.integers(0, draw(st.sampled_from((0, 3, 59, 60, 61, 800, 3700, 40_000)))).map(timedelta)
    soon = near.filter(lambda after: after <= date.max - first).map(lambda after: first + after)
    made = draw(st.dictionaries(soon | st.dates() if draw(st.booleans()) else soon, _happenings, max_size=8))
    return {day.isoformat(): happened for day, happened in made.items()}


def assert_framed(drawn: str) -> None:
    """It is a picture with a name, and nothing of it is outside of its frame."""
    root = parsed(drawn)
    assert (root.tag, root.get("role")) == ("svg", "img")
    assert root.get("aria-label")
    width, height = (float(side) for side in root.attrib["viewBox"].split()[2:])
    for element in root.iter():
        assert 0 <= float(element.get("x", 0)) + float(element.get("width", 0)) <= width
        assert 0 <= float(element.get("y", 0)) + float(element.get("height", 0)) <= height
        for x, y in POINT.findall(element.get("d", "")):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height
