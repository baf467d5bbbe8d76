"""`staylog credential verify` by address: what is asked of whom, and at which of nine steps a host's credential fails.

Time is that of `tests.identities`, by --at; the world outside is the neighbourhood.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ledger.canon.times import format_time
from ledger.cli import main
from tests.identities import (
    CLAIMS,
    GUEST,
    HOST,
    IDV,
    ISSUER,
    NOW,
    PROPERTY,
    STATUS,
    THIEF,
    Speaker,
    credential,
    did_document,
    packed,
    signed,
    status_list,
)
from tests.ledger.commands.test_operator import staylog
from tests.network import Neighbourhood
from tests.running import Running

URL = f"{IDV}/credentials/55"
KEY_URL = f"{IDV}/keys/1"
LIST_URL = f"{IDV}/status/1"
LISTING = ("--listing", "rose-cottage")
KEY = ("--key", ISSUER.multikey)
SUSPENSION = {**STATUS, "id": f"{LIST_URL}#78", "statusPurpose": "suspension", "statusListIndex": "78"}


def ask(neighbourhood: Neighbourhood, *arguments: str, text: str | None = None, **environment: str) -> Result:
    """A command of somebody who lives in the neighbourhood."""
    done = CliRunner().invoke(main, list(arguments), input=text, env={**neighbourhood.environment, **environment})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def key_document(**changes: Any) -> dict[str, Any]:
    """What an issuer has at the address of a key. What is changed to None is left out."""
    usual = {"id": KEY_URL, "type": "Multikey", "controller": IDV, "publicKeyMultibase": ISSUER.multikey}
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


class World:
    """An issuer at its address: its key, a status list that revokes nothing, and one credential."""

    def __init__(self, neighbourhood: Neighbourhood, file: Path) -> None:
        self.neighbourhood = neighbourhood
        self.file = file
        neighbourhood.put(URL, credential("host"))
        neighbourhood.put(KEY_URL, key_document())
        neighbourhood.put(LIST_URL, status_list())

    def verify(self, *options: str, source: str = URL, at: str = format_time(NOW)) -> Result:
        return ask(self.neighbourhood, "credential", "verify", source, "--at", at, *options)

    def verify_file(self, document: Any, *options: str) -> Result:
        self.file.write_text(json.dumps(document))
        return self.verify(*options, source=str(self.file))

    @property
    def requests(self) -> set[str]:
        return set(self.neighbourhood.requests)


@pytest.fixture
def world(neighbourhood: Neighbourhood, tmp_path: Path) -> World:
    return World(neighbourhood, tmp_path / "credential.json")


def fails(done: Result, code: str, step: int | None, status: int = 1) -> str:
    """Why a verdict that was asked for with --json is not that it holds."""
    assert done.exit_code == status, done.output
    told = json.loads(done.stdout)
    assert (told["code"], told.get("step"), told["valid"]) == (code, step, False if status == 1 else None)
    assert f"refused ({code})" in done.stderr
    assert "Traceback" not in done.output
    return str(told["message"])


def test_a_hosts_credential_passes_all_nine_steps(world: World) -> None:
    """Each of three is asked once: where the credential is, where the key is, where the status is."""
    done = world.verify(*LISTING)
    assert done.exit_code == 0, done.output
    for told in (
        "valid credential of a host",
        HOST.did,
        "not asked: the key is the issuer's own",
        "looked up just now",
    ):
        assert told in done.stdout
    assert world.neighbourhood.requests == {URL: 1, KEY_URL: 1, LIST_URL: 1}


def test_the_verdict_as_json(world: World) -> None:
    told = json.loads(world.verify(*LISTING, "--json").stdout)
    assert (told["valid"], told["role"], told["issuer"]) == (True, "host", IDV)
    assert told["revoked"] == "no: looked up just now"
    assert told["claims"] == CLAIMS["host"]
    assert "step" not in told


def test_a_refusal_reads_as_one_line(world: World) -> None:
    world.neighbourhood.put(LIST_URL, status_list([77]))
    done = world.verify()
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        'refused (credential_revoked) step 7 of 9, "it is neither revoked nor suspended", fails: '
        "the issuer has revoked this credential"
    )
    world.neighbourhood.remove(LIST_URL)
    open_ = world.verify()
    assert (open_.exit_code, open_.stdout) == (2, "")
    assert open_.stderr.splitlines()[-1] == (
        'refused (status_unavailable) step 7 of 9, "it is neither revoked nor suspended", cannot be taken now: '
        f"whether the credential was revoked cannot be looked up now (fetch_status): {LIST_URL} answered 404"
    )


# Step 1: the document was fetched


@pytest.mark.parametrize(
    "source",
    [
        "http://idv.example/credentials/55",
        "ftp://idv.example/credentials/55",
        "https://idv.example:8443/credentials/55",
        "https://me@idv.example/credentials/55",
        "https://idv.example/credentials/55#top",
        "https://127.0.0.1/credentials/55",
        "https://[::1]/credentials/55",
        "https://169.254.169.254/latest/meta-data",
        "https://2130706433/",
        "https://localhost/credentials/55",
        "https://idv/credentials/55",
        "://",
    ],
)
def test_an_address_that_may_not_be_asked(world: World, source: str) -> None:
    fails(world.verify(*LISTING, "--json", source=source), "address_not_allowed", 1)
    assert world.neighbourhood.connections == 0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 404}, "fetch_status"),
        ({"status": 500}, "fetch_status"),
        ({"status": 302, "location": f"{IDV}/credentials/56"}, "fetch_redirected"),
        ({"media_type": "text/html"}, "fetch_not_json"),
        ({"value": b"{"}, "fetch_not_json"),
        ({"value": b'{"id":1,"id":2}'}, "fetch_not_json"),
        ({"value": b" " * (64 * 1024 + 1)}, "fetch_too_large"),
    ],
)
def test_an_address_with_nothing_of_use(world: World, answer: dict[str, Any], why: str) -> None:
    world.neighbourhood.put(URL, **{"value": credential("host"), **answer})
    assert why in fails(world.verify(*LISTING, "--json"), "credential_unavailable", 1, status=2)


def test_an_address_where_nobody_listens(world: World) -> None:
    world.neighbourhood.take_down("idv.example")
    assert "fetch_unreachable" in fails(world.verify(*LISTING, "--json"), "credential_unavailable", 1, status=2)


def test_what_was_not_fetched_is_nobodys_credential_yet(world: World) -> None:
    """Steps are those for hosts: without --listing nobody knows that it is one's."""
    fails(world.verify("--json", source=f"{IDV}/credentials/56"), "credential_unavailable", None, status=2)
    fails(world.verify("--json", source="http://idv.example/"), "address_not_allowed", None)


