"""A body in two parts (multipart/form-data, RFC 7578): what a host attests, and the booking's document.

It is kept in memory: the framework would put a document that is longer than a megabyte into a file on the disk, and
takes what comes without the name of a file for text.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from litestar import Request
from litestar.exceptions import HTTPException
from multipart import MultipartError, ParserLimitReached, PushMultipartParser  # type: ignore[import-untyped]

from api.parameters import FieldError, InvalidParameters
from ledger.errors import Unavailable

MEDIA_TYPE = "multipart/form-data"
PARTS = ("attestation", "document")
# What the parts of a body have around them.
MAX_OVERHEAD = 8 * 1024


class Buffered:
    """Bytes of bodies that are in memory, of all requests together, and of those of each client. Used by the event
    loop's thread alone."""

    def __init__(self, most: int, of_one: int) -> None:
        self._left = most
        self._of_one = of_one
        self._of: Counter[str] = Counter()

    @contextmanager
    def held(self, client: str) -> Iterator[Callable[[int], None]]:
        """For one body: call what it yields with the size of each chunk, before the chunk is kept. That raises
        Unavailable when there is no room; a body that comes slowly takes no more than what has come."""
        mine = 0

        def hold(size: int) -> None:
            nonlocal mine
            if self._of[client] + size > self._of_one:
                raise Unavailable("busy", "you are sending too many documents at once; try again in a moment")
            if size > self._left:
                raise Unavailable("busy", "too many documents are being sent at once; try again in a moment")
            mine += size
            self._left -= size
            self._of[client] += size

        try:
            yield hold
        finally:
            self._left += mine
            self._of[client] -= mine
            if not self._of[client]:
                del self._of[client]


async def two_parts(request: Request[Any, Any, Any], hold: Callable[[int], None]) -> tuple[bytes, bytes]:
    """The `attestation` and the `document` of a body in parts: these, once each, and nothing else."""
    media_type, options = request.content_type
    if media_type != MEDIA_TYPE:
        raise HTTPException(status_code=415, detail=f"{MEDIA_TYPE} expected, not {media_type[:80] or 'nothing'}")
    try:
        given = await _parse(request.stream(), hold, options.get("boundary", "").encode())
    except ParserLimitReached:
        raise _other_parts() from None
    except MultipartError as error:
        raise HTTPException(status_code=400, detail=f"this is no {MEDIA_TYPE}: {error}") from None
    found = dict(given)
    if len(given) != len(PARTS) or found.keys() != set(PARTS):
        raise _other_parts()
    return bytes(found[PARTS[0]]), bytes(found[PARTS[1]])


async def _parse(
    stream: AsyncIterator[bytes], hold: Callable[[int], None], boundary: bytes
) -> list[tuple[str, bytearray]]:
    """The names of the parts and what is in them, with the name of a file or without."""
    found: list[tuple[str, bytearray]] = []
    with PushMultipartParser(boundary, max_segment_count=len(PARTS)) as parser:
        async for chunk in stream:
            hold(len(chunk))
            # The empty one says that there is no more.
            for event in parser.parse(chunk) if chunk else ():
                if isinstance(event, bytes | bytearray):
                    found[-1][1].extend(event)
                elif event is not None:
                    found.append((event.name, bytearray()))
    return found


def _other_parts() -> InvalidParameters:
    return InvalidParameters(*(FieldError(name, "this part, once, and no other expected") for name in PARTS))
