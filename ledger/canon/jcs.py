"""JSON Canonicalization Scheme (RFC 8785): one sequence of bytes per JSON value."""

from typing import Any

import rfc8785

from ledger.errors import BadJSON


def dumps(value: Any) -> bytes:
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeError) as error:
        raise BadJSON("malformed_json", f"the value has no canonical JSON form: {error}") from None
