"""`staylog credential issue`: what an issuer may sign, and what is not handed out."""

import gzip
import json
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ledger.canon import proofs
from tests.identities import GUEST, IDV
from tests.ledger.commands.issuer_folder import GUEST_OPTIONS, HOST_OPTIONS, Folder, run
from tests.ledger.commands.test_credential_network import ask
from tests.network import Neighbourhood

LIST_URL = f"{IDV}/status/1"


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_the_suite_can_be_chosen(folder: Folder, suite: str) -> None:
    document = folder.issue("guest", "--suite", suite)
    assert proofs.suite_of(document["proof"]) == suite
    assert f"{suite} by {folder.multikey}" in folder.verify(document).output


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--days", "91"], "missing_status"),
        (["--issuer", GUEST.did], "bad_verification_method"),
        (["--issuer", "http://idv.example"], "issuer_key_mismatch"),
        (["--issuer", "idv.example"], "schema_invalid"),
        (["--issuer", IDV, "--verification-method", "https://other.example/keys/1"], "issuer_key_mismatch"),
        (["--issuer", IDV, "--verification-method", "foo"], "issuer_key_mismatch"),
        (["--suite", proofs.EDDSA_JCS, "--suite", proofs.EDDSA_JCS], "schema_invalid"),
        (["--id", "not a name"], "schema_invalid"),
        (["--method", "\udcff"], "malformed_json"),
        (["--verification-method", "\udcff"], "malformed_json"),
    ],
)
def test_what_no_ledger_would_accept_is_not_issued(folder: Folder, options: list[str], code: str) -> None:
    key = str(folder.path / "issuer.key")
    done = run("credential", "issue", "guest", "--issuer-key", key, *GUEST_OPTIONS, *options)
    assert done.exit_code == 1
    assert f"({code})" in done.output
    assert "proofValue" not in done.output


def test_nobody_issues_for_themselves(folder: Folder) -> None:
    key = str(folder.path / "issuer.key")
    done = run("credential", "issue", "guest", "--issuer-key", key, *GUEST_OPTIONS, "--subject", folder.did)
    assert (done.exit_code, "(self_issued)" in done.output) == (1, True)


def test_more_claims_come_from_a_file(folder: Folder) -> None:
    more = folder.path / "claims.json"
    more.write_text('{"phone_verified": true, "age_range": "25_34"}')
    document = folder.issue("guest", "--claims", str(more))
    assert document["credentialSubject"]["age_range"] == "25_34"
    assert folder.verify(document).exit_code == 0
    for wrong, code in (
        ('{"nickname": "x"}', "no member 'nickname'"),
        ('{"idv_level": "payment_verified"}', "idv_level is given by an option already"),
        ("[]", "JSON object"),
        ("{", "malformed_json"),
    ):
        more.write_text(wrong)
        key = str(folder.path / "issuer.key")
        done = run("credential", "issue", "guest", "--issuer-key", key, *GUEST_OPTIONS, "--claims", str(more))
        assert done.exit_code == 1
        assert code in done.output


@pytest.mark.parametrize(
    "options",
    [
        ["guest", *GUEST_OPTIONS, "--status-list", f"{IDV}/status/1"],
        ["guest", *GUEST_OPTIONS, "--status-index", "1"],
        ["host", *HOST_OPTIONS[:12]],
        ["guest", *GUEST_OPTIONS, "--suite", "ecdsa-jcs-2019"],
        ["guest", "--subject", GUEST.did],
    ],
)
def test_options_that_do_not_go_together_are_explained(folder: Folder, options: list[str]) -> None:
    done = run("credential", "issue", options[0], "--issuer-key", str(folder.path / "issuer.key"), *options[1:])
    assert done.exit_code == 2
    assert "Error:" in done.output


def test_a_missing_or_open_key_file_is_explained(folder: Folder) -> None:
    key = folder.path / "issuer.key"
    key.chmod(0o644)
    done = run("credential", "issue", "guest", "--issuer-key", str(key), *GUEST_OPTIONS)
    assert (done.exit_code, "chmod 600 issuer.key" in done.output) == (1, True)
    done = run("credential", "issue", "guest", "--issuer-key", str(folder.path / "none"), *GUEST_OPTIONS)
    assert (done.exit_code, "(key_unreadable)" in done.output) == (1, True)


# Status lists


def issue_list(folder: Folder, *options: str) -> Result:
    key = str(folder.path / "issuer.key")
    return run("credential", "issue", "status-list", "--issuer-key", key, "--url", LIST_URL, *options)


def status_list(folder: Folder, *options: str) -> dict[str, Any]:
    done = issue_list(folder, *options)
    assert done.exit_code == 0, done.output
    made: dict[str, Any] = json.loads(done.output)
    return made


