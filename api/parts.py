"""A body in two parts (multipart/form-data, RFC 7578): what a host attests, and the booking's document.

It is kept in memory: the framework would put a document that is longer than a megabyte into a file on the disk, and
takes what comes without the name of a file for text.
"""

from collections.abc import AsyncIterator
from typing import Any

from litestar import Request
from litestar.exceptions import HTTPException
from multipart import MultipartError, ParserLimitReached, PushMultipartParser  # type: ignore[import-untyped]

from api.parameters import FieldError, InvalidParameters

MEDIA_TYPE = "multipart/form-data"
PARTS = ("attestation", "document")
# What the parts of a body have around them.
MAX_OVERHEAD = 8 * 1024


async def two_parts(request: Request[Any, Any, Any]) -> tuple[bytes, bytes]:
    """The `attestation` and the `document` of a body in parts: these, once each, and nothing else."""
    media_type, options = request.content_type
    if media_type != MEDIA_TYPE:
        raise HTTPException(status_code=415, detail=f"{MEDIA_TYPE} expected, not {media_type[:80] or 'nothing'}")
    try:
        given = await _parse(request.stream(), options.get("boundary", "").encode())
    except ParserLimitReached:
        raise _other_parts() from None
    except MultipartError as error:
        raise HTTPException(status_code=400, detail=f"this is no {MEDIA_TYPE}: {error}") from None
    found = dict(given)
    if len(given) != len(PARTS) or found.keys() != set(PARTS):
        raise _other_parts()
    return bytes(found[PARTS[0]]), bytes(found[PARTS[1]])


async def _parse(stream: AsyncIterator[bytes], boundary: bytes) -> list[tuple[str, bytearray]]:
    """The names of the parts and what is in them, with the name of a file or without."""
    found: list[tuple[str, bytearray]] = []
    with PushMultipartParser(boundary, max_segment_count=len(PARTS)) as parser:
        async for chunk in stream:
            # The empty one says that there is no more.
            for event in parser.parse(chunk) if chunk else ():
                if isinstance(event, bytes | bytearray):
                    found[-1][1].extend(event)
                elif event is not None:
                    found.append((event.name, bytearray()))
    return found


def _other_parts() -> InvalidParameters:
    return InvalidParameters(*(FieldError(name, "this part, once, and no other expected") for name in PARTS))
