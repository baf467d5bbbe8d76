"""OpenSTR RFC-005 7.3, what is let in."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ledger.identity.issuers import distrust
from tests.api.site import Person, Site, problem
from tests.identities import IDV, NOW, Speaker
from tests.interop.rfc005 import CATEGORIES, left_on
from tests.reviewing import DOMAIN, credential, resigned, review, stay_receipt, unsigned
from tests.security.verdicts import subject

# 7.3 Review validation


@pytest.mark.parametrize("stars", [5.0, 5, 4.5])
def test_a_valid_credential_of_a_trusted_provider(site: Site, host: Person, guest: Person, stars: float) -> None:
    """7.3.1 the guest_credential is valid, and issued by a trusted credential provider. 5 and 5.0 are one number."""
    receipt = site.review(guest, host, ratings=dict.fromkeys(CATEGORIES, stars))
    entry = json.loads(receipt["entry"])
    assert (entry["level"], entry["evidence"]["issuer"]) == ("guest_verified", IDV)
    assert entry["evidence"]["idv_level"] == "identity_verified"


@pytest.mark.parametrize("code", ["issuer_not_trusted", "expired", "not_yet_valid", "proof_invalid", "holder_mismatch"])
def test_a_credential_that_does_not_count(site: Site, host: Person, guest: Person, code: str) -> None:
    """7.3.1 a credential of an unknown provider, out of its time, forged, or somebody else's, is none."""
    shown: dict[str, Callable[[], Any]] = {
        "issuer_not_trusted": lambda: credential(guest, issuer=Speaker(9, "https://other.example", "/keys/1")),
        "expired": lambda: credential(guest, now=NOW - timedelta(days=71)),
        "not_yet_valid": lambda: credential(guest, now=NOW + timedelta(days=11)),
        "proof_invalid": lambda: subject(credential(guest), idv_level="payment_verified"),
        "holder_mismatch": lambda: credential(Person("somebody else")),
    }
    problem(site.submit(review(guest, host, guest_credential=shown[code]())), code)
    assert site.reputation(host)["total_reviews"] == 0


def test_a_provider_that_is_not_trusted_any_more(own: Site, host: Person, guest: Person) -> None:
    """7.3.1 trust is as it is now: what counted before stands, and is marked; what comes later does not count."""
    own.review(guest, host)
    own.add(distrust(own.ledger.issuers(), "guest", IDV, None))
    problem(own.submit(review(guest, host, "B-2")), "issuer_not_trusted")
    record = own.reputation(host)
    assert record["verified_reviews"] == 1
    assert record["review_history"][0]["issuer_status"] == "removed"
    assert record["issuers"] == [{"issuer": IDV, "status": "removed", "reviews": 1}]


def test_the_booking_is_the_hosts_word(site: Site, host: Person, guest: Person) -> None:
    """7.3.2 the booking_reference is of a booking that the host confirms: by its signature under a receipt."""
    receipt = site.review(guest, host)
    assert json.loads(receipt["entry"])["evidence"]["booking"] == "stay_receipt"


@pytest.mark.parametrize(
    "which",
    ["nothing", "another reference", "another listing", "another host", "another guest", "earlier", "later", "forged"],
)
def test_a_booking_that_the_host_does_not_confirm(site: Site, host: Person, guest: Person, which: str) -> None:
    """7.3.2 without the host's word for this very stay, and without anybody to ask, there is no review; and dates are
    those that were booked."""
    evidence: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        "another reference": lambda: stay_receipt(guest, host, "B-2"),
        "another listing": lambda: stay_receipt(guest, host, listing_id="loft-2"),
        "another host": lambda: stay_receipt(guest, Person("another host")),
        "another guest": lambda: stay_receipt(Person("another guest"), host),
        "earlier": lambda: stay_receipt(guest, host, check_out="2026-05-23"),
        "later": lambda: stay_receipt(guest, host, check_in="2026-05-21"),
        "forged": lambda: resigned(stay_receipt(guest, host), guest, domain=None),
    }
    code = "booking_unverifiable" if which == "nothing" else "booking_evidence_invalid"
    refused = problem(site.submit(review(guest, host, booking_evidence=evidence[which]())), code)
    assert refused["refusal"]["code"] == code
    assert site.reputation(host)["total_reviews"] == 0


