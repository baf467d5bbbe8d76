"""What the members of an entry may say (protocol.md 2): the words, and a check for each kind of value.

A check raises ValueError, or Malformed from `canon`, with the reason; `entries` says where it stands.
"""

import re
from collections.abc import Callable
from typing import Any

from ledger.canon import did
from ledger.errors import BadNote
from ledger.log.note import check_key_name

CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "value", "location")
OPTIONAL_CATEGORIES = {"location"}
LEVELS = ("guest_verified", "host_attested", "unconfirmed")
OUTCOMES = ("conflict", "contradicted", "denied", "unanswered")
PARTS = ("text", "response")
ROLES = ("guest", "host")
ACTIONS = ("trusted", "removed", "compromised")
IDV_LEVELS = ("email_verified", "identity_verified", "payment_verified")
BASES = ("gdpr_17", "court_order", "illegal_content", "third_party_data")
# Which booking evidence a level may rest on.
BOOKINGS = {
    "guest_verified": ("stay_receipt", "booking_notice", "booking_claim", "callback", "attestation"),
    "host_attested": ("attestation",),
    "unconfirmed": ("none",),
}

Check = Callable[[Any], None]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text expected")
    return value


def matching(pattern: str, what: str) -> Check:
    compiled = re.compile(pattern)

    def check(value: Any) -> None:
        if not compiled.fullmatch(_text(value)):
            raise ValueError(f"{what} expected")

    return check


def one_of(*allowed: str) -> Check:
    def check(value: Any) -> None:
        if _text(value) not in allowed:
            raise ValueError(f"one of {', '.join(allowed)} expected")

    return check


def nullable(inner: Check) -> Check:
    def check(value: Any) -> None:
        if value is not None:
            inner(value)

    return check


def check_integer(value: Any) -> None:
    if type(value) is not int or value < 0:
        raise ValueError("a whole number from 0 expected")


def check_boolean(value: Any) -> None:
    if type(value) is not bool:
        raise ValueError("true or false expected")


def check_origin(value: Any) -> None:
    try:
        check_key_name(_text(value))
    except BadNote as error:
        raise ValueError(str(error)) from None


def check_did(value: Any) -> None:
    did.check(value)


def check_issuer(value: Any) -> None:
    """An issuer id in full: a DID or an https URL."""
    if _text(value).startswith("did:"):
        did.check(value)
    elif not _HTTPS.fullmatch(value):
        raise ValueError("a DID or an https URL expected")


def check_ratings(value: Any) -> None:
    if not isinstance(value, dict):
        raise ValueError("an object of ratings expected")
    if unknown := value.keys() - set(CATEGORIES):
        raise ValueError(f"{min(unknown)[:40]!r} is not a category")
    for name in CATEGORIES:
        if name not in value and name not in OPTIONAL_CATEGORIES:
            raise ValueError(f"{name} is not rated")
    for name, rating in value.items():
        if type(rating) not in (int, float) or not 1 <= rating <= 5 or rating * 2 % 1:
            raise ValueError(f"{name}: a multiple of 0.5 from 1 to 5 expected")
        if type(rating) is float and rating.is_integer():
            raise ValueError(f"{name}: {rating} is written {int(rating)}")


def check_evidence(value: Any) -> None:
    if not isinstance(value, dict) or value.keys() != _EVIDENCE.keys():
        raise ValueError(f"an object of exactly {', '.join(_EVIDENCE)} expected")
    for name, check in _EVIDENCE.items():
        check(value[name])


# A plain host, so that everybody who reads the issuer's name from it reads the same.
_HTTPS = re.compile(
    r"https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{0,1800})?"
)
# Base64 of exactly 32 bytes: the last character before the padding carries four bits, its other two are zero.
check_hash = matching(r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=", "base64 of 32 bytes")
# The 26th character carries 3 bits of the 16 bytes; its other two are zero.
check_review_id = matching(r"rev-[a-z2-7]{25}[aeimquy4]", "rev- and 26 base32 characters of 16 bytes")
check_listing_id = matching(r"[A-Za-z0-9._~-]{1,128}", "1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
_EVIDENCE: dict[str, Check] = {
    "booking": one_of(*BOOKINGS["guest_verified"], "none"),
    "commitment": check_hash,
    "idv_level": nullable(one_of(*IDV_LEVELS)),
    "issuer": nullable(check_issuer),
}
