"""The admission policy: what this ledger lets in. Its hash is in the genesis entry, its text at /v1/policy."""

from hashlib import sha256

from ledger.canon import base64, jcs

DOCUMENT = jcs.dumps(
    {
        "v": 1,
        "title": "Staylog admission policy",
        "admission": [
            "Entries are added by the operator of this log, from its command line.",
            "Reviews sent in by guests over the network are not accepted.",
        ],
        "promises": [
            "An entry is acknowledged only when it is durable, integrated and covered by a signed checkpoint.",
            "Texts can be withdrawn by a redaction entry that names its legal basis; ratings stay, and stay counted.",
        ],
    }
)
HASH = base64.encode(sha256(DOCUMENT).digest())
