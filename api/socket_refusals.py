"""Why a request is refused before it reaches the application, and what is answered then."""

from http import HTTPStatus
from typing import NamedTuple

import uvicorn

from api.codes import CODES
from api.problems import encode_problem


class Refusal(NamedTuple):
    """`code` is answered, if it is one; `reason` is what is counted."""

    code: str | None
    reason: str


NOT_HTTP = Refusal("bad_request", "not_http")
LONG_HEAD = Refusal("head_too_large", "head_too_large")
LONG_URL = Refusal("url_too_long", "url_too_long")
SLOW_HEAD = Refusal("request_timeout", "head_too_slow")
SLOW_BODY = Refusal("request_timeout", "body_too_slow")
OVERHEAD = Refusal("bad_request", "body_overhead")
PIPELINED = Refusal(None, "too_many_pipelined")


def answer_of(config: uvicorn.Config, code: str, detail: str = "") -> bytes:
    """A whole answer that refuses, after which the connection ends."""
    status, _, explanation = CODES[code]
    body = encode_problem(config.loaded_app.state.base_url, code, detail or explanation)
    retry = "retry-after: 5\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/problem+json\r\n"
        f"cache-control: no-store\r\naccess-control-allow-origin: *\r\n{retry}"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