# Step 2: it is a host's credential, of the closed form


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (credential("guest"), "wrong_credential_type"),
        ([], "wrong_credential_type"),
        ({**credential("host"), "type": "VerifiableCredential"}, "wrong_credential_type"),
        (signed({**credential("host"), "@context": ["https://www.w3.org/ns/credentials/v2"]}), "context_not_allowed"),
        (signed({**credential("host"), "nickname": "Rosie"}), "undefined_term"),
        (signed({**credential("host"), "validFrom": "2026-02-30T00:00:00Z"}), "date_invalid"),
        (signed({**credential("host"), "credentialSubject": [CLAIMS["host"]]}), "schema_invalid"),
    ],
)
def test_what_is_no_hosts_credential(world: World, document: Any, code: str) -> None:
    """Nobody is asked for the key of it."""
    world.neighbourhood.put(URL, document)
    fails(world.verify(*LISTING, "--json"), code, 2)
    assert world.requests == {URL}


def test_a_credential_of_neither_role(world: World) -> None:
    fails(world.verify_file({"type": ["VerifiableCredential"]}, "--json"), "wrong_credential_type", None)


# Step 3: it holds now


@pytest.mark.parametrize(
    ("at", "code"), [("2026-08-10T12:00:00Z", "expired"), ("2026-05-22T11:54:59Z", "not_yet_valid")]
)
def test_a_credential_out_of_its_time(world: World, at: str, code: str) -> None:
    """That is certain, though its issuer should be away: nobody is asked."""
    world.neighbourhood.remove(KEY_URL)
    fails(world.verify(*LISTING, "--json", at=at), code, 3)
    assert world.requests == {URL}


def test_a_credential_without_end(world: World) -> None:
    endless = {name: value for name, value in credential("host").items() if name != "validUntil"}
    world.neighbourhood.put(URL, signed(endless))
    fails(world.verify("--json"), "missing_expiry", 3)


