"""Results of audits to be shown: a full one, an empty one, and any that there may be."""

import random
from copy import deepcopy
from datetime import date, timedelta
from typing import Any

from hypothesis import strategies as st

from ledger.log.members import BASES, LEVELS, OUTCOMES

Audit = dict[str, Any]

KEY = "ledger.example/log+758c21be+AY87lWD8cD/9V55To9gH57DsAV/eWF+IFr2kU0BUhroZ"
FIGURES = ("entries", "hosts", "map_heads", "checkpoints", "tiles", "texts", "answers", "cosignatures")
HOSTILE = (
    '</style></title><script>alert("x")</script>',
    "\"><img src=x onerror=alert(1)>'",
    "<!-- ]]> &amp; &#60;svg/onload=alert(2)>",
    "ledger\u202eelpmaxe\u0000\ud800\u200b\n",
)
EMPTY: Audit = {
    "log": "ledger.example/log",
    "key": KEY,
    "source": "https://ledger.example",
    "size": 0,
    "root": None,
    "at": None,
    "verdict": "clean",
    "figures": dict.fromkeys(FIGURES, 0),
    "checked": [],
    "unchecked": [],
    "findings": [],
    "witnesses": [],
    "issuers": [],
    "days": {},
}


def quiet_day() -> Audit:
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


def grown(first: date, days: int, seed: int = 7) -> dict[str, Audit]:
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


def full() -> Audit:
    """Everything that a page can show."""
    days = grown(date(2025, 11, 3), 330)
    entries = sum(day["entries"] for day in days.values())
    reviews = sum(sum(day["reviews"].values()) for day in days.values())
    figures = (entries, sum(day["hosts"] for day in days.values()), 2011, 1998, 71, reviews - 120, 24, 812)
    return {
        **EMPTY,
        "size": entries,
        "root": "pZf1+GjFVkzqWb3rJx0a7o3MtB0mXhX2c5v8eYQ9uNk=",
        "at": "2026-10-05T09:30:00Z",
        "verdict": "findings",
        "figures": dict(zip(FIGURES, figures, strict=True)),
        "checked": [
            "every entry is under the checkpoint, at its place, and has the form that the protocol gives it",
            "every map head follows from the entries before it",
            "every checkpoint that was kept is consistent with the next one",
            "the answers about 24 hosts, drawn at random, say what the entries say",
        ],
        "unchecked": ["120 texts were not served: the server answered 503 three times"],
        "findings": [
            {
                "code": "map_root_mismatch",
                "claim": "The map head at entry 77 has another root than the entries before it give.",
                "index": 77,
                "count": 3,
                "proof": "signed",
                "file": "findings/map_root_mismatch-77.json",
            },
            {
                "code": "text_differs",
                "claim": "A text that was served does not open the commitment in its entry.",
                "index": 4012,
                "count": 1,
                "proof": "observed",
                "file": "findings/text_differs-4012.json",
            },
        ],
        "witnesses": [
            {"name": "witness.example/w1", "cosigned": 812, "newest": entries - 40},
            {"name": "w2", "cosigned": 0, "newest": None},
        ],
        "issuers": [
            {"issuer": "https://idv.example", "reviews": reviews - 412, "status": "trusted"},
            {"issuer": "did:web:people.example:credentials", "reviews": 400, "status": "removed"},
            {"issuer": "https://stolen.example/issuers/1", "reviews": 11, "status": "compromised"},
            {"issuer": "https://nobody.example", "reviews": 1, "status": None},
        ],
        "days": days,
    }


def hostile() -> Audit:
    """Markup and letters that are not seen, wherever there is text."""
    audit = deepcopy(full())
    for name in ("log", "source", "root", "at"):
        audit[name] = f"{name} {HOSTILE[0]}{HOSTILE[1]}{HOSTILE[3]}"
    audit["key"] = f"{HOSTILE[2]}+758c21be+{'A' * 400}"
    audit["checked"], audit["unchecked"] = list(HOSTILE), ["x" * 3000, *HOSTILE]
    for finding, text in zip(audit["findings"], HOSTILE, strict=False):
        finding |= {"code": text, "claim": text * 3, "file": f"findings/'{text} $(id)"}
    for issuer, text in zip(audit["issuers"], HOSTILE, strict=True):
        issuer["issuer"] = f"https://{'long' * 80}.example/{text}"
    audit["witnesses"][0]["name"] = HOSTILE[1] + "w" * 300
    next(iter(audit["days"].values()))["redactions"] = {HOSTILE[0]: 2, "gdpr_17": 1}
    return audit


_counts = st.integers(0, 40) | st.integers(0, 10**12)
_texts = st.text(max_size=40) | st.sampled_from(HOSTILE)


@st.composite
def _rated(draw: st.DrawFn) -> list[int]:
    count = draw(_counts)
    return [count, draw(st.integers(2 * count, 10 * count))]


def _some(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, values))


def _all(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(names, values))


_happenings = st.fixed_dictionaries(
    {
        **dict.fromkeys(("entries", "responses", "upgrades", "hosts"), _counts),
        "reviews": _all(LEVELS, _counts),
        "overall": _all(LEVELS, _rated()),
        "redactions": _some(BASES, _counts),
        "checks": _some(OUTCOMES, _counts),
    }
)


@st.composite
def days(draw: st.DrawFn) -> dict[str, Audit]:
    """Near each other, or anywhere in the calendar."""
    first = draw(st.dates())
    near = st.integers(0, draw(st.sampled_from((0, 3, 59, 60, 61, 800, 3700, 40_000)))).map(timedelta)
    soon = near.filter(lambda after: after <= date.max - first).map(lambda after: first + after)
    made = draw(st.dictionaries(soon | st.dates() if draw(st.booleans()) else soon, _happenings, max_size=8))
    return {day.isoformat(): happened for day, happened in made.items()}


def audits() -> st.SearchStrategy[Audit]:
    finding = st.fixed_dictionaries(
        {
            "code": _texts,
            "claim": _texts,
            "index": st.none() | _counts,
            "count": _counts,
            "proof": st.sampled_from(("signed", "observed", "witnessed")),
            "file": st.none() | _texts,
        }
    )
    status = st.sampled_from(("trusted", "removed", "compromised", None))
    return st.fixed_dictionaries(
        {
            **dict.fromkeys(("log", "key", "source"), _texts),
            **dict.fromkeys(("root", "at"), st.none() | _texts),
            "size": _counts,
            "verdict": st.sampled_from(("clean", "findings", "incomplete")),
            "figures": _all(FIGURES, _counts),
            "checked": st.lists(_texts, max_size=3),
            "unchecked": st.lists(_texts, max_size=3),
            "findings": st.lists(finding, max_size=3),
            "witnesses": st.lists(
                st.fixed_dictionaries({"name": _texts, "cosigned": _counts, "newest": st.none() | _counts}), max_size=2
            ),
            "issuers": st.lists(
                st.fixed_dictionaries({"issuer": _texts, "reviews": _counts, "status": status}), max_size=3
            ),
            "days": days(),
        }
    )
