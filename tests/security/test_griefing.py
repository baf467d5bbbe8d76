"""Griefing: strangers who invent bookings to harm an honest host, or to keep a ledger and its hosts busy. Counters and
quotas hold, and are exact with two services on one database.

A person is who an issuer says it is: one passport, one person at that issuer, with as many DIDs as they like. What one
person does to one host is bounded for ever; what many persons do is bounded by what it costs to be many persons.
"""

from collections import Counter
from typing import Any

import pytest

from ledger.errors import NotAccepted, Refused
from ledger.identity.issuers import trust
from ledger.reviews import admission, callback, claims
from ledger.reviews.pending import Waiting
from ledger.store.rows import run
from tests.api.site import Person
from tests.hosting import BOOKED, Hosted, claim
from tests.identities import IDV, ISSUER, Speaker
from tests.reviewing import GUEST, GUESTS, credential, encoded
from tests.security import griefers
from tests.security.griefers import together
from tests.security.standing import BAD, GOOD, Standing, decided, refused, standing

HONEST = Standing(5.0, verified=3, shown=("guest_verified, callback",) * 3)
OTHER_ISSUER = Speaker(41)


def persons(count: int) -> list[Person]:
    return [Person(f"griefer {number}") for number in range(count)]


def invented(hosted: Hosted, guest: Speaker, number: int, person: str | None = None, **changes: Any) -> dict[str, Any]:
    """A bad review of a stay that never was."""
    shown = credential(guest, person, now=hosted.clock())
    return dict(hosted.review(guest, f"INVENTED-{number}", ratings=BAD, **{"guest_credential": shown, **changes}))


def halves(bodies: list[dict[str, Any]]) -> tuple[list[bytes], list[bytes]]:
    """For two processes."""
    data = [encoded(body) for body in bodies]
    return data[::2], data[1::2]


@pytest.fixture
def honest(hosted: Hosted) -> Hosted:
    """A host that answers, with three reviews."""
    for number, guest in enumerate(GUESTS[:3]):
        hosted.site.book(guest, f"B-{number}")
        hosted.take(hosted.review(guest, f"B-{number}", ratings=GOOD))
    hosted.site.asked.clear()
    return hosted


# One person


def test_three_questions_a_day_for_one_person_exact_with_two_processes(hosted: Hosted) -> None:
    """Two processes of four threads each, at eight silent hosts, by as many DIDs: three wait, and three hosts are asked
    once."""
    sites = [hosted.add_host(f"house{number}.example") for number in range(8)]
    for site in sites:
        site.down = 503
    bodies = [
        invented(hosted, guest, 1, "one person", site=site) for guest, site in zip(persons(8), sites, strict=True)
    ]
    done = together(hosted, griefers.review, *halves(bodies))
    assert Counter(done) == {"waits": 3, "quota_exceeded": 5}
    assert sum(len(site.asked) for site in sites) == admission.UNCONFIRMED_PER_PERSON.count == 3
    assert waiting(hosted) == 3


def test_one_waits_for_a_person_and_host_exact_with_two_processes(hosted: Hosted) -> None:
    hosted.site.down = 503
    bodies = [invented(hosted, guest, number, "one person") for number, guest in enumerate(persons(16))]
    done = together(hosted, griefers.review, *halves(bodies))
    assert Counter(done) == {"waits": 1, "quota_exceeded": 15}
    assert waiting(hosted) == 1
    assert len(hosted.site.asked) <= 3


def test_one_denial_for_a_person_and_host_exact_with_two_processes(honest: Hosted) -> None:
    """Every day again, by other DIDs: the host is asked three times a day, and its record has one denial for ever."""
    for day in range(2):
        bodies = [invented(honest, guest, 10 * day + n, "one person") for n, guest in enumerate(persons(8))]
        done = together(honest, griefers.review, *halves(bodies))
        assert Counter(done) == {"booking_denied": 3, "quota_exceeded": 5}
        assert len(honest.site.asked) == 3 * (day + 1)
        honest.clock.forward(days=1)
    assert standing(honest) == Standing(5.0, verified=3, denied=1, shown=HONEST.shown)


