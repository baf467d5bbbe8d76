"""What the conformance tests of OpenSTR RFC-005 (0.1.0-draft), section by section over HTTP, have in common.

Each test names the section of its rule first. Where this ledger departs from the text, the test says how: a review is
signed by the guest (7.1 asks for it, 7.2 has no field); and that a stay was booked is shown by what the host said while
it could not know the review, a receipt, notice or claim, before the host is asked as 7.3.2 has it, who could keep
silent.
"""

import json
from typing import Any

from tests.identities import Speaker
from tests.reviewing import review, stay_receipt

CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "location", "value")
REQUIRED = ("booking_reference", "listing_id", "host_did", "guest_credential", "check_in", "check_out", "ratings")
HOUSE = "\U0001f3e0"
# The record of section 7.4, as the RFC has it.
EXAMPLE = json.loads("""{
  "host_did": "did:example:host-norfolk-001",
  "host_since": "2023-06-01",
  "total_reviews": 24,
  "verified_reviews": 24,
  "average_ratings": {
    "overall": 4.8, "accuracy": 4.9, "cleanliness": 4.7, "communication": 5.0, "location": 4.6, "value": 4.8
  },
  "review_history": [
    {
      "review_id": "rev-abc123",
      "listing_id": "host-norfolk-beachcottage-001",
      "check_in": "2026-02-10",
      "check_out": "2026-02-14",
      "ratings": {"overall": 5.0, "accuracy": 5.0, "cleanliness": 5.0, "communication": 5.0, "value": 5.0},
      "review_text": "Wonderful cottage. Exactly as described.",
      "submitted_at": "2026-02-15T09:00:00Z",
      "guest_credential_issuer": "verified-identity.example.com",
      "host_response": null
    }
  ]
}""")


def left_on(day: str, guest: Speaker, host: Speaker, reference: str = "B-1", **options: Any) -> dict[str, Any]:
    """A review of a stay that ended on that day, with a receipt for it."""
    dates: dict[str, Any] = {"check_in": "2025-01-01", "check_out": day}
    receipt = stay_receipt(guest, host, reference, **dates)
    return review(guest, host, reference, booking_evidence=receipt, **dates, **options)
