"""Rows in and out of the tables by few statements: a batch is a handful of round trips, whatever its size."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from psycopg import RawCursor
from psycopg.pq import Format
from sqlalchemy import Connection, Table

from ledger.errors import NotStored
from ledger.store.tables import page, tile

# Both drivers take at least this many values in one statement.
MAX_VALUES = 30_000
# Every reader of signed notes takes 16 signatures, of which one is the log's.
MAX_WITNESSES = 15
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

    @property
    def row(self) -> tuple[int, bytes, int | None, bytes, int, str]:
        return self.size, self.root, self.map_top, self.map_root, self.pages, self.at


@dataclass(frozen=True, slots=True)
class Published(Head):
    """A state that was signed; by witnesses too, as far as their cosignatures are here."""

    note: str


@dataclass(frozen=True, slots=True)
class RecordVersion:
    """A host's record, and the edge of its sub-log."""

    data: bytes
    edge: bytes


def run(connection: Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """The rows of a statement, straight through the driver: a batch or an answer has dozens of them, and wrapping each
    takes longer than asking. `?` marks a value."""
    driver: Any = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite":
        return list(driver.execute(statement, values))
    # The usual cursor reads through the statement for its marks each time; a batch has hundreds of them.
    with RawCursor(driver) as cursor:
        # As text, bytes would be sent and read in hexadecimal.
        cursor.format = Format.BINARY
        cursor.execute(_numbered(statement), values)
        # `description` would tell too, after describing each column.
        result = cursor.pgresult
        return cursor.fetchall() if result is not None and result.nfields else []


@lru_cache(maxsize=4096)
def _numbered(statement: str) -> str:
    """With the marks that PostgreSQL has: $1, $2, ..."""
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


def insert_rows(
    connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]], *, on_conflict: str = ""
) -> None:
    """One statement for many rows takes half the CPU of one execution per row; SQLAlchemy's own takes twice."""
    # SQLite would copy each page that it touches, to undo this statement alone; whoever fails here undoes everything.
    verb = "INSERT OR FAIL" if connection.dialect.name == "sqlite" else "INSERT"
    step = MAX_VALUES // len(table.columns)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        run(connection, _insert(verb, table, len(part)) + on_conflict, tuple(chain.from_iterable(part)))


@lru_cache(maxsize=4096)
def _insert(verb: str, table: Table, count: int) -> str:
    names = ", ".join(column.name for column in table.columns)
    row = f"({', '.join('?' for _ in table.columns)})"
    return f"{verb} INTO {table.name} ({names}) VALUES {', '.join([row] * count)}"


def read_head(connection: Connection) -> Head | None:
    rows = run(connection, f"SELECT {_HEAD} FROM log_head")
    return Head(*_typed(rows[0])) if rows else None


def newest_published(connection: Connection) -> Published | None:
    return next(iter(published_below(connection, None, 1)), None)


def published_at(connection: Connection, size: int) -> Published | None:
    rows = run(connection, f"SELECT {_HEAD}, note FROM checkpoint WHERE size = ?", (size,))
    return next(iter(_cosigned(connection, [Published(*_typed(row)) for row in rows])), None)


def published_below(connection: Connection, size: int | None, count: int) -> list[Published]:
    """Newest first."""
    below = "WHERE size < ? " if size is not None else ""
    query = f"SELECT {_HEAD}, note FROM checkpoint {below}ORDER BY size DESC LIMIT ?"
    values = (count,) if size is None else (size, count)
    return _cosigned(connection, [Published(*_typed(row)) for row in run(connection, query, values)])


def _cosigned(connection: Connection, found: list[Published]) -> list[Published]:
    """With the lines of witnesses, as many as every reader of notes takes."""
    query = "SELECT size, line FROM cosignature WHERE size IN ({}) ORDER BY size, witness"
    lines: dict[int, list[str]] = {}
    for size, line in select_in(connection, query, [published.size for published in found]):
        lines.setdefault(size, []).append(line)
    if not lines:
        return found
    return [replace(each, note=each.note + "".join(lines.get(each.size, [])[:MAX_WITNESSES])) for each in found]


_HEAD = "size, root, map_top, map_root, pages, at"


def _typed(row: Any) -> Iterator[Any]:
    """Drivers differ in how they hand out bytes."""
    return (bytes(value) if isinstance(value, memoryview | bytearray) else value for value in row)


def read_entries(connection: Connection, start: int, stop: int) -> list[tuple[bytes, bytes | None]]:
    """Entries [start, stop) with the map keys of their hosts; a gap is damage."""
    query = "SELECT idx, data, host_key FROM entry WHERE idx >= ? AND idx < ? ORDER BY idx"
    rows = run(connection, query, (start, stop))
    if [index for index, _, _ in rows] != list(range(start, stop)):
        raise NotStored(f"entries {start} to {stop - 1} are not all stored")
    return [(data, host) for _, data, host in rows]


def read_host_entries(connection: Connection, host: bytes, size: int) -> list[tuple[int, bytes]]:
    """Log index and bytes of all entries below `size` that name the host with this map key."""
    return run(connection, "SELECT idx, data FROM entry WHERE host_key = ? AND idx < ? ORDER BY idx", (host, size))


def read_issuers(connection: Connection, size: int) -> list[tuple[int, bytes, bytes]]:
    """Log index, bytes and pinned keys of the issuer entries below `size`, in their order."""
    query = (
        "SELECT k.idx, e.data, k.keys FROM issuer_keys k JOIN entry e ON e.idx = k.idx WHERE k.idx < ? ORDER BY k.idx"
    )
    return run(connection, query, (size,))


def newest_issuer(connection: Connection) -> int:
    """The index of the newest issuer entry; -1 when there is none."""
    [(index,)] = run(connection, "SELECT max(idx) FROM issuer_keys")
    return -1 if index is None else int(index)


def newest_records(connection: Connection, hosts: Iterable[bytes], size: int) -> dict[bytes, RecordVersion]:
    """Each host's record in the tree of `size` entries, by map key."""
    # The last entry of each host by itself: grouping would go through all entries of these hosts.
    query = (
        "SELECT h.column1, r.data, r.edge FROM (VALUES {}) h JOIN record r ON r.idx = "
        "(SELECT max(e.idx) FROM entry e WHERE e.host_key = h.column1 AND e.idx < ?)"
    )
    rows = select_in(connection, query, list(hosts), size, item="(?)")
    return {host: RecordVersion(data, edge) for host, data, edge in rows}


def select_in(connection: Connection, query: str, keys: Sequence[Any], *more: Any, item: str = "?") -> Iterator[Any]:
    """The rows of a query whose `{}` is a list of keys, each in an `item`; `more` are the values after it."""
    for start in range(0, len(keys), MAX_KEYS):
        part = keys[start : start + MAX_KEYS]
        yield from run(connection, query.format(", ".join([item] * len(part))), (*part, *more))


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
    return dict(select_in(connection, f"SELECT id, data FROM {table.name} WHERE id IN ({{}})", possible))
