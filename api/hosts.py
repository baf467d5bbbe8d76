"""`GET /v1/hosts/{did}/reputation`: a host's reviews, sums and proofs (reviews.md 6, protocol.md 5)."""

import re
from asyncio import get_running_loop
from concurrent.futures import Executor
from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import unquote_to_bytes

from litestar import Request, get
from litestar.datastructures import State
from litestar.openapi.spec import Example
from litestar.params import PathParameter, QueryParameter
from litestar.response.base import ASGIResponse

from api.caching import Kept
from api.openapi import responses
from api.parameters import FieldError, InvalidParameters, Size, Text
from api.reputation_shape import Reputation
from ledger.canon import did as dids
from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadDID
from ledger.folder import Ledger
from ledger.log.answers import MAX_PAGE_EVENTS
from ledger.reputation.answers import DEFAULT_LIMIT, FEW_EVENTS, MAX_LIMIT, Lengthy, Query, reputation

# Wider than what is taken: `did.check` is the judge.
_DID = (
    "^did:(web:[a-z0-9]([a-z0-9.-]*[a-z0-9])?(%3A[1-9][0-9]{0,4})?(:[A-Za-z0-9._-]+)*"
    "|key:z[1-9A-HJ-NP-Za-km-z]+|jwk:[A-Za-z0-9_-]+)$"
)

HostDid = Annotated[
    str,
    PathParameter(
        schema_extra={"pattern": _DID, "maxLength": dids.MAX_BYTES},
        examples=[Example(value="did:web:cottage.example")],
        description="A did:web, did:key or did:jwk in canonical spelling, as one path segment with its percent signs "
        "escaped: did:web:a.example%3A8443 is did:web:a.example%253A8443 here.",
    ),
]
Proof = Annotated[
    Literal["none", "full", "aggregate", "page"],
    QueryParameter(
        description="`full`: all events and what it takes to check the answer offline. `aggregate`: what the signed "
        "map says of the host. `page`: some of the events, for hosts with more than 1,000."
    ),
]
From = Annotated[
    int | None,
    QueryParameter(
        name="from",
        ge=0,
        le=MAX_INTEGER,
        # Litestar leaves a minimum of 0 out of the document.
        schema_extra={"minimum": 0},
        description="With proof=page: the first event, counted from 0.",
    ),
]
Count = Annotated[
    int | None,
    QueryParameter(ge=1, le=MAX_PAGE_EVENTS, description="With proof=page: how many events."),
]
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_LIMIT, description="How many reviews are listed, newest first.")]
Cursor = Annotated[
    str | None,
    QueryParameter(min_length=1, max_length=200, description="`next_cursor` of the answer before."),
]


@get(
    "/v1/hosts/{did:str}/reputation",
    responses=responses(
        "did_not_canonical",
        "cursor_invalid",
        "page_out_of_range",
        "not_found",
        "unknown_size",
        "proof_too_large",
        body=Reputation,
        not_modified=True,
    ),
    tags=["reputation"],
)
async def host_reputation(
    request: Request[None, None, State],
    did: HostDid,
    proof: Proof = "none",
    size: Size = None,
    start: From = None,
    count: Count = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    text: Text = "verified",
) -> ASGIResponse:
    """What the log says about a host. An unknown host has zero reviews, and that can be proved too."""
    check_host(did, request.scope["raw_path"])
    if proof != "page" and (start is not None or count is not None):
        raise InvalidParameters(FieldError("from" if start is not None else "count", "goes with proof=page only"))
    state = request.app.state
    version = state.ledger.version
    query = Query(proof, size, start or 0, count or MAX_PAGE_EVENTS, limit, cursor, text)
    kept = await _made(state.ledger, did, query, state.readers)
    state.answers.put(request.scope, version, kept)
    return kept.answer(request.scope)


async def _made(ledger: Ledger, did: str, query: Query, readers: Executor) -> Kept:
    if ledger.store.is_sqlite:
        # Most hosts have few events, and SQLite has them in this process: to hand that to a thread, which then contends
        # with this one for the interpreter, takes as long as doing it.
        with suppress(Lengthy):
            return _make(ledger, did, query, FEW_EVENTS)
    return await get_running_loop().run_in_executor(readers, _make, ledger, did, query)


def _make(ledger: Ledger, did: str, query: Query, at_most: int | None = None) -> Kept:
    """Reading, proving, and hashing what may be a megabyte."""
    changed_at = ledger.archive.changed_at(did)
    return Kept.make(reputation(ledger.reader, ledger.registries, did, query, at_most, changed_at))


def check_host(did: str, raw_path: bytes) -> None:
    """Raise unless `did` is canonical and the URL spelled it so that it could be meant.

    `did:web:a.example%3A8443` put into a URL as it is arrives as `did:web:a.example:8443`, another DID. It shows in the
    raw path: whoever escapes colons escapes them all.
    """
    found = re.search(rb"/hosts/+([^/]*)", raw_path)
    segment = found[1] if found else b""
    if b":" in segment and (half := re.search(rb"%(?!25)[0-9A-Fa-f]{2}", segment)):
        meant = segment.decode("ascii", "replace")
        raise BadDID(
            f"{meant} has {half[0].decode()}, which a URL decodes to {unquote_to_bytes(half[0]).decode('latin-1')!r}. "
            f"If the DID itself has it, escape its percent sign: {meant.replace('%', '%25')}"
        )
    dids.check(did)


HANDLERS = [host_reputation]