# Step 4: its issuer is trusted for hosts


def test_an_issuer_that_the_ledger_does_not_trust(world: World, running: Running) -> None:
    """And one that it trusts: its key is pinned, and not asked for."""
    where = ("--data", str(running.settings.data), "--database-url", running.settings.database_url)
    assert staylog(running, "issuer", "add", "guest", IDV, *KEY).exit_code == 0
    assert "of a host" in fails(world.verify(*LISTING, *where, "--json"), "issuer_not_trusted", 4)
    assert world.requests == {URL}
    assert staylog(running, "issuer", "add", "host", IDV, *KEY).exit_code == 0
    done = world.verify(*LISTING, *where)
    assert done.exit_code == 0, done.output
    assert "yes, by this ledger" in done.stdout
    assert world.requests == {URL, LIST_URL}


def test_a_host_that_speaks_for_itself(world: World) -> None:
    own = {**credential("host"), "issuer": HOST.did}
    world.neighbourhood.put(URL, signed(own, speaker=HOST))
    fails(world.verify("--json"), "self_issued", 4)


# Step 5: the key is the issuer's


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"controller": "https://idv.example/other"}, "issuer_key_mismatch"),
        ({"controller": None}, "issuer_key_mismatch"),
        ({"id": f"{IDV}/keys/2"}, "bad_verification_method"),
        ({"id": None}, "bad_verification_method"),
        ({"revoked": "2026-06-01T12:00:00Z"}, "bad_verification_method"),
        ({"expires": "2026-05-31T00:00:00Z"}, "bad_verification_method"),
        ({"expires": "soon"}, "bad_verification_method"),
        ({"type": "JsonWebKey"}, "bad_verification_method"),
        ({"publicKeyMultibase": "z6Mk"}, "bad_verification_method"),
        ({"publicKeyMultibase": None}, "bad_verification_method"),
        ({"secretKeyMultibase": "z3u2"}, "bad_verification_method"),
    ],
)
def test_a_key_document_that_does_not_serve(world: World, changes: dict[str, Any], code: str) -> None:
    world.neighbourhood.put(KEY_URL, key_document(**changes))
    fails(world.verify(*LISTING, "--json"), code, 5)
    assert world.requests == {URL, KEY_URL}


@pytest.mark.parametrize("ends", ["revoked", "expires"])
def test_a_key_that_will_end_counts_until_then(world: World, ends: str) -> None:
    world.neighbourhood.put(KEY_URL, key_document(**{ends: "2026-06-01T12:00:01Z"}))
    assert world.verify().exit_code == 0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 404}, "fetch_status"),
        ({"media_type": "text/plain"}, "fetch_not_json"),
        ({"status": 301, "location": f"{IDV}/keys/2"}, "fetch_redirected"),
    ],
)
def test_a_key_document_that_is_missing(world: World, answer: dict[str, Any], why: str) -> None:
    world.neighbourhood.put(KEY_URL, **{"value": key_document(), **answer})
    assert why in fails(world.verify("--json"), "issuer_unavailable", 5, status=2)


def test_a_key_document_that_is_no_object(world: World) -> None:
    world.neighbourhood.put(KEY_URL, [key_document()])
    fails(world.verify("--json"), "bad_verification_method", 5)


def test_a_key_of_another_origin_is_not_asked_for(world: World) -> None:
    elsewhere = signed(credential("host"), verificationMethod="https://thief.example/keys/1")
    world.neighbourhood.put("https://thief.example/keys/1", key_document(id="https://thief.example/keys/1"))
    world.neighbourhood.put(URL, elsewhere)
    fails(world.verify("--json"), "issuer_key_mismatch", 5)
    assert world.requests == {URL}


def test_an_issuer_at_an_address_that_may_not_be_asked(world: World) -> None:
    inside = Speaker(1, "https://127.0.0.1", "/keys/1")
    done = world.verify_file(signed({**credential("host"), "issuer": inside.did}, speaker=inside), "--json")
    fails(done, "address_not_allowed", 5)
    assert world.neighbourhood.connections == 0


# Step 6: the proof holds


