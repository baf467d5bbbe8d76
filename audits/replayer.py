"""The replay of a log that is kept in a state, so that it can be broken off anywhere and go on later."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audits.commitments import NOTHING, OF_NOTHING, REPEATED, commitments
from audits.daily import Daily
from audits.rules import Rules
from audits.state import State
from ledger.canon import strict_json
from ledger.errors import BadEntry, BrokenRule, NotStored, StaylogError
from ledger.log.entries import Entry, parse_entry
from ledger.log.hostmap import map_key, map_value
from ledger.log.openings import Opening, commitment
from ledger.log.record import HostFold
from ledger.log.tiles import WIDTH, Appender
from ledger.log.tree import leaf_hash

# What is lost at most when an audit is killed.
SAVE_SECONDS = 20.0
# Of one rule; the others are counted.
MOST_BREAKS = 5
# What a replay looks for: what was replayed by an earlier version is replayed anew, for what that did not look for.
LOOKS_FOR = 3


class Replayer:
    """`breaks` are the rules that were broken: code, index, message and how often; after one that `ended` it nothing
    was derived any more. `missing` are texts that were not served: by review and part, the index of their entry.
    `unread` are bundles whose texts are still to be read, `mismatched` entries whose bundle has another text."""

    def __init__(self, state: State, *, save_seconds: float = SAVE_SECONDS) -> None:
        self._state = state
        self._save_seconds = save_seconds
        self._saved = time.monotonic()
        self._load()

    @property
    def size(self) -> int:
        return self.appender.size

    def feed(self, entries: Sequence[bytes], texts: Mapping[int, Opening] | None) -> None:
        """The next entries of the log, and the openings that are served of them; None if none are."""
        # Of those that mean nothing any more.
        leaves: list[bytes] = []
        for index, data in enumerate(entries, self.size):
            entry = self._add(index, data) if self.ended is None else None
            if entry is None:
                leaves.append(leaf_hash(data))
                continue
            if entry.type == "redaction":
                self.missing.pop((entry.members["review"], entry.members["part"]), None)
            elif texts is None:
                self._skip_text(index)
            else:
                self._look_for_text(index, entry, texts)
            if entry.type == "map_head":
                self._state.keep_head(index + 1, entry.members["at"], self.rules.replay.tree.root())
                if time.monotonic() - self._saved >= self._save_seconds:
                    self.save()
        self.rules.replay.tree.extend(leaves)

    def look_again(self, number: int, entries: Sequence[bytes], texts: Mapping[int, Opening]) -> None:
        """The texts of a bundle that was replayed without them, or with others than were committed to."""
        bundle, left = range(number * WIDTH, (number + 1) * WIDTH), list[list[int]]()
        # Those that are wrong again go into the new list.
        unread = [*self._unread]
        self._unread.clear()
        for first, stop in unread:
            for index in range(max(first, bundle.start), min(stop, bundle.stop)):
                self._look_for_text(index, parse_entry(entries[index - bundle.start]), texts)
            left += [[first, min(stop, bundle.start)], [max(first, bundle.stop), stop]]
        self._unread += [[first, stop] for first, stop in left if first < stop]
        self._unread.sort()

    @property
    def unread(self) -> list[int]:
        return sorted({n for first, stop in self._unread for n in range(first // WIDTH, (stop - 1) // WIDTH + 1)})

    def _skip_text(self, index: int) -> None:
        if self._unread and self._unread[-1][1] == index:
            self._unread[-1][1] += 1
        else:
            self._unread.append([index, index + 1])

    @property
    def can_save(self) -> bool:
        """Only at the end of a batch: inside of one the map is not what the records say."""
        return self.ended is not None or not self.rules.replay.batch

    def settle(self) -> None:
        """All that the entries so far show is among the breaks: equal commitments are looked for in many at once."""
        for index, first in self._state.committed.take_repeated():
            where = "twice" if index == first else f"and so does entry {first}"
            self._note(REPEATED, index, f"entry {index} has a commitment that no two may have, {where}")

    def save(self) -> None:
        self.settle()
        replay = self.rules.replay
        root = replay.tree.root()
        self._state.write_tiles(self.appender.take_rows())
        snapshot = {
            "looks_for": LOOKS_FOR,
            "size": self.size,
            "root": root.hex(),
            "derived": replay.size,
            "map_root": replay.map.root().hex(),
            "origin": replay.origin,
            "last_at": replay.last_at,
            "index_seq": replay.index_seq,
            "issuers": self.rules.trust.issuers,
            "days": self.daily.days,
            "breaks": self.breaks,
            "ended": self.ended,
            "head_is_right": self._head_is_right,
            "unread": self._unread,
            "missing": [[review, part, index] for (review, part), index in self.missing.items()],
            "heads": self.heads,
            "texts": self.texts,
        }
        self._state.put("replay", snapshot)
        self._state.commit()
        self._saved = time.monotonic()

    def forget(self) -> None:
        self._state.forget_replay()
        self._load()

    def _load(self) -> None:
        self.breaks: list[list[Any]] = []
        self.ended: int | None = None
        self.missing: dict[tuple[int, str], int] = {}
        # Rows of entries, each by its first and the one after its last.
        self._unread: list[list[int]] = []
        self.mismatched: set[int] = set()
        self.heads = 0
        self.texts = 0
        self._head_is_right = self._next_is_right = True
        self.daily = Daily()
        self.appender = Appender(self._state)
        kept = (self._state.reviews, self.appender, self._state.keep_host)
        self.rules = Rules(self._on_break, *kept)
        try:
            if (snapshot := self._state.get("replay")) is not None:
                self._restore(snapshot)
        except (StaylogError, AttributeError, LookupError, TypeError, ValueError):
            # Damaged: what is derived can be derived again.
            self._state.forget_replay()
            self._load()

    def _restore(self, snapshot: Mapping[str, Any]) -> None:
        if snapshot["looks_for"] != LOOKS_FOR:
            raise NotStored("it was replayed by another version")
        self.appender = Appender(self._state, snapshot["size"])
        replay = self.rules.replay
        replay.go_on(self.appender, snapshot["derived"])
        for host, record, edge in self._state.hosts():
            replay.hosts[host] = HostFold.resume(host, strict_json.loads(record), edge, self._state.reviews)
            replay.map.set(map_key(host), map_value(record))
        if replay.map.root().hex() != snapshot["map_root"]:
            raise NotStored("the hosts that were kept are not those of the map")
        if self.appender.root().hex() != snapshot["root"]:
            raise NotStored("the tiles that were kept are not those of the entries")
        replay.origin, replay.last_at = snapshot["origin"], snapshot["last_at"]
        replay.index_seq = snapshot["index_seq"]
        self.rules.trust.issuers = snapshot["issuers"]
        self.daily = Daily(snapshot["days"])
        self.breaks, self.ended = snapshot["breaks"], snapshot["ended"]
        self._head_is_right = snapshot["head_is_right"]
        self.missing = {(review, part): index for review, part, index in snapshot["missing"]}
        self._unread = snapshot["unread"]
        self.heads, self.texts = snapshot["heads"], snapshot["texts"]

    def _add(self, index: int, data: bytes) -> Entry | None:
        hosts = len(self.rules.replay.hosts)
        try:
            entry = self.rules.add(data)
        except (BrokenRule, BadEntry) as error:
            self.ended = index
            self._note(error.code, index, error.message)
            self._keep_last_hosts()
            return None
        self.daily.add(entry, new_host=len(self.rules.replay.hosts) > hosts)
        made = list(commitments(entry.type, entry.members))
        if NOTHING in made:
            self._note(OF_NOTHING, index, f"entry {index} commits to nothing: to the SHA-256 of no bytes")
        if made:
            self._state.committed.add(index, made)
        if entry.type == "map_head":
            self.heads += 1
            self._head_is_right, self._next_is_right = self._next_is_right, True
        return entry

    def _keep_last_hosts(self) -> None:
        """Those of the batch that ended it: whoever goes on later has them too."""
        replay = self.rules.replay
        replay.map_root()
        replay.hosts = {host: fold for host, fold in replay.hosts.items() if fold.edge.size}

    def _on_break(self, index: int, rule: BrokenRule) -> None:
        of_map = rule.code == "map_root_mismatch"
        # Only after a head that is right can be shown what the next one had to be.
        self._note(rule.code, index, rule.message, new=self._head_is_right or not of_map)
        if of_map:
            self._next_is_right = False

    def _note(self, code: str, index: int, message: str, *, new: bool = True) -> None:
        same = [each for each in self.breaks if each[0] == code]
        if any(each[1] == index for each in same):
            return
        if not same or new and len(same) < MOST_BREAKS:
            self.breaks.append([code, index, message, 1])
        else:
            same[-1][3] += 1

    def _look_for_text(self, index: int, entry: Entry, texts: Mapping[int, Opening]) -> None:
        members = entry.members
        if entry.type not in ("review", "response") or members["text"] is None:
            return
        opening = texts.get(index)
        self.mismatched.discard(index)
        if opening is not None and commitment(opening.salt, opening.text.encode()) != members["text"]:
            self.mismatched.add(index)
            self._skip_text(index)
            return
        self.texts += 1
        if opening is None:
            review, part = (index, "text") if entry.type == "review" else (members["review"], "response")
            state = self._state.reviews.get(review)
            if state is None or part not in state.redacted:
                self.missing[review, part] = index


Progress = Callable[[str, int, int], None]
