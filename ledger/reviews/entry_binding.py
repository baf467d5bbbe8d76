"""Whether an entry follows from the signed statement that it commits to (protocol.md 2, 6).

A ledger makes the entry of a review, response or upgrade from a statement that its speaker signed, and commits to that
statement in the entry. `follow` compares the two. It reads nothing but what it is given, so a receipt and the statement
are enough; what only a DID document or an issuer could show is reported as not checked.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.canon import jcs
from ledger.errors import Malformed, NotProved
from ledger.log.entries import Entry
from ledger.log.openings import Opening, commitment
from ledger.reviews.guest_binding import matches
from ledger.reviews.statement_signer import Speakers, as_object, differs, unreadable
from ledger.reviews.stays import lies_within

_STAY = ("host_did", "listing_id", "check_in", "check_out", "ratings")
_BOOKED = ("booking_reference", "listing_id", "host_did")


@dataclass(frozen=True, slots=True)
class Opened:
    """What opens the commitments of an entry: the statement that was signed, the booking statement that was used
    beside it or None, the text's opening or None, and the multikeys that the ledger saw, by verification method."""

    statement: Mapping[str, Any]
    booking: Mapping[str, Any] | None = None
    text: Opening | None = None
    keys_seen: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, receipt: Mapping[str, Any], statement: Any, booking: Any = None) -> "Opened":
        """What a receipt gives beside the statement. Raises Malformed `receipt_malformed` or `opening_malformed` when a
        part of it cannot be read."""
        if not isinstance(statement, dict):
            raise Malformed("receipt_malformed", "what was signed is a JSON object")
        booking = receipt.get("booking") if booking is None else booking
        if booking is not None and not isinstance(booking, dict):
            raise Malformed("receipt_malformed", "the receipt's booking is not a statement")
        seen = receipt.get("keys_seen", {})
        if not isinstance(seen, dict) or not all(isinstance(key, str) for key in seen.values()):
            raise Malformed("receipt_malformed", "the receipt's keys_seen are not keys by their names")
        text = receipt["openings"]["text"]
        return cls(statement, booking, None if text is None else Opening.parse(text), seen)


def require_opens(entry: Entry, opened: Opened, salt: bytes) -> None:
    """The statement opens the commitment of the entry. Raises NotProved `opening_mismatch` when it does not."""
    members, signed = entry.members, opened.statement
    if entry.type == "response":
        own, sealed, data = "statement", members["statement"], jcs.dumps(signed)
    else:
        own, sealed = "evidence", members["evidence"]["commitment"]
        data = jcs.dumps({"submission": signed, "booking": opened.booking})
    if commitment(salt, data) != sealed:
        raise NotProved("opening_mismatch", f"the submission does not open the {own} commitment of the entry")


def follow(entry: Entry, opened: Opened) -> Speakers:
    """What shows that the entry follows from the statement.

    Raises NotProved: `entry_differs_from_submission` when the entry says what an honest ledger never makes of this
    statement, `submission_unreadable` when the statement is of a form that is not known here, `signature_invalid` when
    the signature does not hold under the key that the receipt names for it.
    """
    kind = opened.statement.get("type", "ReviewSubmission")
    check = _CHECKS.get((entry.type, kind if isinstance(kind, str) else ""))
    if check is None:
        if any(kind == known for _, known in _CHECKS):
            differs(f"a {entry.type} is not made from a {kind}")
        unreadable(f"no {entry.type} is made from a statement of the type {str(kind)[:60]!r}, as far as is known here")
    found = _Check(entry, opened)
    check(found)
    for wrong in found.speakers.wrong:
        raise NotProved("signature_invalid", wrong)
    return found.speakers


def _same(first: Any, second: Any) -> bool:
    """As JSON: 5.0 is 5, and true is not 1."""
    return jcs.dumps(first) == jcs.dumps(second)


