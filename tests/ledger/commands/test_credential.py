"""`staylog key`, `credential` and `sign`, as issuers, guests and hosts use them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ledger.canon import jcs, proofs
from ledger.cli import main
from ledger.clock import utc_now
from ledger.identity.did import offline
from ledger.identity.statements import verify
from ledger.keys import read_service_keys
from tests.identities import GUEST, HOST, IDV, bodies
from tests.ledger.commands.test_operator import staylog
from tests.running import Running

GUEST_OPTIONS = ["--subject", GUEST.did, "--level", "identity_verified", "--method", "passport", "--guest-id", "g-55"]
HOST_OPTIONS = [
    *("--subject", HOST.did, "--listing", "rose-cottage", "--listing", "loft-2", "--country", "GB"),
    *("--method", "land registry", "--host-id", "h-1"),
    *("--status-list", f"{IDV}/status/1", "--status-index", "7", "--days", "365"),
]


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=text)


class Folder:
    """A folder with an issuer's key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        done = run("key", "new", str(path / "issuer.key"))
        assert done.exit_code == 0, done.output
        self.multikey = done.output.split()[2]
        self.did = f"did:key:{self.multikey}"
        assert self.did in done.output

    def issue(self, role: str, *options: str) -> dict[str, Any]:
        usual = GUEST_OPTIONS if role == "guest" else HOST_OPTIONS
        done = run("credential", "issue", role, "--issuer-key", str(self.path / "issuer.key"), *usual, *options)
        assert done.exit_code == 0, done.output
        made: dict[str, Any] = json.loads(done.output)
        return made

    def verify(self, document: Any, *options: str) -> Result:
        path = self.path / "credential.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return run("credential", "verify", str(path), *options)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_key_is_for_its_owner_and_never_overwritten(folder: Folder) -> None:
    path = folder.path / "issuer.key"
    before = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    again = run("key", "new", str(path))
    assert (again.exit_code, path.read_text()) == (1, before)
    assert "(key_exists)" in again.output
    elsewhere = run("key", "new", str(folder.path / "no" / "such.key"))
    assert elsewhere.exit_code == 1
    assert "(key_unwritable)" in elsewhere.output
    assert [each.name for each in folder.path.iterdir()] == ["issuer.key"]
    assert "Traceback" not in elsewhere.output


def test_a_guests_credential_is_issued_and_verified(folder: Folder) -> None:
    document = folder.issue("guest")
    assert document["issuer"] == folder.did
    assert [proofs.suite_of(proof) for proof in document["proof"]] == [proofs.ED25519_2020, proofs.EDDSA_JCS]
    assert document["id"].startswith("urn:uuid:")
    done = folder.verify(document)
    assert done.exit_code == 0, done.output
    for told in ("valid credential of a guest", GUEST.did, folder.did, "not asked", "it ends by itself", "passport"):
        assert told in done.output


def test_a_hosts_credential_is_issued_and_verified(folder: Folder) -> None:
    document = folder.issue("host")
    done = folder.verify(document)
    assert done.exit_code == 0, done.output
    assert "rose-cottage, loft-2" in done.output
    assert f"not looked up: {IDV}/status/1" in done.output
    assert folder.verify(document, "--listing", "loft-2").exit_code == 0
    other = folder.verify(document, "--listing", "castle")
    assert other.exit_code == 1
    assert "(listing_not_covered)" in other.output
    assert "(wrong_credential_type)" in folder.verify(folder.issue("guest"), "--listing", "loft-2").output


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_the_suite_can_be_chosen(folder: Folder, suite: str) -> None:
    document = folder.issue("guest", "--suite", suite)
    assert proofs.suite_of(document["proof"]) == suite
    assert f"{suite} by {folder.multikey}" in folder.verify(document).output


def test_one_changed_character_is_refused(folder: Folder) -> None:
    text = json.dumps(folder.issue("guest"))
    done = folder.verify(text.replace('"g-55"', '"g-56"'))
    assert done.exit_code == 1
    assert "refused (proof_invalid)" in done.output