def test_a_credential_by_another_key_than_the_published_one(world: World) -> None:
    world.neighbourhood.put(KEY_URL, key_document(publicKeyMultibase=THIEF.multikey))
    fails(world.verify(*LISTING, "--json"), "proof_invalid", 6)
    assert world.requests == {URL, KEY_URL}


def test_a_credential_that_was_changed(world: World) -> None:
    made = credential("host")
    made["credentialSubject"]["business_name"] = "Fenview Stay"
    world.neighbourhood.put(URL, made)
    fails(world.verify("--json"), "proof_invalid", 6)
    fails(world.verify("--json", "--key", THIEF.multikey), "proof_invalid", 6)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"type": "Ed25519Signature2018"}, "proof_type_not_supported"),
        ({"previousProof": "urn:uuid:1"}, "proof_chain"),
        ({"proofPurpose": "authentication"}, "wrong_proof_purpose"),
        ({"proofValue": "z1"}, "proof_value_invalid"),
        ({"created": "2026-06-01T12:05:01Z"}, "proof_time_invalid"),
    ],
)
def test_a_proof_that_is_none(world: World, changes: dict[str, Any], code: str) -> None:
    """Nobody is asked for the key of it."""
    made = signed(credential("host"))
    world.neighbourhood.put(URL, {**made, "proof": {**made["proof"], **changes}})
    fails(world.verify("--json"), code, 6)
    assert world.requests == {URL}


# Step 7: it is neither revoked nor suspended


def test_a_credential_that_was_revoked(world: World) -> None:
    world.neighbourhood.put(LIST_URL, status_list([76, 78]))
    assert world.verify().exit_code == 0
    world.neighbourhood.put(LIST_URL, status_list([77]))
    fails(world.verify(*LISTING, "--json"), "credential_revoked", 7)


def test_a_credential_that_was_suspended(world: World) -> None:
    """By the second list that it names."""
    second = {**SUSPENSION, "statusListCredential": f"{IDV}/status/2"}
    world.neighbourhood.put(URL, signed({**credential("host"), "credentialStatus": [STATUS, second]}))
    suspended = status_list([78], url=f"{IDV}/status/2", purpose="suspension")
    world.neighbourhood.put(f"{IDV}/status/2", suspended)
    fails(world.verify("--json"), "credential_suspended", 7)
    world.neighbourhood.put(f"{IDV}/status/2", status_list(url=f"{IDV}/status/2", purpose="suspension"))
    assert world.verify().exit_code == 0


def test_a_status_server_that_is_down(world: World) -> None:
    world.neighbourhood.take_down("idv.example")
    done = world.verify_file(credential("host"), *KEY, "--json")
    assert "fetch_unreachable" in fails(done, "status_unavailable", 7, status=2)


def changed_list(**changes: Any) -> dict[str, Any]:
    """A list that its issuer signed so."""
    made = status_list()
    return signed({**made, "credentialSubject": {**made["credentialSubject"], **changes}})


