"""Attackers who have a ledger's database, but not its pepper, and would know which reviews are by the same guest.

Each tells how alike two reviews of different hosts are. For every review and every other host it then names the review
there that is most like it; with ten guests who reviewed all hosts, one in ten is right by chance.
"""

import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, sha256, sha512
from itertools import combinations
from random import Random
from typing import Any

from ledger.identity.guestref import guest_ref, person, prefixed

# Hundreds of attackers try each time, with keys that are new each time: what happens once in a thousand rounds happens
# every few times. So where some rounds leave a doubt, many decide.
ROUNDS, DOUBT, MANY = 1000, 0.005, 20_000
_MICROSECONDS = 1_000_000

Alike = Callable[[int, int], float]


@dataclass(frozen=True)
class Kept:
    """What the database has of one review: when it was made, its host, and everything that is not public, in order."""

    seconds: int
    host: int
    host_did: str
    values: tuple[bytes, ...]


@dataclass(frozen=True)
class Database:
    """The reviews in the order of the log, and the rows of the limiter: key and number, in the order of the table."""

    reviews: tuple[Kept, ...]
    rates: tuple[tuple[bytes, int], ...]


@dataclass(frozen=True)
class Dossier:
    """What somebody knows about a guest from elsewhere: a host does."""

    did: str
    public: bytes
    issuer: str
    issuer_guest_id: str
    references: tuple[str, ...]


Attacker = Callable[[Database, Sequence[Dossier]], Alike]


class Contest:
    """Who is by whom is the truth; attackers are measured against it, and against chance."""

    def __init__(self, hosts: Sequence[int], guests: Sequence[int]) -> None:
        self._guests = list(guests)
        self._by_host = {host: [place for place, each in enumerate(hosts) if each == host] for host in set(hosts)}
        self._hosts = hosts

    @property
    def questions(self) -> int:
        return sum(len(own) * (len(self._by_host) - 1) for own in self._by_host.values())

    def answers(self, alike: Alike) -> list[tuple[int, list[int]]]:
        """For each review and each other host, which are the most alike there; mostly one."""
        given = []
        for place, own in enumerate(self._hosts):
            for host, there in self._by_host.items():
                if host != own:
                    scores = [alike(*sorted((place, other))) for other in there]
                    best = max(scores)
                    given.append((place, [other for other, score in zip(there, scores, strict=True) if score == best]))
        return given

    def right(self, answers: Iterable[tuple[int, list[int]]], guests: Sequence[int] | None = None) -> float:
        """How many answers are right; among several, one is drawn."""
        by = self._guests if guests is None else guests
        return sum(sum(by[other] == by[place] for other in named) / len(named) for place, named in answers)

    def chance(self, alike: Alike, seed: int = 1) -> float:
        """How often an attacker who knows nothing does at least as well: had other guests written the reviews, that is
        with the guests of each host in another order, which says nothing about how alike the reviews are."""
        answers = self.answers(alike)
        chance = self._chance(answers, ROUNDS, Random(seed))
        return chance if chance > DOUBT else self._chance(answers, MANY, Random(seed))

    def _chance(self, answers: list[tuple[int, list[int]]], rounds: int, random: Random) -> float:
        reached = self.right(answers) - 1e-9
        better = 0
        for _ in range(rounds):
            guests = list(self._guests)
            for places in self._by_host.values():
                drawn = random.sample([self._guests[place] for place in places], len(places))
                for place, guest in zip(places, drawn, strict=True):
                    guests[place] = guest
            better += self.right(answers, guests) >= reached
        return (better + 1) / (rounds + 1)


def by_label(labels: Sequence[object]) -> Alike:
    """Alike are those with the same label; None is none."""
    return lambda one, other: float(labels[one] is not None and labels[one] == labels[other])


def equal_values(database: Database, _known: Sequence[Dossier]) -> Alike:
    sets = [set(review.values) for review in database.reviews]
    return lambda one, other: len(sets[one] & sets[other])


def equal_beginnings(database: Database, _known: Sequence[Dossier]) -> Alike:
    """The longest beginning, in bits, that a value of the one has in common with any of the other."""

    @cache
    def common(one: int, other: int) -> float:
        return max(
            _common_bits(mine, theirs)
            for mine in database.reviews[one].values
            for theirs in database.reviews[other].values
        )

    return common


def nearly_equal(database: Database, _known: Sequence[Dossier]) -> Alike:
    """The fewest bits that differ between two values that stand at the same place."""

    @cache
    def distance(one: int, other: int) -> float:
        pairs = zip(database.reviews[one].values, database.reviews[other].values, strict=False)
        return -min((int.from_bytes(mine) ^ int.from_bytes(theirs)).bit_count() for mine, theirs in pairs)

    return distance


