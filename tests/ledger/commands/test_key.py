"""`staylog key` and `sign`: making keys, and signing statements with them."""

import json
import subprocess
import sys

import pytest

from ledger.canon import jcs
from ledger.clock import utc_now
from ledger.identity.did import offline
from ledger.identity.statements import verify
from ledger.keys import read_service_keys
from tests.identities import bodies
from tests.ledger.commands.issuer_folder import Folder, run
from tests.running import Running


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


def test_a_missing_extra_is_named(folder: Folder) -> None:
    script = "import sys; sys.modules['jsonschema_rs'] = None; from ledger.cli import main; main()"
    key = str(folder.path / "issuer.key")
    done = subprocess.run(
        [sys.executable, "-c", script, "sign", "-", "--key", key], input="{}", capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "pip install 'staylog[server]'" in done.stderr.replace("\n", " ")
