"""A report that is one file: no script, nothing fetched, light or dark or on paper as the reader likes."""

from ledger.pictures import markup, svg

_STYLE = """
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
.finding { border: 1px solid var(--grid); border-left: .25rem solid var(--bad); border-radius: .3rem;
  padding: .8rem 1rem; margin: 1rem 0; } .finding p { margin: .3rem 0; }
@media print { :root { color-scheme: light; } body { max-width: none; margin: 0; }
  details:not([open]) { display: none; } figure, tr, .finding, .verdict { break-inside: avoid; }
  h2, h3 { break-after: avoid; } * { print-color-adjust: exact; } }
"""
# Were a text of the log ever taken for markup, it still could not run or fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def document(title: str, body: str) -> str:
    """Both are HTML already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>{markup.COLOURS}{_STYLE}{markup.STYLE}{svg.STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    )
