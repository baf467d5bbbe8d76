"""How many reviews of a host rest on each issuer's credentials, at any published size.

No table has it. Of a host with few entries they are read for an answer. The census, which goes through the whole log
anyway, tells of every entry. The reviews of hosts with many are counted from then on: what is kept grows with these.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from ledger.log.cache import Cache

# Entries from which on a host's reviews are counted; hosts that share a slot are counted earlier.
MANY = 100
SLOTS = 1 << 20
CACHED = 1000
# As canonical JSON has them; no text in an entry has a bare quotation mark.
_REVIEW_TYPE = b'"type":"review"'
_ISSUER = re.compile(rb'"issuer":"([^"]+)"')

# The bytes of the entries that name a host, from one log index to below another.
Read = Callable[[str, int, int], Iterable[bytes]]


class IssuerCounts:
    """Threads may share it; one at a time may `note`."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lock = Lock()
        self._size = 0
        self._slots = bytearray(SLOTS)
        self._many: dict[str, Counter[str]] = {}
        self._cache: Cache[tuple[str, int], Counter[str]] = Cache(CACHED)

    def note(self, stop: int, events: Sequence[tuple[str, str | None]]) -> None:
        """The host of every entry that names one, from where the last call ended to below `stop`, with the issuer if it
        is a review that has one."""
        new: dict[str, Counter[str]] = {}
        for host, _ in events:
            slot = hash(host) % SLOTS
            self._slots[slot] = min(self._slots[slot] + 1, MANY)
            if self._slots[slot] == MANY and host not in self._many and host not in new:
                new[host] = self._counted(host, 0, stop)
        with self._lock:
            for host, issuer in events:
                if issuer is not None and host in self._many:
                    self._many[host][issuer] += 1
            self._many |= new
            self._size = stop

    def of(self, host: str, size: int) -> Counter[str]:
        """Of the host's reviews below `size`. It reads what came since then, or since the census was there."""
        known = self._cache.get((host, size))
        if known is not None:
            return known
        with self._lock:
            counted, counts = self._size, Counter(self._many.get(host))
            is_many = host in self._many
        if not is_many:
            counts = self._counted(host, 0, size)
        elif size >= counted:
            counts.update(self._counted(host, counted, size))
        else:
            counts -= self._counted(host, size, counted)
        return self._cache.put((host, size), counts)

    def _counted(self, host: str, start: int, stop: int) -> Counter[str]:
        """They may be thousands: they are not parsed."""
        found = (_ISSUER.search(data) for data in self._read(host, start, stop) if _REVIEW_TYPE in data)
        return Counter(match[1].decode() for match in found if match)
