"""Guest bindings: a salted hash by which host and ledger can tell that they mean the same guest, and nobody else can.

A DID is no secret to whoever dealt with the guest; the nonce keeps two bindings of one guest from being recognised.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest


def bind(nonce: str, guest_did: str) -> dict[str, str]:
    digest = sha256(f"{nonce}.{guest_did}".encode()).digest()
    return {"nonce": nonce, "value": urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")}


def matches(binding: Mapping[str, str], guest_did: str) -> bool:
    """Whether a binding is of this guest. In constant time: who asks must not learn how much of a guess was right."""
    expected = bind(binding["nonce"], guest_did)["value"]
    return compare_digest(expected.encode(), binding["value"].encode())
