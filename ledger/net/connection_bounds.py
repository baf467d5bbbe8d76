"""How many connections may be open, in all and by address, and which one is given up when there are too many.

A full group (all connections, one address, one IPv6 /48) gives up the connection that has waited for its client
longest, and takes the new one. It refuses the new one only when all that it has are being answered.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from ledger.net.addresses import Network, parse_address, site, subscriber

# A /48 may have this many times the connections of one address.
ADDRESSES_OF_A_SITE = 4

C = TypeVar("C", bound=Hashable)


class Full(StrEnum):
    """Which group has no room."""

    ALL = "too_many_connections"
    ADDRESS = "too_many_from_address"
    NETWORK = "too_many_from_network"


class ConnectionBounds(Generic[C]):
    """At most `most` connections, and `per_address` for each address that is not in `exempt` (none: no such bound).

    Held by a server. Not thread-safe: it is called from one thread, or under a lock."""

    def __init__(self, most: int, per_address: int | None, exempt: Sequence[Network] = ()) -> None:
        self._per_address = per_address
        self._exempt = exempt
        self._all: _Group[C] = _Group(Full.ALL, "", most)
        self._groups: dict[str, _Group[C]] = {}
        self._members: dict[C, list[_Group[C]]] = {}

    def __len__(self) -> int:
        return self._all.count

    def refusal(self, address: str) -> Full | None:
        """Why a connection from `address` would be refused now; None if it would be taken."""
        full = next((group for group in self._groups_of(address) if group.is_full), None)
        return full.reason if full is not None and not full.waiting else None

    def enter(self, connection: C, address: str) -> tuple[Full | None, C | None]:
        """Take a connection, which waits for its client; or say why not. The second value is the connection that was
        given up for it: the caller closes it."""
        groups = self._groups_of(address)
        evicted = None
        # The smallest first: what leaves it leaves the others too.
        full = next((group for group in groups if group.is_full), None)
        if full is not None:
            evicted = next(iter(full.waiting), None)
            if evicted is None:
                return full.reason, None
            self.leave(evicted)
        for group in groups:
            group.count += 1
            # It may have been the evicted connection that was the last of its group.
            if group.key:
                self._groups[group.key] = group
        self._members[connection] = groups
        self.wait(connection)
        return None, evicted

    def leave(self, connection: C) -> None:
        """Forget a connection; nothing happens when it is not known."""
        for group in self._members.pop(connection, ()):
            group.count -= 1
            group.waiting.pop(connection, None)
            if group.count == 0 and group.key:
                del self._groups[group.key]

    def wait(self, connection: C) -> None:
        """It waits for its client from now on, as the last to be given up."""
        for group in self._members.get(connection, ()):
            group.waiting[connection] = None
            group.waiting.move_to_end(connection)

    def work(self, connection: C) -> None:
        """It is being answered: it is not given up."""
        for group in self._members.get(connection, ()):
            group.waiting.pop(connection, None)

    def waiting(self) -> list[C]:
        """Those that wait for their client, the longest first."""
        return list(self._all.waiting)

    def _groups_of(self, address: str) -> "list[_Group[C]]":
        """From the smallest to that of all. An address that cannot be read counts as one more address."""
        if self._per_address is None:
            return [self._all]
        found = parse_address(address)
        if found is not None and any(found in network for network in self._exempt):
            return [self._all]
        groups = [self._group(Full.ADDRESS, "" if found is None else subscriber(found), self._per_address)]
        if found is not None and (wide := site(found)) is not None:
            groups.append(self._group(Full.NETWORK, wide, self._per_address * ADDRESSES_OF_A_SITE))
        return [*groups, self._all]

    def _group(self, reason: Full, key: str, most: int) -> "_Group[C]":
        key = key or "unknown"
        return self._groups.get(key) or _Group(reason, key, most)


class _Group(Generic[C]):
    """Connections that have a bound together; `waiting` has the one that has waited longest first."""

    __slots__ = ("count", "key", "most", "reason", "waiting")

    def __init__(self, reason: Full, key: str, most: int) -> None:
        self.reason, self.key, self.most = reason, key, most
        self.count = 0
        self.waiting: OrderedDict[C, None] = OrderedDict()

    @property
    def is_full(self) -> bool:
        return self.count >= self.most
