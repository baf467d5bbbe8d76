"""Answers under a good signature that say what they like: nothing but the rules of a verifier can refuse them."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

from ledger.canon import base64, jcs
from ledger.errors import StaylogError
from ledger.log.entries import parse_entry
from ledger.log.face import Event, history, statistics, summary
from ledger.log.openings import Opening, commitment, displayed
from ledger.log.record import HostFold, sublog_leaf
from ledger.log.tree import leaf_hash, root_of
from tests.browser.spelling import any_value, number, places, written
from tests.browser.verifying import FORGED, forged
from tests.world import HOSTS, World

# What a maker gives: documents, the log's key, and whom they are about.
Made = tuple[tuple[str, ...], str, str]


BLANK = "\t\n\u3000"
SHOWN = ("Quiet.", "می‌آید", "👩‍🌾\t.", "\u202eliar", "a\u200bb", BLANK, "\U000e0041", "x\r\ny", "\u00ad", "\x1c")
DIDS = (
    *("did:web:a.example", "did:web:a%3A65535", "did:web:a%3A65536", "did:web:a%3A70000", "did:web:a%3A99999"),
    *("did:web:a%3A443", "did:web:a%3A4430", "did:web:a%3A0", "did:web:a%3A100000", "did:web:a:b%20c", "did:web:a:%41"),
    *("did:web:" + "a" * 248, "did:web:" + "a" * 249, "did:web:a:" + "b" * 246, "did:web:a:" + "b" * 247),
    *("did:key:z6Mk", "did:key:z" + "1" * 247, "did:key:z" + "1" * 248, "did:key:z0", "did:jwk:a_-", "did:jwk:a="),
    *(
        "did:jwk:" + "a" * 248,
        "did:jwk:" + "a" * 249,
        "did:web:A",
        "did:web:a..b",
        "did:web:a.",
        "did:web:é",
        "did:x:y",
    ),
    *("did:web:a\n", " did:web:a", "did:web:a%2e", "did:web:a:", "did:web:a%3A65535:b", "did:web:-a"),
)
ISSUERS = ("https://a", "https://A.example:99999/b?c#d", "http://a", "https://", "https://a/" + "b" * 1801, *DIDS)
TIMES = ("2026-02-30", "2024-02-29", "2025-02-29", "0000-01-01", "9999-12-31", "2026-1-01", "2026-13-01")


def about_another(random: Random) -> Made:
    host = random.choice(DIDS)
    record = random.choice((None, _record(random)))
    if record is not None:
        record = {**record, "host": host}
    return _answered(host, None if record is None else jcs.dumps_plain(record).decode(), record)


@cache
def _ledgers() -> list[World]:
    return [World(seed, HOSTS[:3]).grow(9) for seed in range(5)]


def _events(random: Random) -> tuple[str, list[Event]]:
    """The first events of a host, moved to where a forged log has its own."""
    world, host = random.choice(_ledgers()), random.choice(HOSTS[:3])
    named = [(index, entry) for index, entry in enumerate(world.log.entries) if entry.host == host]
    events, moved = list[Event](), dict[int, int]()
    for at, (index, entry) in enumerate(named[: random.randrange(1, 13)], 2):
        moved[index] = at
        members = dict(entry.members)
        if "review" in members:
            members["review"] = moved[members["review"]]
        opening = None
        if members.get("text") is not None:
            opening = (
                Opening(random.choice(SHOWN), bytes(32)) if random.random() < 0.3 else world.log.openings.get(index)
            )
            members["text"] = commitment(opening.salt, opening.text.encode()) if opening else members["text"]
        events.append(Event(at, parse_entry(jcs.dumps(members)), opening))
    return host, events


def _record(random: Random) -> dict[str, Any]:
    while True:
        host, events = _events(random)
        if events:
            return _folded(host, events)


def _folded(host: str, events: list[Event]) -> dict[str, Any]:
    fold = HostFold(host)
    for event in events:
        fold.add(event.index, event.entry)
    return fold.members()


def _answered(host: str, text: str | None, record: Any, events: list[Event] | None = None) -> Made:
    """A signed answer whose summary follows from the record, if anything can follow from it."""
    face: dict[str, Any] = {"host_did": host, "total_reviews": 0}
    with suppress(ArithmeticError, AttributeError, KeyError, TypeError, ValueError, StopIteration):
        face = summary(host, record) | {"statistics": statistics(record)}
    entries = [event.entry.data.decode() for event in events or ()]
    answer = forged(host, text, entries, face)
    if events is not None:
        answer["review_history"] = history(events)
        for shown, event in zip(answer["proof"]["events"], events, strict=True):
            shown["opening"] = event.opening and event.opening.as_json()
    return (written(answer),), str(FORGED), host


def signed_record(random: Random) -> Made:
    """An aggregate that the map has, and perhaps no events could give."""
    record = _record(random)
    host = record["host"]
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        random.choice(RECORD_CHANGES)(random, record)
    text = _compact(record, random)
    with suppress(ValueError):
        record = json.loads(text)
    return _answered(host, text, record)


def _compact(value: Any, random: Random) -> str:
    """As JCS writes it, but for what was spelled otherwise; now and then with a blank."""
    if isinstance(value, dict):
        names = sorted(value) if random.random() < 0.999 else list(value)
        return "{" + ",".join(f"{json.dumps(name)}:{_compact(value[name], random)}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_compact(each, random) for each in value) + "]"
    text = written(value)
    return f" {text}" if random.random() < 0.001 else text


def _bump(random: Random, record: Any) -> None:
    holder, key = random.choice([place for place in places(record) if type(place[0][place[1]]) is int])
    holder[key] = random.choice((holder[key] + 1, holder[key] + 1, holder[key] - 1, holder[key] + 2, 0, -1, 2**53 - 1))


def _spell(random: Random, record: Any) -> None:
    holder, key = random.choice([place for place in places(record) if type(place[0][place[1]]) is int])
    holder[key] = number(random, holder[key])


def _shift(_random: Random, record: Any) -> None:
    """As many ratings as before, and other ones."""
    with suppress(AttributeError, TypeError):
        record["histogram"].append(record["histogram"].pop(0))


def _rate(random: Random, record: Any) -> None:
    rated = record["ratings"][random.choice(sorted(record["ratings"]))]
    category = random.choice(("location", "location", "value", "overall", "charm"))
    rated[category] = random.choice(([0, 0], [1, 2], [1, 10], [1, 11], [1], [1, 2, 3], [2, 20], None))


def _retime(random: Random, record: Any) -> None:
    name, time = random.choice(("first_stay", "last_event")), random.choice((None, *TIMES))
    record[name] = f"{time}T00:00:00Z" if name == "last_event" and time else time


def _double(_random: Random, record: Any) -> None:
    """Twice as many of everything: events could give it."""
    for holder, key in places(record):
        if type(holder[key]) is int and key != "v":
            holder[key] *= 2


def _misname(random: Random, record: Any) -> None:
    record[random.choice(("host", "root", "v", "more"))] = any_value(random, *DIDS[:5], base64.encode(bytes(31)))


def _drop(random: Random, record: Any) -> None:
    holder, key = random.choice(places(record))
    del holder[key]


RECORD_CHANGES: tuple[Callable[[Random, Any], None], ...] = (
    *(_bump, _bump, _bump, _bump, _spell, _spell, _shift, _rate, _rate, _retime, _double, _misname, _drop),
)


def signed_events(random: Random) -> Made:
    """A full answer with an entry that says something else, at another place, or not at all. What the map has counts
    exactly these entries: only the rules of entries and of their fold can refuse them."""
    host, events = _events(random)
    texts = [event.entry.data.decode() for event in events]
    at = random.randrange(len(texts)) if texts else 0
    kind = random.randrange(8)
    if kind < 5 and texts:
        texts[at] = _other_entry(random, json.loads(texts[at]))
    elif kind == 5 and texts:
        texts.insert(random.randrange(len(texts) + 1), texts[at])
    elif kind == 6 and len(texts) > 1:
        texts[at], texts[at - 1] = texts[at - 1], texts[at]
    try:
        parsed = [parse_entry(text.encode()) for text in texts]
        openings = {event.entry.data: event.opening for event in events}
        events = [Event(index, entry, openings.get(entry.data)) for index, entry in enumerate(parsed, 2)]
        record = _folded(host, events)
        made = _answered(host, jcs.dumps(record).decode(), record, events)
        return _displayed_otherwise(random, made) if random.random() < 0.3 else made
    except StaylogError:
        own = [sublog_leaf(2 + at, leaf_hash(text.encode())) for at, text in enumerate(texts)]
        counted = {"events": len(texts), "root": base64.encode(root_of(own))}
        answer = forged(host, jcs.dumps(counted).decode(), texts, {"review_history": []})
        return (written(answer),), str(FORGED), host


def _other_entry(random: Random, entry: Any) -> str:
    holder, key = random.choice([place for place in places(entry) if place[1] != "type" or random.random() < 0.3])
    value = holder[key]
    if key in ("host_did",):
        holder[key] = random.choice(DIDS)
    elif key == "issuer":
        holder[key] = random.choice(ISSUERS)
    elif key in ("at", "check_in", "check_out") and random.random() < 0.7:
        day = random.choice((*TIMES, "2026-01-03", "2027-01-01"))
        holder[key] = (
            f"{day}T{random.choice(('00:00:00', '24:00:00', '23:59:60', '12:00:00'))}Z" if key == "at" else day
        )
    elif type(value) in (int, float) and random.random() < 0.7:
        holder[key] = (
            number(random, value) if random.random() < 0.5 else random.choice((value + 1, value + 0.5, 0, 5.5))
        )
    elif random.random() < 0.3:
        holder["more"] = any_value(random)
    elif random.random() < 0.2:
        del holder[key]
    elif random.random() < 0.2:
        return json.dumps(entry)
    else:
        holder[key] = any_value(random, "index_head", "review", "upgrade", "guest_verified", "none", "attestation")
    return _compact(entry, random)


def _displayed_otherwise(random: Random, made: Made) -> Made:
    """A listed text, or a part of it that is not displayed, is told in another way."""
    answer = json.loads(made[0][0])
    for review in answer["review_history"]:
        if isinstance(text := review["review_text"], str):
            forms = (
                text,
                displayed(text),
                text.replace("\u200c", ""),
                text.strip(),
                f"{text}\u200d",
                text.replace("\t", ""),
            )
            review["review_text"] = random.choice(forms)
    return (written(answer),), *made[1:]