class _Check:
    """One comparison of an entry with what it was made from."""

    def __init__(self, entry: Entry, opened: Opened) -> None:
        self.entry, self.members = entry, entry.members
        self.opened, self.signed = opened, opened.statement
        self.speakers = Speakers(opened.keys_seen)

    def review(self) -> None:
        guest = self.speakers.require_guest(self.signed, "the submission")
        self._require_equal("the submission", *_STAY)
        self._require_text("review_text")
        if self.members["level"] == "host_attested":
            differs("the entry is host_attested, and the submission is a guest's own review")
        self._require_issuer(self.signed)
        self._require_booking(guest)
        self._say("host, listing, dates, ratings, text, issuer and evidence")

    def imported(self) -> None:
        """A review of another platform: the host's attestation, with or without the guest's consent."""
        self.speakers.require_signed(self.signed, "the attestation", str(self.signed.get("host_did")))
        self._require_equal("the attestation", *_STAY)
        self._require_text("review_text")
        self._require_no_booking()
        consent = self.signed.get("guest_statement")
        level = "host_attested" if consent is None else "guest_verified"
        if (self.members["level"], self.members["evidence"]["booking"]) != (level, "attestation"):
            differs(f"an attestation with{'out' if consent is None else ''} a guest's consent is {level}")
        if consent is None:
            if (self.members["evidence"]["issuer"], self.members["evidence"]["idv_level"]) != (None, None):
                differs("the entry names an issuer, and no guest consented")
        else:
            self._require_consent(as_object(consent, "the guest's consent"))
        self._say("host, listing, dates, ratings, text, level and evidence")

    def response(self) -> None:
        self.speakers.require_signed(self.signed, "the response", str(self.signed.get("host_did")))
        self._require_equal("the response", "review_id", "host_did")
        self._require_text("response_text")
        self._say("review, host and text")

    def upgrade(self) -> None:
        receipt = self._stay_receipt()
        guest = str(receipt.get("guest_did"))
        self.speakers.require_signed(self.signed, "the supplement", guest)
        self._require_equal("the supplement", "review_id")
        self._require_no_booking()
        for name, value in (("host_did", self.members["host_did"]), *self._of(self.signed, "booking_reference")):
            if not _same(receipt.get(name), value):
                differs(f"the stay receipt in the supplement is for another {name}")
        self.speakers.require_signed(receipt, "the stay receipt", self.members["host_did"])
        self.speakers.not_checked.append(
            "issuer, idv_level, listing and dates: not checked, an upgrade takes them over from its review"
        )
        self._say("review, host and evidence")

    def _say(self, members: str) -> None:
        self.speakers.proved.append(f"what the {self.entry.type} says follows from it: {members}")

    @staticmethod
    def _of(value: Mapping[str, Any], *names: str) -> list[tuple[str, Any]]:
        return [(name, value.get(name)) for name in names]

    # What was said.

    def _require_equal(self, what: str, *names: str) -> None:
        for name in names:
            entered, said = self.members[name], self.signed.get(name)
            if _same(entered, said):
                continue
            if name == "ratings" and isinstance(said, dict):
                each = next(each for each in sorted({*entered, *said}) if not _same(entered.get(each), said.get(each)))
                name, entered, said = f"ratings.{each}", entered.get(each), said.get(each)
            differs(f"{name} is {_shown(entered)} in the entry, and {_shown(said)} in {what}")

    def _require_text(self, name: str) -> None:
        """A text of white space only may be stored as a text or as none."""
        said, committed, opened = self.signed.get(name), self.members["text"], self.opened.text
        said = "" if said is None else said
        if not isinstance(said, str):
            unreadable(f"{name} is not a text")
        if committed is None:
            if opened is not None:
                raise NotProved("opening_unexpected", "the entry commits to no text, and one is opened")
            if not _is_blank(said):
                differs("the entry has no text, and one was signed")
        elif not said:
            differs("the entry has a text, and none was signed")
        elif opened is None:
            self.speakers.not_checked.append(
                "that the text in the log is the one that was signed: not checked, the receipt does not open it"
            )
        else:
            opened.require(committed)
            if opened.text != said:
                differs("the text of the entry is another than the one that was signed")

    def _require_issuer(self, said: Mapping[str, Any]) -> None:
        credential = said["guest_credential"]
        issuer, level = credential.get("issuer"), credential["credentialSubject"].get("idv_level")
        issuer = issuer.get("id") if isinstance(issuer, dict) else issuer
        for name, value in (("issuer", issuer), ("idv_level", level)):
            entered = self.members["evidence"][name]
            if not _same(entered, value):
                differs(f"evidence.{name} is {_shown(entered)} in the entry, and {_shown(value)} in the credential")

    def _require_consent(self, consent: Mapping[str, Any]) -> None:
        self.speakers.require_guest(consent, "the guest's consent")
        for name in ("document_sha256", "ratings", "review_text"):
            if not _same(consent.get(name), self.signed.get(name)):
                differs(f"the guest consented to another {name} than the attestation has")
        if consent.get("consent") is not True:
            differs("the guest did not consent")
        self._require_issuer(consent)

    # What shows the booking.

    def _require_booking(self, guest: str) -> None:
        kind, booking = self.members["evidence"]["booking"], self.opened.booking
        if kind in ("none", "stay_receipt"):
            self._require_no_booking()
            if kind == "stay_receipt":
                self._require_about(self._stay_receipt(), "the stay receipt", guest)
            return
        types = {
            "booking_notice": ("BookingNotice",),
            "booking_claim": ("BookingClaim",),
            # A notice that came after check-in counts like the answer to a callback.
            "callback": ("BookingVerification", "BookingNotice"),
        }.get(kind, ())
        given = booking.get("type") if booking is not None else None
        if booking is None or given not in types:
            differs(f"the entry rests on {kind}, and commits to {given or 'no booking statement'} beside it")
        self._require_about(booking, f"the {given}", guest)

    def _require_no_booking(self) -> None:
        if self.opened.booking is not None:
            differs(f"the entry rests on {self.members['evidence']['booking']}, and commits to a booking statement too")

    def _stay_receipt(self) -> Mapping[str, Any]:
        receipt = self.signed.get("booking_evidence")
        if not isinstance(receipt, dict) or receipt.get("type") != "StayReceipt":
            differs("the entry rests on a stay_receipt, and the submission holds none")
        return receipt

    def _require_about(self, booking: Mapping[str, Any], what: str, guest: str) -> None:
        """A booking statement is about this stay and this guest, confirms it, and its speaker signed it."""
        kind = booking["type"]
        # A host that answers says whose booking it is by the question that it answers.
        named = _BOOKED if kind != "BookingVerification" else _BOOKED[:2]
        for name in named:
            if not _same(booking.get(name), self.signed.get(name)):
                differs(f"{what} is for another {name} than the submission")
        try:
            within = lies_within(self.signed, booking)
        except (KeyError, TypeError):
            within = False
        if not within:
            differs(f"{what} is for other dates than the submission")
        if kind == "BookingClaim":
            if self.speakers.require_guest(booking, what) != guest:
                differs(f"{what} is another guest's")
            return
        if not _is_confirmed(booking, kind, guest):
            differs(f"{what} does not confirm a booking of {guest[:256]}")
        self.speakers.require_signed(booking, what, self.members["host_did"])


def _is_confirmed(booking: Mapping[str, Any], kind: str, guest: str) -> bool:
    if kind == "StayReceipt":
        return booking.get("guest_did") == guest
    if booking.get("status") != "confirmed":
        return False
    if kind == "BookingVerification":
        return booking.get("known") is True and booking.get("guest_matches") is True
    binding = booking.get("guest_binding")
    is_binding = isinstance(binding, dict) and all(isinstance(binding.get(name), str) for name in ("nonce", "value"))
    return is_binding and matches(binding or {}, guest)


def _is_blank(text: str) -> bool:
    """Nothing but white space, by any reader's notion of it."""
    return all(unicodedata.category(letter) in ("Zs", "Zl", "Zp", "Cc", "Cf") for letter in text)


def _shown(value: Any) -> str:
    return jcs.dumps(value).decode()[:256]


_CHECKS = {
    ("review", "ReviewSubmission"): _Check.review,
    ("review", "CrossPlatformReview"): _Check.imported,
    ("response", "HostResponse"): _Check.response,
    ("upgrade", "EvidenceSupplement"): _Check.upgrade,
}
