"""`staylog review`, as guests and hosts use it, against a service on a socket."""

import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ledger.cli import main
from ledger.clock import utc_now
from ledger.commands import client
from ledger.errors import Unavailable
from ledger.folder import init_folder
from ledger.net.development import Development
from ledger.settings import Settings
from tests.identities import IDV, Speaker
from tests.ledger.commands import served
from tests.ledger.commands.served import TODAY, Place, accepted, days_ago, refused, staylog, write_key
from tests.reviewing import GUESTS, HOST, OTHER_HOST, credential, stay_receipt, unsigned

place, here = served.place, served.here


def test_a_review_is_submitted_and_its_receipt_verifies(place: Place, here: Path) -> None:
    output = accepted(
        staylog("submit", *place.guest_of(here, GUESTS[0]), "--text", "Quiet,\nand dry.", "--location", "3")
    )
    receipt = json.loads((here / "receipt.json").read_bytes())
    entry = json.loads(receipt["entry"])
    assert entry["ratings"] == {
        "overall": 4.5,
        "accuracy": 5,
        "cleanliness": 4,
        "communication": 5,
        "value": 4,
        "location": 3,
    }
    assert receipt["openings"]["text"]["text"] == "Quiet,\nand dry."
    for told in (
        "signed     review.json",
        f"accepted   {receipt['review_id']}",
        f"guest_verified, by stay_receipt and a credential (identity_verified) of {IDV}",
        f"{receipt['index']} of {place.ledger.origin}",
        "believed on first sight",
        str(place.ledger.verifier),
        "Keep receipt.json and review.json",
    ):
        assert told in output
    assert "had this review already" not in output
    assert "NOT delivered" not in output
    for name in ("review.json", "receipt.json"):
        assert (here / name).stat().st_mode & 0o777 == 0o600
    command = shlex.split(output.splitlines()[-1])
    done = CliRunner().invoke(main, command[1:])
    assert done.exit_code == 0, done.output
    assert "rests on exactly this signed submission" in done.output


def test_the_same_file_gets_the_same_receipt_again(place: Place, here: Path) -> None:
    accepted(staylog("submit", *place.guest_of(here, GUESTS[0])))
    size = place.size
    output = accepted(staylog("submit", "--again", "review.json", "--out", "again.json"))
    assert "the ledger had this review already, and gives its receipt again" in output
    assert (here / "again.json").read_bytes() == (here / "receipt.json").read_bytes()
    assert place.size == size


def test_private_words_are_said_to_be_sealed(place: Place, here: Path) -> None:
    output = accepted(staylog("submit", *place.guest_of(here, GUESTS[0]), "--feedback", "The gutter drips."))
    assert "feedback   sealed: the host can fetch your private words for a year" in output
    assert "NOT delivered" not in output
    assert json.loads((here / "review.json").read_bytes())["private_feedback"] == "The gutter drips."


def test_the_dates_may_be_narrowed_and_the_text_come_from_a_file(place: Place, here: Path) -> None:
    (here / "text.txt").write_text("Zwei Nächte.\nNoch einmal.\n")
    narrowed = ["--check-in", days_ago(13), "--check-out", days_ago(11), "--text-file", "text.txt"]
    accepted(staylog("submit", *place.guest_of(here, GUESTS[0]), *narrowed))
    body = json.loads((here / "review.json").read_bytes())
    assert (body["check_in"], body["check_out"]) == (days_ago(13), days_ago(11))
    assert body["review_text"] == "Zwei Nächte.\nNoch einmal."
    accepted(
        staylog(
            "submit",
            *place.guest_of(here, GUESTS[0]),
            *("--text-file", "-", "--submission", "2.json", "--out", "3.json"),
            text="Typed.",
        )
    )
    assert json.loads((here / "2.json").read_bytes())["review_text"] == "Typed."


def test_a_key_from_elsewhere_is_not_asked_for(place: Place, here: Path) -> None:
    options = place.guest_of(here, GUESTS[0])
    assert "first sight" not in accepted(staylog("submit", *options, "--log-key", str(place.ledger.verifier)))


def test_a_receipt_by_another_key_is_told(place: Place, here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = init_folder(Settings.of(tmp_path_factory.mktemp("other"), None, place.url))
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0]), "--log-key", str(other)), "signer_unknown")
    assert "its receipt does not hold" in output
    assert "Keep receipt.json and review.json" in output
    assert (here / "receipt.json").exists()


def test_a_key_that_is_none_is_told_before_anything_is_signed(place: Place, here: Path) -> None:
    refused(staylog("submit", *place.guest_of(here, GUESTS[0]), "--log-key", "nonsense"), "vkey_malformed")
    assert not (here / "review.json").exists()


