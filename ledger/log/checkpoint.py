"""Checkpoints (c2sp.org/tlog-checkpoint 1.0.0): the log's signed word for its size and root.

This log writes no extension lines and refuses them: what they say could not be audited.
"""

import re
from dataclasses import dataclass

from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadBase64, BadNote, NotProved
from ledger.log.note import Note, Verifier, check_key_name, sign

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
# What others may write: a 64-bit number with a sign.
MAX_SIZE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    origin: str
    size: int
    root: bytes

    def __str__(self) -> str:
        return f"{self.origin}\n{self.size}\n{base64.encode(self.root)}\n"

    @classmethod
    def parse(cls, text: str, largest: int = MAX_INTEGER) -> "Checkpoint":
        """Raises BadNote `checkpoint_malformed`, also for a size above `largest`."""
        lines = text.split("\n")
        if len(lines) != 4 or lines[3]:
            raise BadNote("checkpoint_malformed", "a checkpoint must have exactly three lines: origin, size, root")
        origin, size, root = lines[:3]
        try:
            check_key_name(origin)
            if not _SIZE.fullmatch(size) or int(size) > largest:
                raise BadNote("checkpoint_malformed", f"the size {size[:20]!r} is not a plain decimal number")
            return cls(origin, int(size), base64.decode_hash(root))
        except BadBase64 as error:
            raise BadNote("checkpoint_malformed", f"the root is {error}") from None


def sign_checkpoint(checkpoint: Checkpoint, key: SigningKey) -> str:
    """The signed note: the origin is the key's name. Read back first: a log's word cannot be taken back."""
    if Checkpoint.parse(str(checkpoint)) != checkpoint:
        raise BadNote("checkpoint_malformed", "a checkpoint that readers would read otherwise")
    return str(sign(str(checkpoint), checkpoint.origin, key))


def open_checkpoint(note: str, log: Verifier) -> Checkpoint:
    """The checkpoint in a signed note, once `log` is known to have signed it under its own name."""
    parsed = Note.parse(note)
    parsed.require(log)
    checkpoint = Checkpoint.parse(parsed.text)
    if checkpoint.origin != log.name:
        raise NotProved("origin_mismatch", f"the checkpoint is of {checkpoint.origin}, the key of {log.name}")
    return checkpoint
