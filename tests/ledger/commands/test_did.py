"""`staylog did`: whose keys they are, and the document that says so."""

import json
from base64 import urlsafe_b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.canon import multikey
from tests.identities import HOST, NOW, THIEF, Speaker, did_document
from tests.ledger.commands.issuer_folder import run
from tests.ledger.commands.test_credential_network import ask
from tests.network import Neighbourhood
from tests.running import Running

COTTAGE = Speaker(3, "did:web:cottage.example", "#key-1")
DOCUMENT_URL = "https://cottage.example/.well-known/did.json"
JWK = {"kty": "OKP", "crv": "Ed25519", "x": urlsafe_b64encode(HOST.public).rstrip(b"=").decode()}
DID_JWK = "did:jwk:" + urlsafe_b64encode(json.dumps(JWK).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(("name", "fragment"), [(HOST.did, f"#{HOST.multikey}"), (DID_JWK, "#0")])
def test_a_did_with_its_key_in_its_name(neighbourhood: Neighbourhood, name: str, fragment: str) -> None:
    """Nobody is asked, and so there is nothing to warn of."""
    done = ask(neighbourhood, "did", "resolve", name)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        name,
        "  has its key in its name; nobody was asked",
        f"  {HOST.multikey}  {fragment}",
    ]
    told = json.loads(ask(neighbourhood, "did", "resolve", name, "--json").stdout)
    assert told == {"did": name, "document": None, "keys": {f"{name}{fragment}": HOST.multikey}}
    assert neighbourhood.connections == 0


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("did:web:cottage.example", DOCUMENT_URL),
        ("did:web:cottage.example:hosts:7", "https://cottage.example/hosts/7/did.json"),
    ],
)
def test_a_did_web_is_asked_for_at_its_domain(neighbourhood: Neighbourhood, name: str, url: str) -> None:
    old, new = Speaker(3, name, "#key-1"), Speaker(4, name, "#key-2")
    neighbourhood.put(url, did_document(old, new))
    done = ask(neighbourhood, "did", "resolve", name)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [name, f"  {url}", f"  {old.multikey}  #key-1", f"  {new.multikey}  #key-2"]
    told = json.loads(ask(neighbourhood, "did", "resolve", name, "--json").stdout)
    assert told == {"did": name, "document": url, "keys": {old.method: old.multikey, new.method: new.multikey}}
    assert neighbourhood.requests == {url: 2}


@pytest.mark.parametrize("name", ["did:web:other.example", "did:web:cottage.example:hosts:7", None])
def test_a_document_about_somebody_else(neighbourhood: Neighbourhood, name: str | None) -> None:
    neighbourhood.put(DOCUMENT_URL, did_document(COTTAGE, id=name))
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "refused (did_document_invalid)" in done.stderr
    told = json.loads(ask(neighbourhood, "did", "resolve", COTTAGE.did, "--json").stdout)
    assert (told["did"], told["code"], "keys" in told) == (COTTAGE.did, "did_document_invalid", False)


@pytest.mark.parametrize(
    "changes", [{"assertionMethod": []}, {"verificationMethod": []}, {"assertionMethod": ["#key-2"]}]
)
def test_a_document_without_a_key_that_may_assert(neighbourhood: Neighbourhood, changes: dict[str, Any]) -> None:
    neighbourhood.put(DOCUMENT_URL, did_document(COTTAGE, **changes))
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did)
    assert done.exit_code == 1
    assert "no Ed25519 key may assert for it (assertionMethod)" in done.stdout
    told = ask(neighbourhood, "did", "resolve", COTTAGE.did, "--json")
    assert (told.exit_code, json.loads(told.stdout)["keys"]) == (1, {})


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"status": 404}, "fetch_status", "answered 404"),
        ({"media_type": "text/html"}, "fetch_not_json", "'text/html', not JSON"),
        ({"status": 302, "location": "https://cottage.example/did.json"}, "fetch_redirected", "leads elsewhere"),
    ],
)
def test_a_domain_that_has_no_document(
    neighbourhood: Neighbourhood, answer: dict[str, Any], code: str, words: str
) -> None:
    neighbourhood.put(DOCUMENT_URL, **{"value": did_document(COTTAGE), **answer})
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"refused ({code}) https://cottage.example/" in done.stderr
    assert words in done.stderr


