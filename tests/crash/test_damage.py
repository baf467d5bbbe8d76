"""A flipped bit in anything that is stored: fsck finds and names it, and nothing wrong is ever signed over it.

Adding to a damaged log is either refused, or gives the root that the undamaged history gives.
"""

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from ledger.errors import Halted, Misconfigured
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.log.drafts import Draft
from ledger.log.hostmap import map_key
from ledger.settings import Settings
from tests.crash.harness import Backups, examine, findings, forget_database
from tests.engines import PostgresServer
from tests.running import HOST, OTHER, SetClock, Writer

FOREIGN_HOST = "did:web:elsewhere.example"
HOSTS = (HOST, OTHER, FOREIGN_HOST, *(f"did:web:house{number}.example" for number in range(20)))


@dataclass(frozen=True, slots=True)
class Flip:
    """One bit of one column of the row that `where` finds, at a place from the front or from the end."""

    table: str
    column: str
    where: str
    finding: str = ""
    at: int = -1
    bit: int = 1

    def __str__(self) -> str:
        return f"{self.table}.{self.column} of {self.where or 'the log'}, {self.at}:{self.bit}"

    def apply(self, engine: Engine, places: dict[str, Any]) -> None:
        where = f"WHERE {self.where}" if self.where else ""
        known = {name: value for name, value in places.items() if f":{name}" in where}
        with engine.begin() as connection:
            row = connection.execute(text(f"SELECT {self.column} FROM {self.table} {where}"), known).one()
            statement = text(f"UPDATE {self.table} SET {self.column} = :damaged {where}")
            assert connection.execute(statement, {**known, "damaged": self._flipped(row[0])}).rowcount == 1

    def _flipped(self, value: Any) -> Any:
        if isinstance(value, int):
            return value ^ self.bit
        if isinstance(value, str):
            return self._flipped(value.encode()).decode()
        damaged = bytearray(value)
        damaged[self.at] ^= self.bit
        return bytes(damaged)


NEWEST = "size = (SELECT max(size) FROM checkpoint)"
RECORD = "idx = (SELECT {}(record.idx) FROM record JOIN entry ON entry.idx = record.idx WHERE host_key = :{})"
LAST, FIRST, FOREIGN = RECORD.format("max", "host"), RECORD.format("min", "host"), RECORD.format("max", "foreign")

# Rows that the next entries rest on, and rows that they do not.
FLIPS = [
    # The first is no entry any more; the others have another time, or date, and still are one.
    Flip("entry", "data", "idx = :review", "entry 304"),
    Flip("entry", "data", "idx = :review", "entry 304", at=10, bit=2),
    Flip("entry", "data", "idx = :review", "tile 0/1 has another hash than entry 304", at=50, bit=2),
    Flip("entry", "data", "idx = 5", "entry 5"),
    Flip("entry", "data", "idx = 0", "entry 0", at=-40),
    Flip("entry", "data", "idx = (SELECT max(idx) FROM entry)", "entry 307"),
    Flip("entry", "host_key", "idx = 306", "entry 306 is filed under another host"),
    Flip("tile", "data", "id = 0", "tile 0/0 has another hash than entry 255 gives"),
    Flip("tile", "data", "id = 1", "tile 0/1 has another hash than entry 307 gives"),
    Flip("tile", "data", "id = 281474976710656", "tile 1/0 has a wrong hash at place 0"),
    Flip("page", "data", "id = (SELECT map_top FROM log_head)", "map page"),
    Flip("page", "data", "id = 0", "map page 0"),
    Flip("record", "data", LAST, f"the record of {HOST} at size 308"),
    Flip("record", "data", FIRST, f"the record of {HOST} at size 258"),
    Flip("record", "data", FOREIGN, f"the record of {FOREIGN_HOST} at size"),
    Flip("record", "edge", LAST, f"the record of {HOST} at size 308"),
    Flip("record", "edge", FOREIGN, f"the record of {FOREIGN_HOST} at size"),
    Flip("entry", "text", "idx = :review", "the stored text of entry 304"),
    Flip("entry", "salt", "idx = 7", "the stored text of entry 7"),
    Flip("checkpoint", "note", NEWEST, "the checkpoint of size 308 is damaged", at=-5),
    Flip("checkpoint", "note", "size = 2", "the checkpoint of size 2 is damaged", at=-5),
    Flip("checkpoint", "root", NEWEST, "the checkpoint of size 308 is filed under another"),
    Flip("checkpoint", "at", NEWEST, "the checkpoint of size 308 is filed under another", at=3),
    Flip("log_head", "root", "", "the head says"),
    Flip("log_head", "size", "", "the head says"),
    Flip("log_head", "size", "", "the head says", bit=64),
    Flip("log_head", "map_root", "", "the head has another map root"),
    Flip("log_head", "map_top", "", "page"),
    Flip("log_head", "pages", "", "page"),
    Flip("log_head", "pages", "", "page", bit=64),
    Flip("log_head", "at", "", "the head has another map root or time", at=3),
    Flip("log_head", "at", "", "the head has another map root or time", at=3, bit=2),
]

# Rows of a batch that is committed and not yet signed.
UNSIGNED = [
    Flip("entry", "data", "idx = (SELECT max(idx) FROM entry)"),
    Flip("entry", "data", "idx = (SELECT max(idx) - 1 FROM entry)"),
    # Still an entry, of one second later.
    Flip("entry", "data", "idx = (SELECT max(idx) - 1 FROM entry)", at=25),
    Flip("tile", "data", "id = 1"),
    Flip("page", "data", "id = (SELECT map_top FROM log_head)"),
    Flip("record", "data", LAST),
    Flip("log_head", "root", ""),
    Flip("log_head", "size", ""),
    Flip("log_head", "map_root", ""),
    Flip("log_head", "map_top", ""),
    Flip("log_head", "at", "", at=3),
]


