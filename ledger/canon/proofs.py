"""W3C Data Integrity proofs by Ed25519 (VC Data Integrity 1.0; Data Integrity EdDSA Cryptosuites 1.0).

Three suites sign SHA-256(proof options) and SHA-256(document): `eddsa-jcs-2022` over their JCS bytes, `eddsa-rdfc-2022`
and the older `Ed25519Signature2020` over their canonical N-Quads. The last two cover a graph and not the JSON; whoever
reads claims from a document that they sign must have checked its form before.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Protocol

from nacl.signing import SigningKey

from ledger.canon import base58, ed25519, jcs
from ledger.errors import Malformed, NotAccepted

EDDSA_JCS = "eddsa-jcs-2022"
EDDSA_RDFC = "eddsa-rdfc-2022"
ED25519_2020 = "Ed25519Signature2020"
# Cheapest first: verifying a graph takes some twenty times as long.
SUITES = (EDDSA_JCS, EDDSA_RDFC, ED25519_2020)
DATA_INTEGRITY = "DataIntegrityProof"
ASSERTION = "assertionMethod"


class Canonize(Protocol):
    """The canonical N-Quads of documents: `rdf.Canonicaliser.canonize`, or another implementation in tests."""

    def __call__(self, *documents: dict[str, Any]) -> list[bytes]: ...


def suite_of(proof: Mapping[str, Any]) -> str | None:
    """The suite that a proof claims; None when it is none of ours."""
    kind = proof.get("type")
    if kind == DATA_INTEGRITY and proof.get("cryptosuite") in (EDDSA_JCS, EDDSA_RDFC):
        return str(proof["cryptosuite"])
    return ED25519_2020 if kind == ED25519_2020 else None


def signed_bytes(document: Mapping[str, Any], proof: Mapping[str, Any], canonize: Canonize | None = None) -> bytes:
    """The 64 bytes under the signature of `proof`; `document` is without the proof."""
    options = {name: value for name, value in proof.items() if name != "proofValue"}
    suite = suite_of(proof)
    if suite == EDDSA_JCS:
        # The specification lets a document's contexts go on after those of its proof; whatever is added after signing
        # would then still verify.
        if "@context" in options and options["@context"] != document.get("@context"):
            raise NotAccepted("context_not_allowed", "the proof has other contexts than the document")
        parts = [jcs.dumps(options), jcs.dumps(document)]
    elif suite is not None and canonize is not None:
        parts = canonize({**options, "@context": document.get("@context", [])}, dict(document))
    else:
        raise NotAccepted("proof_type_not_supported", f"a proof by one of {', '.join(SUITES)} expected")
    return b"".join(sha256(part).digest() for part in parts)


def verify(
    document: Mapping[str, Any], proof: Mapping[str, Any], keys: Iterable[bytes], canonize: Canonize | None = None
) -> bytes:
    """The one of `keys` that signed `document`, which is without the proof; NotAccepted when none did."""
    signature = _signature(proof)
    message = signed_bytes(document, proof, canonize)
    for key in keys:
        if ed25519.verify(key, message, signature):
            return key
    raise NotAccepted(
        "proof_invalid", "the signature does not hold: the document was changed, or another key signed it"
    )


def sign(
    document: Mapping[str, Any],
    suite: str,
    key: SigningKey,
    options: Mapping[str, Any],
    canonize: Canonize | None = None,
) -> dict[str, Any]:
    """A proof of `document`, which is without one, by `suite`. `options` has verificationMethod, created and so on."""
    kind = {"type": suite} if suite == ED25519_2020 else {"type": DATA_INTEGRITY, "cryptosuite": suite}
    proof = {**kind, "proofPurpose": ASSERTION, **options}
    if suite == EDDSA_JCS and "@context" in document:
        proof["@context"] = document["@context"]
    signature = ed25519.sign(key, signed_bytes(document, proof, canonize))
    return {**proof, "proofValue": "z" + base58.encode(signature)}


def _signature(proof: Mapping[str, Any]) -> bytes:
    value = proof.get("proofValue")
    try:
        if not isinstance(value, str) or value[:1] != "z":
            raise Malformed("base58_invalid", "it does not begin with z")
        signature = base58.decode(value[1:])
        if len(signature) != ed25519.SIGNATURE_SIZE:
            raise Malformed("base58_invalid", f"it has {len(signature)} bytes")
    except Malformed as error:
        raise NotAccepted("proof_value_invalid", f"proofValue is not z and base58btc of 64 bytes: {error}") from None
    return signature
