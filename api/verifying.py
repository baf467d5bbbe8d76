"""`/verify`: a verifier that runs in the browser of who reads it, in one file that also works from a disk."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from litestar import Response, get

from api.caching import MINUTES
from api.pages import HEADERS

PAGE = Path(__file__).with_name("verify.html").read_bytes()


def policy(page: bytes) -> str:
    """What a browser lets the page do: run its own script and style, and ask the log that serves it."""

    def inline(element: str) -> str:
        [content] = re.findall(rb"<%b\b[^>]*>(.*?)</%b>" % (element.encode(), element.encode()), page, re.DOTALL)
        return f"'sha256-{b64encode(sha256(content).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {inline('script')}; style-src {inline('style')}; connect-src 'self'; "
        "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


@get("/verify", include_in_schema=False, sync_to_thread=False)
def verify_page() -> Response[bytes]:
    """The page, byte for byte as it is in the repository: what was read there is what runs."""
    return Response(PAGE, media_type="text/html", headers=_HEADERS)


_HEADERS = {**HEADERS, "Content-Security-Policy": policy(PAGE), "Cache-Control": MINUTES}

HANDLERS = [verify_page]
