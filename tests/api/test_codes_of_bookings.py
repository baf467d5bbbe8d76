"""Every code by which a review is refused for what its host says, and a notice, a claim, evidence that comes later, a
request for feedback, or a question about a submission for itself."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.reviews.listings import add_listing
from tests.api.hosts_and_guests import NEXT, add_host, asking, feedback_request, state, wait_out
from tests.api.refusals import BROWN, REFERENCES, Case, Make, Sent, body, first_review, raw, try_refusal
from tests.api.site import Person, Site
from tests.hosting import HostSite, claim, evidence, notice
from tests.identities import NOW, REVIEW_ID, THIEF, Speaker
from tests.reviewing import DOMAIN, GUEST, HOST, OTHER_HOST, credential, resigned, review, stay_receipt

BOOKINGS = "/v1/bookings"
DAY = timedelta(days=1)
LATER: dict[str, Any] = {"check_in": "2026-06-10", "check_out": "2026-06-14"}


def guest_of(name: str) -> Person:
    return Person(f"guest of {name}")


def asked(name: str, prepare: Callable[[HostSite], None], *, claimed: bool = False) -> Make:
    """A review, or a claim, of which only the host can say whether it was booked, and what that has to say."""

    def make(site: Site, stack: ExitStack) -> Sent:
        host = add_host(site, f"{name}.example")
        prepare(host)
        if claimed:
            return Sent(claim(host.speaker, guest_of(name), now=NOW, **NEXT), BOOKINGS)
        return Sent(asking(guest_of(name), host.speaker))

    return make


def nothing_booked(host: HostSite) -> None:
    """It signs that it does not know the booking."""


def booked_by(name: str, **changes: Any) -> Callable[[HostSite], None]:
    return lambda host: host.book(guest_of(name), **changes)


def cancelled(site: Site, stack: ExitStack) -> Sent:
    """Before the day of check-in; the receipt that the guest has is void as well."""
    site.post(BOOKINGS, notice(HOST, BROWN, "B-1", "cancelled", now=NOW, **LATER))
    site.running.clock.forward(days=15)
    now = site.running.clock()
    receipt = stay_receipt(BROWN, **LATER)
    shown = credential(BROWN, now=now)
    return Sent(review(BROWN, now=now, booking_evidence=receipt, guest_credential=shown, **LATER))


def cancelled_claim(site: Site, stack: ExitStack) -> Sent:
    guest = Person("Cancelled")
    assert site.post(BOOKINGS, notice(HOST, guest, "C-1", "cancelled", now=NOW, **NEXT)).status_code == 201
    receipt = stay_receipt(guest, reference="C-1", **NEXT)
    return Sent(claim(HOST, guest, "C-1", now=NOW, booking_evidence=receipt, **NEXT), BOOKINGS)


def claimed(what: Callable[[str], Any] | None = None, **changes: Any) -> Make:
    """A claim with a receipt, unless it has other evidence."""

    def make() -> Any:
        reference = next(REFERENCES)
        shown = stay_receipt(BROWN, reference=reference, **NEXT) if what is None else what(reference)
        return claim(HOST, BROWN, reference, **{"now": NOW, "booking_evidence": shown, **NEXT, **changes})

    return body(make, path=BOOKINGS)


def noticed(host: Speaker = HOST, signer: Speaker | None = None, **changes: Any) -> Make:
    def make() -> Any:
        made = notice(host, BROWN, next(REFERENCES), **{"now": NOW, **NEXT, **changes})
        return made if signer is None else resigned(made, signer)

    return body(make, path=BOOKINGS)


def older_notice(site: Site, stack: ExitStack) -> Sent:
    """Another one, made earlier, comes later."""
    newer = notice(HOST, BROWN, "O-1", now=NOW - DAY, **NEXT)
    assert site.post(BOOKINGS, newer).status_code == 201
    return Sent(notice(HOST, BROWN, "O-1", "cancelled", now=NOW - 2 * DAY, **NEXT), BOOKINGS)


def older_claim(site: Site, stack: ExitStack) -> Sent:
    def made(ago: timedelta) -> Any:
        given = stay_receipt(BROWN, reference="O-2", **NEXT)
        return claim(HOST, BROWN, "O-2", now=NOW - ago, booking_evidence=given, **NEXT)

    assert site.post(BOOKINGS, made(DAY)).status_code == 201
    return Sent(made(2 * DAY), BOOKINGS)


def with_an_unknown_key(site: Site, stack: ExitStack) -> Sent:
    """A receipt by a key that the host has not, and was never seen to have; and nobody else can be asked."""
    host = add_host(site, "rotated.example", known=False)
    before = Speaker(77, host.speaker.did)
    return Sent(review(BROWN, host.speaker, "R-1", booking_evidence=stay_receipt(BROWN, before, "R-1")))


def unidentified(site: Site, stack: ExitStack) -> Sent:
    host = add_host(site, "askable.example")
    host.book(BROWN)
    stack.callback(lambda: host.asked == [] or pytest.fail("it was asked"))
    return Sent(asking(BROWN, host.speaker, guest_credential=credential(BROWN, level="email_verified")))


def unspeakable(site: Site, stack: ExitStack) -> Sent:
    """A reference that would lead to another address."""
    return Sent(asking(BROWN, add_host(site, "dots.example").speaker, ".."))


def without_an_endpoint(site: Site, stack: ExitStack) -> Sent:
    """The listing is known, and not where to ask."""
    host = add_host(site, "quiet.example", known=False)
    with site.ledger.store.write() as connection:
        add_listing(connection, host.speaker.did, "rose-cottage", "Europe/London", "operator")
    return Sent(asking(BROWN, host.speaker))


# Evidence that comes later.


def unconfirmed(site: Site, name: str) -> tuple[HostSite, Person, str]:
    """A review that nobody confirmed."""
    host, guest = add_host(site, f"{name}.example"), guest_of(name)
    host.down = 503
    waiting = site.submit(asking(guest, host.speaker)).json()
    wait_out(site)
    return host, guest, state(site, waiting["submission_id"])["receipt"]["review_id"]


def supplied(what: str) -> Make:
    def make(site: Site, stack: ExitStack) -> Sent:
        host, guest, review_id = unconfirmed(site, f"{what.replace(' ', '-')}")
        now, other = site.running.clock(), Person("other")
        made: dict[str, Callable[[], Any]] = {
            "forged": lambda: evidence(review_id, resigned(given(), guest, domain=None), guest, now=now),
            "other dates": lambda: evidence(review_id, given(check_out="2026-05-23"), guest, now=now),
            "an unknown key": lambda: evidence(
                review_id, stay_receipt(guest, Speaker(77, host.speaker.did)), guest, now=now
            ),
            "another guest": lambda: evidence(review_id, stay_receipt(other, host.speaker), other, now=now),
            "another booking": lambda: evidence(review_id, given(reference="B-2"), guest, now=now),
            "signed by another": lambda: resigned(evidence(review_id, given(), guest, now=now), other, now=now),
            "host down": lambda: evidence(review_id, given(), guest, now=now),
            "old": lambda: evidence(review_id, given(), guest, now=now - timedelta(minutes=6)),
        }

        def given(reference: str = "B-1", **changes: Any) -> Any:
            return stay_receipt(guest, host.speaker, reference, **changes)

        if what == "host down":
            # What is remembered of its keys is of later than the receipt.
            site.outside.take_down(host.name)
            site.running.clock.forward(minutes=6)
            now = site.running.clock()
        return Sent(made[what](), f"/v1/reviews/{review_id}/evidence")

    return make


def to_a_verified_one(site: Site, stack: ExitStack) -> Sent:
    review_id = first_review(site)
    return Sent(evidence(review_id, stay_receipt(GUEST), now=NOW), f"/v1/reviews/{review_id}/evidence")


def by_web(site: Site, name: str, make: Callable[[Speaker], Any], path: str) -> Sent:
    """What a host says now, whose document is not to be had."""
    site.outside.host(name)
    site.outside.take_down(name)
    return Sent(make(Speaker(8, f"did:web:{name}", "#key-1")), path)


CASES = [
    # What the host says of the booking of a review.
    *(
        Case("booking_denied", what, asked(name, prepare), signed=True, appended=("booking_check",))
        for what, name, prepare in (
            ("not known", "unknowing", nothing_booked),
            ("another guest's", "mistaken", booked_by("somebody else")),
            ("declined", "declining", booked_by("declining", status="declined")),
            ("expired", "expiring", booked_by("expiring", status="expired")),
            (
                "cancelled before check-in",
                "cancelling",
                booked_by("cancelling", status="cancelled", cancelled_at="2026-05-19T22:59:59Z"),
            ),
        )
    ),
    Case("booking_denied", "a claim", asked("unclaimed", nothing_booked, claimed=True), signed=True),
    Case(
        "booking_dates_mismatch",
        "left earlier",
        asked("short", booked_by("short", check_out="2026-05-23")),
        signed=True,
    ),
    Case(
        "booking_dates_mismatch",
        "a claim",
        asked("moved", booked_by("moved", check_in="2026-07-11", check_out="2026-07-14"), claimed=True),
        signed=True,
    ),
    Case("booking_cancelled", "in time", cancelled, signed=True, alone={}, others=True),
    Case("booking_cancelled", "a claim", cancelled_claim, signed=True),
    # Nothing shows it, and nobody can be asked.
    Case("booking_unverifiable", "a key that nobody has seen", with_an_unknown_key, signed=True),
    Case("booking_unverifiable", "a guest whose identity nobody verified", unidentified, signed=True),
    Case("booking_unverifiable", "a reference that is a path", unspeakable, signed=True),
    Case("booking_unverifiable", "no endpoint", without_an_endpoint, signed=True),
    Case("booking_unverifiable", "a claim", claimed(lambda _: None), signed=True),
    Case("booking_unverifiable", "a claim with a note", claimed(lambda _: "B-1"), signed=True),
    # Claims.
    Case("claim_too_late", "on the day", claimed(check_in="2026-06-01", check_out="2026-06-04"), signed=True),
    Case(
        "claim_too_late", "it has begun at UTC+14", claimed(check_in="2026-06-02", check_out="2026-06-04"), signed=True
    ),
    Case("notice_outdated", "a claim", older_claim, signed=True),
    Case("self_review", "a claim of the host", body(lambda: claim(HOST, HOST, now=NOW, **NEXT), path=BOOKINGS)),
    Case("booking_evidence_invalid", "a claim", claimed(lambda _: stay_receipt(GUEST, **NEXT)), signed=True),
    Case("holder_mismatch", "a claim", body(lambda: resigned(claim(HOST, BROWN, now=NOW), THIEF), path=BOOKINGS)),
    Case("expired", "a claim", claimed(guest_credential=credential(BROWN, now=NOW - 100 * DAY))),
    Case(
        "wrong_domain",
        "a claim",
        body(lambda: resigned(claim(HOST, BROWN), BROWN, domain="https://a.example"), path=BOOKINGS),
    ),
    # Notices.
    Case("notice_outdated", "a notice", older_notice, signed=True),
    Case("not_the_host", "a notice", noticed(signer=OTHER_HOST)),
    Case("proof_invalid", "a notice", noticed(signer=Speaker(4, HOST.did, f"#{HOST.multikey}"))),
    Case(
        "bad_verification_method",
        "a notice",
        noticed(signer=Speaker(3, HOST.did, "#key-1")),
    ),
    Case("stale_proof", "a notice from the future", noticed(now=NOW + timedelta(minutes=6))),
    Case(
        "date_invalid", "in three years", noticed(check_in="2029-01-01", check_out="2029-01-05"), fields=("check_out",)
    ),
    Case("too_late", "three months ago", noticed(check_in="2026-02-01", check_out="2026-03-03")),
    Case(
        "host_did_unavailable",
        "a notice",
        lambda site, _: by_web(
            site, "absent-notice.example", lambda host: notice(host, BROWN, now=NOW, **NEXT), BOOKINGS
        ),
        retry_after=30,
    ),
    Case("schema_invalid", "neither", raw(b'{"type": "ReviewSubmission"}', path=BOOKINGS), fields=("type",)),
    Case("schema_invalid", "nothing at all", raw(b"[]", path=BOOKINGS), fields=("type",)),
    Case("unsupported_media_type", "a notice", raw(b"{}", path=BOOKINGS, media_type="text/plain")),
    # Submissions.
    Case(
        "submission_not_found",
        "nobody's",
        lambda site, _: Sent(None, f"/v1/submissions/sub-{'a' * 26}", method="GET"),
    ),
    Case(
        "parameter_invalid",
        "no id",
        lambda site, _: Sent(None, "/v1/submissions/sub-1", method="GET"),
        fields=("submission_id",),
    ),
    # Evidence that comes later.
    Case("already_verified", "verified", to_a_verified_one),
    Case(
        "review_not_found",
        "evidence",
        body(lambda: evidence(REVIEW_ID, stay_receipt(GUEST), now=NOW), path=f"/v1/reviews/{REVIEW_ID}/evidence"),
    ),
    Case(
        "schema_invalid",
        "evidence to another address",
        body(lambda: evidence(REVIEW_ID, stay_receipt(GUEST), now=NOW), path=f"/v1/reviews/{REVIEW_ID[:-1]}e/evidence"),
        fields=("review_id",),
    ),
    Case("booking_evidence_invalid", "later: forged", supplied("forged"), alone={}, others=True),
    Case("booking_evidence_invalid", "later: other dates", supplied("other dates"), alone={}, others=True),
    Case("booking_unverifiable", "later: an unknown key", supplied("an unknown key"), alone={}, others=True),
    Case("holder_mismatch", "later: another guest", supplied("another guest"), alone={}, others=True),
    Case("holder_mismatch", "later: another booking", supplied("another booking"), alone={}, others=True),
    Case("booking_evidence_invalid", "later: signed by another", supplied("signed by another"), alone={}, others=True),
    Case("stale_proof", "later: of six minutes ago", supplied("old"), alone={}, others=True),
    Case(
        "host_did_unavailable",
        "later: the host is down",
        supplied("host down"),
        alone={},
        others=True,
        retry_after=30,
    ),
    # Feedback.
    Case("not_the_host", "feedback", body(lambda: resigned(feedback_request(HOST), THIEF), path="/v1/feedback")),
    Case(
        "stale_proof",
        "feedback",
        body(lambda: feedback_request(HOST, now=NOW - timedelta(minutes=6)), path="/v1/feedback"),
    ),
    Case("wrong_domain", "feedback", body(lambda: feedback_request(HOST, domain=f"{DOMAIN}/"), path="/v1/feedback")),
    Case(
        "host_did_unavailable",
        "feedback",
        lambda site, _: by_web(site, "absent-feedback.example", feedback_request, "/v1/feedback"),
        retry_after=30,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    try_refusal(case, request, tmp_path)
