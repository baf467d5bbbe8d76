"""Whether an entry follows from the signed statement that it commits to (protocol.md 2, 6).

A ledger makes the entry of a review, response or upgrade from a statement that its speaker signed, and commits to that
statement in the entry. `follow` compares the two. It reads nothing but what it is given, so a receipt and the statement
are enough; what only a DID document or an issuer could show is reported as not checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.canon import jcs
from ledger.errors import Malformed, NotProved
from ledger.log.entries import Entry
from ledger.log.openings import Opening, commitment, is_blank
from ledger.reviews.booking_binding import Stay, require_no_booking, same, stay_receipt_in
from ledger.reviews.statement_signer import Speakers, as_object, differs, unreadable

_STAY = ("host_did", "listing_id", "check_in", "check_out", "ratings")


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


class _Check:
    """One comparison of an entry with what it was made from."""

    def __init__(self, entry: Entry, opened: Opened) -> None:
        self.entry, self.members = entry, entry.members
        self.opened, self.signed = opened, opened.statement
        self.speakers = Speakers(opened.keys_seen, opened.statement)

    def review(self) -> None:
        guest = self.speakers.require_guest(self.signed, "the submission")
        self._require_equal("the submission", *_STAY)
        self._require_text("review_text")
        if self.members["level"] == "host_attested":
            differs("the entry is host_attested, and the submission is a guest's own review")
        self._require_issuer(self.signed)
        stay = Stay(self.signed, guest, self.members["host_did"])
        stay.require_shown(self.members["evidence"]["booking"], self.opened.booking, self.speakers)
        self._say("host, listing, dates, ratings, text, issuer and evidence")

    def imported(self) -> None:
        """A review of another platform: the host's attestation, with or without the guest's consent."""
        self.speakers.require_signed(self.signed, "the attestation", str(self.signed.get("host_did")))
        self._require_equal("the attestation", *_STAY)
        self._require_text("review_text")
        self._require_host_credential()
        require_no_booking(self.members["evidence"]["booking"], self.opened.booking)
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
        receipt = stay_receipt_in(self.signed)
        guest = str(receipt.get("guest_did"))
        self.speakers.require_signed(self.signed, "the supplement", guest)
        self._require_equal("the supplement", "review_id")
        require_no_booking(self.members["evidence"]["booking"], self.opened.booking)
        named = {"host_did": self.members["host_did"], "booking_reference": self.signed.get("booking_reference")}
        for name, value in named.items():
            if not same(receipt.get(name), value):
                differs(f"the stay receipt in the supplement is for another {name}")
        self.speakers.require_signed(receipt, "the stay receipt", self.members["host_did"])
        self.speakers.not_checked.append(
            "issuer, idv_level, listing and dates: not checked, an upgrade takes them over from its review"
        )
        self._say("review, host and evidence")

    def _say(self, members: str) -> None:
        self.speakers.proved.append(f"what the {self.entry.type} says follows from it: {members}")

    def _require_equal(self, what: str, *names: str) -> None:
        for name in names:
            entered, said = self.members[name], self.signed.get(name)
            if same(entered, said):
                continue
            if name == "ratings" and isinstance(said, dict):
                each = next(each for each in sorted({*entered, *said}) if not same(entered.get(each), said.get(each)))
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
            if not is_blank(said):
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
            if not same(entered, value):
                differs(f"evidence.{name} is {_shown(entered)} in the entry, and {_shown(value)} in the credential")

    def _require_host_credential(self) -> None:
        """The credential in the attestation is that of the host who signed it."""
        credential = as_object(self.signed.get("host_credential"), "the credential in the attestation")
        subject = as_object(credential.get("credentialSubject"), "the subject of the credential in the attestation")
        if not same(subject.get("id"), self.members["host_did"]):
            differs(f"the credential in the attestation is that of {_shown(subject.get('id'))}, and not of the host")

    def _require_consent(self, consent: Mapping[str, Any]) -> None:
        self.speakers.require_guest(consent, "the guest's consent")
        for name in ("document_sha256", "ratings", "review_text"):
            if not same(consent.get(name), self.signed.get(name)):
                differs(f"the guest consented to another {name} than the attestation has")
        if consent.get("consent") is not True:
            differs("the guest did not consent")
        self._require_issuer(consent)


def _shown(value: Any) -> str:
    return jcs.dumps(value).decode()[:256]


_CHECKS = {
    ("review", "ReviewSubmission"): _Check.review,
    ("review", "CrossPlatformReview"): _Check.imported,
    ("response", "HostResponse"): _Check.response,
    ("upgrade", "EvidenceSupplement"): _Check.upgrade,
}
