"""`staylog booking notice` and `staylog booking claim`, against a service on a socket and a real host's endpoint."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.clock import utc_now
from ledger.identity.statements import verify
from ledger.reviews.guest_binding import matches
from tests.hosting import HostSite, notice
from tests.identities import Speaker, did_document
from tests.ledger.commands import served
from tests.ledger.commands.served import RATED, TODAY, Place, accepted, booking, days_ago, refused, staylog, write_key
from tests.reviewing import GUEST, GUESTS, HOST, resigned, stay_receipt
from tests.waiting import until

place, here = served.place, served.here


def in_days(days: int) -> str:
    return str(TODAY + timedelta(days=days))


AHEAD: dict[str, Any] = {"check_in": in_days(10), "check_out": in_days(14)}


def stay(reference: str, *, check_in: str = AHEAD["check_in"], check_out: str = AHEAD["check_out"]) -> list[str]:
    return ["--reference", reference, "--listing", "rose-cottage", "--check-in", check_in, "--check-out", check_out]


def load(path: Path) -> Any:
    return json.loads(path.read_bytes())


@pytest.fixture
def host_key(here: Path) -> str:
    return write_key(here / "host.key", HOST)


def noticed(host_key: str, reference: str, *more: str, guest: Speaker = GUEST, **days: str) -> Any:
    return booking("notice", "--key", host_key, "--guest", guest.did, *stay(reference, **days), *more)


def test_a_host_sends_a_notice_that_does_not_name_the_guest(place: Place, here: Path, host_key: str) -> None:
    output = accepted(noticed(host_key, "N-1"))
    for told in (
        "signed     notice.json",
        f"kept       N-1: rose-cottage, {AHEAD['check_in']} to {AHEAD['check_out']}, confirmed",
        "it came before check-in: a review of this stay needs nothing more from you",
        f"until      {in_days(14 + 90)}, when the ledger erases it",
    ):
        assert told in output
    made = load(here / "notice.json")
    heard = verify(made, "BookingNotice", domain=place.url, now=utc_now(), resolve=lambda _: {HOST.method: HOST.public})
    assert heard.speaker == HOST.did
    assert GUEST.did not in json.dumps(made)
    assert matches(made["guest_binding"], GUEST.did)
    assert (here / "notice.json").stat().st_mode & 0o777 == 0o600
    output = accepted(booking("notice", "--again", "notice.json"))
    assert "the ledger had this notice already" in output


def test_each_notice_has_its_file_and_its_nonce(place: Place, here: Path, host_key: str) -> None:
    accepted(noticed(host_key, "N-2"))
    assert "signed     notice-2.json" in accepted(noticed(host_key, "N-3"))
    first, second = (load(here / name)["guest_binding"] for name in ("notice.json", "notice-2.json"))
    assert len({first["nonce"], second["nonce"], first["value"], second["value"]}) == 4
    refused(noticed(host_key, "N-4", "--submission", "notice.json"), "file_exists")


def test_a_cancellation_and_what_came_late_are_told(place: Place, here: Path, host_key: str) -> None:
    output = accepted(noticed(host_key, "N-5", "--status", "cancelled"))
    assert "there will be no review of this stay" in output
    days: dict[str, Any] = {"check_in": days_ago(3), "check_out": in_days(3)}
    assert "after check-in had begun, and is worth no more" in accepted(noticed(host_key, "N-6", **days))
    output = accepted(noticed(host_key, "N-7", "--status", "cancelled", **days))
    assert "for nothing: it came after check-in had begun" in output


def test_who_keeps_the_calendar_signs_with_its_own_key(place: Place, here: Path) -> None:
    site = place.host("inn.example")
    calendar = Speaker(91, site.speaker.did, "#calendar")
    place.outside.put("https://inn.example/.well-known/did.json", did_document(site.speaker, calendar))
    key = write_key(here / "calendar.key", calendar)
    output = accepted(noticed(key, "N-8", "--did", site.speaker.did, "--verification-method", calendar.method))
    assert "it came before check-in" in output
    assert load(here / "notice.json")["proof"]["verificationMethod"] == calendar.method
    stranger = write_key(here / "stranger.key", Speaker(92))
    refused(noticed(stranger, "N-9", "--did", site.speaker.did), "bad_verification_method")


def test_a_review_rests_on_a_notice(place: Place, here: Path, host_key: str) -> None:
    days: dict[str, Any] = {"check_in": days_ago(14), "check_out": days_ago(10)}
    place.clock.ahead = -timedelta(days=30)
    signed = notice(HOST, reference="N-10", now=place.clock(), **days)
    signed = resigned(signed, HOST, now=place.clock(), domain=place.url)
    (here / "notice.json").write_text(json.dumps(signed))
    accepted(booking("notice", "--again", "notice.json"))
    place.clock.ahead = timedelta()
    output = accepted(
        staylog("submit", *place.identified(here, GUEST), "--host", HOST.did, *stay("N-10", **days), *RATED)
    )
    assert "guest_verified, by booking_notice" in output
    assert "shown by the host's notice of it" in output
    assert load(here / "receipt.json")["booking"] == signed


def test_notices_that_no_ledger_would_take(place: Place, here: Path, host_key: str) -> None:
    for more, code in (
        (["--guest", "somebody"], "did_not_canonical"),
        (["--check-out", AHEAD["check_in"]], "date_invalid"),
        (["--listing", "not a listing"], "schema_invalid"),
        (["--key", "none.key"], "key_unreadable"),
        (["--ledger", "ftp://x"], "settings_invalid"),
    ):
        refused(noticed(host_key, "N-11", *more), code)
    assert not (here / "notice.json").exists()
    for arguments, told in (
        ([], "missing: --key, --reference, --listing, --guest, --check-in, --check-out"),
        (["--key", host_key, "--status", "maybe"], "'maybe' is not one of"),
    ):
        done = booking("notice", *arguments)
        assert (done.exit_code, told in done.output) == (2, True), done.output
    output = refused(noticed(host_key, "N-12", check_in=in_days(700), check_out=in_days(740)), "date_invalid")
    assert "To send another one" in output
    done = booking("notice", "--again", "notice.json", "--status", "cancelled")
    assert (done.exit_code, "--status cannot change it" in done.output) == (2, True)


def claimed(place: Place, here: Path, *options: str, guest: Speaker = GUEST) -> Any:
    return booking("claim", *place.identified(here, guest), *options)


def test_a_claim_with_a_receipt_is_verified_at_once(place: Place, here: Path) -> None:
    (here / "stay-receipt.json").write_text(json.dumps(stay_receipt(GUEST, HOST, "C-1", now=utc_now(), **AHEAD)))
    output = accepted(claimed(place, here, "--receipt", "stay-receipt.json"))
    for told in (
        "signed     claim.json",
        f"verified   C-1: rose-cottage, {AHEAD['check_in']} to {AHEAD['check_out']}",
        "your review of this stay needs nothing more from the host",
        in_days(14 + 90),
    ):
        assert told in output
    assert "the ledger had this claim already" in accepted(booking("claim", "--again", "claim.json"))


def test_a_claim_that_the_host_confirms(place: Place, here: Path) -> None:
    site = place.host("barn.example")
    site.book(reference="C-2", **AHEAD)
    assert "verified   C-2" in accepted(claimed(place, here, "--host", site.speaker.did, *stay("C-2")))
    assert site.asked == ["C-2"]
    output = refused(claimed(place, here, "--host", site.speaker.did, *stay("C-3")), "booking_denied")
    assert "claim-2.refusal.json is the ledger's signed refusal" in output


@pytest.fixture
def waiting(place: Place, here: Path) -> HostSite:
    """A host that was silent when a guest claimed."""
    name = f"h{here.stat().st_ino}.example"
    site = place.host(name)
    site.book(reference="C-4", **AHEAD)
    site.down = 500
    output = accepted(claimed(place, here, "--host", site.speaker.did, *stay("C-4"), guest=GUESTS[5]))
    for told in ("if it has not answered by then, the claim is refused", "staylog review status claim.pending.json"):
        assert told in output
    assert "pending" in accepted(staylog("status", "claim.pending.json"))
    return site


def test_a_claim_waits_for_the_host(place: Place, here: Path, waiting: HostSite) -> None:
    waiting.down = None
    waiting.book(GUESTS[5], "C-4", **AHEAD)
    (here / "receipt.json").write_text("of something else")
    place.work(seconds=61)
    until(lambda: "verified   C-4" in accepted(staylog("status", "claim.pending.json")))
    place.clock.ahead = timedelta()


def test_claims_that_no_ledger_would_take(place: Place, here: Path) -> None:
    (here / "stay-receipt.json").write_text(json.dumps(stay_receipt(GUESTS[1], HOST, "C-5", now=utc_now(), **AHEAD)))
    refused(claimed(place, here, "--receipt", "stay-receipt.json"), "booking_evidence_invalid")
    refused(claimed(place, here, "--host", "x", *stay("C-6")), "did_not_canonical")
    assert not (here / "claim.json").exists()
    days = {"check_in": days_ago(1), "check_out": in_days(3)}
    refused(claimed(place, here, "--host", HOST.did, *stay("C-7", **days)), "claim_too_late")
    refused(claimed(place, here, "--host", HOST.did, *stay("C-8")), "booking_unverifiable")
    done = claimed(place, here, "--receipt", "stay-receipt.json", "--reference", "C-9", "--host", HOST.did)
    assert (done.exit_code, "the stay receipt says --host, --reference already" in done.output) == (2, True)
    done = booking("claim")
    missing = "missing: --key, --credential, --host, --reference, --listing, --check-in, --check-out"
    assert (done.exit_code, missing in done.output) == (2, True)
