"""What a witness is asked (c2sp.org/tlog-witness 1.0.0): to cosign a checkpoint that extends the last one."""

import re
from dataclasses import dataclass
from hashlib import sha256

from ledger.canon import base64
from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadBase64, BadNote
from ledger.log.checkpoint import MAX_SIZE

PATH = "add-checkpoint"
# Of a conflict: the answer is the size that the witness cosigned last.
SIZE_TYPE = "text/x.tlog.size"
MAX_PROOF = 63

_OLD = re.compile(r"old (0|[1-9][0-9]{0,18})")
_SIZE = re.compile(r"(0|[1-9][0-9]{0,15})\n")


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """`proof` shows that the tree of the checkpoint `note` extends the tree of `old` entries."""

    old: int
    proof: tuple[bytes, ...]
    note: str

    def __str__(self) -> str:
        proof = "".join(f"{base64.encode(node)}\n" for node in self.proof)
        return f"old {self.old}\n{proof}\n{self.note}"

    @classmethod
    def parse(cls, text: str) -> "AddCheckpoint":
        head, blank, note = text.partition("\n\n")
        first, *lines = head.split("\n")
        old = _OLD.fullmatch(first)
        if not blank or not old or int(old[1]) > MAX_SIZE:
            raise BadNote("request_malformed", "a line `old SIZE`, a proof, a blank line and a checkpoint expected")
        if len(lines) > MAX_PROOF:
            raise BadNote("request_malformed", f"a consistency proof has at most {MAX_PROOF} lines")
        try:
            return cls(int(old[1]), tuple(map(base64.decode_hash, lines)), note)
        except BadBase64 as error:
            raise BadNote("request_malformed", f"the consistency proof has {error}") from None


def monitoring_path(origin: str) -> str:
    """Below a witness's address: the last checkpoint of that log which it cosigned."""
    return f"{sha256(origin.encode()).hexdigest()}/checkpoint"


def parse_size(text: str) -> int:
    """What a witness says it cosigned last."""
    size = _SIZE.fullmatch(text)
    if not size or int(size[1]) > MAX_INTEGER:
        raise BadNote("answer_malformed", f"{text[:40]!r} is not the size of a tree")
    return int(size[1])
