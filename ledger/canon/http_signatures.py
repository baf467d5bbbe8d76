"""HTTP message signatures (RFC 9421), as far as one question needs them: a ledger asks a host about a booking.

One label, four components, six parameters, each in one order and one spelling. A signature that covered less would hold
for another address or another body; whatever else RFC 9421 allows is refused and not guessed at.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from nacl.signing import SigningKey

from ledger.canon import base64, ed25519
from ledger.errors import BadBase64, NotAccepted

COMPONENTS = ("@method", "@target-uri", "content-type", "content-digest")
ALGORITHM = "ed25519"
TAG = "openstr-booking-verify"
# In seconds: from `created` to `expires`, and how far the signer's clock may be ahead.
LONGEST = 300
AHEAD = 60
MAX_CHARACTERS = 2048

_LABEL = "sig1"
_COVERED = " ".join(f'"{name}"' for name in COMPONENTS)
# Strings without blanks and escapes, so that each part ends at a character that it cannot have: nothing is tried twice.
_TEXT = r"[!#-\[\]-~]"
_NUMBER = r"0|[1-9][0-9]{0,14}"
_INPUT = re.compile(
    rf'{_LABEL}=(?P<parameters>\((?P<components>"{_TEXT}+"(?: "{_TEXT}+")*)\)'
    rf";created=(?P<created>{_NUMBER});expires=(?P<expires>{_NUMBER})"
    rf';nonce="(?P<nonce>[A-Za-z0-9_-]{{16,128}})";keyid="(?P<keyid>{_TEXT}{{1,600}})"'
    rf';alg="(?P<alg>{_TEXT}+)";tag="(?P<tag>{_TEXT}+)")'
)
_SIGNATURE = re.compile(rf"{_LABEL}=:([A-Za-z0-9+/=]+):")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a request says of its signature; nothing of it is believed yet. `parameters` is the text that was signed."""

    components: tuple[str, ...]
    created: int
    expires: int
    nonce: str
    keyid: str
    alg: str
    tag: str
    parameters: str
    value: bytes


def content_digest(body: bytes) -> str:
    """The Content-Digest field of a body (RFC 9530)."""
    return f"sha-256=:{base64.encode(sha256(body).digest())}:"


def signature_base(method: str, target_uri: str, content_type: str, digest: str, parameters: str) -> bytes:
    """The bytes that are signed (RFC 9421, 2.5). A value with a line break could pass for two."""
    values = (method, target_uri, content_type, digest, parameters)
    lines = dict(zip((*COMPONENTS, "@signature-params"), values, strict=True))
    for name, value in lines.items():
        if not value or not value.isascii() or not value.isprintable() or value != value.strip():
            raise NotAccepted(
                "signature_malformed", f"{name} is empty, or not printable ASCII without blanks around it"
            )
    return "\n".join(f'"{name}": {value}' for name, value in lines.items()).encode("ascii")


def sign_request(
    key: SigningKey,
    *,
    method: str,
    target_uri: str,
    content_type: str,
    body: bytes,
    keyid: str,
    created: int,
    nonce: str,
    lifetime: int = LONGEST,
) -> dict[str, str]:
    """The headers that make a request a signed one. What no host would accept is not signed."""
    digest = content_digest(body)
    parameters = (
        f'({_COVERED});created={created};expires={created + lifetime};nonce="{nonce}";keyid="{keyid}"'
        f';alg="{ALGORITHM}";tag="{TAG}"'
    )
    value = ed25519.sign(key, signature_base(method, target_uri, content_type, digest, parameters))
    headers = {
        "Content-Type": content_type,
        "Content-Digest": digest,
        "Signature-Input": f"{_LABEL}={parameters}",
        "Signature": f"{_LABEL}=:{base64.encode(value)}:",
    }
    _check_profile(read_signature({name.lower(): text for name, text in headers.items()}))
    return headers


def read_signature(headers: Mapping[str, str]) -> Signature:
    """What the headers, by their names in lower case, say of the signature."""
    read = _INPUT.fullmatch(_header(headers, "signature-input"))
    if read is None:
        raise NotAccepted(
            "signature_malformed",
            f"Signature-Input is not {_LABEL}=(components) with created, expires, nonce, keyid, alg and tag, each once "
            "and in this order",
        )
    return Signature(
        components=tuple(name[1:-1] for name in read["components"].split(" ")),
        created=int(read["created"]),
        expires=int(read["expires"]),
        nonce=read["nonce"],
        keyid=read["keyid"],
        alg=read["alg"],
        tag=read["tag"],
        parameters=read["parameters"],
        value=_value(_header(headers, "signature")),
    )


def verify_request(
    signature: Signature,
    *,
    method: str,
    target_uri: str,
    content_type: str,
    body: bytes,
    digest: str,
    key: bytes,
    now: int,
) -> None:
    """Whether `key` signed this request, for this time. `digest` is the Content-Digest header as it was sent."""
    _check_profile(signature)
    if signature.created > now + AHEAD:
        raise NotAccepted("signature_expired", f"created is {signature.created - now} seconds in the future")
    if signature.expires <= now:
        raise NotAccepted("signature_expired", f"the signature expired {now - signature.expires} seconds ago")
    if digest != content_digest(body):
        raise NotAccepted("digest_mismatch", "Content-Digest is not the sha-256 of the body, alone")
    base = signature_base(method, target_uri, content_type, digest, signature.parameters)
    if not ed25519.verify(ed25519.check_key(key), base, signature.value):
        raise NotAccepted(
            "signature_invalid", "the signature does not hold: the request was changed, or another key signed it"
        )


def _check_profile(signature: Signature) -> None:
    if signature.components != COMPONENTS:
        raise NotAccepted("signature_malformed", f"the signature covers other components than ({_COVERED})")
    if signature.alg != ALGORITHM or signature.tag != TAG:
        raise NotAccepted("signature_malformed", f'alg="{ALGORITHM}" and tag="{TAG}" expected')
    if not 0 < signature.expires - signature.created <= LONGEST:
        raise NotAccepted("signature_malformed", f"expires is 1 to {LONGEST} seconds after created")


def _header(headers: Mapping[str, str], name: str) -> str:
    text = headers.get(name)
    if text is None:
        raise NotAccepted("signature_malformed", f"the request has no header {name.title()}")
    if len(text) > MAX_CHARACTERS:
        raise NotAccepted("signature_malformed", f"{name.title()} has more than {MAX_CHARACTERS} characters")
    return text


def _value(text: str) -> bytes:
    read = _SIGNATURE.fullmatch(text)
    try:
        value = base64.decode(read[1]) if read else b""
    except BadBase64:
        value = b""
    if len(value) != ed25519.SIGNATURE_SIZE:
        raise NotAccepted("signature_malformed", f"Signature is not {_LABEL}=:base64 of 64 bytes:")
    return value
