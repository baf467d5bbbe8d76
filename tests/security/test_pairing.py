"""Attackers who have the database of a ledger, but not its keys, and would know which reviews are by the same guest
(RFC-005 9.2). See `tests.security.pairing` for what they try."""

from hashlib import sha256

import pytest

from ledger.identity.guestref import person
from tests.identities import IDV
from tests.security.pairing import ATTACKERS, MANY, Contest, Dossier, by_label
from tests.security.private_world import GUESTS, HOSTS, Scene

# The chance below which an attacker is held to know something: better than in each of the many rounds.
BOUND = 1 / MANY


def contest(scene: Scene) -> Contest:
    names = list(dict.fromkeys(told.guest.name for told in scene.reviews))
    return Contest(
        [review.host for review in scene.database.reviews], [names.index(told.guest.name) for told in scene.reviews]
    )


def dossiers(scene: Scene) -> list[Dossier]:
    """Of every guest, all that a host or the guests themselves may have told."""
    found = []
    for guest in dict.fromkeys(told.guest for told in scene.reviews):
        references = [told.body["booking_reference"] for told in scene.reviews if told.guest == guest]
        found.append(Dossier(guest.speaker.did, guest.speaker.public, IDV, guest.person, tuple(references)))
    return found


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_who_has_the_database_pairs_no_better_than_chance(scene: Scene, attacker: str) -> None:
    game = contest(scene)
    assert game.questions == GUESTS * HOSTS * (HOSTS - 1)
    assert game.chance(ATTACKERS[attacker](scene.database, dossiers(scene))) > BOUND


@pytest.mark.parametrize(
    "rows", [slice(None), slice(0, None, 2), slice(1, None, 2)], ids=["all", "addresses", "persons"]
)
def test_old_rows_of_the_limiter_do_not_pair_either(scene: Scene, rows: slice) -> None:
    """Its rows change in the order of the reviews: for each first that of the address, then that of the person. Who
    finds them as they were, in the write-ahead log of SQLite or in the dead tuples of PostgreSQL, sees which row
    changed with which review, and both are the same at all hosts."""
    number, changes = len(scene.reviews), scene.changes[rows]
    near = [
        {*changes[place * len(changes) // number : (place + 1) * len(changes) // number]} for place in range(number)
    ]
    game = contest(scene)

    def alike(one: int, other: int) -> float:
        return len(near[one] & near[other])

    right, chance = game.right(game.answers(alike)), game.chance(alike)
    assert chance > BOUND, f"{right} of {game.questions} pairs are right"


def test_who_has_the_pepper_pairs_them_all(scene: Scene) -> None:
    """So the values do tell guests apart, and it is the pepper that keeps them apart."""
    known, pepper = dossiers(scene), scene.keys.peppers.by_id["p1"]
    labels = []
    for kept in scene.database.reviews:
        persons = [person(pepper, kept.host_did, IDV, dossier.issuer_guest_id) for dossier in known]
        [label] = [number for number, value in enumerate(persons) if value in kept.values]
        labels.append(label)
    game = contest(scene)
    assert game.right(game.answers(by_label(labels))) == game.questions
    assert game.chance(by_label(labels)) <= BOUND


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_few_bits_would_be_noticed(scene: Scene, bits: int) -> None:
    """A value that has a few bits in common wherever a guest goes is enough to fail."""
    labels = [sha256(told.guest.speaker.did.encode()).digest()[0] >> 8 - bits for told in scene.reviews]
    assert contest(scene).chance(by_label(labels)) <= BOUND


def test_chance_is_one_in_ten(scene: Scene) -> None:
    game = contest(scene)
    assert game.right(game.answers(lambda *_: 0)) == pytest.approx(game.questions / GUESTS)
    assert game.chance(lambda *_: 0) == 1
