"""`staylog credential issue`: what an issuer may sign, and what is not handed out."""

import pytest

from ledger.canon import proofs
from tests.identities import GUEST, IDV
from tests.ledger.commands.issuer_folder import GUEST_OPTIONS, HOST_OPTIONS, Folder, run


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
