"""A body in two parts, as clients of all kinds send it, and as none should."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select
from typing import Any

import httpx
import pytest

from api.parts import MAX_OVERHEAD, Buffered
from ledger.errors import Unavailable
from ledger.reviews.crossplatform import MAX_DOCUMENT
from tests.api.hosts_and_guests import PDF, attest, attestation, consent, trust_hosts
from tests.api.refusals import BROWN, REFERENCES, said
from tests.api.site import Person, Site, problem, serving
from tests.api.test_bookings import documented
from tests.reviewing import encoded, review
from tests.schemas.validators import validator

PATH = "/v1/reviews/cross-platform"
BOUNDARY = "a-boundary"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
HOST = Person("host of two parts")


@pytest.fixture(scope="module")
def site(shared: Site) -> Site:
    trust_hosts(shared)
    return shared


def part(name: str, data: bytes, *, filename: str | None = None, more: str = "") -> bytes:
    named = f'; filename="{filename}"' if filename is not None else ""
    return (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n{more}\r\n'.encode() + data + b"\r\n"
    )


def whole(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def post(site: Site, body: Any, media_type: str = TYPE) -> httpx.Response:
    return site.client.post(PATH, content=body, headers={"content-type": media_type})


def made(document: bytes = PDF, **changes: Any) -> bytes:
    return encoded(attestation(HOST, next(REFERENCES), document=document, **changes))


def test_a_receipt_comes_back_that_is_documented(site: Site) -> None:
    body = attestation(HOST, next(REFERENCES))
    first, again = attest(site, body), attest(site, body)
    assert (first.status_code, again.status_code) == (201, 200)
    receipt = documented(site, first, PATH)
    assert receipt == documented(site, again, PATH)
    validator("receipt.v1.json").validate(receipt)
    assert first.headers["location"] == f"/v1/reviews/{receipt['review_id']}"
    entry = json.loads(receipt["entry"])
    assert entry["level"] == receipt["verification_level"] == "host_attested"
    assert entry["evidence"] | {"commitment": ""} == {
        "booking": "attestation",
        "commitment": "",
        "idv_level": None,
        "issuer": None,
    }
    # Of the document not even the hash is published.
    assert body["document_sha256"] not in receipt["entry"]


def test_the_consent_of_the_guest(site: Site) -> None:
    answer = attest(site, attestation(HOST, next(REFERENCES), guest_statement=consent(BROWN)))
    assert documented(site, answer, PATH)["verification_level"] == "guest_verified"


@pytest.mark.parametrize("filename", [None, "booking.pdf", "../../etc/passwd", "a\\b", "Beleg für März.pdf", "x" * 500])
def test_what_a_file_is_called_is_nobodys_business(site: Site, filename: str | None) -> None:
    """Not even whether it has a name: bytes that are no text come without one, too."""
    document = PDF + b"\xff\xfe\x00 %%EOF"
    body = whole(part("attestation", made(document)), part("document", document, filename=filename))
    assert post(site, body).status_code == 201


def test_a_file_may_be_the_attestation_and_come_second(site: Site) -> None:
    first = part("document", PDF, filename="b.pdf", more="Content-Type: application/octet-stream\r\n")
    second = part("attestation", made(), filename="a.json", more="Content-Type: text/plain; charset=utf-16\r\n")
    assert post(site, whole(first, second)).status_code == 201


def test_lines_and_boundaries_inside_of_a_document(site: Site) -> None:
    """Only a whole boundary after a line's end ends it."""
    document = PDF + f"--{BOUNDARY}--\r\n \r\n-- {BOUNDARY}\r\n\n--{BOUNDARY[:-1]}\r\n%%EOF".encode() + b"\r\n"
    assert post(site, whole(part("attestation", made(document)), part("document", document))).status_code == 201


OTHER_PARTS = {
    "no document": [("attestation", b"{}")],
    "no attestation": [("document", PDF)],
    "none": [],
    "an attestation twice": [("attestation", b"{}"), ("attestation", b"{}")],
    "a document twice": [("attestation", b"{}"), ("document", PDF), ("document", PDF)],
    "one more": [("attestation", b"{}"), ("document", PDF), ("note", b"")],
    "another": [("attestation", b"{}"), ("file", PDF)],
    "capitals": [("Attestation", b"{}"), ("document", PDF)],
    "a thousand": [("document", b"")] * 1000,
}


@pytest.mark.parametrize("which", OTHER_PARTS)
def test_other_parts_are_refused_by_name(site: Site, which: str) -> None:
    before = said(site)
    body = whole(*(part(name, data) for name, data in OTHER_PARTS[which]))
    refused = problem(post(site, body), "parameter_invalid")
    assert [error["field"] for error in refused["errors"]] == ["attestation", "document"]
    assert said(site) == before


