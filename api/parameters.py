"""The parameters that several operations take, and what is expected of them in words.

Litestar checks types, ranges and choices; it lets pass what is unknown, repeated or loosely spelled (`1e2`, `null`).
`check_query` refuses these: each value has one spelling, and nothing a client asks for is ignored.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request
from litestar.handlers import BaseRouteHandler
from litestar.params import ParameterKwarg, PathParameter, QueryParameter
from litestar.typing import FieldDefinition

from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadRequest

REVIEW_ID = "^rev-[a-z2-7]{25}[aeimquy4]$"

_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")

Text = Annotated[
    Literal["verified", "all", "none"],
    QueryParameter(
        description="Which texts are shown: `verified` leaves out those of unconfirmed reviews, `all` shows them too, "
        "`none` leaves out every text. All texts are untrusted input."
    ),
]
Size = Annotated[
    int | None,
    QueryParameter(
        ge=1,
        le=MAX_INTEGER,
        description="The size of a published checkpoint to answer for; by default the newest.",
    ),
]
ReviewId = Annotated[
    str,
    PathParameter(
        pattern=REVIEW_ID,
        description="`rev-` and 26 lower-case base32 characters, as in the receipt.",
    ),
]


SubmissionId = Annotated[
    str,
    PathParameter(
        pattern="^sub-[a-z2-7]{26}$",
        description="`sub-` and 26 lower-case base32 characters, as in the answer 202.",
    ),
]


class FieldError(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    field: str
    message: str


class InvalidParameters(BadRequest):
    """Parameters that were refused, by name."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("parameter_invalid", "; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors = errors


async def check_query(request: Request[Any, Any, Any]) -> None:
    """A `before_request` hook: refuse what is missing, unknown, repeated or spelled in a second way."""
    known, required = _declared(request.route_handler)
    if not request.scope["query_string"] and not required:
        return
    seen, wrong = set(), []
    for name, value in request.query_params.multi_items():
        if name not in known:
            there_are = ", ".join(known) or "none"
            wrong.append(FieldError(name, f"there is no such parameter here; there are: {there_are}"))
        elif name in seen:
            wrong.append(FieldError(name, "given more than once"))
        elif _is_integer(known[name]) and not _WHOLE_NUMBER.fullmatch(value):
            wrong.append(FieldError(name, f"expected {describe(known[name])}"))
        seen.add(name)
    wrong += [FieldError(name, f"missing; expected {describe(known[name])}") for name in required if name not in seen]
    if wrong:
        raise InvalidParameters(*wrong)


def whole_number(name: str, value: str) -> int:
    """A number in the path, in its one spelling: Litestar's own would take `+1` and `01` for 1 as well."""
    if not _WHOLE_NUMBER.fullmatch(value) or int(value) > MAX_INTEGER:
        expected = f"expected a whole number from 0 to {MAX_INTEGER}, in digits and without leading zeros"
        raise InvalidParameters(FieldError(name, expected))
    return int(value)


def spelled(field: FieldDefinition) -> str:
    """The name of a parameter in the URL; `from` cannot be the name of an argument."""
    kwarg = field.kwarg_definition
    return kwarg.name if isinstance(kwarg, ParameterKwarg) and kwarg.name else field.name


def describe(field: FieldDefinition) -> str:
    """What a parameter may be, for people."""
    kwarg = field.kwarg_definition
    inner = next((part for part in field.inner_types if not part.is_none_type), field) if field.is_optional else field
    if inner.is_literal:
        return f"one of {', '.join(map(str, inner.args))}"
    if _is_integer(field):
        low, high = getattr(kwarg, "ge", None) or 0, getattr(kwarg, "le", None)
        return f"a whole number from {low:.0f}" + (f" to {high:.0f}" if high is not None else "")
    pattern = getattr(kwarg, "pattern", None)
    return f"text that matches {pattern}" if pattern else "text of another form"


@cache
def _declared(handler: BaseRouteHandler) -> tuple[Mapping[str, FieldDefinition], Sequence[str]]:
    """The query parameters of an operation by their names in the URL, and the names of those it needs."""
    fields = {
        spelled(field): field
        for field in handler.parsed_fn_signature.parameters.values()
        if isinstance(field.kwarg_definition, QueryParameter)
    }
    return fields, [name for name, field in fields.items() if field.is_required]


def _is_integer(field: FieldDefinition) -> bool:
    return field.annotation is int or any(part.annotation is int for part in field.inner_types)