def test_a_domain_where_nobody_listens(neighbourhood: Neighbourhood) -> None:
    neighbourhood.take_down("cottage.example")
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["code"] == "fetch_unreachable"
    assert f"refused (fetch_unreachable) {DOCUMENT_URL} could not be asked" in done.stderr


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("cottage.example", "did_not_canonical"),
        ("did:example:1", "did_not_canonical"),
        ("did:web:Cottage.example", "did_not_canonical"),
        (f"{COTTAGE.did}#key-1", "did_not_canonical"),
        ("did:web:cottage.example%3A8443", "address_not_allowed"),
        ("did:web:127.0.0.1", "address_not_allowed"),
        ("did:web:localhost", "address_not_allowed"),
    ],
)
def test_a_name_that_is_not_asked_for(neighbourhood: Neighbourhood, name: str, code: str) -> None:
    neighbourhood.host("cottage.example")
    done = ask(neighbourhood, "did", "resolve", name)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"refused ({code})" in done.stderr
    assert neighbourhood.connections == 0


# What a ledger remembers


def where(running: Running) -> list[str]:
    return ["--data", str(running.settings.data), "--database-url", running.settings.database_url]


def seen(key: str, first: str, last: str, method: str) -> dict[str, str]:
    return {"method": method, "multikey": key, "first_seen": first, "last_seen": last}


def test_a_ledger_remembers_the_keys_of_hosts(neighbourhood: Neighbourhood, running: Running) -> None:
    """Also those that the document has no longer, and when it was seen to change."""
    neighbourhood.put(DOCUMENT_URL, did_document(COTTAGE))
    resolve = ("did", "resolve", COTTAGE.did, *where(running))
    told = json.loads(ask(neighbourhood, *resolve, "--json").stdout)
    assert (told["remembered"], told["host_key_changed_at"]) == ([], None)
    running.ledger.archive.remember(COTTAGE.did, {COTTAGE.method: THIEF.public}, NOW)
    running.ledger.archive.remember(COTTAGE.did, {COTTAGE.method: THIEF.public}, NOW + timedelta(hours=1))
    told = json.loads(ask(neighbourhood, *resolve, "--json").stdout)
    assert told["host_key_changed_at"] is None
    running.ledger.archive.remember(COTTAGE.did, {COTTAGE.method: COTTAGE.public}, NOW + timedelta(hours=2))
    told = json.loads(ask(neighbourhood, *resolve, "--json").stdout)
    assert told["keys"] == {COTTAGE.method: COTTAGE.multikey}
    assert told["remembered"] == [
        seen(THIEF.multikey, "2026-06-01T12:00:00Z", "2026-06-01T13:00:00Z", COTTAGE.method),
        seen(COTTAGE.multikey, "2026-06-01T14:00:00Z", "2026-06-01T14:00:00Z", COTTAGE.method),
    ]
    assert told["host_key_changed_at"] == "2026-06-01T14:00:00Z"
    shown = ask(neighbourhood, *resolve).stdout
    assert f"seen 2026-06-01T12:00:00Z to 2026-06-01T13:00:00Z: {THIEF.multikey}  #key-1" in shown
    assert "the keys were last seen to change at 2026-06-01T14:00:00Z" in shown
    # To look is not to remember.
    assert len(running.ledger.archive.recall(COTTAGE.did)) == 2


def test_what_is_remembered_is_shown_though_the_domain_is_gone(neighbourhood: Neighbourhood, running: Running) -> None:
    neighbourhood.take_down("cottage.example")
    running.ledger.archive.remember(COTTAGE.did, {COTTAGE.method: COTTAGE.public}, NOW)
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did, *where(running))
    assert done.exit_code == 1
    assert f"{COTTAGE.multikey}  #key-1" in done.stdout
    assert "refused (fetch_unreachable)" in done.stderr
    told = json.loads(ask(neighbourhood, "did", "resolve", COTTAGE.did, *where(running), "--json").stdout)
    assert (told["code"], len(told["remembered"])) == ("fetch_unreachable", 1)


