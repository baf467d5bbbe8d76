"""A witness with an ML-DSA-44 key, made from the words of c2sp.org/tlog-cosignature and not from our code."""

from struct import pack

from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from ledger.canon import base64
from ledger.log.note import ML_DSA_44, Signature, Verifier

NAME = "witness.example/pq"
KEY = MLDSA44PrivateKey.from_seed_bytes(b"\x0d" * 32)
WITNESS = Verifier(NAME, ML_DSA_44, KEY.public_key().public_bytes_raw())


def cosign(checkpoint_text: str, timestamp: int, name: str = NAME) -> Signature:
    origin, size, root = checkpoint_text.splitlines()
    cosigner, log = name.encode(), origin.encode()
    message = b"subtree/v1\n\x00"
    message += pack(f">B{len(cosigner)}sQ", len(cosigner), cosigner, timestamp)
    message += pack(f">B{len(log)}sQQ", len(log), log, 0, int(size))
    value = pack(">Q", timestamp) + KEY.sign(message + base64.decode_hash(root))
    return Signature(NAME, WITNESS.key_id, value)
