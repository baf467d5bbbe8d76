"""Rows in and out of the tables by few statements: a batch is a handful of round trips, whatever its size."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, LargeBinary, RowMapping, Table, bindparam, select

from ledger.errors import NotStored
from ledger.store.tables import checkpoint, entry, log_head, page, tile

# Both drivers take at least this many values in one statement.
MAX_VALUES = 30_000
# How many keys are asked for at once.
MAX_KEYS = 5_000


@dataclass(frozen=True, slots=True)
class Head:
    """The committed state: the tree, the map and its top page, the next page number, the time of the map head."""

    size: int
    root: bytes
    map_top: int | None
    map_root: bytes
    pages: int
    at: str


@dataclass(frozen=True, slots=True)
class Published(Head):
    """A state that was signed."""

    note: str


@dataclass(frozen=True, slots=True)
class RecordVersion:
    """A host's record, the edge of its sub-log, and the size of the batch that wrote it."""

    size: int
    data: bytes
    edge: bytes


_HEAD = select(log_head)
_NEWEST = select(checkpoint).order_by(checkpoint.c.size.desc()).limit(1)
_AT = select(checkpoint).where(checkpoint.c.size == bindparam("size"))
_ENTRIES = (
    select(entry.c.idx, entry.c.data, entry.c.host_key)
    .where(entry.c.idx >= bindparam("start"), entry.c.idx < bindparam("stop"))
    .order_by(entry.c.idx)
)


def insert_rows(
    connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]], *, on_conflict: str = ""
) -> None:
    """One statement for many rows takes half the CPU of one execution per row; SQLAlchemy's own takes twice."""
    step = MAX_VALUES // len(table.columns)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        statement = _insert(table, len(part), connection.dialect.name) + on_conflict
        connection.exec_driver_sql(statement, tuple(value for row in part for value in row))


@lru_cache(maxsize=4096)
def _insert(table: Table, count: int, dialect: str) -> str:
    # psycopg writes bytes as hexadecimal text unless it is asked for the binary format.
    marks = [
        "?" if dialect == "sqlite" else "%b" if isinstance(column.type, LargeBinary) else "%s"
        for column in table.columns
    ]
    names = ", ".join(column.name for column in table.columns)
    row = f"({', '.join(marks)})"
    return f"INSERT INTO {table.name} ({names}) VALUES {', '.join([row] * count)}"


def read_head(connection: Connection) -> Head | None:
    row = connection.execute(_HEAD).mappings().first()
    return None if row is None else Head(*_state(row))


def newest_published(connection: Connection) -> Published | None:
    return _published(connection.execute(_NEWEST).mappings().first())


def published_at(connection: Connection, size: int) -> Published | None:
    return _published(connection.execute(_AT, {"size": size}).mappings().first())


def published_below(connection: Connection, size: int | None, count: int) -> list[Published]:
    """Newest first."""
    query = select(checkpoint).order_by(checkpoint.c.size.desc()).limit(count)
    if size is not None:
        query = query.where(checkpoint.c.size < size)
    return [found for row in connection.execute(query).mappings() if (found := _published(row))]


def _published(row: RowMapping | None) -> Published | None:
    return None if row is None else Published(*_state(row), row["note"])


def _state(row: RowMapping) -> tuple[int, bytes, int | None, bytes, int, str]:
    return row["size"], bytes(row["root"]), row["map_top"], bytes(row["map_root"]), row["pages"], row["at"]


def read_entries(connection: Connection, start: int, stop: int) -> list[tuple[bytes, bytes | None]]:
    """Entries [start, stop) with the map keys of their hosts; a gap is damage."""
    rows = connection.execute(_ENTRIES, {"start": start, "stop": stop}).all()
    if [row.idx for row in rows] != list(range(start, stop)):
        raise NotStored(f"entries {start} to {stop - 1} are not all stored")
    return [(bytes(row.data), row.host_key) for row in rows]


def read_openings(connection: Connection, indices: Sequence[int]) -> dict[int, tuple[str, bytes]]:
    rows = select_in(connection, "SELECT idx, text, salt FROM opening WHERE idx IN {}", indices)
    return {index: (text, bytes(salt)) for index, text, salt in rows}


def newest_records(connection: Connection, hosts: Iterable[bytes], size: int) -> dict[bytes, RecordVersion]:
    """Each host's record in the tree of `size` entries, by map key."""
    query = (
        "SELECT host_key, size, data, edge FROM record WHERE (host_key, size) IN (SELECT host_key, max(size) "
        f"FROM record WHERE host_key IN {{}} AND size <= {size:d} GROUP BY host_key)"
    )
    rows = select_in(connection, query, list(hosts))
    return {bytes(host): RecordVersion(at, bytes(data), bytes(edge)) for host, at, data, edge in rows}


def select_in(connection: Connection, query: str, keys: Sequence[Any]) -> Iterator[Any]:
    """The rows of a query whose `{}` is a list of keys. SQLAlchemy would take longer to spell it than to ask."""
    for start in range(0, len(keys), MAX_KEYS):
        part = tuple(keys[start : start + MAX_KEYS])
        mark = "?" if connection.dialect.name == "sqlite" else "%b" if isinstance(part[0], bytes) else "%s"
        yield from connection.exec_driver_sql(query.format(f"({', '.join([mark] * len(part))})"), part).all()


class Rows:
    """Tiles and map pages as `tiles.TileStore` and `pages.PageStore` want them, from wherever `connect` leads.

    A page that is written waits in `new` for the batch to insert it.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[Connection]], next_page: int = 0) -> None:
        self._connect = connect
        self.next_page = next_page
        self.new: dict[int, bytes] = {}

    def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        with self._connect() as connection:
            return _by_id(connection, tile, ids)

    def read_pages(self, numbers: Sequence[int]) -> Mapping[int, bytes]:
        stored = [number for number in numbers if number not in self.new]
        found = {number: self.new[number] for number in numbers if number in self.new}
        if stored:
            with self._connect() as connection:
                found |= _by_id(connection, page, stored)
        return found

    def write_page(self, data: bytes) -> int:
        number, self.next_page = self.next_page, self.next_page + 1
        self.new[number] = data
        return number


def _by_id(connection: Connection, table: Table, ids: Sequence[int]) -> dict[int, bytes]:
    # A damaged page may name a number that no column holds.
    possible = [key for key in ids if key < 1 << 63]
    rows = select_in(connection, f"SELECT id, data FROM {table.name} WHERE id IN {{}}", possible)
    return {key: bytes(data) for key, data in rows}