def test_an_https_issuer_needs_a_key_to_be_judged_by(folder: Folder) -> None:
    document = folder.issue("guest", "--issuer", IDV)
    assert document["proof"][0]["verificationMethod"] == f"{IDV}#{folder.multikey}"
    alone = folder.verify(document)
    assert alone.exit_code == 1
    assert "(issuer_not_trusted)" in alone.output
    assert "--key" in alone.output
    given = folder.verify(document, "--key", folder.multikey)
    assert given.exit_code == 0
    assert "yes, with the key you gave" in given.output
    wrong = folder.verify(document, "--key", GUEST.multikey)
    assert "(proof_invalid)" in wrong.output
    assert "(key_not_acceptable)" in folder.verify(document, "--key", "z6Mk").output


def test_a_ledger_judges_by_its_own_issuers(folder: Folder, running: Running) -> None:
    where = ("--data", str(running.settings.data), "--database-url", running.settings.database_url)
    document = folder.issue("guest", "--issuer", IDV)
    assert "(issuer_not_trusted)" in folder.verify(document, *where).output
    # Names are not pictures.
    assert f"{folder.did} is not trusted" in folder.verify(folder.issue("guest"), *where).output
    assert staylog(running, "issuer", "add", "guest", IDV, "--key", folder.multikey).exit_code == 0
    done = folder.verify(document, *where)
    assert done.exit_code == 0, done.output
    assert "yes, by this ledger" in done.output


def test_two_ways_to_trust_are_one_too_many(folder: Folder) -> None:
    done = folder.verify(folder.issue("guest"), "--key", folder.multikey, "--data", str(folder.path))
    assert done.exit_code == 2
    assert "give one" in done.output


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


def test_texts_of_others_do_not_command_the_terminal(folder: Folder) -> None:
    done = folder.verify('{"type":["OpenSTRGuestCredential"],"issuer":"\\u001b[2J\\u001b[32mvalid"}')
    assert done.exit_code == 1
    assert "\x1b" not in done.output
    assert "\\x1b[2J" in done.output


def test_a_refusal_as_json(folder: Folder) -> None:
    document = folder.issue("guest")
    document["credentialSubject"]["issuer_guest_id"] = "g-56"
    done = folder.verify(document, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["valid"], told["code"]) == (False, "proof_invalid")


def test_the_verdict_as_json(folder: Folder) -> None:
    told = json.loads(folder.verify(folder.issue("guest"), "--json").output)
    assert told["valid"] is True
    assert told["claims"]["idv_level"] == "identity_verified"


def test_a_verdict_at_another_time(folder: Folder) -> None:
    document = folder.issue("guest")
    assert "(expired)" in folder.verify(document, "--at", "2099-01-01T00:00:00Z").output
    assert "(not_yet_valid)" in folder.verify(document, "--at", "2020-01-01T00:00:00+02:00").output
    assert folder.verify(document, "--at", "yesterday").exit_code == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "malformed_json"),
        ("{}", "wrong_credential_type"),
        ("[]", "wrong_credential_type"),
        ('{"a":1,"a":2}', "duplicate_key"),
        ("[" * 20 + "]" * 20, "too_deep"),
        ('"' + "x" * 70_000 + '"', "too_large"),
        ('{"type":["OpenSTRGuestCredential"]}', "issuer_not_trusted"),
        ('{"type":["OpenSTRGuestCredential"],"issuer":"did:"}', "issuer_not_trusted"),
        ('{"type":["OpenSTRGuestCredential"],"issuer":"did:key:x"}', "did_not_canonical"),
    ],
)
def test_what_is_no_credential_is_refused_in_one_line(folder: Folder, text: str, code: str) -> None:
    done = folder.verify(text)
    assert done.exit_code == 1
    assert f"refused ({code})" in done.output
    assert "Traceback" not in done.output


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


def test_a_statement_is_signed(folder: Folder) -> None:
    body = {"type": "FeedbackRequest", "host_did": folder.did}
    key = str(folder.path / "issuer.key")
    done = run("sign", "-", "--key", key, "--domain", "https://ledger.example", text=json.dumps(body))
    assert done.exit_code == 0, done.output
    signed = json.loads(done.output)
    heard = verify(signed, "FeedbackRequest", domain="https://ledger.example", now=utc_now(), resolve=offline)
    assert heard.speaker == folder.did


