"""Conditional requests (RFC 9110), what clients accept, and the answers that are kept in memory to be given again."""

import re
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Hashable
from hashlib import sha256
from typing import NamedTuple

from litestar.response.base import ASGIResponse
from litestar.types import HTTPScope, Receive, Scope, Send

SECOND = "public, max-age=1"
MINUTES = "public, max-age=300"
IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATE = "public, max-age=30, must-revalidate"

# What an answer weighs beside its body: key, headers, objects.
OVERHEAD = 2048

_REFUSED = re.compile(r"q\s*=\s*0(\.0{0,3})?")
_TAG = re.compile(rb'(?:W/)?("[^"]*")')


def wants_newer_than(etag: bytes, scope: HTTPScope) -> bool:
    """False when If-None-Match has `etag`, by weak comparison, or `*`."""
    for name, value in scope["headers"]:
        if name == b"if-none-match" and (value.strip() == b"*" or etag in _TAG.findall(value)):
            return False
    return True


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header (RFC 9110 section 12.5.3) allows gzip: by its name, or else by `*`."""
    weights: dict[str, bool] = {}
    for part in accept_encoding.lower().split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        weights[coding] = not any(_REFUSED.fullmatch(parameter) for parameter in parameters)
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


class Ready(ASGIResponse):
    """A response as it leaves: Litestar's own would take its headers apart and put them together again."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status_code = status
        self.body = body
        self._ready = headers

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self._ready})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


class Kept(NamedTuple):
    """An answer that can be given any number of times."""

    etag: bytes
    body: bytes

    @classmethod
    def make(cls, body: bytes) -> "Kept":
        """The tag is a hash of the body: strong, and the same in every process that serves it."""
        return cls(b'"%s"' % urlsafe_b64encode(sha256(body).digest()[:18]), body)

    def answer(self, scope: HTTPScope) -> Ready:
        headers = [(b"etag", self.etag), (b"cache-control", REVALIDATE.encode())]
        if not wants_newer_than(self.etag, scope):
            return Ready(304, headers, b"")
        length = b"%d" % len(self.body)
        return Ready(200, [*headers, (b"content-type", b"application/json"), (b"content-length", length)], self.body)


class AnswerCache:
    """Answers to GET by request target, for ONE version of the ledger, the least used leaving first when `limit` bytes
    are full.

    A new checkpoint empties it: an answer may have changed, and what a redaction withdrew must not be kept. So does
    news of a host's keys. Only the event loop uses it, so it needs no lock.
    """

    def __init__(self, limit: int = 64 << 20) -> None:
        self.limit = limit
        self.held = 0
        self._version: Hashable = None
        self._kept: OrderedDict[tuple[bytes, bytes], tuple[Kept, str]] = OrderedDict()

    def get(self, scope: HTTPScope, version: Hashable) -> Kept | None:
        """What was kept for the request, whose route is then known too."""
        if version != self._version:
            self.clear(version)
        target = scope["raw_path"], scope["query_string"]
        if target not in self._kept or scope["method"] != "GET":
            return None
        self._kept.move_to_end(target)
        kept, scope["path_template"] = self._kept[target]
        return kept

    def put(self, scope: HTTPScope, version: Hashable, kept: Kept) -> None:
        target = scope["raw_path"], scope["query_string"]
        weight = _weight(target, kept)
        if version != self._version or weight > self.limit or target in self._kept:
            return
        self._kept[target] = kept, scope["path_template"]
        self.held += weight
        while self.held > self.limit:
            oldest, (left, _) = self._kept.popitem(last=False)
            self.held -= _weight(oldest, left)

    def clear(self, version: Hashable) -> None:
        self._kept.clear()
        self.held, self._version = 0, version


def _weight(target: tuple[bytes, bytes], kept: Kept) -> int:
    return len(kept.body) + len(target[0]) + len(target[1]) + OVERHEAD
