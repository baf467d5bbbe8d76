"""One witness, asked (c2sp.org/tlog-witness 1.0.0). Nothing it says is believed that its key, or ours, did not sign."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.canon.times import seconds
from ledger.errors import BadNote, Malformed, NotFetched, NotProved, OutOfTime, StaylogError
from ledger.log.add_checkpoint import PATH, SIZE_TYPE, AddCheckpoint, monitoring_path, parse_size
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.cosignature import cosignatures
from ledger.log.note import MAX_CHARACTERS, Note, Verifier
from ledger.net import plain
from ledger.store.rows import Published

# How long a witness may take for an answer.
SECONDS = 5.0
# Two clocks may differ by this much. Auditors hold an entry's time against that of a cosignature over it: one from the
# past would make an honest log look as if it dated its entries ahead.
SKEW = 300
# Others may ask the same witness at the same time, so that what it said last is outdated at once.
TRIES = 3

_logger = logging.getLogger(__name__)
_REFUSALS = {
    400: "it cannot read what it was asked",
    403: "it does not know the key that signed",
    404: "it does not know this log: ask its operator to trust the log's key",
}


class Contradicted(StaylogError):
    """`log_behind` or `log_forked`: the witness says that it has cosigned more than we have, or another history of its
    first `size` entries. What proves it is `shown`, a checkpoint that our own key signed; without one it is the
    witness's word."""

    def __init__(self, code: str, message: str, size: int, shown: Checkpoint | None = None) -> None:
        super().__init__(code, message)
        self.size = size
        self.shown = shown


class Tree(Protocol):
    def root(self, size: int) -> bytes: ...
    def consistency(self, first: int, second: int) -> Sequence[bytes]: ...


@dataclass(frozen=True, slots=True)
class WitnessClient:
    """`url` is the witness's address, under which it is asked and shows what it cosigned."""

    name: str
    verifier: Verifier
    url: str
    log: Verifier
    tree: Tree
    agent: str

    def cosign(self, published: Published, old: int, now: int) -> str:
        """The witness's line for a checkpoint, checked. `old` is what it cosigned last, as far as we know. Raises
        NotFetched when it does not answer, NotProved when it does not sign, OutOfTime when it signs at a wrong time,
        and Contradicted at its word."""
        note = Note.parse(published.note)
        ours = Note(note.text, tuple(each for each in note.signatures if each.is_by(self.log)))
        for _ in range(TRIES):
            proof = self.tree.consistency(old, published.size) if old else ()
            request = str(AddCheckpoint(old, tuple(proof), str(ours))).encode()
            answer = self._ask(PATH, request)
            if answer.status == 200:
                return self._line(ours.text, answer.body, published.at, now)
            if answer.status != 409:
                break
            says_size = answer.media_type == SIZE_TYPE and answer.body
            known, said = old, self._size(answer.body) if says_size else None
            if old == published.size and said in (None, old):
                # The same size and another root: 409 in tlog-witness 1.0.0, 422 in the drafts after it.
                raise self._forked(published, old)
            if said is None:
                break
            old = said
            if old > published.size:
                says = f"says that it has cosigned {old} entries, and we have {published.size}"
                raise Contradicted("log_behind", f"the witness {self.name} {says}", old)
            if old < known:
                _logger.warning("the witness %s has forgotten what it cosigned: %d, then %d", self.name, known, old)
        if answer.status == 422:
            raise self._forked(published, old)
        reason = _REFUSALS.get(answer.status, f"it answers {answer.status}")
        raise NotProved("cosignature_refused", f"{self.name} does not cosign: {reason}{_said(answer.body)}")

    def _forked(self, published: Published, old: int) -> Contradicted:
        says = f"says that {published.size} entries do not begin with the {old} it cosigned"
        return Contradicted("log_forked", f"the witness {self.name} {says}", old)

    def shown(self) -> Checkpoint | None:
        """The checkpoint that the witness shows as the last it cosigned, if our own key signed that."""
        try:
            answer = self._ask(monitoring_path(self.log.name))
            return open_checkpoint(answer.body.decode(), self.log) if answer.status == 200 else None
        except (NotFetched, NotProved, Malformed, UnicodeDecodeError):
            return None

    def proved(self, word: Contradicted, size: int) -> Contradicted:
        """The same with what proves it, by our own signature, if the witness shows that; `size` is what we have."""
        shown = self.shown()
        if shown is not None and shown.size > size:
            what = f"it shows the checkpoint of {shown.size} that this log signed"
            return Contradicted("log_behind", f"{word.message}; {what}", shown.size, shown)
        if shown is not None and shown.size and self.tree.root(shown.size) != shown.root:
            what = f"it shows another tree of {shown.size} that this log signed"
            return Contradicted("log_forked", f"{word.message}; {what}", shown.size, shown)
        return Contradicted(word.code, f"{word.message}; it shows nothing that proves it", word.size)

    def _line(self, text: str, body: bytes, head_at: str, now: int) -> str:
        """Its own signature line among those that came."""
        try:
            note = Note.parse(f"{text}\n{body.decode()}")
        except (BadNote, UnicodeDecodeError) as error:
            raise NotProved("cosignature_invalid", f"{self.name} answers with what is no signature: {error}") from None
        # A blank line among what came would make it the end of another text, which the witness may well have signed.
        found = cosignatures(note, [self.verifier]) if note.text == text else []
        if not self.verifier.can_verify:
            how = "its ML-DSA-44 cosignatures cannot be checked here: install staylog[pq]"
            raise NotProved("cosignature_unchecked", f"{self.name} is asked, and {how}")
        if not found:
            raise NotProved("cosignature_invalid", f"{self.name} answers without a signature by its key")
        if not seconds(head_at) - SKEW <= found[0].timestamp <= now + SKEW:
            if seconds(head_at) > now + SKEW:
                why = "a cosignature of today would prove that entries are dated ahead"
                what = f"the log's time, {head_at}, is ahead of the clock: {why}"
                raise OutOfTime("log_time_ahead", what, timestamp=found[0].timestamp)
            what = f"{self.name} says that it saw this at {found[0].timestamp}, and now is {now}"
            raise OutOfTime("cosignature_time", what, timestamp=found[0].timestamp)
        return next(each.line() for each in note.signatures if each.is_by(self.verifier))

    def _size(self, body: bytes) -> int:
        try:
            return parse_size(body.decode())
        except (BadNote, UnicodeDecodeError) as error:
            raise NotProved("cosignature_refused", f"{self.name} does not say what it has: {error}") from None

    def _ask(self, path: str, body: bytes | None = None) -> plain.Answer:
        return plain.ask(f"{self.url}/{path}", body, agent=self.agent, seconds=SECONDS, most=MAX_CHARACTERS)


def _said(body: bytes) -> str:
    """In its own words, as far as they can be shown."""
    text = "".join(c for c in body[:200].decode("utf-8", "replace") if c.isprintable()).strip()
    return f" ({text})" if text else ""