def order_of_values(which: int) -> Attacker:
    """Guests who have the same place among those of each host, by the order of one of their values."""
    return lambda database, _known: _same_rank(database, lambda review: review.values[which])


def order_of_rows(database: Database, _known: Sequence[Dossier]) -> Alike:
    """Guests who came in the same order to each host: rows stand as they were written."""
    places = {review.values: place for place, review in enumerate(database.reviews)}
    return _same_rank(database, lambda review: places[review.values])


def near_in_time(database: Database, _known: Sequence[Dossier]) -> Alike:
    """Guests who write all their reviews in one evening."""
    return lambda one, other: -abs(database.reviews[one].seconds - database.reviews[other].seconds)


def limiter_against_times(modulus: int) -> Attacker:
    """A row of the limiter says until when something is paid: the row that is nearest to each review."""

    def nearest(database: Database, _known: Sequence[Dossier]) -> Alike:
        labels = []
        for review in database.reviews:
            moment = review.seconds * _MICROSECONDS
            distances = [min((paid - moment) % modulus, (moment - paid) % modulus) for _, paid in database.rates]
            labels.append(distances.index(min(distances)))
        return by_label(labels)

    return nearest


def order_of_limiter_rows(database: Database, _known: Sequence[Dossier]) -> Alike:
    """A row is made with the first review of a guest: reviews of which there were as many as rows by then."""
    count = len(database.rates)
    return by_label([place * count // len(database.reviews) for place in range(len(database.reviews))])


def guesses(database: Database, known: Sequence[Dossier]) -> Alike:
    """Somebody who knows all guests hashes what they know, with everything but the ledger's secrets."""
    hosts = sorted({review.host_did for review in database.reviews})
    dictionary = {digest: guest for guest, dossier in enumerate(known) for digest in _digests(dossier, hosts)}
    labels = []
    for review in database.reviews:
        named = {dictionary[value] for value in review.values if value in dictionary}
        labels.append(min(named) if named else None)
    return by_label(labels)


ATTACKERS: dict[str, Attacker] = {
    "equal values": equal_values,
    "equal beginnings": equal_beginnings,
    "nearly equal values": nearly_equal,
    **{f"order of value {which}": order_of_values(which) for which in range(10)},
    "order of rows": order_of_rows,
    "near in time": near_in_time,
    "limiter against times": limiter_against_times(1 << 64),
    **{
        f"limiter against times modulo {seconds} s": limiter_against_times(seconds * _MICROSECONDS)
        for seconds in (2, 60, 4320, 86_400)
    },
    "order of limiter rows": order_of_limiter_rows,
    "guesses": guesses,
}


def _same_rank(database: Database, key: Callable[[Kept], Any]) -> Alike:
    ranks: dict[int, int] = {}
    for host in {review.host for review in database.reviews}:
        own = [place for place, review in enumerate(database.reviews) if review.host == host]
        own.sort(key=lambda place: key(database.reviews[place]))
        ranks |= {place: rank for rank, place in enumerate(own)}
    return lambda one, other: -abs(ranks[one] - ranks[other])


def _common_bits(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    return 8 * length - (int.from_bytes(one[:length]) ^ int.from_bytes(other[:length])).bit_length()


def _digests(dossier: Dossier, hosts: Sequence[str]) -> Iterable[bytes]:
    names = [dossier.did.encode(), dossier.public, dossier.issuer_guest_id.encode()]
    names += [f"{dossier.issuer}{glue}{dossier.issuer_guest_id}".encode() for glue in ("", "|", ":", " ", "\0")]
    names += [reference.encode() for reference in dossier.references]
    names += [left + right for left, right in combinations(names[:4], 2)]
    for name in names:
        yield name
        for host in ("", *hosts):
            salt = host.encode()
            for text in {name, salt + name, name + salt, prefixed(host, name), prefixed(name, host)}:
                yield from (sha256(text).digest(), sha512(text).digest()[:32], blake2b(text, digest_size=32).digest())
            for key in {salt, b"", bytes(32), sha256(salt).digest()}:
                yield hmac.digest(key, name, sha256)
                yield hmac.digest(key, prefixed("staylog/booking/v1", host, name), sha256)
    for host in hosts:
        for pepper in (b"", bytes(32), host.encode()):
            yield person(pepper, host, dossier.issuer, dossier.issuer_guest_id)
    # Argon2 takes long: two hosts would be enough to see it.
    for host in hosts[:2]:
        yield bytes.fromhex(guest_ref("p1", bytes(32), host, dossier.did).rpartition(":")[2])