def test_one_silence_for_a_person_and_host_exact_with_two_processes(honest: Hosted) -> None:
    """The host is ill for six days. One person waits twice, by two DIDs, and workers of two processes decide."""
    honest.site.down = 503
    for number, guest in enumerate(persons(2)):
        honest.wait(invented(honest, guest, number, "one person"))
        for hours in (1, 2, 4, 6, 6, *[12] * 4):
            honest.go_on(hours=hours)
        honest.clock.forward(hours=12)
        assert Counter(together(honest, griefers.work, 1, 1)) == {"1": 1, "0": 1}
    assert standing(honest) == Standing(
        5.0,
        verified=3,
        unconfirmed=2,
        unconfirmed_mean=1.0,
        unanswered=1,
        shown=(*HONEST.shown, *("unconfirmed, none",) * 2),
    )


def test_the_same_again_and_again_is_one_submission(hosted: Hosted) -> None:
    hosted.site.down = 503
    body = invented(hosted, GUEST, 1)
    done = together(hosted, griefers.review, *[[encoded(body)] * 8] * 2)
    # Who comes while it is being taken in may be told that one waits.
    assert set(done) <= {"waits", "quota_exceeded"}
    assert hosted.wait(body).repeated
    assert waiting(hosted) == 1
    assert len(hosted.site.asked) <= 3


def test_claims_are_counted_though_they_are_refused(honest: Hosted) -> None:
    """A claim without a receipt has the host asked, and is denied: 20 times a day, and not as often as one likes."""
    honest.clock.now = BOOKED
    bodies = [claim(honest.site.speaker, GUESTS[5], f"INVENTED-{number}") for number in range(24)]
    done = together(honest, griefers.claim, *halves(bodies))
    assert Counter(done) == {"booking_denied": claims.CLAIMS_PER_PERSON.count, "quota_exceeded": 4}
    assert len(honest.site.asked) == claims.CLAIMS_PER_PERSON.count == 20


# Many credentials of one person


def test_another_did_makes_nobody_another_person(honest: Hosted) -> None:
    """Whoever has one booking reviews it once, by whatever DID; and the same DID once, by whatever issuer."""
    first, second = persons(2)
    draft = trust(honest.reviewing.ledger.issuers(), "guest", OTHER_ISSUER.did, [], None)
    assert draft is not None
    honest.reviewing.add(draft)
    honest.reviewing.ledger.reader.refresh()
    for who, shown in (
        (first, credential(first, "one person")),
        (second, credential(second, "one person")),
        (first, credential(first, "somebody there", issuer=OTHER_ISSUER)),
    ):
        receipt = honest.receipt(who, "B-9")
        body = honest.review(who, "B-9", ratings=BAD, booking_evidence=receipt, guest_credential=shown)
        if who is first and shown["issuer"] == IDV:
            honest.take(body)
        else:
            assert refused(honest, body) == "already_reviewed"
    assert standing(honest).verified == 4


def test_another_issuer_makes_another_person(honest: Hosted) -> None:
    """What is left: nobody can tell that the same passport was shown to two issuers. Each counts."""
    draft = trust(honest.reviewing.ledger.issuers(), "guest", OTHER_ISSUER.did, [], None)
    assert draft is not None
    honest.reviewing.add(draft)
    honest.reviewing.ledger.reader.refresh()
    for guest, issuer in zip(persons(2), (ISSUER, OTHER_ISSUER), strict=True):
        body = invented(honest, guest, 1, guest_credential=credential(guest, "one person", issuer=issuer))
        assert refused(honest, body) == "booking_denied"
    assert standing(honest).denied == 2


def test_two_dids_of_a_person_make_no_liar_of_the_host(honest: Hosted) -> None:
    """The host says, truly, that it knows the booking as another guest's; then that guest comes with the receipt. One
    person is both, which the host cannot know: it denied one DID and gave the receipt to the other."""
    booked, other = persons(2)
    honest.site.book(booked, "B-9")
    without = honest.review(other, "B-9", ratings=BAD, guest_credential=credential(other, "one person"))
    assert refused(honest, without) == "booking_denied"
    receipt = honest.receipt(booked, "B-9")
    shown = credential(booked, "one person")
    honest.take(honest.review(booked, "B-9", ratings=GOOD, booking_evidence=receipt, guest_credential=shown))
    assert standing(honest) == Standing(
        5.0, verified=4, denied=1, shown=(*HONEST.shown, "guest_verified, stay_receipt")
    )


# Strangers


