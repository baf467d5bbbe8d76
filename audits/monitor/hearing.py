"""What others have heard of a log, held against the tree that was replayed here: the same one, another, or ahead."""

from collections.abc import Callable
from datetime import datetime, timedelta

from audits.evidence import Fraud
from audits.monitor.gossip import Gossip, Heard, Signed, compare
from audits.monitor.kept import KeptReplay
from audits.monitor.memory import Memory
from audits.monitor.troubles import Troubles
from ledger.canon.times import format_time
from ledger.errors import NotProved, NotStored
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import Note, Verifier
from ledger.log.tiles import TileTree

# Checkpoints that the log signed and has not shown yet. Only its key makes them: there are few, or it lies.
MOST_AHEAD = 100


class Hearing:
    """`name` is where the log itself is asked. In what follows `mine` is the newest checkpoint whose tree was replayed,
    and `shown` the one that the log shows now."""

    def __init__(
        self,
        name: str,
        log: Verifier,
        replay: KeptReplay,
        memory: Memory,
        gossip: Gossip,
        troubles: Troubles,
        clock: Callable[[], datetime],
        patience: timedelta,
    ) -> None:
        self._name = name
        self._log = log
        self._replay = replay
        self._memory = memory
        self._gossip = gossip
        self._troubles = troubles
        self._clock = clock
        self._patience = patience

    def listen(self, shown: Signed | None, mine: Signed | None) -> list[Fraud]:
        """The forks between what others heard and what is known here; and what they had heard before the log was that
        large."""
        ours = {each.note: each for each in (shown, mine) if each is not None}
        self._troubles.look("gossip")
        before = [Heard(where, Signed.read(note, self._log)) for note, where in self._memory.ahead]
        forks = [self._hear(heard, shown, mine) for heard in before]
        for heard in self._gossip.ask(list(ours.values())):
            if heard.trouble is not None:
                message = f"{heard.where} could not be compared: {heard.trouble}"
                self._troubles.note("gossip", message, self._patience, about=heard.where)
            forks.append(self._hear(heard, shown, mine))
        return [fork for fork in forks if fork is not None]

    def hold(self, signed: Signed, mine: Signed) -> Fraud | None:
        """The fork, if a checkpoint that is not larger is of another tree than the one that was replayed."""
        state, memory = self._replay.state, self._memory
        try:
            fork = compare(signed, mine, self._log, TileTree(state))
        except (NotProved, NotStored):
            # Somebody else has worked on the state meanwhile. The next audit sets it right.
            fork, memory.clean, memory.looked = None, False, None
        if fork is not None or signed.size and state.root_at(signed.size) is None:
            # Nothing may make us forget that this was signed; what is wrong with it the next audit tells.
            state.see(signed.checkpoint, signed.note, format_time(self._clock()), "")
            state.commit()
            memory.clean, memory.looked = False, None
        return fork

    def is_mine(self, checkpoint: Checkpoint) -> bool:
        """Whether it is of the history that was replayed."""
        return self._replay.state.root_at(checkpoint.size) == checkpoint.root

    def _hear(self, heard: Heard, shown: Signed | None, mine: Signed | None) -> Fraud | None:
        signed, fork = heard.signed, heard.fraud
        if signed is None or fork is not None:
            return fork
        if mine is not None and signed.size <= mine.size:
            fork = self.hold(signed, mine)
            self._remember(signed, heard.where, is_ahead=False)
        else:
            self._remember(signed, heard.where, is_ahead=True)
        if shown is not None:
            reached = max(shown.size, mine.size if mine is not None else 0)
            message = f"the log signed {signed.size} entries, as {heard.where} shows; {self._name} shows {reached}"
            given = {"size": signed.size, "reached": reached}
            self._troubles.reach("behind", message, self._patience, about=heard.where, **given)
        return fork

    def _remember(self, signed: Signed, where: str, *, is_ahead: bool) -> None:
        """For as long as it is ahead of what was replayed."""
        # By what was signed: anybody can write more lines below a note.
        ahead = {Checkpoint.parse(Note.parse(note).text): [note, place] for note, place in self._memory.ahead}
        if is_ahead:
            ahead.setdefault(signed.checkpoint, [signed.note, where])
        else:
            ahead.pop(signed.checkpoint, None)
        self._memory.ahead = list(ahead.values())[:MOST_AHEAD]
