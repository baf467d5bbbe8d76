"""An auditor that does not stop: each round holds what a log shows now against all that it ever signed.

A round in which nothing is new asks for the checkpoint alone, and listens to what others have heard.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from audits.audit import Options
from audits.findings import Finding
from audits.monitor.accusing import Accuser, add_fork
from audits.monitor.alerts import KINDS, Teller
from audits.monitor.gossip import Gossip, Signed
from audits.monitor.hearing import Hearing
from audits.monitor.kept import KeptReplay
from audits.monitor.memory import Memory
from audits.monitor.quorum import judge_witnesses, without_quorum
from audits.monitor.troubles import AT_ONCE, Troubles
from audits.monitor.watched import tell_events
from audits.source import Source
from ledger.canon.times import format_time, parse_time
from ledger.errors import Malformed, Misconfigured, NotProved, NotStored, StaylogError
from ledger.log.note import Verifier
from ledger.log.policy import Policy

CLEAN, INCONSISTENT, INCOMPLETE = 0, 1, 2
# How far our clock and that of the log may be apart.
SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched for. `patience` is for a log that cannot be reached, shows less than it signed, or not all of it;
    `history` is whether events from before the first round are told; `sample` hosts are drawn to be asked about;
    `interval` is between two rounds, if somebody knows."""

    policy: Policy | None = None
    hosts: Sequence[str] = ()
    history: bool = False
    sample: int = 3
    max_age: timedelta = timedelta(hours=25)
    patience: timedelta = timedelta(minutes=5)
    witness_patience: timedelta = timedelta(minutes=10)
    interval: timedelta = AT_ONCE


