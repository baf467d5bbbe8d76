"""JSON Canonicalization Scheme (RFC 8785): one sequence of bytes per JSON value."""

from json import JSONEncoder
from typing import Any

import rfc8785

from ledger.errors import BadJSON


def dumps(value: Any) -> bytes:
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeError) as error:
        raise BadJSON("malformed_json", f"the value has no canonical JSON form: {error}") from None


def dumps_plain(value: Any) -> bytes:
    """The same bytes for what entries and records are made of, several times faster by the C encoder.

    The caller vouches for the value: names are ASCII, numbers are integers in range or halves such as 4.5.
    """
    return _PLAIN(value).encode()


_PLAIN = JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
