"""The keys that hosts have had: every resolution of a host's did:web is remembered (design: host keys).

A stay receipt is signed at booking time and read months later; by then the host may have other keys, or be gone. Hosts'
DIDs and keys are public. Who is remembered must have shown to be a host: guests never are.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from threading import Lock

from ledger.canon import jcs, multikey
from ledger.canon.times import format_time, parse_time
from ledger.clock import Clock
from ledger.identity.did import Keys
from ledger.store.engine import Store
from ledger.store.rows import run

OVERLAP = timedelta(days=1)
# Of one host. Whoever has had so many does not use them.
MOST_KEYS = 200

_SEEN = "SELECT fingerprint FROM did_document WHERE did = ?"
_COUNT = "SELECT count(*) FROM did_key WHERE did = ?"
_FIRST = "INSERT INTO did_document (did, fingerprint, changed_at) VALUES (?, ?, NULL)"
_CHANGED = "UPDATE did_document SET fingerprint = ?, changed_at = ? WHERE did = ?"
_KEY = (
    "INSERT INTO did_key (did, method, multikey, first_seen, last_seen) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (did, method, multikey) DO UPDATE SET last_seen = excluded.last_seen "
    "WHERE did_key.last_seen < excluded.last_seen"
)
_AGAIN = "UPDATE did_key SET last_seen = ? WHERE did = ? AND method = ? AND multikey = ? AND last_seen < ?"
_KEYS = (
    "SELECT method, multikey, first_seen, last_seen FROM did_key WHERE did = ? ORDER BY first_seen, method, multikey"
)
_CHANGES = "SELECT did, changed_at FROM did_document WHERE changed_at >= ?"


@dataclass(frozen=True, slots=True)
class Remembered:
    """A key that a host's document had, from the first to the last time that it was seen there."""

    method: str
    multikey: str
    first_seen: str
    last_seen: str

    @property
    def key(self) -> bytes:
        return multikey.decode(self.multikey)

    def covers(self, moment: datetime) -> bool:
        return self.first_seen <= format_time(moment) <= self.last_seen


class KeyArchive:
    """Shared by threads. When keys changed is known without asking the database: every answer about a host says it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = Lock()
        self._changes: dict[str, str] = {}
        self._newest = ""
        # Goes on with every change that this process learns of.
        self.version = 0
        self.refresh()

    def remember(self, name: str, keys: Keys, now: datetime) -> None:
        """What a document says now. A key that is new, or gone, is a change."""
        at = format_time(now)
        found = sorted((method, multikey.encode(key)) for method, key in keys.items())
        fingerprint = sha256(jcs.dumps([list(each) for each in found])).digest()
        with self._store.write() as connection:
            seen = run(connection, _SEEN, (name,))
            changed = bool(seen) and bytes(seen[0][0]) != fingerprint
            if not seen:
                run(connection, _FIRST, (name, fingerprint))
            elif changed:
                run(connection, _CHANGED, (fingerprint, at, name))
            # What was there first stays: a host that has ever new keys must not make us forget the old ones.
            if run(connection, _COUNT, (name,))[0][0] < MOST_KEYS:
                for method, key in found:
                    run(connection, _KEY, (name, method, key, at, at))
            else:
                for method, key in found:
                    run(connection, _AGAIN, (at, name, method, key, at))
        if changed:
            self._learn([(name, at)])

    def recall(self, name: str) -> list[Remembered]:
        """All keys that a host has had, the oldest first."""
        with self._store.read() as connection:
            return [Remembered(*row) for row in run(connection, _KEYS, (name,))]

    def changed_at(self, name: str) -> str | None:
        """When the keys of a host were last seen to be others than before."""
        return self._changes.get(name)

    def refresh(self) -> None:
        """Learn what other processes have seen, whose clocks may be behind."""
        # Nor does one that was ahead hide what comes now.
        newest = min(self._newest, format_time(self._clock()))
        since = format_time(parse_time(newest) - OVERLAP) if newest else ""
        with self._store.read() as connection:
            self._learn(run(connection, _CHANGES, (since,)))

    def _learn(self, changes: list[tuple[str, str]]) -> None:
        with self._lock:
            news = {name: at for name, at in changes if self._changes.get(name) != at}
            if news:
                self._changes |= news
                self._newest = max(self._newest, *news.values())
                self.version += 1
