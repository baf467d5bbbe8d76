"""All rules that the log itself shows (protocol.md 2 to 4): those of `Replay`, and whose credentials counted when."""

from collections.abc import Callable
from typing import Any

from audits.counts import count_for_issuer
from ledger.errors import BrokenRule
from ledger.log.entries import Entry
from ledger.log.members import IDV_LEVELS
from ledger.log.record import HostFold, KnownReviews
from ledger.log.replay import Replay, Tree


class Trust:
    """The issuers of guests' credentials as the `issuer` entries leave them, the index of the last of these, and how
    many reviews rest on each, in all and by day."""

    def __init__(self) -> None:
        self.issuers: dict[str, dict[str, Any]] = {}

    def add(self, index: int, entry: Entry, reviews: KnownReviews) -> None:
        """Raises after a review that rests on nobody who was trusted for that then; one can go on after it."""
        members = entry.members
        self._count(entry)
        if entry.type == "issuer" and members["role"] == "guest":
            known = self._known(members["issuer"])
            known |= {"status": members["action"], "level": members["max_idv_level"], "index": index}
        elif entry.type == "review":
            self._review(index, members["level"], members["evidence"])
        elif entry.type == "upgrade":
            review = reviews.get(members["review"])
            if review is not None and review.issuer != members["evidence"]["issuer"]:
                raise BrokenRule("issuer_changed", f"the upgrade at {index} names another issuer than its review")

    def _known(self, issuer: str) -> dict[str, Any]:
        return self.issuers.setdefault(issuer, {"reviews": 0, "status": None, "level": None, "index": None, "days": {}})

    def _count(self, entry: Entry) -> None:
        """By day, as an issuer is told: reviews by the level at which they came in, and upgrades."""
        if entry.type in ("review", "upgrade") and (issuer := entry.members["evidence"]["issuer"]) is not None:
            count_for_issuer(self._known(issuer)["days"], entry)

    def _review(self, index: int, level: str, evidence: dict[str, Any]) -> None:
        issuer, idv_level = evidence["issuer"], evidence["idv_level"]
        if issuer is None:
            if level != "host_attested":
                raise BrokenRule("issuer_missing", f"the review at {index} is {level} by nobody's credential")
            return
        known = self._known(issuer)
        known["reviews"] += 1
        if known["status"] != "trusted":
            fate = f"is {known['status']}" if known["status"] else "was never trusted"
            raise BrokenRule("issuer_untrusted", f"the review at {index} rests on {issuer}, which {fate} there")
        highest = IDV_LEVELS.index(known["level"] or IDV_LEVELS[-1])
        if idv_level is not None and IDV_LEVELS.index(idv_level) > highest:
            level = known["level"]
            raise BrokenRule(
                "issuer_untrusted", f"the review at {index} is {idv_level} by {issuer}, trusted for {level}"
            )


class Rules:
    """A whole log, entry by entry. `on_break` is told of broken rules after which one can go on; any other is raised,
    and what comes after it has no meaning."""

    def __init__(
        self,
        on_break: Callable[[int, BrokenRule], None],
        reviews: KnownReviews | None = None,
        tree: Tree | None = None,
        on_record: Callable[[HostFold, bytes], None] = lambda _fold, _record: None,
    ) -> None:
        self.replay = Replay(reviews, tree, on_break=on_break, on_record=on_record)
        self.trust = Trust()
        self._on_break = on_break

    def add(self, data: bytes) -> Entry:
        index = self.replay.size
        entry = self.replay.add(data)
        try:
            self.trust.add(index, entry, self.replay.reviews)
        except BrokenRule as rule:
            self._on_break(index, rule)
        return entry