OTHER = Speaker(5, "https://other.example", "/keys/1")
OTHER_KEY = Speaker(6)
FEW, MANY = bytes(131_072 // 8 - 1), bytes(64 << 20)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (status_list(url=f"{IDV}/status/2"), "of another address"),
        (signed({**status_list(), "issuer": OTHER.did}, speaker=OTHER), "of another issuer"),
        (status_list(purpose="suspension"), "is not about revocation"),
        (changed_list(encodedList=packed(FEW)), "fewer than 131072 places"),
        (changed_list(encodedList=packed(MANY)), "more than 16777216 places"),
        (changed_list(encodedList=packed(bytes(131_072 // 8))[:-4]), "not one whole gzip stream"),
        (changed_list(encodedList="uAAAA"), "not base64url of what gzip packed"),
    ],
    ids=["another address", "another issuer", "wrong purpose", "short", "bomb", "cut off", "not packed"],
)
def test_a_status_list_that_cannot_be_the_issuers(world: World, document: Mapping[str, Any], why: str) -> None:
    world.neighbourhood.put(LIST_URL, document)
    assert why in fails(world.verify(*LISTING, "--json"), "status_invalid", 7)


def test_a_place_behind_the_end_of_the_list(world: World) -> None:
    world.neighbourhood.put(
        URL, signed({**credential("host"), "credentialStatus": {**STATUS, "statusListIndex": "131072"}})
    )
    fails(world.verify("--json"), "status_invalid", 7)


def test_a_status_list_elsewhere_is_not_asked_for(world: World) -> None:
    elsewhere = {**STATUS, "statusListCredential": "https://other.example/status/1"}
    world.neighbourhood.put(elsewhere["statusListCredential"], status_list())
    world.neighbourhood.put(URL, signed({**credential("host"), "credentialStatus": elsewhere}))
    fails(world.verify("--json"), "status_invalid", 7)
    assert world.requests == {URL, KEY_URL}


@pytest.mark.parametrize("address", ["http://idv.example/status/1", "https://127.0.0.1/status/1", "urn:uuid:1"])
def test_a_status_list_at_an_address_that_may_not_be_asked(world: World, address: str) -> None:
    """Whose issuer is but a key, and has no place of its own that it should be at."""
    made = {**credential("host", issuer=OTHER_KEY), "credentialStatus": {**STATUS, "statusListCredential": address}}
    done = world.verify_file(signed(made, speaker=OTHER_KEY), "--json")
    fails(done, "address_not_allowed", 7)
    assert world.neighbourhood.connections == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"value": b"{}"},
        {"value": b"[", "media_type": "application/vc"},
        {"value": b"nonsense", "media_type": "text/plain"},
        {"value": {**status_list(), "validUntil": "2027-01-01T00:00:00Z"}},
        {"value": signed(status_list(), speaker=THIEF, verificationMethod=ISSUER.method)},
        {"value": status_list(valid_until=NOW)},
        {"status": 503, "value": {}, "retry_after": "60"},
    ],
)
def test_a_status_that_nobody_can_say(world: World, answer: dict[str, Any]) -> None:
    """What came may be anybody's word: it is no verdict."""
    world.neighbourhood.put(LIST_URL, **answer)
    fails(world.verify("--json"), "status_unavailable", 7, status=2)


def test_a_hosts_credential_that_cannot_be_revoked(world: World) -> None:
    bare = {name: value for name, value in credential("host").items() if name != "credentialStatus"}
    world.neighbourhood.put(URL, signed(bare))
    fails(world.verify("--json"), "missing_status", 7)


# Steps 8 and 9: it names the listing, and the right to let the listing was verified


def test_a_listing_that_is_not_named(world: World) -> None:
    done = world.verify("--listing", "castle", "--json")
    assert "'castle'" in fails(done, "listing_not_covered", 8)
    assert world.verify().exit_code == 0


def test_a_right_to_let_that_was_not_verified(world: World) -> None:
    unsure = {**PROPERTY, "listing_id": "loft-2", "right_to_let_verified": False}
    world.neighbourhood.put(URL, credential("host", properties=[PROPERTY, unsure]))
    fails(world.verify("--listing", "loft-2", "--json"), "listing_not_covered", 9)
    assert world.verify(*LISTING).exit_code == 0


# Issuers of every kind


PLACES = {
    "a key at its own address": (ISSUER, KEY_URL, key_document()),
    "an issuer's document": (
        Speaker(1, IDV, "#key-1"),
        f"{IDV}/",
        did_document(Speaker(9, IDV, "#key-0"), Speaker(1, IDV, "#key-1")),
    ),
    "an issuer with a path": (
        Speaker(1, f"{IDV}/issuers/7", "#key-1"),
        f"{IDV}/issuers/7",
        did_document(Speaker(1, f"{IDV}/issuers/7", "#key-1")),
    ),
    "did:web": (
        Speaker(1, "did:web:idv.example", "#key-1"),
        f"{IDV}/.well-known/did.json",
        did_document(Speaker(1, "did:web:idv.example", "#key-1")),
    ),
    "did:web with a path": (
        Speaker(1, "did:web:idv.example:issuers:7", "#key-1"),
        f"{IDV}/issuers/7/did.json",
        did_document(Speaker(1, "did:web:idv.example:issuers:7", "#key-1")),
    ),
}


