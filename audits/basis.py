"""What an answer about a host must say besides what its record gives: it follows from proved events, the `issuer`
entries and the map heads of the same tree (reviews.md 6)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from audits.answer import Answer
from audits.face import same_json
from ledger.canon import base64, strict_json
from ledger.errors import Malformed, NotProved
from ledger.log.checkpoint import Checkpoint
from ledger.log.face import Event

ISSUERS, AS_OF = "issuers_mismatch", "as_of_mismatch"
# Characters of a value that are shown.
MOST_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Basis:
    """The events of `host` in the tree of `size` entries, with all texts; that tree's root, and the time of its last
    entry; the status that each issuer has there, if any entry gives it one. `as_of` is the first tree with a map head
    that has the last event: size, root and time."""

    host: str
    size: int
    root: str
    at: str
    record: dict[str, Any] | None
    events: Sequence[Event]
    statuses: Mapping[str, str]
    as_of: dict[str, Any] | None

    @classmethod
    def of(
        cls,
        host: str,
        answers: Sequence[Answer],
        checkpoint: Checkpoint,
        statuses: Mapping[str, str],
        as_of: dict[str, Any] | None,
    ) -> "Basis":
        """From the proved answer, in one part or more."""
        first = answers[0]
        record = None if first.record is None else strict_json.loads(first.record)
        tree = (checkpoint.size, base64.encode(checkpoint.root), str(first.map_head.members["at"]))
        return cls(host, *tree, record, [event for each in answers for event in each.events], statuses, as_of)

    def shown(self, text: str) -> list[Event]:
        """The events with those texts that are asked for."""
        upgraded = {event.entry.members["review"] for event in self.events if event.entry.type == "upgrade"}
        doubtful = {
            event.index for event in self.events if event.entry.members.get("level") == "unconfirmed"
        } - upgraded
        return [
            replace(event, opening=None)
            if text == "none" or text == "verified" and event.entry.members.get("review", event.index) in doubtful
            else event
            for event in self.events
        ]

    def issuers(self) -> list[dict[str, Any]]:
        reviews = [event.entry.members["evidence"]["issuer"] for event in self.events if event.entry.type == "review"]
        counts = Counter(issuer for issuer in reviews if issuer is not None)
        return [{"issuer": name, "status": self.statuses.get(name), "reviews": counts[name]} for name in sorted(counts)]

    def require_beside(self, face: Mapping[str, Any]) -> None:
        """`issuers`, `issuer_status` and `as_of` are as they follow. A member that is missing is another matter."""
        if "issuers" in face and not same_json(face["issuers"], self.issuers()):
            said, right = brief(face["issuers"]), brief(self.issuers())
            raise NotProved(ISSUERS, f"the issuers are said to be {said}, and are {right}")
        for review in face.get("review_history") or ():
            issuer = review.get("evidence", {}).get("issuer")
            if "issuer_status" in review and review["issuer_status"] != self.statuses.get(issuer):
                said, right = brief(review["issuer_status"]), brief(self.statuses.get(issuer))
                raise NotProved(ISSUERS, f"the status of {brief(issuer)} is said to be {said}, and is {right}")
        if "as_of" in face and not same_json(face["as_of"], self.as_of):
            raise NotProved(AS_OF, f"it is said to be as of {brief(face['as_of'])}, and is as of {brief(self.as_of)}")


def brief(value: object) -> str:
    """A value that was served, as far as it fits into a sentence."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


@contextmanager
def readable() -> Iterator[None]:
    """What cannot be read as an answer is Malformed, whatever is wrong with it."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Malformed("answer_malformed", f"it cannot be read: {error!r}") from None


def lacking(face: Mapping[str, Any]) -> list[str]:
    """Which of these members an answer does not have."""
    reviews = face.get("review_history") or ()
    found = [name for name in ("issuers", "as_of") if name not in face]
    return found + (["issuer_status"] if any("issuer_status" not in review for review in reviews) else [])
