"""`staylog review import` and `staylog review consent`, against a service on a socket."""

import json
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ledger.canon import proofs
from ledger.cli import main
from ledger.clock import utc_now
from ledger.identity.issuing import issue
from tests.identities import HOST_CLAIMS, IDV, ISSUER, STATUS, canonize, status_list
from tests.ledger.commands import served
from tests.ledger.commands.served import RATED, Place, accepted, days_ago, refused, staylog, write_key
from tests.reviewing import GUEST, HOST

place, here = served.place, served.here
PDF = b"%PDF-1.7\n\xff\xfe\r\n--x--\r\n%%EOF\n"


@pytest.fixture
def attested(place: Place, here: Path) -> list[str]:
    """The options of a host with a credential that can be looked up, and a document."""
    now = utc_now()
    place.outside.put(STATUS["statusListCredential"], status_list(valid_from=now - timedelta(hours=1)))
    shown = issue(
        "host",
        HOST_CLAIMS,
        id_=f"{IDV}/credentials/55",
        issuer=ISSUER.did,
        method=ISSUER.method,
        key=ISSUER.key,
        valid_from=now - timedelta(days=10),
        valid_until=now + timedelta(days=70),
        canonize=canonize,
        status=STATUS,
        suites=(proofs.EDDSA_JCS,),
    )
    (here / "host-credential.json").write_text(json.dumps(shown))
    (here / "booking.pdf").write_bytes(PDF)
    key = write_key(here / "host.key", HOST)
    days = ["--check-in", days_ago(14), "--check-out", days_ago(10)]
    stay = ["--platform", "Example Stays", "--reference", here.name, "--listing", "rose-cottage", *days]
    return ["--key", key, "--credential", "host-credential.json", *stay, "--document", "booking.pdf", *RATED]


def load(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_a_host_attests_a_review_from_elsewhere(place: Place, here: Path, attested: list[str]) -> None:
    output = accepted(staylog("import", *attested, "--text", "Quiet."))
    for told in ("signed     import.json", "accepted   rev-", "host_attested, by attestation", "checked    offline"):
        assert told in output
    assert "credential (None)" not in output
    body = load(here / "import.json")
    assert (body["document_type"], body["document_sha256"]) == ("application/pdf", sha256(PDF).hexdigest())
    done = CliRunner().invoke(main, output.splitlines()[-1].split()[1:])
    assert (done.exit_code, "rests on exactly this signed submission" in done.output) == (0, True)
    output = accepted(staylog("import", "--again", "import.json", "--document", "booking.pdf", "--out", "2.json"))
    assert "had this review already" in output
    done = staylog("import", "--again", "import.json", "--out", "3.json")
    assert (done.exit_code, "missing: --document" in done.output) == (2, True)


def test_a_json_document_is_known_by_its_content(place: Place, here: Path, attested: list[str]) -> None:
    (here / "booking.pdf").write_text('{"booking": "HX-77"}')
    accepted(staylog("import", *attested))
    assert load(here / "import.json")["document_type"] == "application/json"


def consented(place: Place, here: Path, *more: str) -> Any:
    guest = place.identified(here, GUEST)
    return staylog("consent", *guest, "--document", "booking.pdf", *RATED, *more)


def test_with_the_guests_consent_it_counts_as_the_guests(place: Place, here: Path, attested: list[str]) -> None:
    output = accepted(consented(place, here, "--text", "Quiet."))
    assert "the ledger takes it within five minutes from now" in output
    assert sha256(PDF).hexdigest() in output
    assert (here / "consent.json").stat().st_mode & 0o777 == 0o600
    output = accepted(staylog("import", *attested, "--text", "Quiet.", "--consent", "consent.json"))
    assert f"guest_verified, by attestation and a credential (identity_verified) of {IDV}" in output


def test_a_consent_to_something_else_does_not_hold(place: Place, here: Path, attested: list[str]) -> None:
    accepted(consented(place, here, "--text", "Quiet."))
    refused(staylog("import", *attested, "--text", "Lovely.", "--consent", "consent.json"), "consent_mismatch")


def test_a_consent_that_is_too_old_is_told_before_anything_is_signed(
    place: Place, here: Path, attested: list[str]
) -> None:
    accepted(consented(place, here))
    fresh = {name: value for name, value in load(here / "consent.json").items() if name != "proof"}
    old = GUEST.sign(fresh, now=utc_now() - timedelta(minutes=6), domain=place.url)
    (here / "old.json").write_text(json.dumps(old))
    output = refused(staylog("import", *attested, "--consent", "old.json"), "stale_proof")
    assert "the guest's consent does not hold" in output
    elsewhere = GUEST.sign(fresh, now=utc_now(), domain="https://other.example")
    (here / "other.json").write_text(json.dumps(elsewhere))
    refused(staylog("import", *attested, "--consent", "other.json"), "wrong_domain")
    refused(staylog("import", *attested, "--consent", "credential.json"), "schema_invalid")
    assert not (here / "import.json").exists()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "document_invalid"),
        (b"[]", "document_invalid"),
        (b"%PDF-1.7 cut off", "document_invalid"),
        (b"%PDF-" + bytes(5 << 20) + b"%%EOF", "too_large"),
    ],
)
def test_documents_that_are_none(place: Place, here: Path, attested: list[str], data: bytes, code: str) -> None:
    (here / "booking.pdf").write_bytes(data)
    refused(staylog("import", *attested), code)
    refused(consented(place, here), code)
    assert not (here / "import.json").exists()
    assert not (here / "consent.json").exists()


def test_a_large_document_is_taken(place: Place, here: Path, attested: list[str]) -> None:
    (here / "booking.pdf").write_bytes(b"%PDF-" + bytes((5 << 20) - 10) + b"%%EOF")
    accepted(staylog("import", *attested))


def test_what_is_needed_is_named(place: Place, here: Path, attested: list[str]) -> None:
    done = staylog("import", "--key", "host.key")
    missing = (
        "missing: --credential, --platform, --reference, --listing, --check-in, --check-out, --document, --overall"
    )
    assert (done.exit_code, missing in done.output.replace("\n", " ")) == (2, True)
    place.identified(here, GUEST)
    files = ["--key", "guest.key", "--credential", "credential.json", "--document", "booking.pdf"]
    done = staylog("consent", *files)
    assert (done.exit_code, "missing: --overall" in done.output) == (2, True)
    assert "--again" not in done.output
    other = staylog("import", *attested, "--credential", "credential.json")
    assert other.exit_code == 1