def test_actual_dates_inside_of_the_booked_ones(site: Site, host: Person, guest: Person) -> None:
    """7.3.2 who came later or left earlier than booked has stayed nevertheless: 7.2 asks for the actual dates."""
    receipt = stay_receipt(guest, host, check_in="2026-05-01", check_out="2026-05-31")
    site.review(guest, host, booking_evidence=receipt)
    assert site.reputation(host)["review_history"][0]["check_in"] == "2026-05-20"


def test_the_check_out_date_has_passed(own: Site, host: Person, guest: Person) -> None:
    """7.3.3 the day of check-out is over: where no time zone is known, everywhere on Earth (12:00 UTC of the day after).
    What was refused the second before is taken then, signed anew."""
    clock = own.running.clock
    clock.now = NOW - timedelta(seconds=1)
    problem(own.submit(left_on("2026-05-31", guest, host, now=clock())), "stay_not_over")
    clock.now = NOW
    assert own.submit(left_on("2026-05-31", guest, host, now=clock())).status_code == 201
    problem(own.submit(left_on("2026-06-01", guest, host, "B-2")), "stay_not_over")
    problem(own.submit(left_on("2026-06-20", guest, host, "B-2")), "stay_not_over")


def test_a_stay_of_long_ago(site: Site, host: Person, guest: Person) -> None:
    """7.3.3 a check-out 365 days ago has passed; of more this ledger has no evidence worth keeping."""
    assert site.submit(left_on("2025-06-01", guest, host)).status_code == 201
    problem(site.submit(left_on("2025-05-31", guest, host, "B-2")), "too_late")


def test_one_review_per_booking(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 a guest may not submit more than one review per booking reference."""
    first = own.review(guest, host)
    for again in (
        review(guest, host, review_text="On second thoughts."),
        review(guest, host, ratings=dict.fromkeys(CATEGORIES, 1)),
        review(guest, host, now=NOW + timedelta(seconds=1)),
    ):
        problem(own.submit(again), "already_reviewed")
    record = own.reputation(host)
    assert [listed["review_id"] for listed in record["review_history"]] == [first["review_id"]]
    # Another booking is another review; and the same guest is known to have been here.
    own.review(guest, host, "B-2")
    assert [listed["repeat"] for listed in own.reputation(host)["review_history"]] == [True, False]


def test_one_review_per_booking_and_person(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 another key does not make another guest: the provider says who it is."""
    own.review(guest, host)
    second = Person(f"second key of {guest.did}")
    same = credential(second, credential(guest)["credentialSubject"]["issuer_guest_id"])
    problem(own.submit(review(second, host, guest_credential=same)), "already_reviewed")


def test_the_rule_is_about_the_guest(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 nobody can take another's turn: two guests of one booking both may, and the record shows that they did; the
    reference of a booking at another host is another booking."""
    other, elsewhere = Person(f"other {guest.did}"), Person(f"elsewhere {host.did}")
    own.review(guest, host)
    own.review(other, host)
    own.review(guest, elsewhere)
    assert own.reputation(host)["verified_reviews"] == 2
    assert own.reputation(host)["statistics"]["checks"]["conflict"] == 1
    assert own.reputation(elsewhere)["statistics"]["checks"]["conflict"] == 0


def test_the_same_submission_again(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 a review that is sent twice is one review: the guest gets the first receipt again, also after hours."""
    sent = review(guest, host)
    first, second = own.submit(sent), own.submit(sent)
    own.running.clock.forward(hours=3)
    third = own.submit(sent)
    assert [answer.status_code for answer in (first, second, third)] == [201, 200, 200]
    assert first.json() == second.json() == third.json()
    assert own.reputation(host)["total_reviews"] == 1


def test_refusals_are_structured(site: Site, host: Person, guest: Person) -> None:
    """7.3 structured errors: RFC 9457, with a code for programs, words for people, and each field that is wrong."""
    body = guest.sign(
        {**unsigned(guest, host), "listing_id": "a b", "review_text": 5, "booking_reference": ""}, domain=DOMAIN
    )
    refused = problem(site.submit(body), "schema_invalid")
    assert {error["field"] for error in refused["errors"]} == {"listing_id", "review_text", "booking_reference"}
    explained = site.get(refused["type"].removeprefix(DOMAIN)).json()
    assert (explained["code"], explained["status"]) == ("schema_invalid", 400)
