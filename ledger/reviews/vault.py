"""What has to be read again and must not be readable in the database: sealed (NaCl SecretBox), each under its own key.

A key is made from a secret that is not in the database and from what the sealed value is bound to, so that it opens in
its own place only. Bound to what the database does not have, as a submission or its id, it opens for nobody but whoever
brings that.

Values are padded before: the length of a credential goes with its guest from host to host, and a sealed value is as
long as what is in it.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from ledger.canon import jcs, strict_json
from ledger.errors import BadJSON, NotStored
from ledger.identity.guestref import prefixed

# An outcome, an answer or notice of a host, and whatever has a credential of a guest in it.
SIZES = (256, 1024, 4096)


@dataclass(frozen=True, slots=True)
class Vault:
    """`random` gives as many bytes as it is asked for."""

    secret: bytes = field(repr=False)
    random: Callable[[int], bytes]

    def seal(self, purpose: str, value: Any, *bound: bytes) -> bytes:
        box, data = self._box(purpose, bound), jcs.dumps(value)
        return bytes(box.encrypt(data.ljust(_padded(len(data))), self.random(SecretBox.NONCE_SIZE)))

    def open(self, purpose: str, sealed: bytes, *bound: bytes) -> Any:
        try:
            return strict_json.loads(self._box(purpose, bound).decrypt(bytes(sealed)))
        except (CryptoError, ValueError, BadJSON):
            raise NotStored(
                f"a sealed {purpose} does not open: the key file is another one, or it is damaged"
            ) from None

    def _box(self, purpose: str, bound: tuple[bytes, ...]) -> SecretBox:
        return SecretBox(hmac.digest(self.secret, prefixed("staylog/vault/v1", purpose, *bound), sha256))


def _padded(length: int) -> int:
    largest = SIZES[-1]
    return next((size for size in SIZES if length <= size), -(-length // largest) * largest)
