"""Stay receipts: what fits a stay, what is forged, and of what nobody can say."""

from datetime import timedelta
from typing import Any

import pytest

from ledger.canon import multikey
from ledger.canon.times import format_time
from ledger.errors import BadDID, BadForm, NotAccepted, NotYet, StaylogError, Unavailable
from ledger.identity.archive import Remembered
from ledger.identity.resolution import HostKeys
from ledger.reviews.evidence import check_form, judge, receipt_of
from tests.identities import NOW, Speaker
from tests.reviewing import DOMAIN, GUEST, GUESTS, HOST, OTHER_HOST, stay_receipt, unsigned

NAME = "did:web:cottage.example"
OLD, NEW = Speaker(60, NAME, "#key-1"), Speaker(61, NAME, "#key-2")
# `stay_receipt` signs fifty days before its `now`.
SIGNED = NOW - timedelta(days=50)
DOWN = Unavailable("host_did_unavailable", "down")


def keys(*speakers: Speaker) -> HostKeys:
    return HostKeys({each.method: each.public for each in speakers})


def seen(speaker: Speaker, since: timedelta, until: timedelta) -> Remembered:
    times = format_time(SIGNED + since), format_time(SIGNED + until)
    return Remembered(speaker.method, multikey.encode(speaker.public), *times)


def verdict(receipt: dict[str, Any], host: HostKeys) -> str | None:
    try:
        judge(receipt, host, domain=DOMAIN, now=NOW)
    except StaylogError as refusal:
        return refusal.code
    return None


# Form


def test_only_what_calls_itself_a_receipt_must_have_the_form_of_one() -> None:
    others: list[Any] = [None, {}, [], "receipt", 1, {"type": "Voucher", "a": [1]}]
    for other in others:
        check_form(other)
    check_form(stay_receipt(GUEST))


@pytest.mark.parametrize("length", [16 * 1024, 100_000])
def test_it_is_no_longer_than_a_review(length: int) -> None:
    with pytest.raises(BadForm) as refused:
        check_form({"type": "Voucher", "a": "a" * length})
    assert refused.value.code == "too_large"


def test_where_the_fault_is_is_told() -> None:
    with pytest.raises(BadForm, match=r"^booking_evidence: .*nonce") as refused:
        check_form({**stay_receipt(GUEST), "nonce": 1})
    assert refused.value.errors[0][0] == "booking_evidence.nonce"
    with pytest.raises(BadDID, match=r"^booking_evidence: "):
        check_form({**stay_receipt(GUEST), "guest_did": "did:web:Cottage.example"})


# Whether it is of this stay


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"check_in": "2026-05-01", "check_out": "2026-06-01"}, None),
        ({"check_in": "2026-05-21"}, "booking_evidence_invalid"),
        ({"check_out": "2026-05-23"}, "booking_evidence_invalid"),
        ({"listing_id": "loft"}, "booking_evidence_invalid"),
        ({"booking_reference": "B-2"}, "booking_evidence_invalid"),
        ({"booking_reference": "b-1"}, "booking_evidence_invalid"),
        ({"guest_did": GUESTS[1].did}, "booking_evidence_invalid"),
        ({"host_did": OTHER_HOST.did}, "booking_evidence_invalid"),
    ],
)
def test_it_is_of_the_same_stay(changes: dict[str, Any], code: str | None) -> None:
    body = unsigned(booking_evidence=stay_receipt(GUEST, **changes))
    if code is None:
        assert receipt_of(body, GUEST.did) == body["booking_evidence"]
    else:
        with pytest.raises(NotAccepted) as refused:
            receipt_of(body, GUEST.did)
        assert refused.value.code == code


@pytest.mark.parametrize("other", [None, {}, "receipt", {"type": "BookingNotice"}])
def test_what_is_no_receipt_is_none(other: Any) -> None:
    assert receipt_of({**unsigned(), "booking_evidence": other}, GUEST.did) is None


# Whether it counts


def test_a_key_of_now_signs_at_any_time() -> None:
    for days in (0, 1, 49, 5000):
        receipt = stay_receipt(GUEST, OLD, now=NOW + timedelta(days=50 - days))
        assert verdict(receipt, keys(NEW, OLD)) is None
    future = stay_receipt(GUEST, OLD, now=NOW + timedelta(days=50, minutes=6))
    assert verdict(future, keys(OLD)) == "booking_evidence_invalid"


@pytest.mark.parametrize(
    ("since", "until", "code"),
    [
        (timedelta(0), timedelta(0), None),
        (timedelta(days=-1), timedelta(days=1), None),
        (timedelta(seconds=1), timedelta(days=1), "booking_unverifiable"),
        (timedelta(days=-1), timedelta(seconds=-1), "booking_unverifiable"),
    ],
)
def test_a_remembered_key_signs_for_the_time_in_which_it_was_seen(
    since: timedelta, until: timedelta, code: str | None
) -> None:
    host = HostKeys(keys(NEW).now(), [seen(OLD, since, until)])
    assert verdict(stay_receipt(GUEST, OLD), host) == code
    # The same while nobody can say which keys the host has now; then it is worth to ask again.
    down = HostKeys(DOWN, [seen(OLD, since, until)])
    assert verdict(stay_receipt(GUEST, OLD), down) == (code and "host_did_unavailable")


def test_a_key_that_nobody_has_seen_is_no_evidence_and_no_forgery() -> None:
    with pytest.raises(NotYet, match="ask the host for a new one"):
        judge(stay_receipt(GUEST, OLD), keys(NEW), domain=DOMAIN, now=NOW)
    with pytest.raises(Unavailable):
        judge(stay_receipt(GUEST, OLD), HostKeys(DOWN), domain=DOMAIN, now=NOW)


def test_under_the_name_of_a_current_key_it_is_forged() -> None:
    forger = Speaker(77, NAME, "#key-1")
    assert verdict(stay_receipt(GUEST, forger), keys(OLD)) == "booking_evidence_invalid"
    # Unless another key had this name then.
    host = HostKeys(keys(OLD).now(), [seen(forger, timedelta(0), timedelta(0))])
    assert verdict(stay_receipt(GUEST, forger), host) is None
    # A key whose name says what it is was never another.
    named = Speaker(77, HOST.did, f"#{HOST.multikey}")
    assert verdict(stay_receipt(GUEST, named), keys(HOST)) == "booking_evidence_invalid"


def test_what_was_changed_is_forged_and_what_is_for_another_ledger_does_not_count() -> None:
    receipt = stay_receipt(GUEST, OLD)
    assert verdict({**receipt, "nonce": "changed"}, keys(OLD)) == "booking_evidence_invalid"
    by_another = stay_receipt(GUEST, Speaker(77, "did:web:other.example", "#key-1"), host_did=NAME)
    assert verdict(by_another, keys(OLD)) == "booking_evidence_invalid"
    bare = {name: value for name, value in receipt.items() if name != "proof"}
    for domain, code in ((DOMAIN, None), ("https://other.example", "booking_evidence_invalid")):
        assert verdict(OLD.sign(bare, domain=domain, now=SIGNED), keys(OLD)) == code
