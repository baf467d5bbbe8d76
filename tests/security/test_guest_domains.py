"""A guest whose DID is a domain is looked up over the network, and leaves no trace of it (RFC-005 9.2)."""

import logging
from pathlib import Path
from typing import Any

import pytest

from ledger.store.rows import run
from tests.api.site import Site, problem, published, serving
from tests.engines import PostgresServer
from tests.identities import Speaker, did_document
from tests.reviewing import HOST, credential, review
from tests.security.traces import Search

GUEST = Speaker(90, "did:web:a-guest-who-has-a-domain.example", "#key-of-mine")
GONE = Speaker(91, "did:web:a-guest-who-is-not-there.example", "#key-of-mine")
COTTAGE = Speaker(92, "did:web:a-host-that-anybody-may-know.example", "#key-1")
VALUES = {
    f"{what} of {who}": value.encode()
    for who, guest in (("a guest", GUEST), ("one who is gone", GONE))
    for what, value in (
        ("the DID", guest.did),
        ("the domain", guest.did.removeprefix("did:web:")),
        ("the key", guest.multikey),
        ("the method", guest.method),
    )
}
KNOWN = {"the host": COTTAGE.did.encode()}


def documents(site: Site) -> None:
    for speaker in (GUEST, COTTAGE):
        site.outside.put(f"https://{speaker.did.removeprefix('did:web:')}/.well-known/did.json", did_document(speaker))
    site.outside.host(GONE.did.removeprefix("did:web:"))


def sent(guest: Speaker, host: Speaker, reference: str) -> dict[str, Any]:
    return review(guest, host, reference, guest_credential=credential(guest))


def left_behind(site: Site, folder: Path) -> dict[str, bytes]:
    """The files of the ledger, its rows, and what it shows to anybody."""
    found = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".pem"}
    with site.ledger.store.read() as connection:
        tables = ("entry", "known", "did_key", "did_document", "issuer_watch", "receipt_salt", "host_listing")
        found |= {table: repr(run(connection, f"SELECT * FROM {table}")).encode() for table in tables}
    return found | published(site.get, [HOST.did, COTTAGE.did], [])


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_nothing_of_a_guests_domain_stays(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = None
    if engine == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.url("domains")
    with serving(tmp_path, url) as site:
        documents(site)
        for number, host in enumerate((HOST, COTTAGE, COTTAGE)):
            assert site.submit(sent(GUEST, host, f"B-{number}")).status_code == 201
        problem(site.submit(sent(GONE, HOST, "B-9")), "guest_did_unavailable")
        # It was asked for, so there was something to leave behind.
        assert site.outside.requests["https://a-guest-who-has-a-domain.example/.well-known/did.json"] == 1
        remains = {**left_behind(site, tmp_path / "data"), "logs": caplog.text.encode()}
        if engine == "sqlite":
            remains |= {path.name: path.read_bytes() for path in tmp_path.glob("ledger.db*")}
        assert Search(VALUES)(remains) == {}
        # The search finds what is there: hosts are public.
        assert "did_key" in Search(KNOWN)(remains)