def marks(document: dict[str, Any], places: int = 131_072) -> list[int]:
    """The places that are marked, read from the left, as the W3C says."""
    encoded = document["credentialSubject"]["encodedList"]
    assert encoded[0] == "u"
    packed = urlsafe_b64decode(encoded[1:] + "=" * (-len(encoded[1:]) % 4))
    # Of no time: the list of tomorrow is the same.
    assert packed[4:8] == bytes(4)
    bits = gzip.decompress(packed)
    assert len(bits) * 8 == places
    return [place for place, bit in enumerate(bit for byte in bits for bit in f"{byte:08b}") if bit == "1"]


def test_a_status_list_marks_places(folder: Folder) -> None:
    """In whatever order they are named, and however often: the same marks give the same list."""
    assert marks(status_list(folder)) == []
    one = status_list(folder, *("--mark", "0", "--mark", "7", "--mark", "8", "--mark", "131071"))
    assert marks(one) == [0, 7, 8, 131_071]
    other = status_list(folder, *("--mark", "131071", "--mark", "8", "--mark", "8", "--mark", "7", "--mark", "0"))
    assert other["credentialSubject"]["encodedList"] == one["credentialSubject"]["encodedList"]
    longer = status_list(folder, "--places", "262144", "--mark", "262143")
    assert marks(longer, 262_144) == [262_143]


def test_a_status_list_says_whose_it_is_and_until_when(folder: Folder) -> None:
    plain = status_list(folder)
    assert (plain["id"], plain["issuer"]) == (LIST_URL, folder.did)
    assert plain["type"] == ["VerifiableCredential", "BitstringStatusListCredential"]
    assert plain["credentialSubject"]["statusPurpose"] == "revocation"
    assert "validUntil" not in plain
    assert "ttl" not in plain["credentialSubject"]
    full = status_list(folder, "--issuer", IDV, "--purpose", "suspension", "--days", "7", "--ttl", "300")
    assert (full["issuer"], full["proof"]["verificationMethod"]) == (IDV, f"{IDV}#{folder.multikey}")
    assert full["credentialSubject"]["statusPurpose"] == "suspension"
    assert full["credentialSubject"]["ttl"] == 300_000
    assert full["validUntil"] > full["validFrom"]


@pytest.mark.parametrize("role", ["guest", "host"])
def test_what_an_issuer_publishes_is_what_others_verify(
    folder: Folder, neighbourhood: Neighbourhood, tmp_path: Path, role: str
) -> None:
    """A credential and its list, both by commands: good until its own place is marked."""
    names = ("--issuer", IDV, "--verification-method", f"{IDV}/keys/1")
    public = {"type": "Multikey", "controller": IDV, "publicKeyMultibase": folder.multikey}
    neighbourhood.put(f"{IDV}/keys/1", {"id": f"{IDV}/keys/1", **public})
    path = tmp_path / "credential.json"
    path.write_text(json.dumps(folder.issue(role, *names, "--status-list", LIST_URL, "--status-index", "7")))
    for marked, status, told in (
        (["--mark", "6", "--mark", "8"], 0, "looked up just now"),
        (["--mark", "7"], 1, "refused (credential_revoked)"),
        (["--mark", "7", "--purpose", "suspension"], 1, "refused (status_invalid)"),
    ):
        neighbourhood.put(LIST_URL, status_list(folder, *names, *marked))
        done = ask(neighbourhood, "credential", "verify", str(path))
        assert done.exit_code == status, done.output
        assert told in done.output


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (["--mark", "131072"], 1, "the list has no place 131072: it ends at 131071"),
        (["--places", "262144", "--mark", "262144"], 1, "it ends at 262143"),
        (["--places", "8"], 1, "131072 to 16777216 places"),
        (["--places", "131073"], 1, "a multiple of 8"),
        (["--places", "16777224"], 1, "131072 to 16777216 places"),
        (["--mark=-1"], 2, "--mark"),
        (["--mark", "seven"], 2, "--mark"),
        (["--ttl=-1"], 2, "--ttl"),
        (["--purpose", "message"], 2, "--purpose"),
        (["--issuer", GUEST.did], 1, "(bad_verification_method)"),
        (["--issuer", IDV, "--verification-method", "https://other.example/keys/1"], 1, "(issuer_key_mismatch)"),
        (["--url", "status/1"], 1, "absolute uri expected"),
    ],
)
def test_a_status_list_that_nobody_would_read_is_not_issued(
    folder: Folder, options: list[str], status: int, told: str
) -> None:
    done = issue_list(folder, *options)
    assert (done.exit_code, done.stdout) == (status, "")
    assert told in done.stderr
