"""`/problems/{code}`: the address that every problem has as its `type`, for people and for programs."""

from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.params import PathParameter

from api.caching import MINUTES
from api.codes import CODES
from api.openapi import responses
from api.pages import code, definitions, escape, link, page
from api.shapes import Explanation, Explanations
from ledger.errors import NotFound

_HEADERS = {"Cache-Control": MINUTES, "Vary": "Accept"}


@get("/problems", responses=responses(body=Explanations), sync_to_thread=False, tags=["service"])
def list_problems(request: Request[None, None, State]) -> Response[Any]:
    """Every code that an error may have."""
    if _wants_html(request):
        items = ((link(f"/problems/{name}", name), f"{known.status} {known.title}") for name, known in CODES.items())
        return page("Problems", definitions(items), _HEADERS)
    return Response(Explanations([_explain(request, name) for name in CODES]), headers=_HEADERS)


@get(
    "/problems/{name:str}",
    responses=responses("not_found", body=Explanation),
    sync_to_thread=False,
    tags=["service"],
)
def explain_problem(
    request: Request[None, None, State],
    name: Annotated[str, PathParameter(description="The `code` of a problem.")],
) -> Response[Any]:
    """What a code means, and what to do about it."""
    if name not in CODES:
        raise NotFound("not_found", f"no problem has the code {name[:60]!r}; /problems lists them all")
    if not _wants_html(request):
        return Response(_explain(request, name), headers=_HEADERS)
    known = CODES[name]
    body = f"<p>{code(name)}, HTTP status {known.status}</p>\n<p>{escape(known.explanation)}</p>"
    return page(known.title, f"{body}\n<p>{link('/problems', 'All problems')}</p>", _HEADERS)


def _wants_html(request: Request[None, None, State]) -> bool:
    return request.accept.best_match(["application/json", "text/html"], default="application/json") == "text/html"


def _explain(request: Request[None, None, State], name: str) -> Explanation:
    status, title, explanation = CODES[name]
    return Explanation(f"{request.app.state.base_url}/problems/{name}", name, status, title, explanation)


HANDLERS = [list_problems, explain_problem]
