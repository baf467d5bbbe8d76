"""The admission policy: what this ledger lets in. Its hash is in the genesis entry, its text at /v1/policy."""

from hashlib import sha256

from ledger.canon import base64, jcs

DOCUMENT = jcs.dumps(
    {
        "v": 3,
        "title": "Staylog admission policy",
        "reviews": [
            "A review is signed by the guest it is about: the key of the subject of a GuestCredential whose issuer "
            "this ledger trusts, with pinned keys and up to a level, as /v1/issuers and the log say.",
            "It is about a stay that is over in the listing's time zone, or everywhere on Earth where that is not "
            "known, and was over at most 365 days ago.",
            "It rests on a StayReceipt, signed by the host for this guest, listing, booking and these dates, by a key "
            "that the host's DID has now or was seen to have when the receipt was made. Without one it is refused.",
            "A guest reviews a booking once, whatever DID or issuer they come with. Two guests may review one booking; "
            "the log then has an entry that says so. A second review of a host by the same guest is marked as one.",
            "Nobody reviews themselves: guest and host have different DIDs and different keys.",
            "A credential that can be revoked counts only if its issuer's status list, at most an hour old, says that "
            "it was not. What cannot be looked up is never taken for good.",
        ],
        "responses": [
            "A host responds to a review once, within 30 days, in at most 500 characters, signed by a key that "
            "its DID has then.",
        ],
        "limits": {
            "reviews_per_person_and_day": 20,
            "responses_per_host_and_hour": 60,
            "lookups_of_hosts_per_person_and_hour": 60,
            "reviews_and_responses_per_address_and_minute": 30,
            "reads_per_address_and_minute": 600,
        },
        "privacy": [
            "By keyed hashes, whose secrets are not in the database, a guest is known again at one host, and a booking "
            "and a submission are. The guest's DID, the credential, the booking reference and private feedback are not "
            "kept.",
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
)
HASH = base64.encode(sha256(DOCUMENT).digest())