@pytest.mark.parametrize("role", ["guest", "host"])
@pytest.mark.parametrize("place", PLACES)
def test_an_issuers_key_is_looked_up_where_it_is_published(world: World, role: str, place: str) -> None:
    issuer, address, document = PLACES[place]
    world.neighbourhood.put(address, document)
    world.neighbourhood.put(LIST_URL, status_list(issuer=issuer))
    done = world.verify_file(credential(role, issuer=issuer), "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["issuer"] == issuer.did
    assert told["proof"] == f"eddsa-jcs-2022 by {issuer.multikey}"
    assert world.neighbourhood.requests == {address: 1, LIST_URL: 1}


@pytest.mark.parametrize("place", ["an issuer's document", "did:web"])
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"assertionMethod": []}, "bad_verification_method"),
        ({"assertionMethod": [f"{IDV}#key-2"]}, "bad_verification_method"),
        ({"verificationMethod": []}, "bad_verification_method"),
        ({"id": "did:web:other.example"}, "did_document_invalid"),
        ({"assertionMethod": "#key-1"}, "did_document_invalid"),
    ],
)
def test_an_issuers_document_that_does_not_name_the_key(
    world: World, place: str, changes: dict[str, Any], code: str
) -> None:
    issuer, address, document = PLACES[place]
    world.neighbourhood.put(address, {**document, **changes})
    fails(world.verify_file(credential("host", issuer=issuer), "--json"), code, 5)


@pytest.mark.parametrize(("role", "step"), [("guest", None), ("host", 5)])
def test_an_issuer_that_is_down(world: World, role: str, step: int | None) -> None:
    world.neighbourhood.take_down("idv.example")
    done = world.verify_file(credential(role), "--json")
    assert "fetch_unreachable" in fails(done, "issuer_unavailable", step, status=2)


def test_an_issuer_that_is_a_key_is_not_asked(world: World) -> None:
    """Its list may be anywhere: it is signed by that key."""
    world.neighbourhood.put(LIST_URL, status_list(issuer=OTHER_KEY))
    done = world.verify_file(credential("host", issuer=OTHER_KEY), *LISTING)
    assert done.exit_code == 0, done.output
    assert world.requests == {LIST_URL}


def test_a_guests_credential_that_was_revoked(world: World) -> None:
    """There are no nine steps for guests."""
    world.neighbourhood.put(URL, credential("guest"))
    done = world.verify("--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["subject"] == GUEST.did
    world.neighbourhood.put(LIST_URL, status_list([77]))
    fails(world.verify("--json"), "credential_revoked", None)


# Who is asked at all


@pytest.mark.parametrize("role", ["guest", "host"])
def test_offline_asks_nobody(world: World, role: str) -> None:
    done = world.verify_file(credential(role), "--offline", *KEY)
    assert done.exit_code == 0, done.output
    assert f"not looked up: {LIST_URL}" in done.stdout
    unknown = world.verify_file(credential(role), "--offline", "--json")
    assert "--key" in fails(unknown, "issuer_not_trusted", None)
    assert world.neighbourhood.connections == 0


def test_an_address_is_not_offline(world: World) -> None:
    done = world.verify("--offline")
    assert done.exit_code == 2
    assert "--offline goes with a file" in done.stderr
    assert world.neighbourhood.connections == 0


def test_standard_input_is_looked_up_too(world: World) -> None:
    text = json.dumps(credential("host"))
    done = ask(world.neighbourhood, "credential", "verify", "-", "--at", format_time(NOW), text=text)
    assert done.exit_code == 0, done.output
    assert world.requests == {KEY_URL, LIST_URL}


def test_a_developers_machine_is_told_apart(world: World) -> None:
    """Loudly, on standard error; and refused by whoever has a public address."""
    done = world.verify("--json")
    assert "DEVELOPMENT: 1 names lead to this machine" in done.stderr
    assert json.loads(done.stdout)["valid"] is True
    public = ask(world.neighbourhood, "credential", "verify", URL, STAYLOG_BASE_URL="https://ledger.example")
    assert public.exit_code == 2
    assert "refused (development_refused)" in public.stderr
    assert world.neighbourhood.requests == {URL: 1, KEY_URL: 1, LIST_URL: 1}


@pytest.mark.parametrize(
    ("options", "code"), [(["none.json"], "file_unreadable"), (["-", "--data", "none"], "not_initialised")]
)
def test_what_says_nothing_of_the_credential_is_no_verdict(world: World, options: list[str], code: str) -> None:
    text = json.dumps(credential("host"))
    done = ask(world.neighbourhood, "credential", "verify", *options, "--json", text=text)
    fails(done, code, None, status=2)
