"""`staylog credential verify` of files, and help for all commands about keys and credentials; what is asked of others is
in `test_credential_network`."""

import json
import subprocess
import sys

import pytest

from ledger.canon import proofs
from tests.identities import GUEST, IDV
from tests.ledger.commands.issuer_folder import Folder
from tests.ledger.commands.test_credential_network import ask
from tests.ledger.commands.test_operator import staylog
from tests.network import Neighbourhood
from tests.running import Running


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
    done = folder.verify(document, "--offline")
    assert done.exit_code == 0, done.output
    assert "rose-cottage, loft-2" in done.output
    assert f"not looked up: {IDV}/status/1" in done.output
    assert folder.verify(document, "--offline", "--listing", "loft-2").exit_code == 0
    other = folder.verify(document, "--offline", "--listing", "castle")
    assert other.exit_code == 1
    assert "(listing_not_covered)" in other.output
    guest = folder.issue("guest")
    assert "(wrong_credential_type)" in folder.verify(guest, "--offline", "--listing", "loft-2").output


def test_one_changed_character_is_refused(folder: Folder) -> None:
    text = json.dumps(folder.issue("guest"))
    done = folder.verify(text.replace('"g-55"', '"g-56"'))
    assert done.exit_code == 1
    assert "refused (proof_invalid)" in done.output


def test_an_https_issuer_needs_a_key_to_be_judged_by(folder: Folder, neighbourhood: Neighbourhood) -> None:
    """One that is given, or one that is published under the name that the proof has for it."""
    document = folder.issue("guest", "--issuer", IDV)
    assert document["proof"][0]["verificationMethod"] == f"{IDV}#{folder.multikey}"
    alone = folder.verify(document, "--offline")
    assert alone.exit_code == 1
    assert "(issuer_not_trusted)" in alone.output
    assert "--key" in alone.output
    given = folder.verify(document, "--key", folder.multikey)
    assert given.exit_code == 0
    assert "yes, with the key you gave" in given.output
    wrong = folder.verify(document, "--key", GUEST.multikey)
    assert "(proof_invalid)" in wrong.output
    assert "(key_not_acceptable)" in folder.verify(document, "--key", "z6Mk").output
    neighbourhood.put(f"{IDV}/", {"id": IDV, "assertionMethod": [key_of(folder, IDV)]})
    published = ask(neighbourhood, "credential", "verify", str(folder.path / "credential.json"))
    assert published.exit_code == 0, published.output
    assert "not asked: the key is the issuer's own" in published.output


def key_of(folder: Folder, controller: str) -> dict[str, str]:
    """The key as its controller publishes it, under the name that commands give it."""
    public = folder.multikey
    return {
        "id": f"{controller}#{public}",
        "type": "Multikey",
        "controller": controller,
        "publicKeyMultibase": public,
    }


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


def test_texts_of_others_do_not_command_the_terminal(folder: Folder) -> None:
    done = folder.verify('{"type":["OpenSTRGuestCredential"],"issuer":"\\u001b[2J\\u001b[32mvalid"}', "--offline")
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
    done = folder.verify(text, "--offline")
    assert done.exit_code == 1
    assert f"refused ({code})" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("issuer", ["null", '"did:"', '"did:key:x"', '"did:web:idv.example"', '"https://idv.example"'])
def test_nobody_is_asked_for_the_key_of_what_is_no_credential(
    folder: Folder, neighbourhood: Neighbourhood, issuer: str
) -> None:
    neighbourhood.host("idv.example")
    text = f'{{"type":["OpenSTRGuestCredential"],"issuer":{issuer}}}'
    done = ask(neighbourhood, "credential", "verify", "-", text=text)
    assert done.exit_code == 1
    assert "refused (context_not_allowed)" in done.stderr
    assert neighbourhood.connections == 0


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
        ["credential", "issue", "status-list"],
        ["credential", "verify"],
        ["did"],
        ["did", "resolve"],
        ["did", "document"],
        ["sign"],
        ["issuer"],
        ["issuer", "add"],
        ["issuer", "check"],
        ["issuer", "remove"],
        ["issuer", "list"],
    ],
)
def test_help_teaches_without_the_server(command: list[str]) -> None:
    script = (
        "import sys; from ledger.cli import main; main(standalone_mode=False); "
        "print({'sqlalchemy', 'pyld', 'jsonschema_rs', 'argon2', 'msgspec', 'aiohttp'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip().endswith("set()")
    assert "Usage:" in done.stdout
