"""Checkpoints that come with answers, of trees that may be newer than the audited one: an audit goes on while the log
grows."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from audits import counts
from audits.evidence import Audited
from audits.findings import Findings
from audits.forks import prove_fork
from audits.source import Source
from audits.state import State
from ledger.canon import base64, strict_json
from ledger.canon.times import format_time, parse_time
from ledger.errors import Malformed, NotProved, StaylogError
from ledger.log.checkpoint import open_checkpoint
from ledger.log.note import Verifier

# How far the time of a tree that is newer than the audited one may be ahead of our clock, and of that tree.
AHEAD = timedelta(days=1)


class NewerTrees:
    """Held by the sampler. What the log has signed is kept in the state for later audits."""

    def __init__(
        self, source: Source, log: Verifier, state: State, findings: Findings, clock: Callable[[], datetime]
    ) -> None:
        self._source = source
        self._log = log
        self._state = state
        self._findings = findings
        self._clock = clock

    def hold(self, said: bytes, audited: Audited) -> None:
        """The checkpoint in an answer, if it has one, is of the audited tree; a newer one is kept for later audits."""
        try:
            value = strict_json.loads(said)
            note = (value.get("proof") or value).get("checkpoint")
            checkpoint = open_checkpoint(note, self._log) if note is not None else None
        except (AttributeError, TypeError, StaylogError):
            return
        if checkpoint is None or not checkpoint.size:
            return
        if checkpoint.size > audited.size:
            self._state.see(checkpoint, note, format_time(self._clock()), self._source.name)
        elif audited.root(checkpoint.size) != checkpoint.root:
            self._findings.add(prove_fork(note, audited.note, self._log, audited.tree))

    def has_grown(self, audited: Audited) -> bool:
        """Whether the log has signed a newer tree meanwhile. Raises Malformed and NotFetched."""
        try:
            note = self._source.get("log/checkpoint").decode()
        except UnicodeDecodeError:
            raise Malformed("note_malformed", f"the checkpoint of {self._source.name} is not text") from None
        checkpoint = open_checkpoint(note, self._log)
        if checkpoint.size <= audited.size:
            return False
        self._state.see(checkpoint, note, format_time(self._clock()), self._source.name)
        return True

    def require_listed(self, face: Mapping[str, Any], known: counts.At) -> None:
        """Counts of a tree that is newer than the audited one: the log has signed it, and its time is not far off. Else
        any counts would be right, as being of other days. Raises Malformed."""
        size, root, at = counts.read_as_of(face)
        if size == known.size:
            return
        if parse_time(at) > max(self._clock(), parse_time(known.at)) + AHEAD:
            raise Malformed("wrong_size", f"the counts are of {at}, which is still to come")
        try:
            value = strict_json.loads(self._source.get(f"v1/log/checkpoints?before={size + 1}&count=1"))
            note = value["checkpoints"][0]["checkpoint"]
            listed = open_checkpoint(note, self._log)
        except (LookupError, NotProved, TypeError) as error:
            raise Malformed("answer_malformed", f"the list of checkpoints cannot be read: {error!r}") from None
        if (listed.size, base64.encode(listed.root)) != (size, root):
            raise Malformed("wrong_size", f"the counts are of {size} entries, of which no checkpoint is listed")
        self._state.see(listed, note, format_time(self._clock()), self._source.name)
