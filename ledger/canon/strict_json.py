"""JSON that every parser reads alike (RFC 8259 narrowed to I-JSON, RFC 7493).

`json.loads` keeps the last of two equal keys, takes NaN, and recurses until the interpreter gives up;
each of these lets two readers of the same signed bytes see different things.
"""

import json
from typing import Any, NoReturn

from ledger.errors import BadJSON

MAX_DEPTH = 16
MAX_INTEGER = 2**53 - 1


def loads(data: bytes | str, *, max_depth: int = MAX_DEPTH) -> Any:
    """The value of one JSON text in UTF-8, nested at most `max_depth` levels. Raises BadJSON with the code that says
    why not."""
    text = _decode(data)
    try:
        value = _DECODER.decode(text)
    except BadJSON:
        _require_json(text)
        raise
    except RecursionError:
        raise BadJSON("too_deep", f"nested deeper than {max_depth} levels") from None
    except ValueError as error:
        raise BadJSON("malformed_json", f"not JSON: {error}") from None
    if isinstance(value, dict | list) and text.count("[") + text.count("{") > max_depth:
        _check_depth(value, max_depth)
    # The decoder pairs surrogate escapes; one that is left alone is no character and no UTF-8.
    if "\\u" in text:
        _refuse_lone_surrogates(value)
    return value


def _decode(data: bytes | str) -> str:
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data.encode("utf-8").decode("utf-8")
    except UnicodeError:
        raise BadJSON("not_utf8", "the text is not valid UTF-8") from None
    if text.startswith("\ufeff"):
        raise BadJSON("not_utf8", "the text starts with a byte order mark")
    return text


def _require_json(text: str) -> None:
    """That a text is not JSON is told before what is wrong with a number or a name in it."""
    try:
        _SYNTAX.decode(text)
    except RecursionError:
        return  # and what was found first is told
    except ValueError as error:
        raise BadJSON("malformed_json", f"not JSON: {error}") from None


def _check_depth(value: Any, most: int) -> None:
    containers = [value]
    for _ in range(most):
        children = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
        containers = [child for child in children if isinstance(child, dict | list)]
        if not containers:
            return
    raise BadJSON("too_deep", f"nested deeper than {most} levels")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadJSON("duplicate_key", f"the member {key[:60]!r} appears twice in one object")
            seen.add(key)
    return value


def _integer(digits: str) -> int:
    # Length first: Python refuses, and quadratically reads, very long integers.
    if len(digits) > 15 and (len(digits) > 17 or abs(int(digits)) > MAX_INTEGER):
        raise BadJSON("number_out_of_range", f"the integer {digits[:24]} is beyond 2^53 - 1")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    # From 2^53 to 1e21 JCS writes a double as an integer, which no strict reader would take back.
    if MAX_INTEGER < abs(value) < 1e21 or abs(value) == float("inf"):
        raise BadJSON("number_out_of_range", f"the number {digits[:24]} is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise BadJSON("malformed_json", f"{name} is not JSON")


def _refuse_lone_surrogates(value: Any) -> None:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeError:
            raise BadJSON("not_utf8", "a string has half of a surrogate pair") from None
    elif isinstance(value, list):
        for item in value:
            _refuse_lone_surrogates(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_lone_surrogates(key)
            _refuse_lone_surrogates(item)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
_SYNTAX = json.JSONDecoder(parse_int=float, parse_constant=_constant)
