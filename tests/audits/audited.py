"""Results of audits to be shown: a full one, an empty one, and any that there may be."""

from copy import deepcopy
from datetime import date
from typing import Any

from hypothesis import strategies as st

from tests.ledger.pictures.drawn import counts, days, grown

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


_texts = st.text(max_size=40) | st.sampled_from(HOSTILE)


def audits() -> st.SearchStrategy[Audit]:
    finding = st.fixed_dictionaries(
        {
            "code": _texts,
            "claim": _texts,
            "index": st.none() | counts,
            "count": counts,
            "proof": st.sampled_from(("signed", "observed", "witnessed")),
            "file": st.none() | _texts,
        }
    )
    status = st.sampled_from(("trusted", "removed", "compromised", None))
    return st.fixed_dictionaries(
        {
            **dict.fromkeys(("log", "key", "source"), _texts),
            **dict.fromkeys(("root", "at"), st.none() | _texts),
            "size": counts,
            "verdict": st.sampled_from(("clean", "findings", "incomplete")),
            "figures": st.fixed_dictionaries(dict.fromkeys(FIGURES, counts)),
            "checked": st.lists(_texts, max_size=3),
            "unchecked": st.lists(_texts, max_size=3),
            "findings": st.lists(finding, max_size=3),
            "witnesses": st.lists(
                st.fixed_dictionaries({"name": _texts, "cosigned": counts, "newest": st.none() | counts}), max_size=2
            ),
            "issuers": st.lists(
                st.fixed_dictionaries({"issuer": _texts, "reviews": counts, "status": status}), max_size=3
            ),
            "days": days(),
        }
    )
