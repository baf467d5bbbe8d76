"""A ledger's signed question to a host, made by another implementation of RFC 9421: the same bytes, the same signature."""

import pytest
from nacl.signing import SigningKey

from ledger.canon import http_signatures, multikey
from ledger.errors import NotAccepted
from tests.interop.vectors import public_folder


class Vector:
    """The request of the file, and what the file says of it."""

    def __init__(self, text: str) -> None:
        message, base, key = (part.strip("\n") for part in _parts(text))
        head, _, body = message.partition("\n\n")
        request, *lines = head.split("\n")
        self.method, self.path, _ = request.split(" ")
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self.body = body.encode()
        self.base = base.encode()
        self.key = multikey.decode(key)
        self.target_uri = f"https://{self.headers['host']}{self.path}"


def _parts(text: str) -> list[str]:
    """The three texts between the lines of dashes."""
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.startswith("--- "):
            parts.append([])
        else:
            parts[-1].append(line)
    assert len(parts) == 3
    return ["\n".join(part) for part in parts]


@pytest.fixture(scope="module")
def vector() -> Vector:
    return Vector((public_folder("openstr") / "booking_verify_callback.http.txt").read_text("utf-8"))


def verify(vector: Vector, now: int) -> None:
    http_signatures.verify_request(
        http_signatures.read_signature(vector.headers),
        method=vector.method,
        target_uri=vector.target_uri,
        content_type=vector.headers["content-type"],
        body=vector.body,
        digest=vector.headers["content-digest"],
        key=vector.key,
        now=now,
    )


def test_the_digest(vector: Vector) -> None:
    assert http_signatures.content_digest(vector.body) == vector.headers["content-digest"]


def test_the_signature_base(vector: Vector) -> None:
    signature = http_signatures.read_signature(vector.headers)
    made = http_signatures.signature_base(
        vector.method,
        vector.target_uri,
        vector.headers["content-type"],
        vector.headers["content-digest"],
        signature.parameters,
    )
    assert made == vector.base


def test_the_signature_holds_for_its_five_minutes(vector: Vector) -> None:
    for now in (1790000000, 1790000299):
        verify(vector, now)
    with pytest.raises(NotAccepted) as refused:
        verify(vector, 1790000300)
    assert refused.value.code == "signature_expired"


def test_we_would_have_said_the_same(vector: Vector) -> None:
    """The secret key is not published; all but the signature is the same for any key."""
    headers = http_signatures.sign_request(
        SigningKey(bytes(32)),
        method=vector.method,
        target_uri=vector.target_uri,
        content_type="application/json",
        body=vector.body,
        keyid="https://index.example/keys/callback-1",
        created=1790000000,
        nonce="h3Vb0s1kQyq2mTqv",
    )
    for name in ("Content-Type", "Content-Digest", "Signature-Input"):
        assert headers[name] == vector.headers[name.lower()]
