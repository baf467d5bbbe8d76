"""The public openings of a log as they are served beside its bundles; what cannot be read is said, and read later."""

from collections.abc import Iterator

from audits.evidence import Audited
from audits.findings import Findings
from audits.reading import Reading, get_texts, read_texts
from audits.replayer import Replayer
from audits.source import Source, ahead
from ledger.errors import Malformed, NotFound, StaylogError, Unavailable
from ledger.log.openings import Opening
from ledger.log.tiles import WIDTH


class Texts:
    def __init__(self, source: Source, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._served = True

    def with_bundles(self, reading: Reading, start: int) -> Iterator[tuple[list[bytes], dict[int, Opening] | None]]:
        """The entries from `start`, bundle by bundle, and their openings; None where these cannot be read."""

        def get(number: int) -> tuple[list[bytes], bytes | None]:
            return reading.bundle(number), self._get(number)

        numbers = range(start // WIDTH, -(-reading.size // WIDTH))
        for number, (entries, texts) in ahead(self._source, get, numbers):
            yield entries[max(start - number * WIDTH, 0) :], self._read(number, texts)

    def look_again(self, replayer: Replayer, audited: Audited) -> None:
        """Texts that an earlier audit could not read, or found to be others than were committed to."""
        for number in replayer.unread:
            if (texts := self._read(number, self._get(number))) is not None:
                start = number * WIDTH
                entries = audited.entries(start, min(start + WIDTH, audited.size))
                replayer.look_again(number, list(entries), texts)

    def _get(self, number: int) -> bytes | None:
        try:
            return get_texts(self._source, number) if self._served else None
        except NotFound:
            self._served = False
            self._findings.miss("texts: the log does not serve its openings in bundles")
        except StaylogError as error:
            self._findings.miss(f"texts of bundle {number}: {error}")
            # Who does not answer now will not answer for the next thousand.
            self._served = not isinstance(error, Unavailable)
        return None

    def _read(self, number: int, data: bytes | None) -> dict[int, Opening] | None:
        try:
            return read_texts(data) if data is not None else None
        except Malformed as error:
            self._findings.miss(f"texts of bundle {number}: {error}")
            return None
