"""The JSON-LD contexts of credentials: three, frozen, each pinned by its hash.

The contexts decide what a signature covers. Those of the W3C come with pyld, the OpenSTR one is ours (`schemas`):
openstr.org has published none. The hash is of the parsed content in JCS, so that an upgrade of pyld cannot change what
old signatures mean.
"""

from functools import cache
from hashlib import sha256
from threading import Lock
from typing import Any

from pyld import BUNDLED_CONTEXTS

import schemas
from ledger.canon import jcs, strict_json
from ledger.canon.rdf import Canonicaliser
from ledger.errors import Misconfigured

CREDENTIALS_V2 = "https://www.w3.org/ns/credentials/v2"
OPENSTR_V1 = "https://openstr.org/contexts/v1"
ED25519_2020_V1 = "https://w3id.org/security/suites/ed25519-2020/v1"

# What may stand in a credential. RFC-004 has the first; in all three, every member means the same.
ALLOWED = (
    [CREDENTIALS_V2, OPENSTR_V1],
    [CREDENTIALS_V2, OPENSTR_V1, ED25519_2020_V1],
    [CREDENTIALS_V2, ED25519_2020_V1, OPENSTR_V1],
)
# What may stand in a status list. The first is enough for it, but not for a proof by Ed25519Signature2020.
ALLOWED_IN_LISTS = ([CREDENTIALS_V2], [CREDENTIALS_V2, ED25519_2020_V1], *ALLOWED)
PINS = {
    CREDENTIALS_V2: "b463c8d6a066214123ddd9827b135e1b50e1fc73322cc52a9b12a4f1fc7d86cf",
    ED25519_2020_V1: "fb517f09d990829aed734c9bad8cbbb2ac3d5063b865c7e3d81f246074bf5691",
    OPENSTR_V1: "dabeb662c667b957fb908874a44bb977e23d82697414a3f53e4401c31afe3ac3",
}


def canonicaliser() -> Canonicaliser:
    """The one canonicaliser of this process; Misconfigured when a context is not the one that was pinned."""
    # Two threads that come first at once would get one each, and pyld is not safe for two.
    with _making:
        return _canonicaliser()


_making = Lock()


@cache
def _canonicaliser() -> Canonicaliser:
    return Canonicaliser(pinned({url: _read(url) for url in PINS}))


def pinned(contexts: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """`contexts` themselves, by URL, if each has its pinned hash."""
    for url, context in contexts.items():
        found = sha256(jcs.dumps(context)).hexdigest()
        if found != PINS.get(url):
            raise Misconfigured(
                "context_changed",
                f"the context {url} has the hash {found}, not the pinned one: signatures would mean something else. "
                "Install the versions in requirements.lock",
            )
    return contexts


def _read(url: str) -> dict[str, Any]:
    if url == OPENSTR_V1:
        return schemas.load_context("openstr.v1.jsonld")
    return dict(strict_json.loads(BUNDLED_CONTEXTS[url].read_bytes()))
