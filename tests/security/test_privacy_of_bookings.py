"""Guest privacy while something waits: with submissions pending, claims and notices on file and private words sealed,
nothing that a ledger stores, shows or logs leads to a guest. When it is decided, or has had its time, not even what was
sealed is left in the database and its write-ahead log.

What PostgreSQL writes to its own write-ahead log is not in our hands: it is sealed there, and gone when the server
writes that file anew.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from struct import iter_unpack

import pytest

from ledger.canon.times import parse_time
from tests.identities import IDV
from tests.security import booking_story
from tests.security.booking_story import GUESTS, HOSTS, Guest, Rows, Story
from tests.security.database_files import ENGINES
from tests.security.pairing import ATTACKERS, Alike, Contest, Database, Dossier, Kept, by_label
from tests.security.test_pairing import BOUND
from tests.security.traces import GRAM, Search

KINDS = ("claim", "notice", "waiting")


@pytest.fixture(scope="module", params=ENGINES)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("bookings")
    with ExitStack() as stack:
        yield booking_story.play(ENGINES[request.param](folder, stack), folder)


def test_while_it_waits_nothing_of_it_is_found(story: Story) -> None:
    """Guests, references, credentials, private words; and texts and ratings, which are nobody's business before it is
    decided. In files, rows, answers, metrics and logs, in every spelling."""
    assert story.places["waiting"].keys() >= {"log", "answer /metrics", "answer /v1/log/entries?count=1000"}
    search = Search({**story.secrets, **story.confided})
    assert len(search.needles) > 10_000
    assert search(story.places["waiting"]) == {}


def test_when_it_was_decided_nothing_is_found_either(story: Story) -> None:
    """All that waited was refused: texts and ratings never became public."""
    search = Search({**story.secrets, **story.confided})
    assert search(story.places["decided"]) == {}
    assert search(story.places["stopped"]) == {}


def test_the_search_finds_what_is_there(story: Story) -> None:
    """Otherwise it would search nothing: all that is on file stands there, sealed, while it waits."""
    assert len(story.sealed) == 3 * GUESTS * HOSTS + 3
    found = b"".join(story.places["waiting"].values())
    assert all(piece in found for sealed in story.sealed.values() for piece in pieces(sealed)[:1])
    assert b"asyncio" in story.places["waiting"]["log"], "that is DEBUG"


def test_what_was_sealed_is_gone_as_well(story: Story) -> None:
    """From all files of the database, SQLite's write-ahead log too. Not 15 bytes are left of any: a row may lie on
    several pages, of which some are written over."""
    assert story.left == {"submission": GUESTS * HOSTS, "booking": 0, "feedback": 0}
    search = Remains(story.sealed.values())
    before = search(story.places["waiting"])
    assert before >= ({"file ledger.db-wal"} if story.engine == "sqlite" else {"rows of submission", "rows of booking"})
    assert search(story.places["stopped"]) == set()
    if story.engine == "sqlite":
        # Otherwise pages are in the server's memory until it stops.
        assert search(story.places["decided"]) == set()


class Remains:
    """Whether files have anything left of some values: eight bytes of one at a multiple of eight."""

    def __init__(self, values: Iterable[bytes]) -> None:
        self._grams = {value[at : at + GRAM] for value in values for at in range(len(value) - GRAM + 1)}

    def __call__(self, files: Mapping[str, bytes]) -> set[str]:
        ours = {name: data for name, data in files.items() if not name.removeprefix("file ").startswith(NOT_OURS)}
        return {name for name, data in ours.items() if self._is_in(data)}

    def _is_in(self, data: bytes) -> bool:
        whole = data[: len(data) // GRAM * GRAM]
        return any(gram in self._grams for (gram,) in iter_unpack(f"{GRAM}s", whole))


# PostgreSQL's own write-ahead log.
NOT_OURS = ("pg_wal/",)


def pieces(sealed: bytes) -> list[bytes]:
    return [sealed[at : at + 32] for at in range(0, len(sealed) - 31, 32)]


# One guest at several hosts


def kept(rows: Rows, kind: str) -> Kept:
    """Each row with its host, which the row does not tell. Long values in pieces."""
    values = [piece for value in getattr(rows, kind) for piece in (pieces(value) if len(value) > 64 else [value])]
    moment = parse_time(rows.due_at) if kind == "waiting" else parse_time("2026-06-01T12:00:00Z")
    return Kept(int(moment.timestamp()), rows.host, f"did:web:house{rows.host}.example", tuple(values[:40]))


def contest(story: Story) -> Contest:
    return Contest([rows.host for rows in story.rows], [rows.guest for rows in story.rows])


def dossiers() -> list[Dossier]:
    guests = [Guest(number) for number in range(GUESTS)]
    return [
        Dossier(
            guest.speaker.did,
            guest.speaker.public,
            IDV,
            guest.person,
            tuple(f"REF-{guest.word(f'{what} at {place}')}" for what in ("stay", "waits") for place in range(HOSTS)),
        )
        for guest in guests
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_one_guest_at_two_hosts_share_no_value(story: Story, kind: str) -> None:
    values = [value for rows in story.rows for value in kept(rows, kind).values]
    assert len(values) == len(set(values)) > 10 * GUESTS * HOSTS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attacker", ATTACKERS)
def test_who_has_the_database_pairs_them_no_better_than_chance(story: Story, attacker: str, kind: str) -> None:
    database = Database(tuple(kept(rows, kind) for rows in story.rows), tuple(story.rates))
    assert contest(story).chance(ATTACKERS[attacker](database, dossiers())) > BOUND


def by_size(story: Story, kind: str) -> Alike:
    sizes = [len(getattr(rows, kind)[-1]) for rows in story.rows]
    return lambda one, other: -abs(sizes[one] - sizes[other])


@pytest.mark.parametrize("kind", KINDS)
def test_nor_by_the_length_of_what_is_sealed(story: Story, kind: str) -> None:
    """Which goes with the guest from host to host: the name that an issuer has for them, and the DID."""
    assert contest(story).chance(by_size(story, kind)) > BOUND


def test_lengths_would_tell_if_they_were_not_padded(story: Story) -> None:
    labels = [len(Guest(rows.guest).person) for rows in story.rows]
    assert contest(story).chance(by_label(labels)) <= BOUND


def test_claims_and_submissions_of_one_guest_at_one_host_are_not_paired_either(story: Story) -> None:
    """Which claim belongs to which submission: no value is in both."""
    claims = {value for rows in story.rows for value in rows.claim}
    assert claims.isdisjoint(value for rows in story.rows for value in rows.waiting)


def test_a_row_says_when_it_is_due_and_no_more(story: Story) -> None:
    """The one time in it is when it is looked at next; guests who submit on one evening have that in common."""
    due = [parse_time(rows.due_at) for rows in story.rows]
    assert max(due) - min(due) < timedelta(days=5)
