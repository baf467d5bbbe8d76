"""Guests whose credential can be revoked: it counts when its issuer's list says so, and never otherwise."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from ledger import metrics
from ledger.canon import proofs
from ledger.canon.times import format_time
from ledger.errors import Refused, StaylogError, Unavailable
from ledger.identity.issuing import issue
from ledger.reviews import admission
from ledger.reviews.receipts import Accepted
from tests.identities import IDV, ISSUER, NOW, STATUS, Speaker, canonize, status_list
from tests.network import Neighbourhood
from tests.reviewing import GUESTS, HOST, Reviewing, encoded, review

URL = STATUS["statusListCredential"]


def for_a_year(guest: Speaker, place: int = 77, suites: tuple[str, ...] = (proofs.EDDSA_JCS,)) -> dict[str, Any]:
    """What an issuer gives to a guest it knows: it holds for long, since it can be revoked."""
    subject = {
        "id": guest.did,
        "idv_level": "identity_verified",
        "idv_method": "passport",
        "issuer_guest_id": guest.did,
    }
    return issue(
        "guest",
        subject,
        id_=f"{IDV}/credentials/{place}",
        issuer=ISSUER.did,
        method=ISSUER.method,
        key=ISSUER.key,
        valid_from=NOW - timedelta(days=10),
        valid_until=NOW + timedelta(days=355),
        canonize=canonize,
        status={**STATUS, "statusListIndex": str(place), "id": f"{URL}#{place}"},
        suites=suites,
    )


def body(guest: Speaker = GUESTS[0], place: int = 77, **changes: Any) -> dict[str, Any]:
    return review(guest, **{"guest_credential": for_a_year(guest, place), **changes})


def outcome(reviewing: Reviewing, sent: dict[str, Any]) -> str:
    try:
        return str(reviewing.submit(sent).receipt["verification_level"])
    except StaylogError as refused:
        return refused.code


def test_a_credential_that_was_not_revoked(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, status_list([1, 2, 3]))
    for number, suite in enumerate(proofs.SUITES):
        guest = GUESTS[number]
        sent = body(guest, guest_credential=for_a_year(guest, suites=(suite,)))
        assert outcome(connected, sent) == "guest_verified"
    assert neighbourhood.requests[URL] == 1


def test_a_credential_that_was_revoked(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, status_list([77]))
    counted = metrics.SUBMISSIONS.labels("review", "credential_revoked")._value.get()
    with pytest.raises(StaylogError) as refused:
        connected.submit(body())
    assert refused.value.code == "credential_revoked"
    assert not isinstance(refused.value, Refused)
    assert metrics.SUBMISSIONS.labels("review", "credential_revoked")._value.get() == counted + 1
    assert outcome(connected, body(GUESTS[1], 78)) == "guest_verified"


def test_revoked_after_the_review_is_no_reason_to_lose_it(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    """The same again gets the same receipt: nobody looks."""
    neighbourhood.put(URL, status_list([]))
    sent = body()
    first = connected.submit(sent)
    neighbourhood.put(URL, status_list([77]))
    connected.clock.forward(hours=2)
    again = connected.submit(sent)
    assert (again.repeated, again.receipt) == (True, first.receipt)
    assert outcome(connected, body(reference="B-2", now=connected.clock())) == "credential_revoked"


def test_who_has_not_signed_sends_us_nowhere(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, status_list([]))
    assert outcome(connected, {**body(), "review_text": "changed"}) == "proof_invalid"
    forged = for_a_year(GUESTS[0])
    forged["credentialSubject"]["idv_level"] = "payment_verified"
    assert outcome(connected, body(guest_credential=forged)) == "proof_invalid"
    assert neighbourhood.connections == 0


@pytest.mark.parametrize("trouble", ["down", "slow", "lying"])
def test_an_outage_ends_without_a_restart(connected: Reviewing, neighbourhood: Neighbourhood, trouble: str) -> None:
    """503 and when to come again; nothing is taken in; then it is."""
    size = connected.ledger.reader.published.size
    if trouble == "down":
        neighbourhood.host("idv.example")
        neighbourhood.take_down("idv.example")
    elif trouble == "slow":
        neighbourhood.put(URL, status_list([]), delay=20)
    else:
        neighbourhood.put(URL, {**status_list([]), "validFrom": format_time(NOW)})
    sent = body()
    with pytest.raises(Unavailable) as refused:
        connected.submit(sent)
    assert (refused.value.code, refused.value.retry_after) == ("status_unavailable", 30)
    assert connected.ledger.reader.refresh().size == size
    neighbourhood.put(URL, status_list([]))
    neighbourhood.bring_back("idv.example")
    connected.clock.forward(seconds=refused.value.retry_after)
    assert outcome(connected, sent) == "guest_verified"


def submit_all(reviewing: Reviewing, bodies: list[dict[str, Any]]) -> Counter[str]:
    """All at once."""

    async def one(sent: dict[str, Any]) -> str:
        try:
            taken = await admission.submit(reviewing.desk, encoded(sent))
            return str(taken.receipt["verification_level"]) if isinstance(taken, Accepted) else "pending"
        except StaylogError as refused:
            return refused.code

    async def together() -> list[str]:
        return await asyncio.gather(*map(one, bodies))

    return Counter(asyncio.run(together()))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_thousand_submissions_cause_one_fetch(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    """Whether it succeeds or not. They have no receipt: what comes after the status is not what this is about."""
    held = for_a_year(GUESTS[0])
    bodies = [
        review(GUESTS[0], HOST, f"B-{number}", guest_credential=held, booking_evidence=None) for number in range(1000)
    ]
    neighbourhood.put(URL, {}, status=500, delay=0.2)
    assert submit_all(connected, bodies) == {"status_unavailable": 1000}
    assert (neighbourhood.requests[URL], neighbourhood.connections) == (1, 1)
    neighbourhood.put(URL, status_list([]), delay=0.2)
    connected.clock.forward(seconds=30)
    assert submit_all(connected, bodies) == {"booking_unverifiable": 1000}
    assert (neighbourhood.requests[URL], neighbourhood.connections) == (2, 2)
