"""The worked example of the specification notes (spec/tlog.md 2.10): its log, its witness, and another one."""

from nacl.signing import SigningKey

from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.cosignature import cosign
from ledger.log.note import COSIGNATURE, ED25519, Note, Signature, Verifier
from ledger.log.tree import leaf_hash, root_of
from tests.ledger.log.test_tree import tile_tree

LOG_KEY = SigningKey(bytes(range(32)))
WITNESS_KEY = SigningKey(b"\x07" * 32)
LOG = Verifier("reputation.example/log", ED25519, bytes(LOG_KEY.verify_key))
WITNESS = Verifier("witness.example/w1", COSIGNATURE, bytes(WITNESS_KEY.verify_key))
OTHER_KEY = SigningKey(b"\x08" * 32)
OTHER = Verifier("witness.example/w2", COSIGNATURE, bytes(OTHER_KEY.verify_key))
ENTRIES = [b"review-%d" % i for i in range(5)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]
TREE = tile_tree(LEAVES)
TIMESTAMP = 1771147800

EXAMPLE = """\
c2sp.org/tlog-proof@v1
extra cmV2aWV3LWlkPTI=
index 2
4Q7HkWxIbsUy3vK6tDsyhGLJovgtXE7MEFn/OStMcyc=
xw6lryLDVlo7BhirKr+jt+6xRbeSeDwHZqyZW807crg=
6GsekO0nv8Py28LbSeEs78UDqqUvt5myuh4mhoGAuvU=

reputation.example/log
5
TVtX9MJJzTbWc9+eiv7YADz8ZEc6Y+5rnCJyz2fsyUk=

— reputation.example/log YeYFd7P1WL7j+462EsHy4ElvGNH3eYlwiIs3VQEv5P1WhRs6PTG4BAfDYiyn70xSANoMEHkl3kihtybjCJ7moQx44AY=
— witness.example/w1 qkoJ0QAAAABpkZIY2z3Gyg4aXfwbylPKaQy35CfLi0zhb8vL8U5h9POru9FCqI2mYLq9Fuj0YUnwLtxDcHt4Ch9zC/07BpSLuo9oDA==
"""


def cosigned(*signatures: Signature) -> str:
    note = Note.parse(sign_checkpoint(Checkpoint(LOG.name, 5, root_of(LEAVES)), LOG_KEY))
    return str(Note(note.text, (*note.signatures, *signatures)))


TEXT = str(Checkpoint(LOG.name, 5, root_of(LEAVES)))
BY_WITNESS = cosign(TEXT, WITNESS.name, WITNESS_KEY, TIMESTAMP)
BY_OTHER = cosign(TEXT, OTHER.name, OTHER_KEY, TIMESTAMP + 1)
