"""Every limit that a person, a host, an address or the service itself has, and what who exceeds it is told."""

from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest

from api.clients import BOOKINGS
from api.intake import Intake
from ledger.canon import jcs, proofs
from ledger.identity.contexts import canonicaliser
from ledger.identity.guestref import GuestReferences
from ledger.identity.issuers import trust
from ledger.reviews.admission import REVIEWS_PER_PERSON, UNCONFIRMED_PER_PERSON
from ledger.reviews.claims import CLAIMS_PER_PERSON
from ledger.reviews.crossplatform import CROSS_PLATFORM_PER_HOST
from ledger.reviews.feedback import REQUESTS_PER_HOST
from ledger.reviews.guests import HOSTS_PER_PERSON
from ledger.reviews.notices import NOTICES_PER_HOST
from ledger.reviews.responses import RESPONSES_PER_HOST
from ledger.store.limiter import Limit
from tests.api.hosts_and_guests import NEXT, PDF, add_host, asking, attestation, feedback_request, trust_hosts
from tests.api.refusals import BROWN, CURIOUS, Case, Sent, first_review, person, try_refusal
from tests.api.site import Person, Site, problem
from tests.hosting import claim, notice
from tests.identities import NOW, Speaker
from tests.reviewing import HOST, credential, response, review, stay_receipt
from tests.waiting import until


def exhaust(site: Site, limit: Limit, who: Person | str) -> None:
    """Everything that somebody may do at once was done."""
    subject = who if isinstance(who, str) else jcs.dumps(person(who))
    for _ in range(limit.burst):
        site.ledger.limiter.spend(limit, subject)


def too_many_of_a_person(site: Site, stack: ExitStack) -> Sent:
    guest = Person("Tireless")
    exhaust(site, REVIEWS_PER_PERSON, guest)
    return Sent(review(guest))


def too_many_lookups(site: Site, stack: ExitStack) -> Sent:
    """All of one person, though they are of different domains."""
    exhaust(site, HOSTS_PER_PERSON, CURIOUS)
    return Sent(review(CURIOUS, Speaker(6, "did:web:any.example", "#key-1")))


def too_many_of_a_host(site: Site, stack: ExitStack) -> Sent:
    review_id = first_review(site)
    for _ in range(RESPONSES_PER_HOST.burst - 1):
        site.ledger.limiter.take(RESPONSES_PER_HOST, HOST.did)
    return Sent(response(review_id, text="Once more."), f"/v1/reviews/{review_id}/response")


def too_many_unconfirmed(site: Site, stack: ExitStack) -> Sent:
    """The host is not even asked."""
    guest, host = Person("Unheard"), add_host(site, "unconfirmed.example")
    host.book(guest)
    exhaust(site, UNCONFIRMED_PER_PERSON, guest)
    stack.callback(lambda: host.asked == [] or pytest.fail("it was asked"))
    return Sent(asking(guest, host.speaker))


def a_second_that_waits(site: Site, stack: ExitStack) -> Sent:
    """Another booking of the same person at the same host, while one is not decided."""
    guest, host = Person("Impatient"), add_host(site, "silent.example")
    host.down = 503
    assert site.submit(asking(guest, host.speaker, "B-1")).status_code == 202
    return Sent(asking(guest, host.speaker, "B-2"))


def too_many_claims(site: Site, stack: ExitStack) -> Sent:
    guest = Person("Claims")
    exhaust(site, CLAIMS_PER_PERSON, guest)
    receipt = stay_receipt(guest, **NEXT)
    return Sent(claim(HOST, guest, now=NOW, booking_evidence=receipt, **NEXT), "/v1/bookings")


def too_many_notices(site: Site, stack: ExitStack) -> Sent:
    host = Person("Notices")
    exhaust(site, NOTICES_PER_HOST, host.did)
    return Sent(notice(host, BROWN, now=NOW, **NEXT), "/v1/bookings")


def too_many_requests_for_feedback(site: Site, stack: ExitStack) -> Sent:
    host = Person("Feedback")
    exhaust(site, REQUESTS_PER_HOST, host.did)
    return Sent(feedback_request(host), "/v1/feedback")


def too_many_of_other_platforms(site: Site, stack: ExitStack) -> Sent:
    host = Person("Elsewhere")
    trust_hosts(site)
    exhaust(site, CROSS_PLATFORM_PER_HOST, host.did)
    return Sent(attestation(host), "/v1/reviews/cross-platform", document=PDF)


def too_many_bookings_from_an_address(site: Site, stack: ExitStack) -> Sent:
    for _ in range(BOOKINGS.burst):
        problem(site.post("/v1/bookings", b"{"), "malformed_json")
    return Sent(b"{", "/v1/bookings")


