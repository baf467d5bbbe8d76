"""ML-DSA-44 signatures (FIPS 204), where the package `cryptography` is installed (the extra `pq`)."""

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

    CAN_VERIFY = True
except ImportError:
    CAN_VERIFY = False

KEY_SIZE, SIGNATURE_SIZE = 1312, 2420


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature is valid. Only for callers that have seen `CAN_VERIFY`."""
    try:
        MLDSA44PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True
