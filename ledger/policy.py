"""The admission policy: what this ledger lets in. Its hash is in the genesis entry, its text at /v1/policy."""

from functools import cache
from hashlib import sha256

from ledger.canon import base64, jcs

_UNANSWERED = {
    True: "A host that does not answer within 72 hours does not prevent the review: it is published as `unconfirmed`, "
    "listed and counted and no part of any mean, and the log has an entry that the host did not answer.",
    False: "A review whose host does not answer within 72 hours is rejected, and the log has an entry that the host "
    "did not answer.",
}


@cache
def document(*, publishes_unanswered: bool = True) -> bytes:
    """The policy of a ledger that publishes reviews whose hosts never answered, or of one that rejects them."""
    return jcs.dumps(_document(publishes_unanswered))


def hash_of(policy: bytes) -> str:
    return base64.encode(sha256(policy).digest())


def _document(publishes_unanswered: bool) -> dict[str, object]:
    return {
        "v": 4,
        "title": "Staylog admission policy",
        "reviews": [
            "A review is signed by the guest it is about: the key of the subject of a GuestCredential whose issuer "
            "this ledger trusts, with pinned keys and up to a level, as /v1/issuers and the log say.",
            "It is about a stay that is over in the listing's time zone, or everywhere on Earth where that is not "
            "known, and was over at most 365 days ago.",
            "It is `guest_verified` if it rests on one of these, the first that there is: a StayReceipt, signed by the "
            "host for this guest, listing, booking and these dates, by a key that the host's DID has now or was seen "
            "to have when the receipt was made; a BookingClaim of the guest that was verified before check-in; a "
            "BookingNotice of the host that came before check-in.",
            "A cancellation of which the host gave notice before the day of check-in voids all three.",
            "Without any of these the host's booking endpoint is asked, if it is known and the guest's identity was "
            "verified. What the host signs counts: a confirmation makes the review `guest_verified`, a denial refuses "
            "it, and the log has an entry that the host denied. Whatever else comes is neither, and is asked again "
            "for 72 hours. If the endpoint is not known the review is refused.",
            _UNANSWERED[publishes_unanswered],
            "The guest of an unconfirmed review can hand in a stay receipt later, and it counts from then on. Nothing "
            "that a host says after publication raises a level, and none is ever lowered.",
            "An entry tells of a denial that a receipt contradicts. Of denials, and of silence, there is one entry for "
            "each person and host for ever.",
            "A guest reviews a booking once, whatever DID or issuer they come with. Two guests may review one booking; "
            "the log then has an entry that says so. A second review of a host by the same guest is marked as one.",
            "Nobody reviews themselves: guest and host have different DIDs and different keys.",
            "A credential that can be revoked counts only if its issuer's status list, at most an hour old, says that "
            "it was not. What cannot be looked up is never taken for good.",
        ],
        "other_platforms": [
            "A host submits reviews of other platforms with the booking's document, of which only the hash is kept in "
            "a commitment, and with its HostCredential. They are `host_attested`, or `guest_verified` with the guest's "
            "own signed consent and credential, which is good for one review of the document; one for each booking "
            "of a platform.",
        ],
        "responses": [
            "A host responds to a review once, within 30 days, in at most 500 characters, signed by a key that "
            "its DID has then.",
        ],
        "limits": {
            "reviews_per_person_and_day": 20,
            "responses_per_host_and_hour": 60,
            "lookups_of_hosts_per_person_and_hour": 60,
            "unconfirmed_reviews_per_person_and_day": 3,
            "pending_reviews_per_person_and_host": 1,
            "claims_per_person_and_day": 20,
            "notices_per_host_and_hour": 600,
            "reviews_of_other_platforms_per_host_and_day": 50,
            "requests_for_feedback_per_host_and_hour": 12,
            "callbacks_per_domain_and_hour": 60,
            "notices_and_claims_per_address_and_minute": 60,
            "reviews_and_responses_per_address_and_minute": 30,
            "reads_per_address_and_minute": 600,
        },
        "privacy": [
            "By keyed hashes, whose secrets are not in the database, a guest is known again at one host, and a booking "
            "and a submission are. The guest's DID, the credential and the booking reference are not kept "
            "once it is decided.",
            "What waits for a decision, and notices and claims of bookings, are kept encrypted, by a key that is not "
            "in the database: the first until it is decided, the others until 90 days after check-out. What became of "
            "a submission is kept for 90 days, and opens only with the id that its guest has.",
            "Private feedback of verified reviews is sealed to the host's key when it comes in, and kept until the "
            "host says that it has it, or for a year. Of others it is not kept.",
            "The keys in the DID documents of hosts are kept with the times at which they were seen. Those of guests "
            "are not.",
            "What is counted against limits is counted under names that change every minute for addresses, every day "
            "for persons, and is of no use after two of these.",
        ],
        "operator": [
            "The operator can add entries from the command line, as issuers that are trusted and redactions.",
        ],
        "promises": [
            "Whoever has shown who they are gets every refusal signed, by #statements of /.well-known/did.json.",
            "An entry is acknowledged only when it is durable, integrated and covered by a signed checkpoint.",
            "Texts can be withdrawn by a redaction entry that names its legal basis; ratings stay, and stay counted.",
        ],
    }


DOCUMENT = document()
HASH = hash_of(DOCUMENT)
