"""What every request and response passes, outside of routing: limits by address, answers that are kept, HEAD, headers
for browsers, and the request counters.

Litestar's middleware runs behind its router, where a HEAD has already been refused. One ASGI wrapper in front of the
router costs a few microseconds; each further middleware would cost that again.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import cast

from litestar.concurrency import sync_to_thread
from litestar.enums import ScopeType
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from api.activity import routed_path
from api.caching import AnswerCache
from api.clients import READS, client, limit_of
from api.metrics import UNROUTED, count_request
from api.problems import MEDIA_TYPE, encode_problem
from ledger.errors import TooMany
from ledger.folder import Ledger
from ledger.net.addresses import Network
from ledger.store.limiter import Limit, Limiter

# Everything served is public, and nothing depends on cookies: any page may read it.
HEADERS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"ETag, Retry-After, Allow"),
    (b"x-content-type-options", b"nosniff"),
)
PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, HEAD, OPTIONS, POST"),
    (b"access-control-allow-headers", b"Content-Type, If-None-Match"),
    (b"access-control-max-age", b"86400"),
)


class Edge:
    """`limiter` counts what each address asks for; without one nobody is limited. `answers` are given from here as long
    as they are those of the ledger's newest version."""

    def __init__(
        self,
        app: ASGIApp,
        base_url: str,
        limiter: Limiter | None,
        proxies: Sequence[Network],
        answers: AnswerCache,
        ledger: Ledger,
    ) -> None:
        self._app = app
        self._answers = answers
        self._ledger = ledger
        self._base_url = base_url
        self._limiter = limiter
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        if (path := routed_path(scope["raw_path"])) is not None:
            scope = cast("HTTPScope", {**scope, "path": path})
        began = perf_counter()
        method, status = scope["method"], 500
        head = method == "HEAD"
        if head:
            # A copy: the server looks at its own to know that a HEAD has no body.
            scope = cast("HTTPScope", {**scope, "method": "GET"})

        async def pass_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], *HEADERS]
                if method == "OPTIONS" or status == 405:
                    headers = [(name, _with_head(value) if name == b"allow" else value) for name, value in headers]
                if method == "OPTIONS":
                    headers += PREFLIGHT
                message["headers"] = headers
            elif head and message["type"] == "http.response.body":
                message["body"] = b""
            await send(message)

        try:
            if self._limiter is not None and (limit := limit_of(scope)) is not None:
                await self._count(self._limiter, limit, client(scope, self._proxies))
            kept = self._answers.get(scope, self._ledger.version)
            await (self._app if kept is None else kept.answer(scope))(scope, receive, pass_on)
        except TooMany as refusal:
            await self._refuse(refusal, scope, receive, pass_on)
        finally:
            count_request(scope.get("path_template") or UNROUTED, status, perf_counter() - began)

    async def _count(self, limiter: Limiter, limit: Limit, subject: str) -> None:
        count = limiter.take if limit is READS else limiter.spend
        if limiter.is_local:
            count(limit, subject)
        else:
            await sync_to_thread(count, limit, subject)

    async def _refuse(self, refusal: TooMany, scope: Scope, receive: Receive, send: Send) -> None:
        body = encode_problem(self._base_url, refusal.code, refusal.message)
        headers = {"Retry-After": str(refusal.retry_after), "Cache-Control": "no-store"}
        await ASGIResponse(body=body, status_code=429, media_type=MEDIA_TYPE, headers=headers)(scope, receive, send)


def _with_head(allow: bytes) -> bytes:
    """Where GET is, HEAD is."""
    methods = {method.strip() for method in allow.split(b",")}
    return b", ".join(sorted(methods | ({b"HEAD"} if b"GET" in methods else set())))
