"""What a ledger asks a host about a booking (the body of a signed callback): one form, for who asks and who answers."""

import re
from collections.abc import Mapping
from typing import Any

from ledger.canon import strict_json
from ledger.canon.times import check_date
from ledger.errors import BadForm
from ledger.reviews.guest_binding import bind

_LINE = r"[^\x00-\x1f\x7f-\x9f\ufffe\uffff]{1,128}"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_QUESTION = {
    "type": "booking_verification_request",
    "openstr_version": r"0\.2",
    "request_id": _LINE,
    "index": r"[!-~]{1,300}",
    "booking_reference": _LINE,
    "listing_id": r"[A-Za-z0-9._~-]{1,128}",
    "host_did": r"[!-~]{1,256}",
    "check_in": _DATE,
    "check_out": _DATE,
}
_BINDING = {
    "alg": "sha-256",
    "nonce": r"[A-Za-z0-9_-]{16,128}",
    "value": r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]",
}


def make(stay: Mapping[str, Any], guest_did: str, *, ledger: str, request_id: str, nonce: str) -> dict[str, Any]:
    """About the stay of a review or claim. Of the guest it has a salted hash, of the review nothing."""
    return {
        "type": "booking_verification_request",
        "openstr_version": "0.2",
        "request_id": request_id,
        "index": ledger,
        **{name: stay[name] for name in ("booking_reference", "listing_id", "host_did", "check_in", "check_out")},
        "guest_binding": {"alg": "sha-256", **bind(nonce, guest_did)},
    }


def read(body: bytes) -> dict[str, Any]:
    """A question that came, if it has the form of one: exactly these members."""
    question = strict_json.loads(body)
    if not isinstance(question, dict):
        raise BadForm("schema_invalid", "a question is a JSON object")
    binding = question.get("guest_binding")
    if not isinstance(binding, dict):
        raise BadForm("schema_invalid", "guest_binding: object expected")
    _check_form({name: value for name, value in question.items() if name != "guest_binding"}, _QUESTION)
    _check_form(binding, _BINDING, "guest_binding.")
    for name in ("check_in", "check_out"):
        try:
            check_date(question[name])
        except ValueError as error:
            raise BadForm("date_invalid", f"{name}: {error}") from None
    if question["check_out"] <= question["check_in"]:
        raise BadForm("date_invalid", "check_out: a stay ends after it began")
    return question


def _check_form(value: Mapping[str, Any], form: Mapping[str, str], place: str = "") -> None:
    """The same members, no other, each of its form."""
    for name in (*form, *value):
        if name not in form:
            raise BadForm("schema_invalid", f"{place}{name[:60]}: there is no such member")
        member = value.get(name)
        if not isinstance(member, str) or not re.fullmatch(form[name], member):
            raise BadForm("schema_invalid", f"{place}{name}: missing, or of another form than {form[name]}")