@pytest.mark.parametrize("name", ["review.json", "receipt.json"])
def test_no_file_is_overwritten(place: Place, here: Path, name: str) -> None:
    (here / name).write_text("precious")
    size = place.size
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0])), "file_exists")
    assert f"{name} exists already, and is not overwritten" in output
    assert (here / name).read_text() == "precious"
    assert place.size == size
    assert {path.name for path in here.iterdir()} == {name, "credential.json", "guest.key", "stay-receipt.json"}


def test_a_place_where_nothing_can_be_written_is_told_first(place: Place, here: Path) -> None:
    options = place.guest_of(here, GUESTS[0])
    refused(staylog("submit", *options, "--out", "no/receipt.json"), "file_unwritable")
    done = staylog("submit", *options, "--out", "same.json", "--submission", "same.json")
    assert (done.exit_code, "are two files" in done.output) == (2, True)
    assert not (here / "review.json").exists()


def test_a_ledger_that_does_not_answer_loses_nothing(place: Place, here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0]), "--ledger", nowhere), "ledger_unreachable")
    assert f"{nowhere} does not answer: " in output
    assert "staylog review submit --again review.json" in output
    assert json.loads((here / "review.json").read_bytes())["proof"]["domain"] == nowhere
    assert not (here / "receipt.json").exists()


@pytest.mark.parametrize("arrived", [True, False])
def test_an_answer_that_got_lost_is_had_again(
    place: Place, here: Path, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    real = client.submit

    def lossy(*arguments: Any, **options: Any) -> Any:
        if arrived:
            real(*arguments, **options)
        raise Unavailable("ledger_unreachable", "the line is dead")

    with monkeypatch.context() as patched:
        patched.setattr(client, "submit", lossy)
        refused(staylog("submit", *place.guest_of(here, GUESTS[0])), "ledger_unreachable")
    output = accepted(staylog("submit", "--again", "review.json"))
    assert ("had this review already" in output) is arrived
    assert (here / "receipt.json").exists()


def test_what_came_too_late_is_signed_anew(place: Place, here: Path) -> None:
    guest = GUESTS[1]
    place.guest_of(here, guest)
    body = {
        **unsigned(guest, HOST, check_in=days_ago(14), check_out=days_ago(10)),
        "guest_credential": json.loads((here / "credential.json").read_bytes()),
        "booking_evidence": (receipt := json.loads((here / "stay-receipt.json").read_bytes())),
        "booking_reference": receipt["booking_reference"],
    }
    old = guest.sign(body, now=utc_now() - timedelta(hours=1), domain=place.url)
    (here / "review.json").write_text(json.dumps(old))
    output = refused(staylog("submit", "--again", "review.json"), "stale_proof")
    assert "sign the same again: staylog review submit --again review.json --key KEY" in output
    assert "signed refusal" not in output
    output = accepted(staylog("submit", "--again", "review.json", "--key", "guest.key"))
    assert "signed     review-2.json" in output
    assert "Keep receipt.json and review-2.json" in output
    assert json.loads((here / "review.json").read_bytes()) == old
    anew = json.loads((here / "review-2.json").read_bytes())
    assert anew["review_text"] == old["review_text"]
    assert anew["proof"]["created"] > old["proof"]["created"]


def test_a_refusal_is_signed_saved_and_checked(place: Place, here: Path) -> None:
    options = place.guest_of(here, GUESTS[0])
    accepted(staylog("submit", *options))
    second = ["--submission", "other.json", "--out", "other-receipt.json"]
    output = refused(staylog("submit", *options, *second, "--text", "Another opinion."), "already_reviewed")
    assert f"explained at {place.url}/problems/already_reviewed" in output
    assert "other.refusal.json is the ledger's signed refusal" in output
    assert "Nothing was taken in; what you signed is in other.json" in output
    assert not (here / "other-receipt.json").exists()
    refusal = json.loads((here / "other.refusal.json").read_bytes())
    assert (refusal["type"], refusal["code"]) == ("Refusal", "already_reviewed")
    output = refused(staylog("submit", "--again", "other.json", "--out", "other-receipt.json"), "already_reviewed")
    assert "other.refusal-2.json is the ledger's signed refusal" in output


def test_a_stay_that_is_not_over_can_be_sent_later(place: Place, here: Path) -> None:
    options = place.guest_of(here, GUESTS[0], check_out=str(TODAY + timedelta(days=1)))
    output = refused(staylog("submit", *options), "stay_not_over")
    assert "--again review.json --key KEY" in output
    assert [path.name for path in here.glob("*refusal*")] == []


def test_an_issuer_whom_the_ledger_does_not_trust(place: Place, here: Path) -> None:
    options = place.guest_of(here, GUESTS[0])
    stranger = credential(GUESTS[0], issuer=Speaker(77), now=utc_now())
    (here / "credential.json").write_text(json.dumps(stranger))
    output = refused(staylog("submit", *options), "issuer_not_trusted")
    assert "To send another one, give it another name: --submission FILE" in output


def test_a_host_whose_keys_the_ledger_cannot_have(place: Place, here: Path) -> None:
    host = Speaker(9, "did:web:10.0.0.5")
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0], host)), "address_not_allowed")
    assert "review.refusal.json is the ledger's signed refusal" in output


