"""The audit of a whole log (protocol.md 2 to 5): every entry, every map head, every checkpoint, tiles, texts, answers.

What is wrong becomes a finding with a fraud proof; what could not be looked at is said. Only the key is believed.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from audits import beside, broken_rules, transition
from audits.asking import Asking
from audits.beside import NOT_LAST
from audits.evidence import Audited, Fraud
from audits.explaining import explain, went_back
from audits.findings import Findings
from audits.fraud import check_fraud
from audits.reading import Reading
from audits.replayer import Progress, Replayer
from audits.result import Result, make_result
from audits.source import Source
from audits.state import State, opened
from audits.texts import Texts
from ledger.canon.times import format_time, parse_time
from ledger.errors import Malformed, NotFound, NotProved, NotStored, StaylogError
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.mark import Mark
from ledger.log.note import Verifier
from ledger.log.policy import Policy
from ledger.log.tiles import TileTree

# A redaction takes a text away a moment before it is published: so often, so many seconds apart, the log is asked for
# it before a text counts as withheld.
PATIENCE, PAUSE = 3, 1.0
SAMPLE = 20
# By how much a log's clock may be ahead of ours.
SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Options:
    """`policy` names the witnesses; `notes` are checkpoints that others saw, and `marks` what services of the log have
    signed or seen signed, by where they come from; `hosts` are asked about besides those that the checkpoint draws; a
    log whose newest map head is older than `max_age` is not one that was audited in full."""

    policy: Policy | None = None
    notes: Sequence[str] = ()
    hosts: Sequence[str] = ()
    sample: int = SAMPLE
    max_age: timedelta | None = None
    marks: Mapping[str, Mark] = field(default_factory=dict)


class Audit:
    """One run. `clock` and `pause` are for tests."""

    def __init__(
        self,
        source: Source,
        log: Verifier,
        state: State,
        options: Options,
        progress: Progress = lambda _what, _done, _total: None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        pause: float = PAUSE,
        replayer: Replayer | None = None,
    ) -> None:
        self._source = source
        self._log = log
        self._state = state
        self._options = options
        self._progress = progress
        self._clock = clock
        self._pause = pause
        self._replayer = replayer or Replayer(state)
        self._tree = TileTree(state)
        # Whether all that was replayed came from this source, and in this run.
        self._all_now = self._replayer.size == 0
        # The tree that was read to its end, once there is one.
        self.audited: Audited | None = None
        self.findings = Findings()
        self._texts = Texts(source, self.findings)
        self._compared: int | None = None
        self._proved: set[tuple[str, int]] = set()
        self._witnesses: dict[str, list[int]] = {}

    def run(self) -> Result:
        """The result as JSON; raises if there is nothing to audit: no answer, or no signature by the key."""
        for other in self._options.notes:
            # It is of some other source, which may be ahead of this one.
            self._state.see(open_checkpoint(other, self._log), other, format_time(self._clock()), "")
        note, checkpoint = self._newest()
        # Nothing may make us forget that this was signed.
        self._state.commit()
        if not self._went_back(note, checkpoint) and (audited := self._read(note, checkpoint)) is not None:
            try:
                audited = self._hold_against_the_rest(audited)
            except NotStored:
                # It is ours that is damaged. What is proved already is proved all the same.
                if not self.findings.found:
                    raise
            except StaylogError as error:
                self.findings.miss(f"all that is served beside the entries: {error}")
            except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
                # Whatever is served, and whatever we did not think of: it must not keep what is proved from being told.
                self.findings.miss(f"all that is served beside the entries: {error!r}")
            self.audited, checkpoint = audited, audited.checkpoint
        self._require_proofs()
        at = self._state.head_at(checkpoint.size)
        self._require_young(at)
        given = (self._log, self._source, checkpoint, at, self._replayer, self.findings, self._witnesses)
        result = make_result(*given)
        self._keep(result)
        return result

    def _require_young(self, at: str | None) -> None:
        """A log says that it is alive, once a day at least."""
        longest = self._options.max_age
        if longest is not None and at is not None and parse_time(at) - self._clock() > SKEW:
            # A head from the future would stay young for ever.
            self.findings.miss(f"what has happened lately: the newest map head is of {at}, which is still to come")
        elif longest is not None and (at is None or self._clock() - parse_time(at) > longest):
            self.findings.miss(f"what has happened lately: the newest map head is of {at or 'nobody knows when'}")

    def _hold_against_the_rest(self, audited: Audited) -> Audited:
        self._compare(audited, self._marks().get(self._mark, 0))
        self._compare_marks(audited)
        self._texts.look_again(self._replayer, audited)
        if self._replayer.ended is not None:
            return audited
        drawn = beside.sample(self._replayer.rules.replay.hosts, audited.checkpoint.root, self._options.sample)
        found = (self._source, self._log, self._state, self._replayer, self.findings, self._progress)
        followed = Asking(*found, self._settle, self._clock, self._pause).about([*self._options.hosts, *drawn], audited)
        if followed.size > audited.size:
            self._compare(followed, audited.size)
        return followed

    def _require_proofs(self) -> None:
        """No finding leaves the house that a stranger could not check."""
        for finding in list(self.findings.found):
            try:
                check_fraud(json.dumps(finding.fraud.as_json(self._log)).encode(), self._log)
            except StaylogError as error:
                self.findings.found.remove(finding)
                self.findings.miss(f"{finding.fraud.claim}: this could not be shown: {error}")

    def _keep(self, result: Result) -> None:
        # What was found, or could not be looked at, is looked at again the next time.
        if self._compared is not None and self.findings.verdict == "clean":
            self._state.put("compared", {**self._marks(), self._mark: self._compared})
        if self._replayer.can_save:
            self._replayer.save()
        else:
            self._replayer.forget()
        self._state.put("audit", result)
        self._state.commit()

    def _marks(self) -> dict[str, int]:
        """How many entries the log had when all was compared, and clean: by source, and by whose times counted."""
        return dict(self._state.get("compared") or {})

    @property
    def _mark(self) -> str:
        policy = self._options.policy
        witnesses = sorted(str(each.verifier) for each in policy.witnesses.values()) if policy is not None else []
        return " ".join([self._source.name, *witnesses])

    def told(self, result: Result) -> Result:
        """The result once the files of the findings are written."""
        told = {**result, "findings": [finding.as_json() for finding in self.findings.found]}
        self._state.put("audit", told)
        self._state.commit()
        return told

    def _newest(self) -> tuple[str, Checkpoint]:
        """The newest checkpoint, signed by the log and by as many witnesses as the policy asks for."""
        try:
            note = self._source.get("log/checkpoint").decode()
        except UnicodeDecodeError:
            raise Malformed("note_malformed", f"the checkpoint of {self._source.name} is not text") from None
        checkpoint, policy = open_checkpoint(note, self._log), self._options.policy
        if checkpoint.size < 2:
            raise NotProved("index_out_of_range", "the smallest checkpoint of a log has two entries")
        if policy is not None:
            try:
                for name in policy.verify(note)[1].unchecked:
                    self.findings.miss(f"the ML-DSA-44 cosignature of {name}: install staylog[pq]")
            except NotProved as error:
                self.findings.miss(f"that enough witnesses saw the newest checkpoint: {error}")
        self._state.see(checkpoint, note, format_time(self._clock()), self._source.name)
        return note, checkpoint

    def _read(self, note: str, checkpoint: Checkpoint, *, again: bool = False) -> Audited | None:
        """Replay what is new, up to the checkpoint; None if what is served does not lead to it."""
        reading, replayer = Reading(self._source, checkpoint.size, self._own_leaves), self._replayer
        audited = Audited(note, checkpoint, self._tree, reading.entries, self._state.root_at, self._is_whole)
        trouble = self._feed(reading)
        self._state.write_tiles(replayer.appender.take_rows())
        if not trouble and replayer.appender.root() == checkpoint.root:
            if replayer.can_save:
                replayer.save()
            # At once: an operator who is caught may not serve much longer.
            self._prove_breaks(audited)
            return audited
        trouble = trouble or "those that are served hash to another tree"
        given = (audited, replayer.size, reading, trouble, self._log, self._state, self.findings)
        explained = explain(*given, all_now=self._all_now)
        # What was replayed may be the wrong history; the checkpoints that were seen stay.
        self._forget()
        if explained:
            return None
        if again:
            self.findings.miss("the entries: they came differently each time")
            return None
        return self._read(note, checkpoint, again=True)

    def _feed(self, reading: Reading) -> str:
        """Replay what is new; why that did not come to its end, if it did not."""
        patience = PATIENCE
        while True:
            try:
                for entries, texts in self._texts.with_bundles(reading, self._replayer.size):
                    self._replayer.feed(entries, texts)
                    self._progress("entries", self._replayer.size, reading.size)
                return ""
            except Malformed as error:
                return str(error)
            except NotFound as error:
                # Of several processes one may not have yet what another one has published.
                patience -= 1
                if not patience:
                    return str(error)
                time.sleep(self._pause)

    def _is_whole(self, size: int) -> bool:
        """Whether the last leaf of the tree of that size is a map head; behind what ended the replay nobody knows."""
        ended = self._replayer.ended
        return ended is not None and size > ended or self._state.root_at(size) is not None

    def _forget(self) -> None:
        self._replayer.forget()
        self._tree = TileTree(self._state)
        self._all_now = True

    def _went_back(self, note: str, checkpoint: Checkpoint) -> bool:
        """Whether what is served is smaller than what was audited before, whose tree is kept here."""
        size = self._replayer.size
        if checkpoint.size >= size:
            return False
        if went_back(note, checkpoint, self._log, self._state, self._source, size, self.findings):
            return True
        # What was replayed is of no checkpoint that was seen: an audit that was broken off was given something else.
        self._forget()
        return False

    def _compare(self, audited: Audited, above: int) -> None:
        """Checkpoints, tiles and times; but for what was compared, and clean, when the log had `above` entries."""
        # Whoever looks every minute has seen many, and was shown before that the others are of this tree.
        found, options, seen = self.findings, self._options, self._state.seen_apart(above)
        for _, note in seen:
            try:
                beside.hold_against(note, self._log, audited, found)
            except (Malformed, NotProved) as error:
                raise NotStored(f"a checkpoint that an earlier audit kept is damaged: {error}") from None
        beside.compare_beyond(seen, self._log, audited, found)
        # The larger ones are in the list.
        found.figures["checkpoints"] += self._state.count_seen(above)
        sizes = [size for size, _ in seen]
        listed = beside.listed(self._source, above, sizes, self._log, audited, found)
        # Only cosignatures are looked at again: there may be as many as entries.
        notes = [note for note in listed if options.policy is not None]
        for other in [each.fraud.evidence["older"] for each in found.found if each.fraud.kind == "fork"]:
            # It may not be listed the next time.
            self._state.see(open_checkpoint(other, self._log), other, format_time(self._clock()), "")
        if options.policy is not None:
            cosigned = dict.fromkeys([audited.note, *options.notes, *notes])
            self._witnesses = beside.times(cosigned, options.policy, self._state.head_at, audited, found)
        reading = Reading(self._source, audited.size)
        beside.tiles(reading, above, audited, self._own_tile, found, self._progress)
        self._compared = audited.size

    def _compare_marks(self, audited: Audited) -> None:
        """A mark is not signed, so that it shows where to look and proves nothing."""
        for where, mark in self._options.marks.items():
            if mark.size > audited.size:
                self.findings.miss(f"{mark.size - audited.size} entries that {where} knows of: they are not shown")
            elif audited.root(mark.size) != mark.root:
                other = f"{where} has another history of {mark.size} entries than is shown"
                self.findings.miss(f"{other}: the checkpoint that was signed for it would convict (--checkpoint)")

    def _own_leaves(self, number: int) -> bytes:
        """The leaf hashes of a bundle, as far as they are known."""
        return self._state.read_tiles([number]).get(number, b"")

    def _own_tile(self, tile: int) -> bytes:
        return self._state.read_tiles([tile])[tile]

    def _settle(self, audited: Audited) -> Audited:
        """Follow the log until it must have published what it had written when it was asked: a batch is signed before
        the next one is begun, so two new checkpoints are enough, or a while without any."""
        grown = waited = 0
        while grown < 2 and waited < PATIENCE:
            note, checkpoint = self._newest()
            if checkpoint.size <= audited.size:
                waited += 1
                time.sleep(self._pause)
            elif (followed := self._read(note, checkpoint)) is None:
                break
            else:
                audited, grown = followed, grown + 1
        return audited

    def _prove_breaks(self, audited: Audited) -> None:
        self._replayer.settle()
        breaks, replay = [*self._replayer.breaks], self._replayer.rules.replay
        if replay.batch and self._replayer.ended is None:
            breaks.append(["map_head_not_last", audited.size - 1, NOT_LAST.format(audited.size), 1])
        if replay.origin not in (None, self._log.name):
            breaks.append(["origin_mismatch", 0, f"the genesis is of {replay.origin}, not of {self._log.name}", 1])
        for done, (code, index, message, count) in enumerate(breaks):
            self._progress("proofs", done, len(breaks))
            if (code, index) in self._proved:
                continue
            try:
                self.findings.add(self._prove(audited, code, index, message), index, count)
                self._proved.add((code, index))
            except StaylogError as error:
                self.findings.miss(f"entry {index} is wrong ({code}: {message}), and this could not be shown: {error}")

    def _prove(self, audited: Audited, code: str, index: int, message: str) -> Fraud:
        if code != transition.CODE:
            return broken_rules.prove(audited, code, index, message)
        with opened(None, self._log) as scratch:
            return transition.prove(audited, index, message, scratch.reviews)
