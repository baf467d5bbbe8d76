"""What a service says besides proofs: members beside the record's, lists with cursors, reviews, counts by day."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from ledger.canon import base64
from ledger.errors import NotFound
from ledger.log.checkpoint import Checkpoint
from ledger.log.entries import Entry
from ledger.log.face import Event, history
from ledger.log.note import Note
from ledger.log.openings import Opening
from ledger.log.tiles import TileTree
from ledger.log.tlog_proof import TlogProof

IssuerDays = ("guest_verified", "host_attested", "unconfirmed", "upgrades")
HostDays = ("review", "response", "upgrade", "booking_check", "redaction")


class Told:
    """By the entries of a log below `size`, None where one is none; `notes` are its checkpoints by size."""

    def __init__(
        self,
        entries: Sequence[Entry | None],
        openings: Mapping[int, Opening],
        notes: Mapping[int, str],
        tree: TileTree,
        size: int,
    ) -> None:
        self.entries = entries[:size]
        self.openings = openings
        self.notes = notes
        self.tree = tree
        self.size = size

    def events(self, host: str, text: str = "all") -> list[Event]:
        found = [
            Event(index, entry, self.openings.get(index))
            for index, entry in enumerate(self.entries)
            if entry is not None and entry.host == host
        ]
        upgraded = {event.entry.members["review"] for event in found if event.entry.type == "upgrade"}
        hidden = {event.index for event in found if event.entry.members.get("level") == "unconfirmed"} - upgraded
        return [
            replace(event, opening=None)
            if text == "none" or text == "verified" and event.entry.members.get("review", event.index) in hidden
            else event
            for event in found
        ]

    def statuses(self) -> dict[str, str]:
        guests = [each for each in self.entries if each and each.type == "issuer" and each.members["role"] == "guest"]
        return {each.members["issuer"]: each.members["action"] for each in guests}

    def more(self, host: str) -> dict[str, Any]:
        """`issuers` and `as_of`."""
        events, statuses = self.events(host), self.statuses()
        names = [event.entry.members["evidence"]["issuer"] for event in events if event.entry.type == "review"]
        counts = Counter(name for name in names if name is not None)
        issuers = [{"issuer": name, "status": statuses.get(name), "reviews": counts[name]} for name in sorted(counts)]
        covering = [size for size in self.notes if events and size > events[-1].index]
        return {"issuers": issuers, "as_of": self.as_of(min(covering)) if covering else None}

    def as_of(self, size: int) -> dict[str, Any]:
        checkpoint, head = Checkpoint.parse(Note.parse(self.notes[size]).text), self.entries[size - 1]
        assert head is not None
        return {"size": size, "root": base64.encode(checkpoint.root), "at": head.at}

    def listed(self, host: str, query: Mapping[str, str]) -> dict[str, Any]:
        """A run of reviews as it was asked for, and a cursor if there are more."""
        limit, statuses = int(query.get("limit", 20)), self.statuses()
        below = int(query["cursor"].partition(".")[2]) if "cursor" in query else self.size
        reviews = history(self.events(host, query.get("text", "verified")))
        older = [review for review in reviews if review["index"] < below]
        shown = [{**each, "issuer_status": statuses.get(each["evidence"]["issuer"])} for each in older[:limit]]
        more = len(older) > limit
        return {"review_history": shown, "next_cursor": f"{self.size}.{shown[-1]['index']}" if more else None}

    def review(self, review_id: str, query: Mapping[str, str]) -> dict[str, Any]:
        reviews = [(index, each) for index, each in enumerate(self.entries) if each and each.type == "review"]
        found = [(index, each) for index, each in reviews if each.members["review_id"] == review_id]
        if not found:
            raise NotFound("review_not_found", review_id)
        index, first = found[0]
        events = self.events(str(first.host), query.get("text", "verified"))
        about = [event for event in events if event.entry.members.get("review", event.index) == index]
        levels = [event.entry.members["level"] for event in about if "level" in event.entry.members]
        note = self.notes[self.size]
        return {
            "review_id": review_id,
            "host_did": first.host,
            "verification_level": levels[-1],
            "checkpoint": note,
            "entries": [
                {
                    "index": event.index,
                    "type": event.entry.type,
                    "entry": event.entry.data.decode(),
                    "opening": event.opening.as_json() if event.opening else None,
                    "tlog_proof": str(TlogProof(event.index, tuple(self.tree.inclusion(event.index, self.size)), note)),
                }
                for event in about
            ],
        }

    def days_of_host(self, host: str, query: Mapping[str, str]) -> dict[str, Any]:
        days: dict[str, Counter[str]] = {}
        for event in self.events(host):
            days.setdefault(str(event.entry.at)[:10], Counter())[event.entry.type] += 1
        return self._days(days, HostDays, query)

    def days_of_issuer(self, issuer: str, query: Mapping[str, str]) -> dict[str, Any]:
        days: dict[str, Counter[str]] = {}
        for each in self.entries:
            if each and each.type in ("review", "upgrade") and each.members["evidence"]["issuer"] == issuer:
                kind = each.members["level"] if each.type == "review" else "upgrades"
                days.setdefault(str(each.at)[:10], Counter())[kind] += 1
        return self._days(days, IssuerDays, query)

    def _days(self, days: Mapping[str, Counter[str]], names: Sequence[str], query: Mapping[str, str]) -> dict[str, Any]:
        as_of = self.as_of(self.size)
        last = date.fromisoformat(as_of["at"][:10])
        if "before" in query:
            last = min(last, date.fromisoformat(query["before"]) - timedelta(1))
        first = last - timedelta(365)
        inside = {day: counts for day, counts in days.items() if str(first) <= day <= str(last)}
        listed = [{"date": day, **{name: counts[name] for name in names}} for day, counts in inside.items()]
        return {"from": str(first), "to": str(last), "as_of": as_of, "days": listed}