def test_a_stranger_whose_identity_nobody_verified_has_no_host_asked(honest: Hosted) -> None:
    """An address of electronic mail is all that it takes to have such a credential."""
    level = "email_verified"
    body = invented(honest, GUESTS[5], 1, guest_credential=credential(GUESTS[5], level=level))
    assert refused(honest, body) == "booking_unverifiable"
    honest.clock.now = BOOKED
    shown = credential(GUESTS[5], level=level, now=BOOKED)
    with pytest.raises(Refused) as caught:
        honest.book(claim(honest.site.speaker, GUESTS[5], "INVENTED-1", guest_credential=shown))
    assert caught.value.code == "booking_unverifiable"
    assert honest.site.asked == []
    assert waiting(honest) == 0
    assert standing(honest) == HONEST


# Many persons


def test_sixty_questions_an_hour_for_a_host_exact_with_two_processes(honest: Hosted) -> None:
    """80 persons at once: 60 questions. Those who were too many wait, are asked about later, and denied like the others:
    that they waited is never taken for silence of the host's."""
    honest.clock.forward(hours=1)
    bodies = [invented(honest, guest, number) for number, guest in enumerate(persons(80))]
    done = together(honest, griefers.review, *halves(bodies))
    assert Counter(done) == {"booking_denied": 60, "waits": 20}
    assert len(honest.site.asked) == callback.CALLBACKS_PER_TARGET.count == 60
    for _ in range(4):
        honest.go_on(hours=1)
    assert len(honest.site.asked) == 80
    assert waiting(honest) == 0
    assert standing(honest) == Standing(5.0, verified=3, denied=80, shown=HONEST.shown)


def test_what_fifty_persons_do_to_an_honest_host_in_a_day(honest: Hosted) -> None:
    """Fifty verified identities, each with three invented bookings and a fourth that is not taken. The host is asked 150
    times. Its mean stays 5.0 of 3 reviews; nothing unconfirmed stands beside it; its record has 50 denials more, one
    for each identity that was spent, and will never have another because of these."""
    for guest in persons(50):
        honest.clock.forward(minutes=24 * 60 / 50)
        codes = [refused(honest, invented(honest, guest, number)) for number in range(4)]
        assert codes == ["booking_denied"] * 3 + ["quota_exceeded"]
    assert len(honest.site.asked) == 150
    after = Standing(5.0, verified=3, denied=50, shown=HONEST.shown)
    assert standing(honest) == after
    honest.clock.forward(days=1)
    for guest in persons(50)[:5]:
        assert refused(honest, invented(honest, guest, 9)) == "booking_denied"
    assert standing(honest) == after


def test_what_they_do_to_one_that_is_away_for_three_days(honest: Hosted) -> None:
    """The worst that invented bookings do: 50 unconfirmed reviews with their mean of 1.0 beside the mean of 5.0, and 50
    times that the host did not answer. No person gets a second one in before the first is decided."""
    honest.site.down = 503
    made = []
    for guest in persons(50):
        honest.clock.forward(minutes=2)
        made.append(honest.wait(invented(honest, guest, 1)))
        assert refused(honest, invented(honest, guest, 2)) == "quota_exceeded"
    for hours in (0.2, 0.8, 1, 2, 6, *[12] * 6, 1):
        honest.go_on(hours=hours)
    assert {decided(honest, each) for each in made} == {"accepted"}
    assert standing(honest) == Standing(
        5.0,
        verified=3,
        unconfirmed=50,
        unconfirmed_mean=1.0,
        unanswered=50,
        shown=(*HONEST.shown, *("unconfirmed, none",) * 50),
    )


def test_a_thief_of_credentials_spends_nobodys_quota(hosted: Hosted) -> None:
    """Every host has copies of its guests' credentials. Without the guest's key they count for nothing."""
    hosted.site.down = 503
    body = invented(hosted, GUEST, 1)
    for number in range(5):
        stolen = {**body, "booking_reference": f"STOLEN-{number}", "proof": body["proof"]}
        with pytest.raises(NotAccepted, match="signature"):
            hosted.take(stolen)
    assert isinstance(hosted.take(body), Waiting)
    assert waiting(hosted) == 1


def waiting(hosted: Hosted) -> int:
    with hosted.reviewing.ledger.store.read() as connection:
        return int(run(connection, "SELECT count(*) FROM submission WHERE due_at IS NOT NULL")[0][0])