def test_a_host_with_a_domain_names_its_key(folder: Folder) -> None:
    body = json.dumps({"type": "FeedbackRequest", "host_did": "did:web:cottage.example"})
    key, domain = str(folder.path / "issuer.key"), ["--domain", "https://ledger.example"]
    done = run("sign", "-", "--key", key, "--did", "did:web:cottage.example", *domain, text=body)
    assert json.loads(done.output)["proof"]["verificationMethod"] == f"did:web:cottage.example#{folder.multikey}"
    done = run("sign", "-", "--key", key, "--verification-method", "did:web:cottage.example#k1", *domain, text=body)
    assert json.loads(done.output)["proof"]["verificationMethod"] == "did:web:cottage.example#k1"


def test_only_a_receipt_needs_no_domain(folder: Folder) -> None:
    key = str(folder.path / "issuer.key")
    receipt = {**bodies()["StayReceipt"][1], "host_did": folder.did}
    assert run("sign", "-", "--key", key, text=jcs.dumps(receipt).decode()).exit_code == 0
    done = run("sign", "-", "--key", key, text=json.dumps({"type": "FeedbackRequest", "host_did": folder.did}))
    assert done.exit_code == 1
    assert "'domain' is missing" in done.output


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[]", "schema_invalid"),
        ("{", "malformed_json"),
        ('{"type":"Nope"}', "schema_invalid"),
        ('{"type":["HostResponse"]}', "schema_invalid"),
        ('{"type":"HostResponse"}', "schema_invalid"),
        ('{"type":"FeedbackRequest","host_did":"did:web:A"}', "did_not_canonical"),
        ('{"type":"FeedbackRequest","host_did":"did:web:a.example"}', "not_the_host"),
        (json.dumps("x" * 300_000), "too_large"),
    ],
)
def test_what_is_no_statement_is_not_signed(folder: Folder, text: str, code: str) -> None:
    key = str(folder.path / "issuer.key")
    done = run("sign", "-", "--key", key, "--domain", "https://ledger.example", text=text)
    assert done.exit_code == 1
    assert f"({code})" in done.output
    assert "proofValue" not in done.output


def test_a_domain_has_one_spelling(folder: Folder) -> None:
    key = str(folder.path / "issuer.key")
    done = run("sign", "-", "--key", key, "--domain", "https://ledger.example/", text="{}")
    assert (done.exit_code, "(settings_invalid)" in done.output) == (1, True)


def test_the_pepper_is_rotated(running: Running) -> None:
    done = run("key", "rotate-pepper", "--data", str(running.settings.data))
    assert done.exit_code == 0, done.output
    assert "p2" in done.output
    assert read_service_keys(running.settings.service_keys).peppers.current == "p2"
    assert [key_id for key_id, _ in running.reopen().keys.peppers] == ["p2", "p1"]
    nowhere = run("key", "rotate-pepper", "--data", str(running.settings.data / "nowhere"))
    assert (nowhere.exit_code, "(not_initialised)" in nowhere.output) == (1, True)


@pytest.mark.parametrize(
    "command",
    [
        ["key"],
        ["key", "new"],
        ["key", "rotate-pepper"],
        ["credential"],
        ["credential", "issue"],
        ["credential", "issue", "guest"],
        ["credential", "issue", "host"],
        ["credential", "verify"],
        ["sign"],
        ["issuer"],
        ["issuer", "add"],
        ["issuer", "remove"],
        ["issuer", "list"],
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


def test_a_missing_extra_is_named(folder: Folder) -> None:
    script = "import sys; sys.modules['jsonschema_rs'] = None; from ledger.cli import main; main()"
    key = str(folder.path / "issuer.key")
    done = subprocess.run(
        [sys.executable, "-c", script, "sign", "-", "--key", key], input="{}", capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "pip install 'staylog[server]'" in done.stderr.replace("\n", " ")