def test_names_of_keys_do_not_command_the_terminal(neighbourhood: Neighbourhood, running: Running) -> None:
    """Of now there are none such; of before there might be."""
    rude = Speaker(3, COTTAGE.did, "#\x1b[2Jkey")
    neighbourhood.put(DOCUMENT_URL, did_document(rude))
    running.ledger.archive.remember(COTTAGE.did, {rude.method: rude.public}, NOW)
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did, *where(running))
    assert done.exit_code == 1
    assert "\x1b" not in done.output
    assert done.stdout.count("#\\x1b[2Jkey") == 1


def test_a_folder_without_a_ledger_is_told(neighbourhood: Neighbourhood, tmp_path: Path) -> None:
    neighbourhood.put(DOCUMENT_URL, did_document(COTTAGE))
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did, "--data", str(tmp_path / "none"))
    assert (done.exit_code, "(not_initialised)" in done.stderr) == (1, True)
    assert neighbourhood.connections == 0


# A developer's own machine


def test_a_developers_machine_is_told_apart(neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(DOCUMENT_URL, did_document(COTTAGE))
    done = ask(neighbourhood, "did", "resolve", COTTAGE.did)
    assert "DEVELOPMENT: 1 names lead to this machine" in done.stderr
    assert "DEVELOPMENT" not in done.stdout
    public = ask(neighbourhood, "did", "resolve", COTTAGE.did, STAYLOG_BASE_URL="https://ledger.example")
    assert (public.exit_code, public.stdout) == (1, "")
    assert "refused (development_refused)" in public.stderr
    local = ask(neighbourhood, "did", "resolve", COTTAGE.did, STAYLOG_BASE_URL="http://localhost:9000")
    assert local.exit_code == 0, local.output
    assert neighbourhood.requests == {DOCUMENT_URL: 2}


# The document of one's own


def new_key(folder: Path, name: str) -> str:
    assert run("key", "new", str(folder / name)).exit_code == 0
    return str(folder / name)


@pytest.mark.parametrize(
    ("name", "url"),
    [(COTTAGE.did, DOCUMENT_URL), ("did:web:cottage.example:hosts:7", "https://cottage.example/hosts/7/did.json")],
)
def test_a_document_is_made_that_others_can_read(
    neighbourhood: Neighbourhood, tmp_path: Path, name: str, url: str
) -> None:
    """With every key once, however often it is named, and with no secret."""
    files = [new_key(tmp_path, "old.key"), new_key(tmp_path, "new.key")]
    done = run("did", "document", name, *("--key", files[0], "--key", files[1], "--key", files[0]))
    assert done.exit_code == 0, done.output
    assert f"publish it as application/json at {url}" in done.stderr
    for file in files:
        assert Path(file).read_text().strip() not in done.output
    neighbourhood.put(url, json.loads(done.stdout))
    told = json.loads(ask(neighbourhood, "did", "resolve", name, "--json").stdout)
    keys = list(told["keys"].values())
    assert len({*keys}) == len(keys) == 2
    assert [*told["keys"]] == [f"{name}#{key}" for key in keys]
    for key in keys:
        multikey.decode(key)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (HOST.did, "did_not_canonical"),
        (DID_JWK, "did_not_canonical"),
        ("https://cottage.example", "did_not_canonical"),
        ("did:web:cottage.example%3A8443", "address_not_allowed"),
        ("did:web:localhost", "address_not_allowed"),
    ],
)
def test_no_document_is_made_that_nobody_would_read(tmp_path: Path, name: str, code: str) -> None:
    done = run("did", "document", name, "--key", new_key(tmp_path, "host.key"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"refused ({code})" in done.stderr


def test_a_document_needs_a_key(tmp_path: Path) -> None:
    assert run("did", "document", COTTAGE.did).exit_code == 2
    done = run("did", "document", COTTAGE.did, "--key", str(tmp_path / "none.key"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "(key_unreadable)" in done.stderr
