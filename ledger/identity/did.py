"""Resolution of DIDs: which keys may assert something in a DID's name. Ed25519 only.

did:key (W3C CCG, did:key v0.9) and did:jwk carry their one key in their name; did:web is asked for, in `resolution`.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from ledger.canon import did, ed25519, multikey, strict_json
from ledger.errors import BadDID, BadJSON, BadKey

# The keys of a DID's assertionMethod by their verification method ids, which are absolute DID URLs.
Keys = Mapping[str, bytes]


# Gives the keys that may assert in the name of a DID now, or refuses. No keys at all is an answer, not "unknown".
Resolver = Callable[[str], Keys]

# Whichever way a message would be encrypted to it (RFC 7518, section 4.6), the key is for agreement.
_AGREEMENTS = ("ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW")


def method_of(name: str) -> str:
    return name.split(":", 2)[1]


def resolve_key(name: str) -> Keys:
    """did:key: the fragment repeats the key."""
    identifier = name.removeprefix("did:key:")
    return {f"{name}#{identifier}": multikey.decode(identifier)}


def resolve_jwk(name: str) -> Keys:
    """did:jwk: the key of the JWK that the name spells, as `#0`."""
    try:
        jwk = strict_json.loads(_base64url(name.removeprefix("did:jwk:")))
    except (ValueError, BadJSON) as error:
        raise BadDID(f"did:jwk is base64url of a JSON Web Key: {error}") from None
    return {f"{name}#0": key_of_jwk(jwk)}


def key_of_jwk(jwk: object) -> bytes:
    """The Ed25519 key of a JSON Web Key (RFC 8037) that is for signatures."""
    jwk = _public_jwk(jwk, "Ed25519")
    if (
        jwk.get("use", "sig") != "sig"
        or jwk.get("alg", "EdDSA") not in ("EdDSA", "Ed25519")
        or not isinstance(operations := jwk.get("key_ops", ["verify"]), list)
        or "verify" not in operations
    ):
        raise BadKey("this JSON Web Key is not for Ed25519 signatures (use, alg, key_ops)")
    return ed25519.check_key(_x(jwk))


def agreement_key_of_jwk(jwk: object) -> bytes:
    """The X25519 key of a JSON Web Key (RFC 8037) that is for key agreement."""
    jwk = _public_jwk(jwk, "X25519")
    if (
        jwk.get("use", "enc") != "enc"
        or jwk.get("alg", "ECDH-ES") not in _AGREEMENTS
        # The public half of an agreement does nothing by itself: many list no operations.
        or not isinstance(operations := jwk.get("key_ops", []), list)
        or any(each not in ("deriveKey", "deriveBits") for each in operations)
    ):
        raise BadKey("this JSON Web Key is not for key agreement (use, alg, key_ops)")
    return _x(jwk)


def _public_jwk(jwk: object, curve: str) -> Mapping[str, Any]:
    if not isinstance(jwk, dict) or (jwk.get("kty"), jwk.get("crv")) != ("OKP", curve):
        raise BadKey(f"a JSON Web Key of {curve} expected: kty OKP, crv {curve}")
    if "d" in jwk:
        raise BadKey("this JSON Web Key tells its secret to everybody")
    return jwk


def _x(jwk: Mapping[str, Any]) -> bytes:
    try:
        return _base64url(jwk["x"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadKey(f"the JSON Web Key has no x of base64url: {error}") from None


# What needs no network.
_OFFLINE: Mapping[str, Resolver] = {"did:key:": resolve_key, "did:jwk:": resolve_jwk}


def is_offline(name: str) -> bool:
    """Whether it is a DID that has its key in its name."""
    return name.startswith(tuple(_OFFLINE))


def offline(name: str) -> Keys:
    """The key of such a DID."""
    return _OFFLINE[did.check(name)[:8]](name)


def document_url(name: str) -> str:
    """Where the document of a did:web is."""
    host, *path = name.removeprefix("did:web:").split(":")
    return f"https://{host.replace('%3A', ':')}/{'/'.join(path) or '.well-known'}/did.json"


def did_key(public_key: bytes) -> str:
    return "did:key:" + multikey.encode(public_key)


def _base64url(text: str) -> bytes:
    """Without padding, one spelling per value."""
    data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if urlsafe_b64encode(data).rstrip(b"=").decode() != text:
        raise ValueError("not base64url without padding, or a second spelling of it")
    return data
