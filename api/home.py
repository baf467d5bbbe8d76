"""The front page: what this ledger is, how it stands just now, and what to do here. Its values have twins in JSON."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from litestar import Response, get
from litestar.di import NamedDependency

from api import guidance, twins, witness_section, witnesses
from api.pages import link, page
from ledger.canon import base64
from ledger.canon.times import parse_time
from ledger.errors import StaylogError
from ledger.folder import Ledger
from ledger.log.census import Census, Counted
from ledger.pictures import figures, markup, svg
from ledger.pictures.plots import words
from ledger.pictures.timeline import timeline
from ledger.store.rows import Published

# A log that is alive signs once a day (protocol.md 3); somewhat later than that it is worth a word.
OVERDUE = timedelta(hours=25)

_logger = logging.getLogger(__name__)
_CHECKPOINT, _STATISTICS = "/v1/log/checkpoint", "/v1/log/statistics"
STYLE = (
    markup.STYLE
    + svg.STYLE
    + witness_section.STYLE
    + """
h2 { margin: 2.6rem 0 .8rem; padding-top: 1rem; border-top: 1px solid var(--grid); font-size: 1.25rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; } .plots h3 { margin-top: 0; } p, ul { margin: .6rem 0; }
.lead { font-size: 1.1rem; } pre, details { margin: .6rem 0; } pre { padding: .7rem .8rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: 1.2rem 0; } .overdue { color: var(--open); }
.about code { background: none; padding: 0; } .about dd { min-width: 0; } summary { color: var(--blue); }
.figures { grid-template-columns: repeat(auto-fill, minmax(max(7.5rem, 30%), 1fr)); }
.levels { margin: 0; } .levels dt { color: var(--ink); font-weight: 600; } .levels dd { margin: 0 0 .6rem; }
"""
)
_INTRODUCTION = """<p class="lead">This is a reputation ledger for short-term rentals: what guests say of their stays,
and what hosts answer. Every review is an entry in one tamper-evident log: whoever runs it can break it, but cannot
change, move or drop anything in it unnoticed. So one answer about one host can be checked offline, with a key and no
server: that no review was left out, and that every average is right.</p>
<p>It is not a search site. Listings are found through the OpenSTR index, on which others build search and booking
(RFC-005, section 3.6). Here is what became of stays, for people and agents who know which host they mean.</p>
"""
_ABOUT_CHECKPOINTS = """<p>The log's signed word for how many entries it has and, by one hash, for what each of them
says. Whatever is proved here is proved under such a checkpoint.</p>
"""
_LATE = "A log that is alive signs at least once a day: this one is overdue."
_LEVELS = {
    "guest_verified": "An issuer that counts here vouches for the guest, and something shows the stay: a receipt, what "
    "host or guest said before check-in, or the host's own answer. Averages are of these alone.",
    "host_attested": "A review of another platform, which the host handed in and answers for. Counted apart.",
    "unconfirmed": "Nothing shows the stay, and the host kept silent for three days. Counted apart, until an upgrade: "
    "the guest hands in a receipt.",
}


@get("/", include_in_schema=False, sync_to_thread=True)
def home(ledger: NamedDependency[Ledger], base_url: NamedDependency[str]) -> Response[bytes]:
    """The front page."""
    newest, now, vkey = ledger.reader.published, ledger.clock(), str(ledger.verifier)
    sections = {
        "Checkpoint": _checkpoint(ledger.origin, newest, vkey, now),
        "What it holds": _counted(ledger.census, newest.size),
        "Witnesses": _watched(ledger, vkey, now),
        "Verify": guidance.verify(base_url, vkey),
        "Review a stay": guidance.submit(),
        "Watch this log": guidance.watch(base_url),
        "Look around": guidance.look_around(),
    }
    return page("Staylog", "".join(_joined(sections)), {"Cache-Control": "public, max-age=10"}, STYLE)


def _joined(sections: dict[str, str]) -> Iterator[str]:
    ids = {heading: heading.lower().replace(" ", "-") for heading in sections}
    yield f'{_INTRODUCTION}<nav aria-label="On this page">\n'
    yield from (f"{link(f'#{ids[heading]}', heading)}\n" for heading in sections)
    yield "</nav>\n"
    for heading, body in sections.items():
        yield f'<section aria-labelledby="{ids[heading]}">\n<h2 id="{ids[heading]}">{heading}</h2>\n{body}</section>\n'


def _checkpoint(origin: str, newest: Published, vkey: str, now: datetime) -> str:
    late = f'. <strong class="overdue">{_LATE}</strong>' if now - parse_time(newest.at) > OVERDUE else ""
    items = [
        ("Log", twins.code(f"{_CHECKPOINT}#/origin", origin)),
        ("Entries", twins.number(f"{_CHECKPOINT}#/size", newest.size)),
        ("Root", twins.code(f"{_CHECKPOINT}#/root", base64.encode(newest.root))),
        ("As of", twins.moment(f"{_CHECKPOINT}#/at", newest.at, now) + late),
        ("Key", twins.code("/v1/log/key#/vkey", vkey)),
    ]
    return (
        f"{_ABOUT_CHECKPOINTS}{markup.terms('about', items)}<details><summary>The signed note itself</summary>\n"
        f'<pre data-twin="{_CHECKPOINT}#/checkpoint">{markup.visible_lines(newest.note)}</pre>\n</details>\n'
        '<p class="quiet">Everything depends on the key: compare it with a copy that did not come from here.</p>\n'
    )


def _counted(census: Census, size: int) -> str:
    """What cannot be read just now must not take the rest of the page with it."""
    try:
        return _holdings(census.now(), size)
    except StaylogError as error:
        _logger.warning("the front page cannot count the log: %s", error)
    counted = census.so_far()
    if not counted.size:
        return f'<p id="partly">The {size:,} entries cannot be counted just now.</p>\n'
    partly = f"These are the first {counted.size:,} of {size:,} entries: the rest cannot be counted just now."
    return _holdings(counted, size, partly)


def _watched(ledger: Ledger, vkey: str, now: datetime) -> str:
    try:
        return witness_section.witness_section(witnesses.report(ledger), vkey, now)
    except StaylogError as error:
        _logger.warning("the front page cannot tell of witnesses: %s", error)
        return "<p>What became of the witnesses cannot be read just now.</p>\n"


def _holdings(counted: Counted, size: int, partly: str | None = None) -> str:
    """While there is more to count, the part that was counted, and that it is one."""
    numbers = {
        "Entries": ("entries", counted.size),
        **{words(level).capitalize(): (f"reviews/{level}", number) for level, number in counted.levels.items()},
        "Responses": ("responses", counted.total["responses"]),
        "Upgrades": ("upgrades", counted.total["upgrades"]),
    }
    tiles = [(name, twins.number(f"{_STATISTICS}#/{twin}", number)) for name, (twin, number) in numbers.items()]
    over_time = timeline(counted.days)
    plots = figures.growth(over_time) + figures.levels(over_time) + figures.mix(counted.levels)
    meanings = markup.terms("levels", ((words(level).capitalize(), meaning) for level, meaning in _LEVELS.items()))
    partly = partly or f"These are the first {counted.size:,} of {size:,} entries: the rest is being counted."
    return (
        (f'<p id="partly">{partly}</p>\n' if counted.size < size else "")
        + f'{markup.terms("figures", tiles)}<div class="plots">\n{plots}'
        + f"<div>\n<h3>What a level says</h3>\n{meanings}</div>\n</div>\n"
    )
