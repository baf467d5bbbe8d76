"""Whether what shows a booking is about the stay and the guest of a review: the offline half of `verification`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.canon import jcs
from ledger.reviews.guest_binding import matches
from ledger.reviews.statement_signer import Speakers, differs
from ledger.reviews.stays import lies_within

# By the kind of evidence, the statement that the entry commits to beside the submission. A notice that came after
# check-in counts like the answer to a callback.
_BESIDE = {
    "booking_notice": ("BookingNotice",),
    "booking_claim": ("BookingClaim",),
    "callback": ("BookingVerification", "BookingNotice"),
}
_BOOKED = ("booking_reference", "listing_id", "host_did")


def same(first: Any, second: Any) -> bool:
    """As JSON: 5.0 is 5, and true is not 1."""
    return jcs.dumps(first) == jcs.dumps(second)


def require_no_booking(kind: str, booking: Mapping[str, Any] | None) -> None:
    """Raises NotProved `entry_differs_from_submission` when there is a statement beside the submission."""
    if booking is not None:
        differs(f"the entry rests on {kind}, and commits to a booking statement too")


def stay_receipt_in(signed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stay receipt of a submission. Raises NotProved `entry_differs_from_submission` when it holds none."""
    receipt = signed.get("booking_evidence")
    if not isinstance(receipt, dict) or receipt.get("type") != "StayReceipt":
        differs("the entry rests on a stay_receipt, and the submission holds none")
    return receipt


@dataclass(frozen=True, slots=True)
class Stay:
    """The stay of a review: the submission, the guest who signed it, and the host of the entry."""

    signed: Mapping[str, Any]
    guest: str
    host: str

    def require_shown(self, kind: str, booking: Mapping[str, Any] | None, speakers: Speakers) -> None:
        """Evidence of this kind shows the stay: the receipt in the submission, or the statement beside it.

        Raises NotProved as `Speakers.require_signed`, and `entry_differs_from_submission` when there is no such
        evidence, or when it is not about this stay and guest.
        """
        if kind in ("none", "stay_receipt"):
            require_no_booking(kind, booking)
            if kind == "stay_receipt":
                self._require_about(stay_receipt_in(self.signed), "the stay receipt", speakers)
            else:
                self._note_unused(speakers)
            return
        given = booking.get("type") if booking is not None else None
        if booking is None or given not in _BESIDE.get(kind, ()):
            differs(f"the entry rests on {kind}, and commits to {given or 'no booking statement'} beside it")
        self._require_about(booking, f"the {given}", speakers)

    def _note_unused(self, speakers: Speakers) -> None:
        """A ledger may have had a reason not to count a stay receipt that the statement alone does not show."""
        receipt = self.signed.get("booking_evidence")
        if isinstance(receipt, dict) and receipt.get("type") == "StayReceipt":
            speakers.not_checked.append(
                "why the stay receipt in the submission does not count: not checked, the entry rests on no evidence"
            )

    def _require_about(self, booking: Mapping[str, Any], what: str, speakers: Speakers) -> None:
        """About this stay and this guest, confirmed, and signed by its speaker."""
        kind = booking["type"]
        # A host that answers says whose booking it is by the question that it answers.
        for name in _BOOKED if kind != "BookingVerification" else _BOOKED[:2]:
            if not same(booking.get(name), self.signed.get(name)):
                differs(f"{what} is for another {name} than the submission")
        if not self._is_within(booking):
            differs(f"{what} is for other dates than the submission")
        if kind == "BookingClaim":
            if speakers.require_guest(booking, what) != self.guest:
                differs(f"{what} is another guest's")
            return
        if not self._is_confirmed(booking, kind):
            differs(f"{what} does not confirm a booking of {self.guest[:256]}")
        speakers.require_signed(booking, what, self.host)

    def _is_within(self, booking: Mapping[str, Any]) -> bool:
        try:
            return lies_within(self.signed, booking)
        except (KeyError, TypeError):
            return False

    def _is_confirmed(self, booking: Mapping[str, Any], kind: str) -> bool:
        if kind == "StayReceipt":
            return booking.get("guest_did") == self.guest
        if booking.get("status") != "confirmed":
            return False
        if kind == "BookingVerification":
            return booking.get("known") is True and booking.get("guest_matches") is True
        binding = booking.get("guest_binding")
        is_binding = isinstance(binding, dict) and all(
            isinstance(binding.get(name), str) for name in ("nonce", "value")
        )
        return is_binding and matches(binding or {}, self.guest)