def test_a_host_whose_keys_are_not_to_be_had_now(place: Place, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt may be right: it is taken in, and looked at again."""
    hosts = {"cottage.example": ("127.0.0.1", 1)}
    monkeypatch.setattr(place.ledger.fetcher, "development", Development(hosts))
    host = Speaker(9, "did:web:cottage.example")
    assert "taken in   " in accepted(staylog("submit", *place.guest_of(here, GUESTS[0], host)))
    assert (here / "receipt.pending.json").exists()
    assert not (here / "receipt.json").exists()


def test_a_receipt_for_somebody_else_is_not_even_sent(place: Place, here: Path) -> None:
    """Though the host is a domain, whose key is not known here."""
    host, size = Speaker(9, "did:web:cottage.example"), place.size
    options = place.guest_of(here, GUESTS[0], host)
    other = stay_receipt(GUESTS[1], host, "B-9", now=utc_now())
    (here / "stay-receipt.json").write_text(json.dumps(other))
    refused(staylog("submit", *options), "booking_evidence_invalid")
    assert not (here / "review.json").exists()
    assert place.size == size


def spoilt(here: Path, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads((here / name).read_bytes())
    change(document)
    (here / name).write_text(json.dumps(document))


def test_what_no_ledger_would_take_is_not_signed(place: Place, here: Path) -> None:
    options = place.guest_of(here, GUESTS[0])
    other = write_key(here / "other.key", GUESTS[1])
    for more, code in (
        (["--text", "x" * 2001], "text_too_long"),
        (["--text", "\udcff"], "malformed_json"),
        (["--check-out", days_ago(20)], "date_invalid"),
        (["--check-in", days_ago(20)], "booking_evidence_invalid"),
        (["--check-in", "yesterday"], "date_invalid"),
        (["--key", other], "holder_mismatch"),
        (["--key", str(here / "none.key")], "key_unreadable"),
        (["--receipt", "credential.json"], "schema_invalid"),
        (["--ledger", f"{place.url}/"], "settings_invalid"),
        (["--ledger", "ftp://ledger.example"], "settings_invalid"),
    ):
        refused(staylog("submit", *options, *more), code)
    spoilt(here, "stay-receipt.json", lambda receipt: receipt.update(check_out=days_ago(9)))
    refused(staylog("submit", *options), "booking_evidence_invalid")
    (here / "stay-receipt.json").write_text(json.dumps(stay_receipt(GUESTS[2])))
    assert "another guest" in refused(staylog("submit", *options), "booking_evidence_invalid")
    (here / "stay-receipt.json").write_text("{")
    assert "stay-receipt.json: not JSON" in refused(staylog("submit", *options), "malformed_json")
    (here / "stay-receipt.json").write_text("[]")
    refused(staylog("submit", *options), "schema_invalid")
    (here / "stay-receipt.json").write_bytes(b'"' + bytes(300_000) + b'"')
    refused(staylog("submit", *options), "too_large")
    assert not (here / "review.json").exists()


@pytest.mark.parametrize(("data", "code"), [(b"\xff", "not_utf8"), (b"x" * 70_000, "text_too_long")])
def test_a_text_file_that_is_no_text(place: Place, here: Path, data: bytes, code: str) -> None:
    (here / "text").write_bytes(data)
    refused(staylog("submit", *place.guest_of(here, GUESTS[0]), "--text-file", "text"), code)


@pytest.mark.parametrize("stars", ["0.5", "5.5", "4.2", "five", "nan", "inf", "-1", ""])
def test_stars_go_by_halves(place: Place, here: Path, stars: str) -> None:
    done = staylog("submit", *place.guest_of(here, GUESTS[0]), "--value", stars)
    assert (done.exit_code, "steps of a half" in done.output) == (2, True)


def test_options_that_do_not_go_together_are_explained(place: Place, here: Path) -> None:
    (here / "review.json").write_text(json.dumps(GUESTS[0].sign(unsigned(), domain="https://ledger.example")))
    for arguments, told in (
        (
            ["submit"],
            "missing: --key, --credential, --host, --reference, --listing, --check-in, --check-out, --overall",
        ),
        (["submit", *place.guest_of(here, GUESTS[0]), "--text", "a", "--text-file", "-"], "give one"),
        (["submit", "--again", "review.json", "--text", "b", "--overall", "5"], "--overall, --text cannot change it"),
        (["submit", "--again", "review.json", "--ledger", place.url], "was signed for https://ledger.example"),
        (["submit", "--again", "none.json"], "does not exist"),
        (["submit", *place.guest_of(here, GUESTS[0]), "--host", HOST.did], "the stay receipt says --host already"),
        (["respond"], "missing: --key, REVIEW_ID, --text"),
        (["respond", "rev-x", "--again", "review.json"], "REVIEW_ID cannot change it"),
    ):
        done = staylog(*arguments)
        assert (done.exit_code, told in done.output.replace("\n", " ")) == (2, True), done.output
    refused(staylog("respond", "--again", "review.json"), "schema_invalid")


@pytest.fixture
def review_id(place: Place, here: Path) -> str:
    """A review of the host whose key is in the folder."""
    names = ["--submission", "of-guest.json", "--out", "receipt-of-guest.json"]
    accepted(staylog("submit", *place.guest_of(here, GUESTS[3]), *names))
    write_key(here / "host.key", HOST)
    return str(json.loads((here / "receipt-of-guest.json").read_bytes())["review_id"])


def test_a_host_responds_once(place: Place, here: Path, review_id: str) -> None:
    output = accepted(staylog("respond", review_id, "--key", "host.key", "--text", "Thank you."))
    assert f"accepted   your response to {review_id}" in output
    assert "Keep response-receipt.json and response.json" in output
    assert "private words" not in output
    done = CliRunner().invoke(main, shlex.split(output.splitlines()[-1])[1:])
    assert "rests on exactly this signed submission" in done.output
    output = accepted(staylog("respond", "--again", "response.json", "--out", "again.json"))
    assert "had this response already" in output
    more = ["--submission", "second.json", "--out", "again-2.json"]
    output = refused(staylog("respond", review_id, "--key", "host.key", "--text", "And", *more), "already_responded")
    assert "second.refusal.json is the ledger's signed refusal" in output


def test_a_late_response_is_signed_anew(place: Place, here: Path, review_id: str) -> None:
    body = {"type": "HostResponse", "review_id": review_id, "host_did": HOST.did, "response_text": "Thanks."}
    old = HOST.sign(body, now=utc_now() - timedelta(days=2), domain=place.url)
    (here / "response.json").write_text(json.dumps(old))
    refused(staylog("respond", "--again", "response.json"), "stale_proof")
    output = accepted(staylog("respond", "--again", "response.json", "--key", "host.key"))
    assert "signed     response-2.json" in output


def test_only_the_host_responds(place: Place, here: Path, review_id: str) -> None:
    stranger = write_key(here / "stranger.key", OTHER_HOST)
    refused(staylog("respond", review_id, "--key", stranger, "--text", "Mine."), "not_the_host")
    names = ["--submission", "2.json", "--out", "3.json", "--text", "Mine."]
    refused(staylog("respond", review_id, "--key", stranger, "--did", HOST.did, *names), "bad_verification_method")
    refused(staylog("respond", "rev-x", "--key", "host.key", *names), "schema_invalid")
    refused(staylog("respond", "../../x", "--key", "host.key", *names), "schema_invalid")
    refused(staylog("respond", review_id, "--key", "host.key", *names[:4], "--text", "x" * 501), "text_too_long")
    refused(staylog("respond", review_id, "--key", "host.key", *names[:4], "--text", ""), "schema_invalid")
    refused(staylog("respond", "rev-" + "a" * 26, "--key", "host.key", *names), "review_not_found")


def test_a_response_in_the_name_of_a_domain(place: Place, here: Path, review_id: str) -> None:
    """What is signed says whose key it is; this ledger cannot look that up."""
    names = ["--text", "Mine.", "--verification-method", "did:web:cottage.example#k1"]
    refused(staylog("respond", review_id, "--key", "host.key", *names), "not_the_host")
    body = json.loads((here / "response.json").read_bytes())
    assert body["host_did"] == "did:web:cottage.example"
    assert body["proof"]["verificationMethod"] == "did:web:cottage.example#k1"


@pytest.mark.parametrize(
    "command",
    [
        *(["review"], ["review", "submit"], ["review", "respond"]),
        *(["review", name] for name in ("status", "evidence", "import", "consent")),
        *(["booking"], ["booking", "receipt"], ["booking", "notice"], ["booking", "claim"]),
        *(["feedback"], ["feedback", "collect"]),
        *(["listing"], ["listing", "add"], ["listing", "list"]),
    ],
)
def test_help_teaches_without_the_server(command: list[str]) -> None:
    script = (
        "import sys; from ledger.cli import main; main(standalone_mode=False); "
        "print({'sqlalchemy', 'pyld', 'jsonschema_rs', 'argon2', 'msgspec'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip().endswith("set()")
    assert "Usage:" in done.stdout
    assert len(command) == 1 or f"staylog {' '.join(command)} " in done.stdout.replace("Usage:", "")
