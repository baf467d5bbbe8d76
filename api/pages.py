"""Plain pages for people: no script, nothing fetched from elsewhere, light or dark as the reader prefers."""

from collections.abc import Iterable, Mapping
from html import escape

from litestar import Response

__all__ = ["HEADERS", "code", "definitions", "escape", "html", "link", "page"]

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
       overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
code { background: var(--soft); padding: .1em .3em; border-radius: .2em; }
pre { background: var(--soft); padding: .8rem; border-radius: .3rem; white-space: pre-wrap; }
dt { margin-top: 1rem; } dd { margin: .2rem 0 0 0; padding-left: 1rem; border-left: 2px solid var(--line); }
"""
# The page's own style sheet and nothing else; not even itself in a frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
}


def html(title: str, body: str) -> bytes:
    """A page around `body`, which is HTML already."""
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
    return text.encode()


def page(title: str, body: str, headers: Mapping[str, str]) -> Response[bytes]:
    return Response(html(title, body), media_type="text/html", headers={**HEADERS, **headers})


def link(target: str, text: str | None = None) -> str:
    return f'<a href="{escape(target)}">{escape(text or target)}</a>'


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def definitions(items: Iterable[tuple[str, str]]) -> str:
    """Terms and what they mean; both are HTML already."""
    return "<dl>\n" + "".join(f"<dt>{term}</dt>\n<dd>{meaning}</dd>\n" for term, meaning in items) + "</dl>"
