"""Trusted issuers: whose credentials count, by role, with pinned keys. Every change is an `issuer` entry in the log.

The state is the fold of these entries. An entry has the hash of the pinned keys; the keys stand beside it and are
believed only if they have that hash. What issuers publish is watched (`watch`) and never trusted: a changed key is an
act of the operator.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from ledger.canon import base64, multikey, strict_json
from ledger.errors import BadDID, Misconfigured, NotAccepted, NotStored
from ledger.identity.did import is_offline, offline
from ledger.log.drafts import Draft, make_draft
from ledger.log.entries import parse_entry
from ledger.log.members import IDV_LEVELS, check_issuer
from ledger.log.reader import Reader

MAX_KEYS = 16


@dataclass(frozen=True, slots=True)
class Issuer:
    """What the newest entry says of an issuer. `status` is `trusted`, `removed` or `compromised`."""

    role: str
    issuer: str
    status: str
    keys: tuple[str, ...]
    max_idv_level: str | None = None
    since: str | None = None
    index: int | None = None
    at: str | None = None


class Registry:
    """The issuers by role and name, as the last of `changes` left each. A key that was in other hands counts nowhere,
    though another role or another issuer has the same."""

    def __init__(self, changes: Iterable[Issuer]) -> None:
        self._known: dict[tuple[str, str], Issuer] = {}
        self.compromised: set[str] = set()
        # The index of the last change that is an entry.
        self.newest = -1
        for change in changes:
            self.newest = self.newest if change.index is None else change.index
            self._known[change.role, change.issuer] = change
            if change.status == "compromised":
                self.compromised.update(change.keys)

    def __iter__(self) -> Iterator[Issuer]:
        return iter(sorted(self._known.values(), key=lambda each: (each.role, each.issuer)))

    def get(self, role: str, issuer: str) -> Issuer | None:
        return self._known.get((role, issuer))

    def keys(self, role: str, issuer: str, idv_level: str | None = None) -> list[bytes]:
        """The pinned keys of an issuer that is trusted for this role and level."""
        known = self.get(role, issuer)
        if known is None or known.status != "trusted":
            raise NotAccepted(
                "issuer_not_trusted", f"{issuer} is not trusted for credentials of a {role}{_fate(known)}"
            )
        highest = known.max_idv_level or IDV_LEVELS[-1]
        if idv_level is not None and IDV_LEVELS.index(idv_level) > IDV_LEVELS.index(highest):
            raise NotAccepted("issuer_not_trusted", f"{issuer} is trusted up to {highest} only")
        keys = [multikey.decode(key) for key in known.keys if key not in self.compromised]
        if not keys:
            raise NotAccepted("issuer_not_trusted", f"all keys of {issuer} were in other hands")
        return keys


class Registries:
    """The issuers as any size of the published log leaves them. The last registry is kept: it seldom changes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._last = Registry([])

    def newest(self) -> Registry:
        """As the newest checkpoint leaves them, whichever process made it."""
        last = self._last
        return last if last.newest == self._reader.newest_issuer() else self.at(self._reader.refresh().size)

    def at(self, size: int) -> Registry:
        last = self._last
        if last.newest != self._reader.newest_issuer(size):
            last = self._last = Registry(_change(*row) for row in self._reader.issuers(size))
        return last


def _change(index: int, data: bytes, pinned: bytes) -> Issuer:
    entry = parse_entry(data)
    if entry.type != "issuer" or base64.encode(sha256(pinned).digest()) != entry.members["keys"]:
        raise NotStored(f"the keys stored for entry {index} are not those that it pins")
    members = entry.members
    return Issuer(
        members["role"],
        members["issuer"],
        members["action"],
        tuple(strict_json.loads(pinned)),
        members["max_idv_level"],
        members["since"],
        index,
        members["at"],
    )


def trust(registry: Registry, role: str, issuer: str, keys: Iterable[str], max_level: str | None) -> Draft | None:
    """The entry that trusts an issuer, or one more key of one that is trusted; None when nothing would change."""
    try:
        check_issuer(issuer)
    except (ValueError, BadDID) as error:
        raise Misconfigured("issuer_invalid", f"{issuer!r} is not an issuer: {error}") from None
    known = registry.get(role, issuer)
    given, own = set(keys), _own_keys(issuer)
    if own and given - own:
        raise Misconfigured("issuer_key_foreign", f"{issuer} has its one key in its name, and no other")
    given |= own
    for key in given:
        multikey.decode(key)
        if key in registry.compromised:
            raise Misconfigured("issuer_key_compromised", f"{key} was pinned when its issuer was compromised")
    before = known if known is not None and known.status == "trusted" else None
    pinned = tuple(sorted(given | ({*before.keys} - registry.compromised if before else set())))
    if not pinned:
        raise Misconfigured("issuer_key_missing", f"{issuer} needs a key: give it with --key MULTIKEY")
    if len(pinned) > MAX_KEYS:
        raise Misconfigured("issuer_keys_many", f"an issuer has at most {MAX_KEYS} keys: remove it, and add it anew")
    level = max_level or (before.max_idv_level if before else None)
    new = Issuer(role, issuer, "trusted", pinned, level)
    if before is not None and replace(before, since=None, index=None, at=None) == new:
        return None
    return _draft(new, known)


def distrust(registry: Registry, role: str, issuer: str, compromised_since: str | None) -> Draft:
    """The entry that removes an issuer, or holds it to be compromised since a time."""
    known = registry.get(role, issuer)
    if known is None:
        raise Misconfigured("issuer_unknown", f"{issuer} was never trusted for credentials of a {role}")
    status = "removed" if compromised_since is None else "compromised"
    gone = known.status != "trusted" and status == "removed"
    if gone or (known.status, known.since) == (status, compromised_since):
        raise Misconfigured("issuer_already", f"{issuer} is {known.status} already")
    return _draft(replace(known, status=status, since=compromised_since), known)


def _draft(new: Issuer, known: Issuer | None) -> Draft:
    members = {
        "role": new.role,
        "issuer": new.issuer,
        "action": new.status,
        "keys": list(new.keys),
        "max_idv_level": new.max_idv_level,
        "since": new.since,
    }
    # Two changes that start from the same entry do not both happen: the second would undo the first unseen.
    start = f"issuer {new.role} {new.issuer} {known.index if known else None}"
    return make_draft("issuer", members, key=sha256(start.encode()).digest())


def _own_keys(issuer: str) -> set[str]:
    """A did:key or did:jwk has its one key in its name."""
    return {multikey.encode(key) for key in offline(issuer).values()} if is_offline(issuer) else set()


def _fate(known: Issuer | None) -> str:
    return "" if known is None else f": it is {known.status}" + (f" since {known.since}" if known.since else "")
