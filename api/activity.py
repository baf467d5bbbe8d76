"""Counts by day: `GET /v1/issuers/{id}/activity` for issuers, `GET /v1/hosts/{did}/events` for hosts."""

import re
from asyncio import get_running_loop
from collections.abc import Callable
from datetime import date
from typing import Annotated
from urllib.parse import unquote

from litestar import Request, get
from litestar.datastructures import State
from litestar.openapi.spec import Example
from litestar.params import PathParameter, QueryParameter
from litestar.response.base import ASGIResponse

from api.caching import Kept
from api.hosts import HostDid, check_host
from api.openapi import responses
from api.parameters import FieldError, InvalidParameters
from api.shapes import HostEvents, IssuerActivity
from ledger.errors import BadDID
from ledger.log.members import check_issuer
from ledger.reputation.activity import DAYS, host_events, issuer_activity

# In a DID whose colons are not escaped: then a percent sign is the DID's own, and stands for itself.
_HALF_ESCAPED = re.compile("%(?!25)[0-9A-Fa-f]{2}")
_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"

IssuerId = Annotated[
    str,
    PathParameter(
        schema_extra={"maxLength": 2048},
        examples=[Example(value="https://idv.example/issuers/1")],
        description="The issuer's id as reviews name it, an https URL or a DID, as one percent-encoded path segment: "
        "https://idv.example/issuers/1 is https%3A%2F%2Fidv.example%2Fissuers%2F1 here, and did:web:a.example%3A8443 "
        "is did:web:a.example%253A8443.",
    ),
]
Before = Annotated[
    str | None,
    QueryParameter(
        pattern=_DATE,
        description=f"List the {DAYS} days before this date (YYYY-MM-DD, UTC); by default the newest.",
    ),
]


@get(
    "/v1/issuers/{id:str}/activity",
    responses=responses("busy", body=IssuerActivity, not_modified=True),
    tags=["reputation"],
)
async def issuer_days(request: Request[None, None, State], id: IssuerId, before: Before = None) -> ASGIResponse:  # noqa: A002
    """How many reviews rest on an issuer's credentials, day by day: an issuer compares them with what it vouched for.
    All of it follows from the log's entries. One that no review names has no days."""
    name = unquote(id)
    if id.startswith("did:") and (half := _HALF_ESCAPED.search(id)):
        meant = id.replace("%", "%25")
        raise InvalidParameters(
            FieldError("id", f"{half[0]} decodes to {unquote(half[0])!r}; where the DID has it, write {meant}")
        )
    try:
        check_issuer(name)
    except (ValueError, BadDID) as error:
        raise InvalidParameters(FieldError("id", str(error))) from None
    ledger, day = request.app.state.ledger, _date(before)
    return await _answered(request, lambda: issuer_activity(ledger.reader, ledger.census, name, day))


@get(
    "/v1/hosts/{did:str}/events",
    responses=responses("did_not_canonical", "busy", body=HostEvents, not_modified=True),
    tags=["reputation"],
)
async def host_days(request: Request[None, None, State], did: HostDid, before: Before = None) -> ASGIResponse:
    """How many entries name a host, by type, day by day. All of it follows from the log's entries. One that no entry
    names has no days."""
    check_host(did, request.scope["raw_path"])
    ledger, day = request.app.state.ledger, _date(before)
    return await _answered(request, lambda: host_events(ledger.reader, ledger.census, did, day))


async def _answered(request: Request[None, None, State], make: Callable[[], bytes]) -> ASGIResponse:
    """Read in a thread, and kept until the ledger changes."""
    state = request.app.state
    version = state.ledger.version
    kept = await get_running_loop().run_in_executor(state.readers, lambda: Kept.make(make()))
    state.answers.put(request.scope, version, kept)
    return kept.answer(request.scope)


def _date(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InvalidParameters(FieldError("before", "expected a date as 2026-05-01")) from None


_ENCODED = re.compile(rb"^/v1/issuers/[^/]*%")


def routed_path(raw_path: bytes) -> str | None:
    """The path by which a request is routed where that is not the decoded one: the id of an issuer is one segment,
    though slashes are in it. It is left as it was sent, so that it is decoded once, and not twice."""
    if not _ENCODED.match(raw_path):
        return None
    parts = raw_path.decode("latin-1").split("/")
    return "/".join([*parts[:3], *(part if place == 0 else unquote(part) for place, part in enumerate(parts[3:]))])


HANDLERS = [issuer_days, host_days]