class Monitor:
    def __init__(
        self,
        source: Source,
        log: Verifier,
        replay: KeptReplay,
        memory: Memory,
        watch: Watch,
        gossip: Gossip,
        teller: Teller,
        clock: Callable[[], datetime],
    ) -> None:
        self._source = source
        self._log = log
        self._replay = replay
        self._memory = memory
        self._watch = watch
        self._teller = teller
        self._clock = clock
        self._troubles = Troubles(memory, teller, clock, 2 * watch.interval)
        known = (replay, memory, gossip, self._troubles, clock)
        self._hearing = Hearing(source.name, log, *known, watch.patience)
        self._accuser = Accuser(log, replay.folder, self._troubles, teller, self._hearing.is_mine)
        # The newest checkpoint whose tree was read to its end.
        self._mine = Signed.read(memory.note, log) if memory.note is not None else None
        self._found: list[Finding] = []
        # Why this round did not look at everything.
        self._unlooked: str | None = None

    def round(self) -> int:
        """Look once, and tell what is new; the status that it ends with."""
        self._found, self._unlooked = [], None
        self._teller.counts.clear()
        shown = self._newest()
        if shown is not None and (policy := self._watch.policy) is not None:
            given = (policy, shown, self._source, self._log, self._troubles)
            judge_witnesses(*given, self._watch.witness_patience)
        if shown is not None:
            self._follow(shown)
        self._judge_age()
        for fork in self._hearing.listen(shown, self._mine):
            add_fork(fork, self._found)
        self._accuser.accuse(self._found)
        self._tell_events()
        if self._unlooked is None:
            self._troubles.look("incomplete")
        self._troubles.settle()
        with suppress(Misconfigured):
            # If it cannot be kept, it is told all the same before this ends.
            self._memory.save()
        if (failure := self._teller.deliver()) is not None:
            self._troubles.note("webhook", failure)
        else:
            self._troubles.end("webhook")
        self._memory.save()
        return self._status()

    @property
    def is_over(self) -> bool:
        """Whether something is proved for ever, and the proof is written. What was observed may be over tomorrow."""
        return self._troubles.is_lasting() and not self._accuser.has_unwritten

    def summary(self) -> str:
        """Where one stands after a round."""
        mine, at = self._mine, self._memory.at
        seen = f"{mine.size:,} entries as of {at}" if mine is not None else "no entries seen yet"
        codes = Counter(code for code, told in self._troubles.open() if told)
        wrong = ", ".join(f"{code}{f' ({count} times)' if count > 1 else ''}" for code, count in sorted(codes.items()))
        rest = f"; not all could be looked at: {self._unlooked}" if self._unlooked is not None else ""
        return f"{seen}: {wrong or 'nothing wrong'}{rest}"

    def _status(self) -> int:
        """The gravest has the smallest number."""
        found = {KINDS[code][1] for code, told in self._troubles.open() if told}
        if self._unlooked is not None and not self._troubles.is_told("unreachable"):
            found.add(INCOMPLETE)
        if self._teller.counts["event"]:
            found.add(KINDS["event"][1])
        return min(found - {CLEAN}, default=CLEAN)

    def _newest(self) -> Signed | None:
        self._troubles.look("unreachable", "unsigned")
        try:
            shown = Signed.read(self._source.get("log/checkpoint").decode(), self._log)
            if shown.size < 2:
                raise NotProved("index_out_of_range", "the smallest checkpoint of a log has two entries")
        except (Malformed, NotProved, UnicodeDecodeError) as error:
            self._miss("unsigned", f"what is served as the checkpoint is none that the key signed: {error}", AT_ONCE)
            return None
        except StaylogError as error:
            self._miss("unreachable", f"the log does not answer: {error}")
            return None
        self._teller.size = shown.size
        return shown

    def _miss(self, code: str, why: str, patience: timedelta | None = None) -> None:
        self._unlooked = self._unlooked or why
        self._troubles.note(code, why, self._watch.patience if patience is None else patience)

    def _follow(self, shown: Signed) -> None:
        """Audit what is new, unless there is nothing."""
        mine, where = self._mine, self._source.name
        self._troubles.look("behind")
        if mine is not None and shown.size <= mine.size:
            if (fork := self._hearing.hold(shown, mine)) is not None:
                add_fork(fork, self._found)
                return
            if shown.size == mine.size and self._was_looked_at():
                return
            message = f"{where} shows {shown.size} entries; it has shown {mine.size} before"
            given = {"size": mine.size, "reached": shown.size}
            told = self._troubles.reach("behind", message, self._watch.patience, about=where, **given)
            if shown.size < mine.size and not told:
                # One of several processes may lag, or a cache. An audit would accuse at once.
                self._unlooked = message
                return
        self._audit(shown)

    def _was_looked_at(self) -> bool:
        """All of it; or not all, and not long ago: who cannot be looked at now is not asked for it every minute."""
        memory = self._memory
        if memory.clean or memory.looked is None:
            return memory.clean
        if self._clock() - parse_time(memory.looked) >= self._watch.patience:
            return False
        self._unlooked = "what an earlier round could not look at is looked at again later"
        return True

    def _audit(self, shown: Signed) -> None:
        watch, memory = self._watch, self._memory
        options = Options(without_quorum(watch.policy, self._log), hosts=watch.hosts, sample=watch.sample)
        try:
            audit, result = self._replay.audit(self._source, shown, options)
        except NotStored:
            raise
        except StaylogError as error:
            self._miss("unreachable", f"the log does not show what it signed: {error}")
            return
        self._troubles.look("inconsistency")
        self._found += audit.findings.found
        memory.clean = result["verdict"] == "clean"
        memory.looked = format_time(self._clock()) if result["verdict"] == "incomplete" else None
        if audit.audited is not None:
            self._mine = Signed(audit.audited.note, audit.audited.checkpoint)
            memory.note, memory.at = self._mine.note, result["at"]
            self._teller.size = self._mine.size
        if result["unchecked"]:
            self._miss("incomplete", "; ".join(result["unchecked"][:3]))

    def _judge_age(self) -> None:
        if (at := self._memory.at) is not None:
            self._troubles.look("stalled", "future")
            age = self._clock() - parse_time(at)
            if age < -SKEW:
                # Until then it could stand still unnoticed.
                self._troubles.note("future", f"the newest map head is of {at}: that is in the future")
            if age > self._watch.max_age:
                self._troubles.note("stalled", f"the newest map head is of {at}: a log makes one every 24 hours")

    def _tell_events(self) -> None:
        mine, memory, watch = self._mine, self._memory, self._watch
        if mine is None:
            return
        if memory.told is None:
            memory.told = 0 if watch.history else mine.size
        if not watch.hosts:
            memory.told = mine.size
        try:
            tell_events(self._source, self._replay.state, watch.hosts, memory, mine.size, self._teller)
        except StaylogError as error:
            # They are told in a later round.
            self._miss("incomplete", f"new events of watched hosts: {error}")
