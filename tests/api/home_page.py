"""The front page, held against what the service says as JSON."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx

from audits.witness.folder import trust
from ledger.log.members import LEVELS
from tests.api.site import Site, serving
from tests.audits.witnessing import witness_running
from tests.ledger.log.crooked import CROOK
from tests.running import HOST, OTHER, Running, Writer
from tests.waiting import until

# A name in a policy is whatever has no space in it.
HOSTILE = "<img/src=x/onerror=alert(1)>&amp;\"'\u202e</style><script>alert(2)</script>"
_MARKED = re.compile(r'<\w+ data-twin="([^"]+)"(?: (?:value|datetime)="([^"]*)")?>([^<]*)<')

Get = Callable[[str], httpx.Response]


def marked(page: str) -> dict[str, str]:
    """What the page shows, by the address of its twin."""
    found = [(unescape(twin), unescape(value or text)) for twin, value, text in _MARKED.findall(page)]
    assert len(found) == page.count("data-twin=") == len(dict(found))
    return dict(found)


def twin(get: Get, address: str) -> str:
    """What is there in JSON: an address, and a pointer (RFC 6901) as its fragment."""
    path, _, pointer = address.partition("#")
    value: Any = get(path).json()
    for part in pointer.split("/")[1:]:
        value = value[int(part) if isinstance(value, list) else part]
    return str(value)


def grow(running: Running, days: int = 40) -> None:
    """Reviews of all levels, more and more of them; some are answered, upgraded or redacted."""
    writer = Writer(3)
    chance = writer.random
    for day in range(days):
        running.clock.forward(days=1)
        counts = [int(chance.random() * (1 + day / 40) * share) for share in (6, 2, 3)]
        drafts = [
            writer.review(chance.choice((HOST, OTHER)), level)
            for level, count in zip(LEVELS, counts, strict=True)
            for _ in range(count)
        ]
        found = running.add(*drafts) if drafts else []
        for review in found[:1]:
            running.add(writer.response(review), writer.redaction(review))
        for review in found[-1:]:
            if review.entry.members["level"] == "unconfirmed":
                running.add(writer.upgrade(review))
    running.clock.forward(minutes=7)


@contextmanager
def watched(folder: Path, prepare: Callable[[Running], object] = grow) -> Iterator[Site]:
    """A site with one honest witness, and one that is never there and has a hostile name."""
    clocks: list[Callable[[], float]] = []
    with witness_running(folder / "w", clock=lambda: clocks[0]()) as witness:

        def watch(running: Running) -> None:
            prepare(running)
            clocks.append(lambda: running.clock().timestamp())
            trust(folder / "w", running.ledger.verifier)
            lines = [f"log {running.ledger.verifier}", f"witness w {witness.vkey} {witness.url}"]
            lines += [f"witness {HOSTILE} {CROOK} http://127.0.0.1:9/{'long' * 40}", "quorum w", ""]
            running.settings.tlog_policy.write_text("\n".join(lines), "utf-8")
            running.reopen()

        with serving(folder, prepare=watch) as site:
            until(lambda: {each.state for each in site.ledger.witnesses.states()} == {"cosigned", "unreachable"})
            yield site