def too_many_from_an_address(site: Site, stack: ExitStack) -> Sent:
    for _ in range(10):
        problem(site.submit(b"{"), "malformed_json")
    return Sent(b"{")


def trust_that_never_rests(site: Site, stack: ExitStack) -> Sent:
    sequencer, numbers = site.ledger.sequencer, count(41)
    submit = sequencer.submit

    def unresting(draft: Any) -> Any:
        issuer = trust(site.ledger.issuers(), "guest", Speaker(next(numbers)).did, [], None)
        assert issuer is not None
        submit(issuer).result(timeout=10)
        return submit(draft)

    stack.enter_context(patch.object(sequencer, "submit", unresting))
    return Sent(review(BROWN))


def no_room_for_those_who_wait(site: Site, stack: ExitStack) -> Sent:
    host = add_host(site, "crowded.example")
    host.down = 503
    stack.enter_context(patch("ledger.reviews.pending.MOST_PENDING", 0))
    return Sent(asking(Person("Crowded"), host.speaker))


def no_room_for_drafts(site: Site, stack: ExitStack) -> Sent:
    site.ledger.sequencer._max_queue = 0
    return Sent(review(BROWN))


def no_room_for_argon2(site: Site, stack: ExitStack) -> Sent:
    """Everybody who may wait waits already."""

    async def refs(self: GuestReferences, *about: str) -> list[str]:
        with ExitStack() as places:
            while self._places._places.acquire(blocking=False):
                places.callback(self._places._places.release)
            return await original(self, *about)

    original = GuestReferences.guest_refs
    stack.enter_context(patch.object(GuestReferences, "guest_refs", refs))
    return Sent(review(BROWN))


def no_room_for_graphs(site: Site, stack: ExitStack) -> Sent:
    """A credential that has a JSON-LD signature only, while others are looked at."""
    sent = Sent(review(BROWN, guest_credential=credential(BROWN, suites=(proofs.ED25519_2020,))))
    turns = canonicaliser()._turns
    while turns._places.acquire(blocking=False):
        stack.callback(turns._places.release)
    return sent


def no_room_at_the_door(site: Site, stack: ExitStack) -> Sent:
    """The only thread waits for the log, which this test holds."""
    waiting = Thread(target=site.submit, args=(review(),))
    stack.callback(waiting.join)
    stack.enter_context(site.ledger.sequencer._wake)
    waiting.start()
    until(lambda: _intakes[-1]._inside == 1)
    return Sent(review(BROWN))


_intakes: list[Intake] = []


def narrow(**_: Any) -> Intake:
    _intakes.append(Intake(most=1))
    return _intakes[-1]


CASES = [
    # Limits.
    Case("rate_limited", "an address", too_many_from_an_address, alone={"limits": True}, retry_after=2),
    Case("quota_exceeded", "a person", too_many_of_a_person, signed=True, retry_after=4320),
    Case("quota_exceeded", "domains", too_many_lookups, signed=True, retry_after=60),
    Case("quota_exceeded", "a host", too_many_of_a_host, signed=True, alone={}, retry_after=60),
    Case("rate_limited", "bookings", too_many_bookings_from_an_address, alone={"limits": True}, retry_after=1),
    Case("quota_exceeded", "unconfirmed", too_many_unconfirmed, signed=True, retry_after=28_800),
    Case("quota_exceeded", "pending", a_second_that_waits, signed=True, retry_after=60),
    Case("quota_exceeded", "claims", too_many_claims, signed=True, retry_after=4320),
    Case("quota_exceeded", "notices", too_many_notices, signed=True, retry_after=6),
    Case("quota_exceeded", "feedback", too_many_requests_for_feedback, signed=True, retry_after=300),
    Case("quota_exceeded", "other platforms", too_many_of_other_platforms, signed=True, alone={}, retry_after=1728),
    Case("busy", "pending", no_room_for_those_who_wait, signed=True, retry_after=5),
    Case("busy", "at the door", no_room_at_the_door, alone={}, retry_after=5),
    Case("busy", "graphs", no_room_for_graphs, alone={}, retry_after=5),
    Case("busy", "guest references", no_room_for_argon2, signed=True, alone={}, retry_after=5),
    Case("busy", "drafts", no_room_for_drafts, signed=True, alone={}, retry_after=5),
    Case("busy", "trust", trust_that_never_rests, signed=True, alone={}, others=True, retry_after=5),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    door = narrow if case.make is no_room_at_the_door else Intake
    with patch("api.app.Intake", door):
        try_refusal(case, request, tmp_path)
