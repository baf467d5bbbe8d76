"""The HTML of pages that show a log: no script, nothing fetched, light or dark as the reader likes.

What others wrote goes through `visible`; all else that is put together here is HTML already.
"""

from collections.abc import Iterable, Sequence
from html import escape

# Also those by which `svg` draws.
COLOURS = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --quiet: #57606a; --grid: #e3e7eb; --soft: #f4f6f8;
  --good: #1a7f4b; --bad: #b3261e; --open: #8f5b00; --blue: #1f6fb2; --orange: #c2570c; --grey: #6e7781;
  --hollow: #e6e9ed; --green: #1a7f5a; --purple: #7d4cc4; --slate: #4f6277; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e6e9ed; --quiet: #9aa4af;
  --grid: #2d353e; --soft: #1e242b; --good: #4cc38f; --bad: #ff8a80; --open: #e9b44c; --blue: #58a6ea;
  --orange: #f0984b; --grey: #a3adb8; --hollow: #2f3740; --green: #4cc38f; --purple: #b692f0; --slate: #93a7bd; } }
"""
# Terms, figures and tables.
STYLE = """
.about { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1.2rem; margin: 0; }
.about div { display: contents; } .about dd { margin: 0; }
dt, figcaption, caption, .quiet { color: var(--quiet); font-size: .9rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(max(8.5rem, 22%), 1fr)); gap: .6rem;
  margin: 1rem 0; } .figures div { background: var(--soft); border-radius: .3rem; padding: .5rem .8rem; }
.figures dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: 2rem;
  margin: 1rem 0 2rem; }
figure { margin: 0; min-width: 0; } figcaption { margin: .4rem 0; } summary { cursor: pointer; font-size: .9rem; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; font-size: .95rem; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .3rem .5rem .3rem 0; overflow-wrap: normal; border-bottom: 1px solid var(--grid); vertical-align: top;
  text-align: right; font-variant-numeric: tabular-nums; } th { font-weight: 600; }
td:last-child, th:last-child { padding-right: 0; }
th:first-child { text-align: left; } tbody th { font-weight: 400; overflow-wrap: anywhere; }
@media (max-width: 30rem) { .about, .about div { display: block; } .about dd { margin-bottom: .6rem; }
  table { font-size: .85rem; } }
"""


def visible(value: object) -> str:
    """As text for HTML and SVG. What is not seen, or turns letters around, is seen as a replacement character."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in str(value)))


def visible_lines(text: str) -> str:
    """As `visible`, line by line: for what stands in <pre>."""
    return "\n".join(map(visible, text.split("\n")))


def code(value: object) -> str:
    return f"<code>{visible(value)}</code>"


def section(heading: str, body: str) -> str:
    """Both are HTML already."""
    return f"<section>\n<h2>{heading}</h2>\n{body}</section>\n"


def number(value: int) -> str:
    """With commas for people, and as it is for programs."""
    return f'<data value="{value}">{value:,}</data>'


def plural(count: int, one: str, many: str = "") -> str:
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def listed(items: Iterable[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{visible(item)}</li>\n" for item in items) + "</ul>\n"


def terms(kind: str, items: Iterable[tuple[str, str]]) -> str:
    """Terms and what they mean; both are HTML already."""
    rows = "".join(f"<div><dt>{term}</dt><dd>{meaning}</dd></div>\n" for term, meaning in items)
    return f'<dl class="{kind}">\n{rows}</dl>\n'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already; the first one names its row."""
    top = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>\n'
        for first, *rest in rows
    )
    return f"<table>\n<caption>{caption}</caption>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"
