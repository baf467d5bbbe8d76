"""The world of the vectors: five invented hosts with reviews, two without, and every type of entry.

Texts are open, redacted, withheld and not asked for.
"""

from hashlib import sha256

from ledger.canon import base64, jcs
from schemas.vectors.story import PASSPORT, Story

COTTAGE = "did:web:cottage.example"
HARBOUR = "did:web:harbour.example%3A8443:hosts:jon"
CABIN = "did:key:z6MkqRYqQiSgvZQdnBytw86Qbs2ZWUkGv22od935YF4s8M7V"
MILL = "did:web:mill.example"
BARN = "did:jwk:eyJrdHkiOiJPS1AiLCJjcnYiOiJFZDI1NTE5In0"
# Nobody reviewed these; one path through the map ends in an empty place, the other at another host's leaf.
ABSENT_ZEROS = "did:web:ferry.example"
ABSENT_OTHER = "did:web:lighthouse.example"


def tell() -> Story:
    """The whole ledger. Entries of one batch carry the time at which it is signed."""
    story = Story()
    keys = _hash(jcs.dumps(["z6MkInventedKeyOfAnInventedIssuer"]))
    story.add("issuer", role="guest", issuer=PASSPORT, action="trusted", keys=keys, max_idv_level=None, since=None)
    story.add(
        "issuer",
        role="host",
        issuer="did:web:chamber.example",
        action="trusted",
        keys=keys,
        max_idv_level="identity_verified",
        since="2026-01-01T00:00:00Z",
    )
    story.publish("2026-02-09T17:12:40Z")

    story.review(
        COTTAGE,
        ("rose-cottage", "2026-02-06", "2026-02-09"),
        (5, 5, 4.5, 5, 4.5, 5),
        "Three days of rain and not one of them wasted. The stove was laid when we came.",
    )
    story.publish("2026-02-20T09:00:00Z")
    story.review(
        HARBOUR, ("loft-2", "2026-02-13", "2026-02-15"), (4, 4, 4.5, 5, 3.5), "Gulls at five. Otherwise quiet."
    )
    bent = story.review(
        HARBOUR,
        ("loft-1", "2026-02-10", "2026-02-12"),
        (2, 1.5, 2, 3, 2, 4),
        "The neighbour, whose name I give here, plays the trumpet.",
        booking="booking_notice",
    )
    unconfirmed = story.review(
        COTTAGE,
        ("rose-cottage", "2026-02-12", "2026-02-14"),
        (3, 3.5, 4, 3, 3, 4),
        "Lovely garden, but the hot water lasted for one shower only.",
        level="unconfirmed",
        booking="none",
    )
    story.publish("2026-03-02T10:30:00Z")

    response = story.respond(bent, "We spoke with him. It was a clarinet.")
    story.respond(unconfirmed, "Thank you. The boiler was replaced on Monday, and the next shower is on us.")
    story.upgrade(unconfirmed)
    story.artifact(b"an invented VRP artifact")
    story.check(HARBOUR, "unanswered")
    story.publish("2026-03-15T12:00:00Z")

    neighbour = story.review(
        COTTAGE,
        ("rose-cottage", "2026-03-01", "2026-03-08"),
        (4.5, 4, 5, 5, 4, 4.5),
        "A week among books. Mrs Invented from next door, telephone 555 0100, brought eggs.",
        booking="callback",
    )
    story.review(
        CABIN,
        ("cabin", "2026-03-11", "2026-03-13"),
        (1, 1, 1, 1, 1, 1),
        "Never found it.",
        level="unconfirmed",
        booking="none",
        idv_level=None,
        served=False,
    )
    story.publish("2026-04-03T06:45:10Z")

    story.add("policy", policy=_hash(b'{"policy":"a second invented admission policy"}'))
    story.redact(neighbour, "text", "third_party_data", neighbour)
    story.redact(bent, "text", "court_order", bent)
    story.redact(bent, "response", "gdpr_17", response)
    story.review(
        COTTAGE,
        ("garden-room", "2026-03-20", "2026-03-22"),
        (4, 4, 4, 4.5, 4),
        "Small, clean, honest.\nBring your own tea.",
        level="host_attested",
        booking="attestation",
        idv_level=None,
    )
    story.review(
        MILL,
        ("mill", "2026-03-25", "2026-03-30"),
        (4.5, 4.5, 4.5, 4.5, 4.5),
        "A text that the ledger does not show.",
        booking="booking_claim",
        idv_level="payment_verified",
        served=False,
    )
    story.review(BARN, ("barn.1", "2026-03-27", "2026-03-29"), (3.5, 3.5, 3.5, 3.5, 3.5), booking="attestation")
    story.check(BARN, "conflict")
    story.check(BARN, "contradicted")
    story.publish("2026-05-04T11:20:00Z")

    story.review(
        COTTAGE,
        ("rose-cottage", "2026-05-01", "2026-05-04"),
        (5, 5, 5, 5, 5, 5),
        "Second visit. The stove was laid again, and the roses are out: 🌹.\n\tخانه می\u200cآرام. 👩\u200d🌾",
        repeat=True,
    )
    story.check(HARBOUR, "denied")
    story.add(
        "issuer",
        role="guest",
        issuer=PASSPORT,
        action="compromised",
        keys=keys,
        max_idv_level="email_verified",
        since="2026-05-02T00:00:00Z",
    )
    story.publish("2026-05-04T12:00:00Z")
    story.add("index_head", seq=1, count=0, root=_hash(b"an invented index of no listings"))
    story.publish("2026-05-05T12:00:00Z")
    return story


def _hash(data: bytes) -> str:
    return base64.encode(sha256(data).digest())
