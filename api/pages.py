"""Plain pages for people: no script, nothing fetched from elsewhere, light or dark as the reader prefers."""

from collections.abc import Iterable, Mapping
from html import escape

from litestar import Response

from ledger.pictures.markup import COLOURS

__all__ = ["HEADERS", "code", "definitions", "escape", "html", "link", "page"]

_STYLE = """
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
       background: var(--paper); color: var(--ink); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; } a { color: var(--blue); }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
code { background: var(--soft); padding: .1em .3em; border-radius: .2em; }
pre { background: var(--soft); padding: .8rem; border-radius: .3rem; white-space: pre-wrap; }
dl:not([class]) > dt { margin-top: 1rem; }
dl:not([class]) > dd { margin: .2rem 0 0 0; padding-left: 1rem; border-left: 2px solid var(--grid); }
"""
# The page's own style sheet and nothing else; not even itself in a frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
}


def html(title: str, body: str, style: str = "") -> bytes:
    """A page around `body`, which is HTML already, with more `style` than every page has."""
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>{COLOURS}{_STYLE}{style}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
    return text.encode()


def page(title: str, body: str, headers: Mapping[str, str], style: str = "") -> Response[bytes]:
    return Response(html(title, body, style), media_type="text/html", headers={**HEADERS, **headers})


def link(target: str, text: str | None = None) -> str:
    return f'<a href="{escape(target)}">{escape(text or target)}</a>'


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def definitions(items: Iterable[tuple[str, str]]) -> str:
    """Terms and what they mean; both are HTML already."""
    return "<dl>\n" + "".join(f"<dt>{term}</dt>\n<dd>{meaning}</dd>\n" for term, meaning in items) + "</dl>"
