"""Every error as RFC 9457 `application/problem+json`, whoever raised it: the ledger, this package or Litestar.

Litestar's own plugin swaps title and detail, and knows no codes.
"""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from api.codes import CODES
from api.metrics import count_refusal
from api.parameters import FieldError, InvalidParameters, describe, spelled
from ledger.errors import BadForm, Halted, Refused, StaylogError, TooMany, Unavailable, Uncertain

MEDIA_TYPE = "application/problem+json"
LOGGER = logging.getLogger("staylog.api")
# As Litestar says it when a client ends its connection before its body is complete.
_GONE = "client disconnected prematurely"

_BY_STATUS = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
}


class Problem(msgspec.Struct, frozen=True):
    """An error (RFC 9457). `type` is an address that explains `code`; `code` never changes its meaning."""

    type: str
    title: str
    status: Annotated[int, msgspec.Meta(ge=400, le=599)]
    detail: str
    code: str
    errors: list[FieldError]
    refusal: Annotated[
        dict[str, Any] | msgspec.UnsetType,
        msgspec.Meta(description="The ledger's signed word that it refused this submission: evidence, worth keeping."),
    ] = msgspec.UNSET


def encode_problem(
    base_url: str,
    code: str,
    detail: str,
    errors: Sequence[FieldError] = (),
    refusal: Mapping[str, Any] | None = None,
) -> bytes:
    """The body, counted."""
    status, title, _ = CODES[code]
    count_refusal(code)
    signed = msgspec.UNSET if refusal is None else dict(refusal)
    return msgspec.json.encode(
        Problem(f"{base_url}/problems/{code}", title, status, detail, code, list(errors), signed)
    )


def answer_problem(
    request: Request[Any, Any, Any],
    code: str,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
    refusal: Mapping[str, Any] | None = None,
) -> Response[bytes]:
    """The problem as a response. It is never cached: what is missing now may be there in a second."""
    return Response(
        encode_problem(request.app.state.base_url, code, detail, errors, refusal),
        status_code=CODES[code].status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def on_refusal(request: Request[Any, Any, Any], error: StaylogError) -> Response[bytes]:
    """A refusal by the ledger keeps its code and message; one that no client can cause is a fault of ours."""
    refusal = error.refusal if isinstance(error, Refused) else None
    error = error.reason if isinstance(error, Refused | Uncertain) else error
    if error.code not in CODES:
        return on_fault(request, error)
    if CODES[error.code].status == 500:
        LOGGER.error("%s %r: %s", request.method, request.scope["path"], error, exc_info=error)
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, TooMany | Unavailable | Halted) else None
    errors: Sequence[FieldError] = ()
    if isinstance(error, InvalidParameters):
        errors = error.errors
    elif isinstance(error, BadForm):
        errors = [FieldError(field, message) for field, message in error.errors]
    return answer_problem(request, error.code, error.message, errors, headers, refusal)


def on_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """An error of Litestar: before routing, by the router, or while it read the parameters."""
    if isinstance(error, ValidationException):
        return on_refusal(request, InvalidParameters(*_field_errors(request, error)))
    if error.status_code >= 500:
        if error.detail == _GONE:
            # Nothing of this is sent. It is no fault of ours, and must not fill the log.
            return answer_problem(request, "bad_request", error.detail)
        return on_fault(request, error)
    code = _BY_STATUS.get(error.status_code, "bad_request")
    detail = error.detail
    if code == "not_found":
        detail = f"nothing is served at {request.scope['path'][:200]}"
    elif detail == HTTPStatus(error.status_code).phrase:
        detail = CODES[code].explanation
    return answer_problem(request, code, detail, headers=error.headers)


def on_fault(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Nothing of the error is shown: it may hold anything."""
    LOGGER.error("%s %r failed", request.method, request.scope["path"], exc_info=error)
    return answer_problem(request, "internal_error", CODES["internal_error"].explanation)


def _field_errors(request: Request[Any, Any, Any], error: ValidationException) -> list[FieldError]:
    """Litestar names a parameter as the handler's argument is named; clients know the name in the URL."""
    fields = request.route_handler.parsed_fn_signature.parameters
    found = []
    for item in error.extra if isinstance(error.extra, list) else ():
        argument = str(item.get("key", "")).partition(".")[0]
        if argument in fields:
            found.append(FieldError(spelled(fields[argument]), f"expected {describe(fields[argument])}"))
        else:
            found.append(FieldError(argument, str(item.get("message", error.detail))))
    return found or [FieldError("", error.detail)]


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    StaylogError: on_refusal,
    HTTPException: on_http_error,
    Exception: on_fault,
}
