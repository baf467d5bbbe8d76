"""What the service says about itself: who it is, how it is, its policy and its schemas."""

import json
from functools import cache
from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import PathParameter

import schemas
from api.caching import MINUTES
from api.openapi import responses
from api.shapes import Health, SchemaList, TrustedIssuer, TrustedIssuers
from ledger.canon import multikey
from ledger.canon.times import parse_time
from ledger.errors import NotFound, Unavailable
from ledger.folder import Ledger
from ledger.settings import service_did

SCHEMA_TYPE = "application/schema+json"
CONTEXT_TYPE = "application/ld+json"


@get(
    "/health",
    response_headers={"Cache-Control": "no-store"},
    responses=responses(
        *("log_behind", "log_forked", "log_damaged", "commit_not_replicated"),
        *("mark_missing", "mark_unreadable", "database_changed"),
        *("storage_full", "storage_unavailable", "clock_unconfirmed"),
        limited=False,
    ),
    sync_to_thread=False,
    tags=["service"],
)
def health(ledger: NamedDependency[Ledger]) -> Health:
    """Whether entries can be added: 503 with the reason when the log refuses to sign, when its clock is not confirmed,
    or when its database cannot be written (it does not answer, is full, is locked by another, or may only be read).
    Found out in the background, so that this answers at once."""
    trouble = ledger.sequencer.halted or ledger.health.reason() or ledger.reader.trouble
    if trouble is not None:
        again = {"retry_after": trouble.retry_after} if isinstance(trouble, Unavailable) else {}
        raise type(trouble)(trouble.code, trouble.message, **again)
    newest = ledger.reader.published
    ahead = parse_time(newest.at) - ledger.clock()
    return Health("ok", newest.size, ledger.origin, newest.at, max(0, int(ahead.total_seconds())))


@get(
    "/v1/policy",
    response_headers={"Cache-Control": MINUTES},
    responses=responses(body=dict[str, Any]),
    sync_to_thread=False,
    tags=["service"],
)
def admission_policy(ledger: NamedDependency[Ledger]) -> Response[bytes]:
    """The admission policy, byte for byte the document whose hash is in the log."""
    return Response(ledger.policy, media_type="application/json")


@get(
    "/.well-known/did.json",
    response_headers={"Cache-Control": MINUTES},
    responses=responses(),
    sync_to_thread=False,
    tags=["service"],
)
def did_document(ledger: NamedDependency[Ledger], base_url: NamedDependency[str]) -> dict[str, Any]:
    """The service as a did:web: `#log` signs checkpoints and nothing else, `#statements` what the service asserts."""
    did = service_did(base_url)
    keys = {"log": ledger.verifier.public_key, "statements": bytes(ledger.keys.statements.verify_key)}
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": did,
        "verificationMethod": [
            {"id": f"{did}#{name}", "type": "Multikey", "controller": did, "publicKeyMultibase": multikey.encode(key)}
            for name, key in keys.items()
        ],
        "assertionMethod": [f"{did}#statements"],
    }


@get(
    "/schemas",
    response_headers={"Cache-Control": MINUTES},
    responses=responses(),
    sync_to_thread=False,
    tags=["service"],
)
def list_schemas() -> SchemaList:
    """The addresses of the JSON Schemas and of the JSON-LD contexts."""
    return SchemaList(
        [f"/schemas/{name}" for name in schemas.NAMES], [f"/contexts/{name}" for name in schemas.CONTEXTS]
    )


@get(
    "/schemas/{name:str}",
    media_type=SCHEMA_TYPE,
    response_headers={"Cache-Control": MINUTES},
    responses=responses("not_found", body=dict[str, Any], media_type=SCHEMA_TYPE),
    sync_to_thread=False,
    tags=["service"],
)
def schema(
    name: Annotated[str, PathParameter(description=f"One of {', '.join(schemas.NAMES)}.")],
) -> Response[bytes]:
    """A JSON Schema (draft 2020-12)."""
    if name not in schemas.NAMES:
        raise NotFound("not_found", f"there is no schema {name[:60]!r}; there are {', '.join(schemas.NAMES)}")
    return Response(_schema(name), media_type=SCHEMA_TYPE)


@get(
    "/contexts/{name:str}",
    media_type=CONTEXT_TYPE,
    response_headers={"Cache-Control": MINUTES},
    responses=responses("not_found", body=dict[str, Any], media_type=CONTEXT_TYPE),
    sync_to_thread=False,
    tags=["service"],
)
def context(
    name: Annotated[str, PathParameter(description=f"One of {', '.join(schemas.CONTEXTS)}.")],
) -> Response[bytes]:
    """A JSON-LD context: what https://openstr.org/contexts/v1 means in the credentials that are verified here."""
    if name not in schemas.CONTEXTS:
        raise NotFound("not_found", f"there is no context {name[:60]!r}; there are {', '.join(schemas.CONTEXTS)}")
    return Response(_context(name), media_type=CONTEXT_TYPE)


@get(
    "/v1/issuers",
    response_headers={"Cache-Control": "no-cache"},
    responses=responses(),
    sync_to_thread=True,
    tags=["service"],
)
def list_issuers(ledger: NamedDependency[Ledger]) -> TrustedIssuers:
    """Whose credentials count here, or counted, with the keys that are pinned. Each change is an entry in the log."""
    return TrustedIssuers([msgspec.convert(each, TrustedIssuer, from_attributes=True) for each in ledger.issuers()])


@cache
def _context(name: str) -> bytes:
    return json.dumps(schemas.load_context(name), indent=2, ensure_ascii=False).encode()


@cache
def _schema(name: str) -> bytes:
    return json.dumps(schemas.load(name), indent=2, ensure_ascii=False).encode()


HANDLERS = [
    health,
    admission_policy,
    did_document,
    list_schemas,
    schema,
    context,
    list_issuers,
]
