"""Transparency log proofs (c2sp.org/tlog-proof@v1): one entry's inclusion in one self-contained text file."""

import re
from dataclasses import dataclass

from ledger.canon import base64
from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadBase64, BadNote, NotProved
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.note import Verifier
from ledger.log.proofs import verify_inclusion

HEADER = "c2sp.org/tlog-proof@v1"

_INDEX = re.compile(r"index (0|[1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class TlogProof:
    """`extra` is opaque and unauthenticated; a Staylog receipt has none."""

    index: int
    path: tuple[bytes, ...]
    checkpoint: str
    extra: bytes | None = None

    def __str__(self) -> str:
        extra = "" if self.extra is None else f"extra {base64.encode(self.extra)}\n"
        path = "".join(f"{base64.encode(node)}\n" for node in self.path)
        return f"{HEADER}\n{extra}index {self.index}\n{path}\n{self.checkpoint}"

    @classmethod
    def parse(cls, text: str) -> "TlogProof":
        head, blank, checkpoint = text.partition("\n\n")
        header, *lines = head.split("\n")
        if header != HEADER or not blank:
            raise BadNote(
                "tlog_proof_malformed", f"a proof starts with {HEADER!r} and has a blank line before its checkpoint"
            )
        try:
            extra = base64.decode(lines.pop(0)[6:]) if lines and lines[0].startswith("extra ") else None
            index = _INDEX.fullmatch(lines.pop(0)) if lines else None
            path = tuple(map(base64.decode_hash, lines))
        except BadBase64 as error:
            raise BadNote("tlog_proof_malformed", f"the proof has {error}") from None
        if not index or int(index[1]) > MAX_INTEGER:
            raise BadNote("tlog_proof_malformed", "the proof has no line with a plain decimal index")
        return cls(int(index[1]), path, checkpoint, extra)

    def verify(self, leaf: bytes, log: Verifier) -> Checkpoint:
        """The signed checkpoint under which `leaf` stands at `index`. The leaf is the caller's, never the proof's."""
        checkpoint = open_checkpoint(self.checkpoint, log)
        verify_inclusion(leaf, self.index, checkpoint.size, self.path, checkpoint.root)
        return checkpoint

    def require_plain(self) -> None:
        """A receipt's proof has no `extra` line: nothing unauthenticated travels with it (protocol.md 6)."""
        if self.extra is not None:
            raise NotProved("tlog_proof_extra", "the proof carries an unauthenticated extra line")
