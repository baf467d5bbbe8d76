"""The OpenAPI document and a page of it. The document is made from the handlers, so it is as true as they are.

Litestar's own pages load scripts from elsewhere; this one has none.
"""

from collections.abc import Iterator
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Request, Response, Router
from litestar.enums import MediaType
from litestar.exceptions import NotFoundException
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Tag

from api.bodies import add_bodies
from api.caching import MINUTES
from api.codes import CODES
from api.pages import HEADERS, code, definitions, escape, html, link
from api.problems import MEDIA_TYPE, Problem

_EVERYWHERE = (
    "bad_request",
    "parameter_invalid",
    "busy",
    "internal_error",
    "not_stored",
    "storage_unavailable",
)
_DESCRIPTION = """A tamper-evident reputation ledger. Everything here is public and needs no account.
Errors are `application/problem+json` (RFC 9457) with a stable `code`; their `type` is an address that explains it.
Any request that is too slow or too long may get 408 `request_timeout`, 414 `url_too_long` or 431 `head_too_large`.
HEAD works wherever GET does."""


def responses(
    *codes: str,
    body: Any = None,
    created: Any = None,
    waiting: Any = None,
    media_type: str = "application/json",
    not_modified: bool = False,
    limited: bool = True,
) -> dict[int, ResponseSpec]:
    """What an operation may answer: the problems by their codes, and the body where the handler returns plain bytes."""
    found = {200: ResponseSpec(body, generate_examples=False, description="OK", media_type=media_type)} if body else {}
    if created:
        found[201] = ResponseSpec(created, generate_examples=False, description="Accepted", media_type=media_type)
        found[200] = ResponseSpec(created, generate_examples=False, description="The same was accepted before")
    if waiting:
        found[202] = ResponseSpec(waiting, generate_examples=False, description="Taken in, and not decided yet")
    if not_modified:
        found[304] = ResponseSpec(None, description="Not modified: If-None-Match has the ETag of the answer.")
    by_status: dict[int, set[str]] = {}
    for name in (*codes, *_EVERYWHERE, *(["rate_limited"] if limited else [])):
        by_status.setdefault(CODES[name].status, set()).add(name)
    for status, names in sorted(by_status.items()):
        description = f"{HTTPStatus(status).phrase}: {', '.join(sorted(names))}"
        found[status] = ResponseSpec(Problem, generate_examples=False, description=description, media_type=MEDIA_TYPE)
    return found


def config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Staylog",
        version=version("staylog"),
        description=_DESCRIPTION,
        tags=[Tag("reputation"), Tag("log"), Tag("service")],
        use_handler_docstrings=True,
        operation_id_creator=lambda handler, _method, _parts: handler.handler_name,
        openapi_router=Router(
            "/schema",
            route_handlers=[],
            include_in_schema=False,
            after_request=_require_found,
            response_headers={**HEADERS, "Cache-Control": MINUTES},
        ),
        render_plugins=[DocumentPage(path="/"), Document(path="/openapi.json", media_type=MediaType.JSON)],
    )


async def _require_found(response: Response[Any]) -> Response[Any]:
    """Litestar has a page of its own for what is not there; errors have one form here."""
    if response.status_code == 404:
        raise NotFoundException
    return response


class Document(OpenAPIRenderPlugin):
    """The document itself."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:  # noqa: ARG002
        return msgspec.json.encode(_corrected(openapi_schema))


class DocumentPage(OpenAPIRenderPlugin):
    """The document for people."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:  # noqa: ARG002
        body = f"<p>{escape(_DESCRIPTION)}</p>\n<p>For machines: {link('/schema/openapi.json')}</p>\n"
        items = []
        for method, path, operation in _operations(_corrected(openapi_schema)):
            parameters = definitions(
                (code(parameter["name"]), escape(f"{parameter['description']} {_range(parameter['schema'])}"))
                for parameter in operation.get("parameters", ())
            )
            taken = operation.get("requestBody")
            statuses = ", ".join(operation["responses"])
            items.append(
                f"<h2>{code(f'{method.upper()} {path}')}</h2>\n<p>{escape(operation.get('description') or '')}</p>\n"
                f"{parameters if operation.get('parameters') else ''}"
                f"{'<p>Takes: ' + escape(taken['description']) + '</p>' if taken else ''}"
                f"<p>Answers: {escape(statuses)}</p>\n"
            )
        return html("Operations", body + "".join(items))


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def _corrected(document: dict[str, Any]) -> dict[str, Any]:
    for _, _, operation in _operations(document):
        for parameter in operation.get("parameters", ()):
            parameter["schema"] = _without_null(parameter["schema"])
    add_bodies(document)
    return document


def _range(schema: dict[str, Any]) -> str:
    """What a parameter may be and what it is when it is left out, in words."""
    allowed = ""
    if "enum" in schema:
        allowed = f"One of {', '.join(schema['enum'])}."
    elif "maximum" in schema:
        allowed = f"From {schema['minimum']:.0f} to {schema['maximum']:.0f}."
    return f"{allowed} By default {schema['default']}." if "default" in schema else allowed


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be left out is not one that may be null: a query has no null."""
    kinds = [kind for kind in schema.get("oneOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: value for name, value in schema.items() if name != "oneOf"}}
