"""Hypothesis strategies: valid entries of every type, and entries with one thing changed."""

from base64 import b32encode, urlsafe_b64encode
from collections.abc import Callable
from datetime import date, timedelta
from string import ascii_letters, ascii_lowercase, digits
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ledger.canon import base58, base64
from ledger.log.entries import MEMBERS
from ledger.log.members import BASES, BOOKINGS, CATEGORIES, IDV_LEVELS, LEVELS, OPTIONAL_CATEGORIES, OUTCOMES

Members = dict[str, Any]

bytes_32 = st.binary(min_size=32, max_size=32)
hashes = bytes_32.map(base64.encode)
counts = st.integers(0, 2**53 - 1)
times = st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "Z")
review_ids = st.binary(min_size=16, max_size=16).map(lambda data: "rev-" + b32encode(data).decode().lower().rstrip("="))
listing_ids = st.text(f"{ascii_letters}{digits}._~-", min_size=1, max_size=128)
origins = st.text(st.characters(exclude_characters="+", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=40)


@st.composite
def _web(draw: DrawFn) -> str:
    label = st.text(ascii_lowercase + digits, min_size=1, max_size=6)
    host = draw(st.lists(label, min_size=1, max_size=3).map(".".join)) + draw(st.sampled_from(["", "-x.example"]))
    port = draw(st.none() | st.integers(1, 65535).filter(lambda number: number != 443))
    escapes = ["%20", "%2F", "%40", "%7E", "%C3"]
    segment = st.lists(st.sampled_from([*ascii_letters, *digits, *"._-", *escapes]), min_size=1, max_size=6).map(
        "".join
    )
    path = draw(st.lists(segment, max_size=3))
    return ":".join(["did:web", host + (f"%3A{port}" if port else ""), *path])


dids = st.one_of(
    _web(),
    st.binary(min_size=1, max_size=40).map(lambda data: f"did:key:z{base58.encode(data)}"),
    st.text(f"{ascii_letters}{digits}_-", min_size=1, max_size=60).map("did:jwk:".__add__),
)
_paths = st.text(f"{ascii_letters}{digits}._~:/?#@&=%-", max_size=40).map("/".__add__)
issuers = dids | st.builds(
    "https://{}{}{}".format,
    st.text(f"{ascii_letters}{digits}.-", min_size=1, max_size=20),
    st.sampled_from(["", ":443", ":8443"]),
    st.just("") | _paths,
)
rating = st.integers(2, 10).map(lambda half_stars: half_stars / 2)
ratings = st.fixed_dictionaries(
    {name: rating for name in CATEGORIES if name not in OPTIONAL_CATEGORIES},
    optional={name: rating for name in CATEGORIES if name in OPTIONAL_CATEGORIES},
)


def _evidence(*bookings: str) -> SearchStrategy[Members]:
    return st.fixed_dictionaries(
        {
            "booking": st.sampled_from(bookings),
            "issuer": st.none() | issuers,
            "idv_level": st.sampled_from([None, *IDV_LEVELS]),
            "commitment": hashes,
        }
    )


def _entry(type_: str, **members: SearchStrategy[Any]) -> SearchStrategy[Members]:
    return st.fixed_dictionaries({"type": st.just(type_), "v": st.just(1), "at": times, **members})


@st.composite
def _review(draw: DrawFn) -> Members:
    level = draw(st.sampled_from(LEVELS))
    check_in = draw(st.dates(max_value=date.max - timedelta(days=400)))
    nights = draw(st.integers(1, 400))
    return draw(
        _entry(
            "review",
            review_id=review_ids,
            host_did=dids,
            listing_id=listing_ids,
            check_in=st.just(check_in.isoformat()),
            check_out=st.just((check_in + timedelta(days=nights)).isoformat()),
            ratings=ratings,
            level=st.just(level),
            evidence=_evidence(*BOOKINGS[level]),
            repeat=st.booleans(),
            text=st.none() | hashes,
        )
    )


_of_review: dict[str, SearchStrategy[Any]] = {"review_id": review_ids, "review": counts, "host_did": dids}
ENTRIES: dict[str, SearchStrategy[Members]] = {
    "genesis": _entry("genesis", origin=origins, policy=hashes, previous=st.none() | origins),
    "policy": _entry("policy", policy=hashes),
    "issuer": _entry(
        "issuer",
        role=st.sampled_from(["guest", "host"]),
        issuer=issuers,
        action=st.sampled_from(["trusted", "removed", "compromised"]),
        keys=hashes,
        max_idv_level=st.sampled_from([None, *IDV_LEVELS]),
        since=st.none() | times,
    ),
    "review": _review(),
    "response": _entry("response", **_of_review, text=hashes, statement=hashes),
    "upgrade": _entry("upgrade", **_of_review, level=st.just("guest_verified"), evidence=_evidence("stay_receipt")),
    "booking_check": _entry("booking_check", host_did=dids, outcome=st.sampled_from(OUTCOMES), booking=hashes),
    "redaction": _entry(
        "redaction",
        **_of_review,
        part=st.sampled_from(["text", "response"]),
        basis=st.sampled_from(BASES),
        decision=hashes,
    ),
    "index_head": _entry("index_head", seq=counts, count=counts, root=hashes),
    "map_head": _entry("map_head", size=counts, root=hashes),
}

# Values that are right somewhere, nearly right, or right nowhere.
_words = st.sampled_from(
    [
        *LEVELS,
        *BOOKINGS["guest_verified"],
        *("none", "guest", "host", "trusted", "removed", "compromised", "text", "response"),
        *(*OUTCOMES, *BASES, *IDV_LEVELS, *MEMBERS, *CATEGORIES),
    ]
)
_numbers = st.sampled_from([-1, 0, 0.5, 1, 1.25, 2, 2.5, 4.75, 5, 5.5, 6, 1e21, 2**53 - 1, 2**53, -(2**53)])
_base64 = st.one_of(
    st.binary(min_size=31, max_size=33).map(base64.encode),
    bytes_32.map(lambda data: urlsafe_b64encode(data).decode()),
    st.builds(lambda text, last: text[:42] + last + "=", hashes, st.sampled_from("ABCDEFGHwxyz0123456789+/")),
)
_hours = ["", "T00:00:00Z", "T23:59:59Z", "T24:00:00Z", "T12:60:00Z", "T12:00:60Z", "T12:00:00", "t12:00:00z"]
_calendar = st.builds(
    "{:04}-{:02}-{:02}{}".format,
    st.sampled_from([0, 1, 1900, 2024, 2026, 9999]),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from(_hours),
)
_endings = [
    "",
    ".",
    "..a",
    "-",
    "%3A443",
    "%3A0",
    "%3A70000",
    "%3a80",
    "%3A80",
    ":%41",
    ":%2f",
    ":%2F",
    ":",
    "/x",
    "#x",
    "é",
]
_dids = st.builds(
    "did:{}:{}{}".format,
    st.sampled_from(["web", "web", "key", "jwk", "ion", "WEB"]),
    st.text(ascii_lowercase + digits, max_size=8) | st.text(f"{ascii_letters}{digits}._:-", max_size=8),
    st.sampled_from(_endings),
)
_ids = review_ids.flatmap(lambda text: st.sampled_from([text[:-1] + last for last in "abeimquy4z27"]))
_others: SearchStrategy[Any] = st.sampled_from([None, True, False, "", "x", [], {}, "https://", "https://a b"])
_values = st.one_of(_words, _numbers, _base64, _calendar, _dids, _ids, _others, listing_ids, origins)
# Members whose change is most telling when the new value is of the right kind.
_NEARBY: dict[str, SearchStrategy[Any]] = {
    **dict.fromkeys(("at", "since", "check_in", "check_out"), _calendar),
    **dict.fromkeys(("host_did", "issuer"), _dids),
    **dict.fromkeys(("policy", "keys", "text", "statement", "root", "decision", "commitment"), _base64),
    **dict.fromkeys(("size", "seq", "count", "review", *CATEGORIES), _numbers),
    **dict.fromkeys(("level", "booking"), st.sampled_from([*LEVELS, *BOOKINGS["guest_verified"], "none"])),
    "review_id": _ids,
}


def _drop(draw: DrawFn, target: Members, name: str) -> None:
    del target[name]


def _add(draw: DrawFn, target: Members, name: str) -> None:
    target[draw(_words | st.text(max_size=8))] = draw(_values)


def _change(draw: DrawFn, target: Members, name: str) -> None:
    target[name] = draw(_values)


def _nudge(draw: DrawFn, target: Members, name: str) -> None:
    target[name] = draw(_NEARBY.get(name, _values))


def _wrap(draw: DrawFn, target: Members, name: str) -> None:
    value = target[name]
    target[name] = draw(st.sampled_from([[value], {name: value}, str(value), [], {}]))


def _bend(draw: DrawFn, target: Members, name: str) -> None:
    """A text nearly as it was."""
    if isinstance(text := target[name], str):
        place = draw(st.integers(0, max(len(text) - 1, 0)))
        other = text[:place] + draw(st.characters(codec="utf-8")) + text[place + 1 :]
        target[name] = draw(st.sampled_from([other, text + "\n", " " + text, text[:-1], text.upper(), text.lower()]))


_MUTATIONS: list[Callable[[DrawFn, Members, str], None]] = [_drop, _add, _change, _wrap, _bend, _nudge, _nudge, _nudge]


@st.composite
def mutated_entries(draw: DrawFn) -> Members:
    """An entry with one member of it, of its ratings or of its evidence dropped, added or changed. Some stay valid."""
    entry: Members = draw(st.one_of(*ENTRIES.values()))
    target: Members = draw(st.sampled_from([entry, *(value for value in entry.values() if isinstance(value, dict))]))
    draw(st.sampled_from(_MUTATIONS))(draw, target, draw(st.sampled_from(sorted(target))))
    return entry