class Base:
    """A log of more than one tile and its backup; each test starts from it."""

    def __init__(self, folder: Path, database_url: str, backups: Backups) -> None:
        self.settings = Settings.of(folder / "data", database_url)
        self._backups = backups
        self.clock = SetClock()
        init_folder(self.settings, clock=self.clock)
        writer = Writer(5)
        ledger = self.open()
        ledger.sequencer.append([writer.review(HOSTS[number % len(HOSTS)]) for number in range(300)])
        [review] = ledger.sequencer.append([writer.review(HOST)])
        ledger.sequencer.append([writer.review(HOST, level="unconfirmed")])
        self.places = {"review": review.index, "host": map_key(HOST), "foreign": map_key(FOREIGN_HOST)}
        # From now on the clock is behind: the next entries have the time of the last one.
        self.clock.forward(hours=-1)
        ledger.close()
        self._backups.save("base")
        self._mark = self.settings.mark.read_bytes()
        self.engine = create_engine(database_url, poolclass=NullPool)
        # What may come next, with the root that it gives: entries that rest on others, and one that does not.
        resting = [writer.response(review), writer.review(HOST), writer.review(OTHER)]
        self.goes_on = [(drafts, self._root_after(drafts)) for drafts in (resting, [writer.policy()])]

    def open(self) -> Ledger:
        return open_ledger(self.settings, clock=self.clock)

    def restore(self) -> None:
        self._backups.restore("base")
        self.settings.mark.write_bytes(self._mark)
        forget_database(self.settings.mark)

    def _root_after(self, drafts: list[Draft]) -> bytes:
        self.restore()
        with closing(self.open()) as ledger:
            root = append(ledger, drafts)
            examine(ledger)
        return root


def append(ledger: Ledger, drafts: list[Draft]) -> bytes:
    """The root that is signed then."""
    last = ledger.sequencer.append(drafts)[-1]
    assert last.index < last.published.size
    return last.published.root


def check(base: Base, flip: Flip, drafts: list[Draft], root: bytes, *, reopened: bool) -> None:
    base.restore()
    with closing(base.open()) as ledger:
        flip.apply(base.engine, base.places)
        if reopened:
            ledger.close()
        else:
            found = "\n".join(findings(ledger))
            assert re.search(flip.finding, found), found
        try:
            with closing(base.open() if reopened else ledger) as damaged:
                outcome: bytes | str = append(damaged, drafts)
        except (Halted, Misconfigured) as error:
            outcome = error.code
    assert outcome in (root, "log_damaged", "log_forked", "key_mismatch"), str(flip)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    folder = tmp_path_factory.mktemp("damage")
    url = f"sqlite:///{folder}/ledger.db"
    return Base(folder, url, Backups(url, folder / "backups", None))


@pytest.mark.parametrize("reopened", [False, True], ids=["running", "reopened"])
@pytest.mark.parametrize("flip", FLIPS, ids=str)
def test_damage_is_found_and_never_signed_over(base: Base, flip: Flip, reopened: bool) -> None:
    """Either in a log that is open and has things in memory, or in one that is opened after it."""
    for drafts, root in base.goes_on:
        check(base, flip, drafts, root, reopened=reopened)


@pytest.mark.parametrize("flip", UNSIGNED, ids=str)
def test_what_is_damaged_before_it_is_signed_is_not_signed(base: Base, flip: Flip) -> None:
    """A crash between commit and signature, and what is found then is not what was committed."""
    base.restore()
    with closing(open_ledger(base.settings, clock=base.clock, on_step=stop)) as ledger, pytest.raises(RuntimeError):
        ledger.sequencer.append(base.goes_on[0][0])
    flip.apply(base.engine, base.places)
    with pytest.raises(Halted) as halted:
        base.open()
    assert halted.value.code == "log_damaged"
    with base.engine.connect() as connection:
        assert connection.execute(text("SELECT max(size) FROM checkpoint")).scalar() == 308


@pytest.mark.parametrize("flip", UNSIGNED, ids=str)
def test_what_is_damaged_just_before_it_is_signed_is_not_signed(base: Base, flip: Flip) -> None:
    """Between commit and signature in the process that does both: the head is still in its memory, and right."""
    base.restore()
    drafts, root = base.goes_on[0]
    damaged: list[str] = []

    def damage(step: str) -> None:
        if step == "committed":
            flip.apply(base.engine, base.places)
            damaged.append(step)

    with closing(open_ledger(base.settings, clock=base.clock, on_step=damage)) as ledger:
        try:
            outcome: bytes | str = append(ledger, drafts)
        except Halted as error:
            outcome = error.code
        halts = "log_forked" if flip.column in ("size", "root") else None
        assert outcome == ((halts or root) if flip.table == "log_head" else "log_damaged")
        with pytest.raises(Halted):
            append(ledger, [Writer(6).review(OTHER)])
    assert damaged == ["committed"]


def stop(step: str) -> None:
    raise RuntimeError(step)


def test_damage_in_postgresql(postgres: PostgresServer, tmp_path: Path) -> None:
    """What is compared with what is the same on both engines: a few rows show it."""
    url = postgres.url("damaged")
    there = Base(tmp_path, url, Backups(url, tmp_path, postgres))
    drafts, root = there.goes_on[0]
    for number, flip in enumerate(FLIPS[::4]):
        check(there, flip, drafts, root, reopened=number % 2 == 1)
