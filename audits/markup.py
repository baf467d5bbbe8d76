"""The HTML of a report that is one file: no script, nothing fetched, light or dark or on paper as the reader likes.

What others wrote goes through `visible`; all else that is put together here is HTML already.
"""

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --quiet: #57606a; --grid: #e3e7eb; --soft: #f4f6f8;
  --good: #1a7f4b; --bad: #b3261e; --open: #8f5b00; --blue: #1f6fb2; --orange: #c2570c; --grey: #6e7781;
  --hollow: #e6e9ed; --green: #1a7f5a; --purple: #7d4cc4; --slate: #4f6277; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e6e9ed; --quiet: #9aa4af;
  --grid: #2d353e; --soft: #1e242b; --good: #4cc38f; --bad: #ff8a80; --open: #e9b44c; --blue: #58a6ea;
  --orange: #f0984b; --grey: #a3adb8; --hollow: #2f3740; --green: #4cc38f; --purple: #b692f0; --slate: #93a7bd; } }
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--paper); color: var(--ink); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; } h3 { font-size: 1rem; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .8rem; padding-top: .8rem; border-top: 1px solid var(--grid); }
p, ul { margin: .6rem 0; } ul { padding-left: 1.2rem; } li { margin: .25rem 0; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; background: var(--soft); border-radius: .2em; }
code { padding: .1em .3em; } pre { padding: .7rem .8rem; margin: .6rem 0; white-space: pre-wrap; }
.verdict { --tone: var(--open); border-left: .4rem solid var(--tone); background: var(--soft); padding: .8rem 1rem;
  border-radius: .3rem; margin: 1rem 0 1.5rem; } .verdict p { margin: .2rem 0 0; }
.verdict strong { font-size: 1.35rem; line-height: 1.3; color: var(--tone); }
.clean { --tone: var(--good); } .findings { --tone: var(--bad); }
.about { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1.2rem; margin: 0; }
.about div { display: contents; } .about dd { margin: 0; }
dt, figcaption, caption, .quiet { color: var(--quiet); font-size: .9rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(max(8.5rem, 22%), 1fr)); gap: .6rem;
  margin: 1rem 0; } .figures div { background: var(--soft); border-radius: .3rem; padding: .5rem .8rem; }
.figures dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.finding { border: 1px solid var(--grid); border-left: .25rem solid var(--bad); border-radius: .3rem;
  padding: .8rem 1rem; margin: 1rem 0; } .finding p { margin: .3rem 0; }
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
@media print { :root { color-scheme: light; } body { max-width: none; margin: 0; }
  details:not([open]) { display: none; } figure, tr, .finding, .verdict { break-inside: avoid; }
  h2, h3 { break-after: avoid; } * { print-color-adjust: exact; } }
"""
# Were a text of the log ever taken for markup, it still could not run or fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def document(title: str, style: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>{_STYLE}{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    )


def visible(value: object) -> str:
    """As text for HTML and SVG. What is not seen, or turns letters around, is seen as a replacement character."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in str(value)))


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
