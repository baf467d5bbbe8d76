"""`staylog review submit` without a receipt, `staylog review status` and `staylog review evidence`: what waits for a host,
over a real host's endpoint."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ledger.canon import multikey
from ledger.cli import main
from ledger.clock import utc_now
from ledger.commands import client, words
from tests.hosting import HostSite
from tests.ledger.commands import served
from tests.ledger.commands.served import RATED, Place, accepted, days_ago, refused, serving, staylog
from tests.network import Authority
from tests.reviewing import GUEST, GUESTS, stay_receipt
from tests.waiting import until

here = served.here
STAY: dict[str, Any] = {"check_in": days_ago(14), "check_out": days_ago(10)}
DAYS = ["--listing", "rose-cottage", "--check-in", STAY["check_in"], "--check-out", STAY["check_out"]]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Place]:
    """One for each test: its time goes on."""
    with serving(tmp_path_factory.mktemp("served"), authority) as made:
        yield made


@pytest.fixture
def site(place: Place) -> HostSite:
    made = place.host("mill.example")
    made.book(**STAY)
    return made


def described(place: Place, here: Path, site: HostSite, reference: str = "B-1") -> list[str]:
    """A review without a receipt."""
    stay = ["--host", site.speaker.did, "--reference", reference, *DAYS]
    return [*place.identified(here, GUEST), *stay, *RATED]


def load(path: Path) -> Any:
    return json.loads(path.read_bytes())


def decided(place: Place, here: Path, name: str = "receipt.pending.json") -> None:
    """Whoever works on it is done."""
    until(lambda: client.look_up(*words.place_of(load(here / name)))["status"] != "pending")


def wait(place: Place, here: Path, site: HostSite, *more: str) -> str:
    site.down = 503
    return accepted(staylog("submit", *described(place, here, site), *more))


def test_a_host_that_answers_at_once_is_shown_in_the_receipt(place: Place, here: Path, site: HostSite) -> None:
    output = accepted(staylog("submit", *described(place, here, site), "--feedback", "The tap drips."))
    assert "guest_verified, by callback" in output
    assert "shown by the host's answer when the ledger asked, which is in the receipt as `booking`" in output
    assert "feedback   sealed" in output
    assert load(here / "receipt.json")["booking"]["type"] == "BookingVerification"
    output = accepted(staylog("submit", "--again", "review.json", "--out", "again.json"))
    assert "checked    offline" in output
    key = str(place.ledger.verifier)
    done = CliRunner().invoke(main, ["verify", "receipt.json", "--key", key, "--submission", "review.json"])
    assert "rests on exactly this signed submission" in done.output


def test_what_waits_is_saved_checked_and_explained(place: Place, here: Path, site: HostSite) -> None:
    output = wait(place, here, site)
    answer = load(here / "receipt.pending.json")
    assert answer["intake"]["type"] == "IntakeReceipt"
    assert (here / "receipt.pending.json").stat().st_mode & 0o777 == 0o600
    for told in (
        "taken in   and not decided",
        f"by {answer['intake']['decide_by']} at the latest",
        "published as unconfirmed",
        "with its key #statements",
        "Keep receipt.pending.json and review.json",
        "staylog review status receipt.pending.json",
    ):
        assert told in output
    assert not (here / "receipt.json").exists()
    key = multikey.encode(bytes(place.ledger.keys.statements.verify_key))
    options = ["--key", key, "--submission", "review.json"]
    done = CliRunner().invoke(main, ["verify", "receipt.pending.json", *options])
    assert (done.exit_code, "it is this submission that was taken in" in done.output) == (0, True)
    output = accepted(staylog("status", "receipt.pending.json"))
    assert "pending    nothing shows yet" in output
    assert answer["intake"]["decide_by"] in output
    # The same again is the same answer, and needs no second file.
    accepted(staylog("submit", "--again", "review.json"))
    assert [path.name for path in here.glob("*pending*")] == ["receipt.pending.json"]


def test_another_answer_gets_another_name(place: Place, here: Path, site: HostSite) -> None:
    (here / "receipt.pending.json").write_text("precious")
    assert "Keep receipt.pending-2.json" in wait(place, here, site)
    assert (here / "receipt.pending.json").read_text() == "precious"
    accepted(staylog("status", "receipt.pending-2.json"))


def test_a_host_that_comes_back_confirms(place: Place, here: Path, site: HostSite) -> None:
    wait(place, here, site, "--text", "Dry.", "--feedback", "The tap drips.")
    site.down = None
    place.work(seconds=61)
    decided(place, here)
    output = accepted(staylog("status", "receipt.pending.json", "--log-key", str(place.ledger.verifier)))
    for told in ("accepted   rev-", "guest_verified, by callback", "feedback   sealed", "checked    offline"):
        assert told in output
    assert "first sight" not in output
    assert "--submission review.json" in output
    assert load(here / "receipt.json")["booking"]["type"] == "BookingVerification"
    refused(staylog("status", "receipt.pending.json"), "file_exists")
    assert "accepted" in accepted(staylog("status", "receipt.pending.json", "--out", "more.json"))
    assert load(here / "more.json") == load(here / "receipt.json")


def test_a_host_that_denies_gets_a_signed_refusal(place: Place, here: Path, site: HostSite) -> None:
    wait(place, here, site)
    site.down = None
    site.bookings.clear()
    place.work(seconds=61)
    decided(place, here)
    output = refused(staylog("status", "receipt.pending.json"), "booking_denied")
    assert "review.refusal.json is the ledger's signed refusal" in output
    assert f"explained at {place.url}/problems/booking_denied" in output
    assert "It was decided so; what you signed is in review.json" in output
    assert load(here / "review.refusal.json")["code"] == "booking_denied"
    assert not (here / "receipt.json").exists()


def test_a_silent_host_leaves_a_review_that_evidence_raises(place: Place, here: Path, site: HostSite) -> None:
    """And what the guest is told then is what raises it."""
    wait(place, here, site)
    for _ in range(80):
        place.work(hours=1)
    decided(place, here)
    output = accepted(staylog("status", "receipt.pending.json"))
    assert "level      unconfirmed" in output
    review_id = load(here / "receipt.json")["review_id"]
    assert f"staylog review evidence {review_id} --receipt stay-receipt.json --key KEY" in output
    receipt = stay_receipt(GUEST, site.speaker, now=utc_now(), **STAY)
    (here / "stay-receipt.json").write_text(json.dumps(receipt))
    place.clock.ahead *= 0
    given = ["evidence", review_id, "--key", "guest.key", "--receipt", "stay-receipt.json"]
    output = accepted(staylog(*given))
    for told in (f"accepted   your evidence for {review_id}", "guest_verified, by stay_receipt", "checked    offline"):
        assert told in output
    upgrade = load(here / "evidence-receipt.json")
    assert json.loads(upgrade["entry"])["type"] == "upgrade"
    done = CliRunner().invoke(main, output.splitlines()[-1].split()[1:])
    assert (done.exit_code, "the upgrade rests on exactly this signed submission" in done.output) == (0, True)
    output = accepted(staylog("evidence", "--again", "evidence.json", "--out", "2.json"))
    assert "had this evidence already" in output


def test_a_ledger_that_is_late_is_told(
    place: Place, here: Path, site: HostSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait(place, here, site)
    late = utc_now() + timedelta(days=4)
    monkeypatch.setattr("ledger.commands.status.utc_now", lambda: late)
    output = accepted(staylog("status", "receipt.pending.json"))
    assert "receipt.pending.json and review.json are evidence that the ledger is late" in output


def test_evidence_that_no_ledger_would_take_is_not_sent(place: Place, here: Path, site: HostSite) -> None:
    place.identified(here, GUEST)
    others = stay_receipt(GUESTS[1], now=utc_now(), **STAY)
    forged = {**stay_receipt(GUEST, now=utc_now(), **STAY), "check_out": days_ago(9)}
    review_id = "rev-" + "a" * 26
    for receipt, told in ((others, "another guest"), (forged, "does not count")):
        (here / "stay-receipt.json").write_text(json.dumps(receipt))
        given = ["evidence", review_id, "--key", "guest.key", "--receipt", "stay-receipt.json"]
        assert told in refused(staylog(*given), "booking_evidence_invalid")
    assert not (here / "evidence.json").exists()
    done = staylog("evidence", "--key", "guest.key")
    assert (done.exit_code, "missing: REVIEW_ID, --receipt" in done.output) == (2, True)
    (here / "stay-receipt.json").write_text(json.dumps(stay_receipt(GUEST, now=utc_now(), **STAY)))
    refused(staylog("evidence", review_id, "--key", "guest.key", "--receipt", "stay-receipt.json"), "review_not_found")


def test_what_a_status_is_asked_with_must_fit(place: Place, here: Path, site: HostSite) -> None:
    wait(place, here, site)
    answer, review = load(here / "receipt.pending.json"), load(here / "review.json")
    (here / "elsewhere").mkdir()
    (here / "elsewhere" / "p.json").write_text(json.dumps(answer))
    done = staylog("status", "elsewhere/p.json")
    assert (done.exit_code, "name it with --submission" in done.output) == (2, True)
    accepted(staylog("status", "elsewhere/p.json", "--submission", "review.json"))
    refused(staylog("status", "receipt.pending.json", "--submission", "credential.json"), "receipt_mismatch")
    for change in (
        {"status_url": f"{place.url}/v1/hosts"},
        {"status_url": f"{place.url}/v1/submissions/../../x"},
        {"submission_id": "sub-" + "a" * 26},
        {"status_url": None},
        {"intake": None},
    ):
        (here / "changed.pending.json").write_text(json.dumps({**answer, **change}))
        refused(staylog("status", "changed.pending.json"), "answer_malformed")
    # Where it leads somewhere else, nobody is asked there.
    (here / "changed.pending.json").write_text(
        json.dumps({**answer, "status_url": answer["status_url"].replace("127.0.0.1", "localhost")})
    )
    refused(staylog("status", "changed.pending.json"), "receipt_mismatch")
    unknown = "sub-" + "a" * 25 + "q"
    changed = {**answer, "submission_id": unknown, "status_url": f"{place.url}/v1/submissions/{unknown}"}
    (here / "changed.pending.json").write_text(json.dumps(changed))
    refused(staylog("status", "changed.pending.json"), "submission_not_found")
    assert load(here / "review.json") == review
