"""Ed25519 where implementations differ (ed25519-speccheck): we are as strict as libsodium, and stricter about keys."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ledger.canon import ed25519
from ledger.errors import BadKey
from tests.interop.vectors import public_folder

# Both A and R of mixed order: accepted by every implementation that does not look at the key.
ACCEPTED = {3}
# S out of bounds under an honest key; all others are of small or mixed order, or not canonical.
HONEST_KEYS = {6, 7}


def cases() -> list[tuple[bytes, bytes, bytes]]:
    given = json.loads((public_folder("ed25519-speccheck") / "cases.json").read_text())
    return [
        (bytes.fromhex(case["pub_key"]), bytes.fromhex(case["message"]), bytes.fromhex(case["signature"]))
        for case in given
    ]


def test_signatures() -> None:
    accepted = {number for number, case in enumerate(cases()) if ed25519.verify(*case)}
    assert (len(cases()), accepted) == (12, ACCEPTED)


def test_keys() -> None:
    """No key but an honest one gets as far as a signature: also the one of the case that verifies does not."""
    for number, (key, _, _) in enumerate(cases()):
        if number in HONEST_KEYS:
            assert ed25519.check_key(key) == key
        else:
            with pytest.raises(BadKey):
                ed25519.check_key(key)


def test_an_oracle_takes_what_we_refuse() -> None:
    """Why the strict library decides: another one lets a key of small order sign anything."""
    key, message, signature = cases()[0]
    Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    assert not ed25519.verify(key, message, signature)
