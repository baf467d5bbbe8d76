"""The golden receipt with cosignatures of its checkpoint, and the policies that name who made them."""

from typing import Any

from ledger.log.cosignature import cosign
from ledger.log.note import ED25519, Note, Signature, Verifier
from ledger.log.tlog_proof import TlogProof
from tests.browser.verifying import RECEIPTS
from tests.ledger.log.worked_example import LOG, OTHER, OTHER_KEY, WITNESS, WITNESS_KEY

TEXT = Note.parse(RECEIPTS["golden"]["receipt"]["checkpoint"]).text
FIRST = cosign(TEXT, WITNESS.name, WITNESS_KEY, 1_771_147_800).line()
SECOND = cosign(TEXT, OTHER.name, OTHER_KEY, 2**63 - 1).line()
STRANGER = cosign(TEXT, "stranger.example", OTHER_KEY, 1).line()
ELSEWHERE = cosign(TEXT.replace("\n7\n", "\n8\n"), WITNESS.name, WITNESS_KEY, 1).line()
W1, W2, L = f"witness w1 {WITNESS}", f"witness w2 {OTHER}", f"log {LOG}"
BOTH = f"{L}\n{W1}\n{W2}\n"
# The log of the notes has one more key, which signed some of them too.
SECOND_LOG = Verifier(LOG.name, ED25519, OTHER.public_key)
BY_SECOND_LOG = Signature(LOG.name, SECOND_LOG.key_id, OTHER_KEY.sign(TEXT.encode()).signature).line()


def cosigned(*lines: str) -> dict[str, Any]:
    """The golden receipt under a checkpoint with these lines too."""
    receipt = RECEIPTS["golden"]["receipt"]
    proof = TlogProof.parse(receipt["tlog_proof"])
    note = proof.checkpoint + "".join(lines)
    return {**receipt, "checkpoint": note, "tlog_proof": str(TlogProof(proof.index, proof.path, note))}
