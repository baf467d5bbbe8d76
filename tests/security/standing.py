"""What the world reads of a host: the mean, the counts, the checks and the levels of a proved answer; and hosts who
would rather have it read otherwise."""

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pytest

from audits.receipts import verify_refusal
from ledger.errors import Refused
from ledger.reviews import pending
from ledger.reviews.pending import Waiting
from tests.hosting import Hosted, HostSite
from tests.identities import RATINGS, Speaker
from tests.network import Request, response
from tests.reviewing import DOMAIN, encoded

# What hosts like to read, and what they do not.
GOOD = {**RATINGS, "overall": 5}
BAD = {**RATINGS, "overall": 1}


@dataclass(frozen=True)
class Standing:
    """`mean` is the one that counts, `unconfirmed_mean` stands beside it; `shown` has level and evidence of each
    review, the oldest first."""

    mean: float | None = None
    verified: int = 0
    attested: int = 0
    unconfirmed: int = 0
    unconfirmed_mean: float | None = None
    denied: int = 0
    unanswered: int = 0
    contradicted: int = 0
    conflict: int = 0
    shown: tuple[str, ...] = field(default=())


def standing(hosted: Hosted, site: HostSite | None = None) -> Standing:
    """From an answer with all its proofs, which was verified."""
    answer = hosted.record(site)
    statistics = answer["statistics"]
    if statistics is None:
        assert answer["total_reviews"] == 0
        return Standing()
    means, counts = statistics["average_ratings"], statistics["reviews"]
    assert answer["average_ratings"]["overall"] == means["guest_verified"]["overall"]
    assert answer["total_reviews"] == sum(counts.values())
    return Standing(
        means["guest_verified"]["overall"],
        counts["guest_verified"],
        counts["host_attested"],
        counts["unconfirmed"],
        means["unconfirmed"]["overall"],
        **statistics["checks"],
        shown=tuple(
            f"{each['verification_level']}, {each['evidence']['booking']}"
            for each in reversed(answer["review_history"])
        ),
    )


def refused(hosted: Hosted, body: Mapping[str, Any]) -> str:
    """The code of the refusal of a review, which the guest can show to anybody: the ledger signed it."""
    with pytest.raises(Refused) as caught:
        hosted.take(body)
    key = bytes(hosted.reviewing.ledger.keys.statements.verify_key)
    verify_refusal(encoded(caught.value.refusal), key, submission=encoded(body))
    assert caught.value.refusal["code"] == caught.value.code
    return caught.value.code


def decided(hosted: Hosted, waiting: Waiting) -> str:
    """What became of a submission: `accepted`, or the code of its refusal."""
    outcome = pending.look_up(hosted.desk, waiting.id)
    assert isinstance(outcome, Mapping), "it waits still"
    return str(outcome.get("code", outcome["status"]))


def confirm_only(hosted: Hosted, references: Collection[str]) -> None:
    """The host answers questions about these bookings, and is out when it is asked about others."""
    site = hosted.site

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        reference = unquote(request.url.split("/")[-2])
        site.down = None if reference in references else 503
        await site._answer(request, writer)

    hosted.outside.house(site.name, answer)


def say(hosted: Hosted, speaker: Speaker | None = None, **members: Any) -> None:
    """The host answers every question with these members in place of what is so, signed as it should be."""
    site = hosted.site

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        site.asked.append(unquote(request.url.split("/")[-2]))
        question = json.loads(request.body)
        usual = {
            "type": "BookingVerification",
            **{name: question[name] for name in ("request_id", "booking_reference", "listing_id")},
            "known": True,
            "status": "confirmed",
            "guest_matches": True,
            **{name: question[name] for name in ("check_in", "check_out")},
            "confirmed_at": "2026-04-01T09:00:00Z",
            "cancelled_at": None,
            "issued_at": "2026-06-01T12:00:00Z",
        }
        nonce = question["guest_binding"]["nonce"]
        signer = speaker or site.speaker
        told = signer.sign({**usual, **members}, domain=DOMAIN, now=hosted.clock(), challenge=nonce)
        writer.write(response(json.dumps(told).encode()))

    hosted.outside.house(site.name, answer)
