"""A real service on a socket, whose ledger is written to while others read it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from audits.source import Source, WebSource
from ledger.canon import base64
from ledger.folder import Ledger
from ledger.identity.issuers import trust
from ledger.log.drafts import Draft
from ledger.log.note import Verifier
from ledger.log.openings import Opening
from ledger.log.sequencer import Integrated
from tests.api.conftest import make_ledger, serve
from tests.engines import PostgresServer
from tests.identities import ISSUER
from tests.running import Writer

HOSTS = (
    "did:web:cottage.example",
    "did:web:harbour.example%3A8443",
    "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
)
IDV = "https://idv.example/issuers/1"


class Live:
    """The service at `url` trusts the issuer on which the reviews of a `Writer` rest."""

    def __init__(self, ledger: Ledger, url: str) -> None:
        self.ledger = ledger
        self.url = url
        self.writer = Writer()
        self.texts: dict[int, Opening] = {}

    @property
    def log(self) -> Verifier:
        return self.ledger.verifier

    @property
    def size(self) -> int:
        return self.ledger.reader.published.size

    def source(self) -> WebSource:
        return WebSource(self.url, pause=0.01)

    def add(self, *drafts: Draft) -> list[Integrated]:
        """Entries that come in together, once they are published."""
        added = [future.result(30) for future in [self.ledger.sequencer.submit(draft) for draft in drafts]]
        self.texts |= {
            each.index: draft.opening for each, draft in zip(added, drafts, strict=True) if draft.opening is not None
        }
        return added

    def review(self, host: str = HOSTS[0], text: str | None = "Quiet.", **members: Any) -> Integrated:
        [added] = self.add(self.writer.review(host, text=text, **members))
        return added

    def redact(self, review: Integrated, part: str = "text") -> Integrated:
        [added] = self.add(self.writer.redaction(review, part))
        return added


@contextmanager
def on_engine(request: pytest.FixtureRequest, folder: Path) -> Iterator[Live]:
    """On the engine that a fixture of a module is asked for; the database is one that only this module uses."""
    url, name = None, "audited_" + request.module.__name__.rpartition("_")[2]
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.url(name)
    with live(folder, url) as made:
        yield made


@contextmanager
def live(folder: Path, database_url: str | None = None) -> Iterator[Live]:
    ledger = make_ledger(folder, database_url)
    server, thread, port = serve(ledger)
    try:
        made = Live(ledger, f"http://127.0.0.1:{port}")
        draft = trust(ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
        assert draft is not None
        made.add(draft)
        yield made
    finally:
        server.should_exit = True
        thread.join()


class Meanwhile:
    """A source at which something happens right before a path that `pattern` fits is read, so many times."""

    def __init__(self, source: Source, pattern: str, happen: Callable[[], object], times: int = 1) -> None:
        self.name, self.far = source.name, source.far
        self.times = times
        self._source = source
        self._pattern = re.compile(pattern)
        self._happen = happen

    def get(self, path: str) -> bytes:
        if self.times and self._pattern.search(path):
            self.times -= 1
            self._happen()
        return self._source.get(path)


def shown(opening: Opening) -> tuple[bytes, bytes]:
    """What of a text would be found in a file that has it."""
    return opening.text.encode(), base64.encode(opening.salt).encode()
