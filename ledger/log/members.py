"""What the members of an entry may say (protocol.md 2): the words, and a check for each kind of value.

A check raises ValueError, or Malformed from `canon`, with the reason; `entries` says where it stands. It also knows how
its values look in JCS, so that `entries` can recognise a whole entry at once.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from ledger.canon import did, times
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


@dataclass(frozen=True, slots=True)
class Check:
    """`judge` raises unless the value is good. `pattern` fits what good values look like in JCS, not necessarily all of
    them; `rest` is what is still to be judged of a value that fits."""

    judge: Callable[[Any], object]
    pattern: str
    rest: Callable[[Any], object] | None = None

    def __call__(self, value: Any) -> None:
        self.judge(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text expected")
    return value


def matching(pattern: str, what: str) -> Check:
    compiled = re.compile(pattern)

    def judge(value: Any) -> None:
        if not compiled.fullmatch(_text(value)):
            raise ValueError(f"{what} expected")

    return Check(judge, f'"{pattern}"')


def one_of(*allowed: str) -> Check:
    def judge(value: Any) -> None:
        if _text(value) not in allowed:
            raise ValueError(f"one of {', '.join(allowed)} expected")

    return Check(judge, f'"(?:{"|".join(allowed)})"')


def nullable(inner: Check) -> Check:
    rest = inner.rest

    def judge(value: Any) -> None:
        if value is not None:
            inner(value)

    def judge_rest(value: Any) -> None:
        if value is not None and rest is not None:
            rest(value)

    return Check(judge, f"(?:null|{inner.pattern})", judge_rest if rest is not None else None)


def object_of(members: Mapping[str, Check], optional: frozenset[str] = frozenset()) -> str:
    """The pattern of an object: in JCS its members are sorted by name. The last one is never optional."""
    parts = [
        f'(?:"{name}":{members[name].pattern},)?' if name in optional else f'"{name}":{members[name].pattern},'
        for name in sorted(members)
    ]
    return r"\{" + "".join(parts).removesuffix(",") + r"\}"


def _judge_integer(value: Any) -> None:
    if type(value) is not int or value < 0:
        raise ValueError("a whole number from 0 expected")


def _judge_boolean(value: Any) -> None:
    if type(value) is not bool:
        raise ValueError("true or false expected")


def _judge_origin(value: Any) -> None:
    try:
        check_key_name(_text(value))
    except BadNote as error:
        raise ValueError(str(error)) from None


def _judge_issuer(value: Any) -> None:
    """An issuer id in full: a DID or an https URL."""
    if _text(value).startswith("did:"):
        did.check(value)
    elif not _HTTPS.fullmatch(value):
        raise ValueError("a DID or an https URL expected")


def _judge_ratings(value: Any) -> None:
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


def _judge_evidence(value: Any) -> None:
    if not isinstance(value, dict) or value.keys() != _EVIDENCE.keys():
        raise ValueError(f"an object of exactly {', '.join(_EVIDENCE)} expected")
    for name, check in _EVIDENCE.items():
        check(value[name])


# A plain host, so that everybody who reads the issuer's name from it reads the same.
_HTTPS = re.compile(
    r"https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{0,1800})?"
)
# Printable ASCII that JSON writes as it is.
_PLAIN = r'"[!#-\[\]-~]+"'
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"

check_integer = Check(_judge_integer, "(?:0|[1-9][0-9]{0,14})")
check_boolean = Check(_judge_boolean, "(?:true|false)")
check_origin = Check(_judge_origin, _PLAIN, _judge_origin)
check_did = Check(did.check, '"did:[a-z]+:[A-Za-z0-9._:%-]+"', did.check)
# A log has few issuers, and names one in every review.
_known_issuer = lru_cache(maxsize=1024)(_judge_issuer)
check_issuer = Check(_judge_issuer, _PLAIN, _known_issuer)
# That there is such a day is still to be judged.
check_date = Check(times.check_date, f'"{_DAY}"', date.fromisoformat)
check_time = Check(
    times.check_time, f'"{_DAY}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}Z"', lambda value: datetime.fromisoformat(value[:-1])
)
# Base64 of exactly 32 bytes: the last character before the padding carries four bits, its other two are zero.
check_hash = matching(r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=", "base64 of 32 bytes")
# The 26th character carries 3 bits of the 16 bytes; its other two are zero.
check_review_id = matching(r"rev-[a-z2-7]{25}[aeimquy4]", "rev- and 26 base32 characters of 16 bytes")
check_listing_id = matching(r"[A-Za-z0-9._~-]{1,128}", "1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
_RATING = Check(_judge_ratings, r"(?:[1-4](?:\.5)?|5)")
check_ratings = Check(_judge_ratings, object_of(dict.fromkeys(CATEGORIES, _RATING), frozenset(OPTIONAL_CATEGORIES)))
_EVIDENCE: dict[str, Check] = {
    "booking": one_of(*BOOKINGS["guest_verified"], "none"),
    "commitment": check_hash,
    "idv_level": nullable(one_of(*IDV_LEVELS)),
    "issuer": nullable(check_issuer),
}


def _judge_issuer_of(evidence: Any) -> None:
    if evidence["issuer"] is not None:
        _known_issuer(evidence["issuer"])


check_evidence = Check(_judge_evidence, object_of(_EVIDENCE), _judge_issuer_of)