BROKEN = {
    "nothing": (b"", TYPE),
    "no boundary": (whole(part("attestation", b"{}"), part("document", PDF)), "multipart/form-data"),
    "an empty boundary": (whole(), 'multipart/form-data; boundary=""'),
    "another boundary": (whole(part("attestation", b"{}")), "multipart/form-data; boundary=other"),
    "no end": (part("attestation", b"{}") + part("document", PDF), TYPE),
    "half of it": (whole(part("attestation", b"{}"), part("document", PDF))[:-40], TYPE),
    "no name": (f"--{BOUNDARY}\r\nContent-Type: text/plain\r\n\r\nx\r\n--{BOUNDARY}--".encode(), TYPE),
    "no headers": (f"--{BOUNDARY}\r\n\r\nx\r\n--{BOUNDARY}--".encode(), TYPE),
    "headers that are no text": (f"--{BOUNDARY}\r\n".encode() + b"\xff\xfe: x\r\n\r\nx\r\n", TYPE),
    "JSON": (b"{}", TYPE),
}


@pytest.mark.parametrize("which", BROKEN)
def test_what_is_not_in_parts_is_refused(site: Site, which: str) -> None:
    before = said(site)
    data, media_type = BROKEN[which]
    problem(post(site, data, media_type), "bad_request")
    assert said(site) == before


@pytest.mark.parametrize(
    "media_type", ["application/json", "multipart/mixed; boundary=a", "application/x-www-form-urlencoded", "text/plain"]
)
def test_another_media_type_is_refused(site: Site, media_type: str) -> None:
    problem(post(site, b"{}", media_type), "unsupported_media_type")


def filled(size: int) -> bytes:
    return b"%PDF-" + bytes(size - 10) + b"%%EOF"


def test_a_document_of_5_mib(site: Site) -> None:
    """It is taken, one byte more is not; whether the length is told before or not."""
    document = filled(MAX_DOCUMENT)
    assert attest(site, attestation(HOST, next(REFERENCES), document=document), document).status_code == 201
    longer = filled(MAX_DOCUMENT + 1)
    problem(attest(site, attestation(HOST, next(REFERENCES), document=longer), longer), "too_large")
    body = whole(part("attestation", made(longer)), part("document", longer))

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(body), 65_536):
            yield body[at : at + 65_536]

    problem(post(site, pieces()), "too_large")


def test_a_body_that_is_longer_than_anything_is_refused_unread(site: Site) -> None:
    """By the length that it says, before a byte of it came."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=10) as connection:
        size = MAX_DOCUMENT + 256 * 1024 + MAX_OVERHEAD + 1
        head = f"POST {PATH} HTTP/1.1\r\nHost: a.example\r\nContent-Type: {TYPE}\r\nContent-Length: {size}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_nobody_waits_for_who_sends_slowly(site: Site) -> None:
    """Those who have begun to send a document, and do not go on, take nobody's place; what they sent is gone when they
    leave."""
    before = said(site)
    head = f"POST {PATH} HTTP/1.1\r\nHost: a.example\r\nContent-Type: {TYPE}\r\nContent-Length: 100000\r\n\r\n"
    slow = [socket.create_connection(("127.0.0.1", site.port), timeout=10) for _ in range(120)]
    try:
        for connection in slow:
            connection.sendall(head.encode() + part("attestation", made())[:200])
        assert attest(site, attestation(HOST, next(REFERENCES))).status_code == 201
        assert site.submit(review(Person("quick"), HOST, next(REFERENCES))).status_code == 201
    finally:
        for connection in slow:
            connection.close()
    assert said(site)["entries"][len(before["entries"]) :] == ["review", "review"]


def test_a_document_is_never_on_the_disk(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form of the framework's would be, from a megabyte on."""

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("a file was made of it")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", refuse)
    document = filled(2 * 1024 * 1024)
    assert attest(site, attestation(HOST, next(REFERENCES), document=document), document).status_code == 201


def test_documents_have_room_together_and_of_each_client() -> None:
    documents = Buffered(100, 40)
    with documents.held("a") as first, documents.held("a") as second, ExitStack() as others:
        first(30)
        with pytest.raises(Unavailable, match="you are sending"):
            second(11)
        second(10)
        for name in ("b", "c"):
            others.enter_context(documents.held(name))(30)
        with documents.held("d") as late, pytest.raises(Unavailable, match="being sent"):
            late(1)
    for name in ("a", "b", "e"):
        with documents.held(name) as hold:
            hold(40)
    assert not documents._of


def test_one_address_does_not_keep_others_from_sending_documents(tmp_path: Path) -> None:
    """It sends all but the end of some documents, and waits."""
    body = whole(part("attestation", made()), part("document", filled(MAX_DOCUMENT)))
    head = f"POST {PATH} HTTP/1.1\r\nHost: a.example\r\nContent-Type: {TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
    with serving(tmp_path, limits=True) as site, ExitStack() as crowd:
        trust_hosts(site)
        address = "127.0.0.1", site.port
        waiting = [crowd.enter_context(socket.create_connection(address, 10, ("127.0.0.9", 0))) for _ in range(4)]
        for connection in waiting:
            connection.sendall(head.encode() + body[:-10])
        refused, _, _ = select(waiting, [], [], 10)
        assert refused[0].recv(4096).startswith(b"HTTP/1.1 503")
        assert attest(site, attestation(HOST, next(REFERENCES))).status_code == 201
