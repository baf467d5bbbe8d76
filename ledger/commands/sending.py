"""A signed statement goes to a ledger, and what comes back is saved first, then checked, then told."""

from collections.abc import Callable, Mapping
from typing import Any

from ledger.commands import client, receipts, words
from ledger.commands.errand import NOTICE, Errand, line
from ledger.commands.statement import save
from ledger.errors import Malformed, StaylogError

SignAnew = Callable[[], tuple[Errand, dict[str, Any]]]


def deliver(errand: Errand, body: Mapping[str, Any], sign_anew: SignAnew | None = None) -> None:
    """Send it, save and check what comes back, and say what to keep. What the ledger finds too old is signed anew where
    somebody can: a ledger that had taken it before would have answered with its receipt."""
    try:
        answer, found = _send(errand, body)
    except client.TurnedAway as turned:
        if turned.code == "stale_proof" and sign_anew is not None:
            deliver(*sign_anew())
            return
        words.tell_refusal(errand, body, turned)
        raise SystemExit(1) from None
    if answer.status == 202:
        words.keep_intake(errand, body, answer)
    elif errand.out is None:
        _tell_kept(errand, body, found, repeated=answer.status == 200)
    else:
        receipts.settle(errand, body, found, repeated=answer.status == 200)


def _send(errand: Errand, body: Mapping[str, Any]) -> tuple[client.Answer, dict[str, Any]]:
    try:
        answer, found = errand.send(body)
        if answer.status != 202 and errand.out is not None:
            save(errand.out, answer.data)
    except client.TurnedAway:
        raise
    except StaylogError as error:
        hint = f"it may have arrived or not; the same file gets the same answer: {errand.again}"
        raise StaylogError(
            error.code, f"{error.message}. Your signed {errand.word} is in {errand.submission}; {hint}"
        ) from None
    return answer, found


def _tell_kept(errand: Errand, body: Mapping[str, Any], found: Mapping[str, Any], *, repeated: bool) -> None:
    """What the ledger keeps of a booking. It signs nothing for that: what counts is what was signed here."""
    if found.get("type") != errand.kind or found.get("status") != ("kept" if errand.kind == NOTICE else "verified"):
        raise Malformed("answer_malformed", f"the ledger does not say that it keeps the {errand.word}")
    booked = f"{body['booking_reference']}: {body['listing_id']}, {body['check_in']} to {body['check_out']}"
    if errand.kind == NOTICE:
        line("kept", f"{booked}, {body['status']}")
        line("counts", _worth(str(body["status"]), before=found.get("before_check_in") is True))
    else:
        line("verified", booked)
        line("counts", "from now on: your review of this stay needs nothing more from the host")
    line("received", str(found.get("received_at")))
    line("until", f"{found.get('kept_until')}, when the ledger erases it")
    if repeated:
        line("before", f"the ledger had this {errand.word} already")


def _worth(status: str, *, before: bool) -> str:
    if before:
        return {
            "confirmed": "it came before check-in: a review of this stay needs nothing more from you",
            "cancelled": "it came before check-in: there will be no review of this stay",
        }[status]
    return {
        "confirmed": "little: it came after check-in had begun, and is worth no more than an answer when you are asked",
        "cancelled": "for nothing: it came after check-in had begun, and what was said before stands",
    }[status]
