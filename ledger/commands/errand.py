"""What a guest or host sends to a ledger: which statement, where it goes, and the files that it leaves."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from ledger.commands import client
from ledger.commands.common import printable
from ledger.commands.statement import encode
from ledger.log.note import Verifier

REVIEW, RESPONSE, SUPPLEMENT = "ReviewSubmission", "HostResponse", "EvidenceSupplement"
ELSEWHERE, NOTICE, CLAIM = "CrossPlatformReview", "BookingNotice", "BookingClaim"


@dataclass(frozen=True, slots=True)
class Kind:
    """How a kind of statement is spoken of, the command that makes it, and where it goes. `waits` if the answer may be
    that it is decided later."""

    word: str
    command: str
    path: str
    waits: bool = False


KINDS = {
    REVIEW: Kind("review", "staylog review submit", "/v1/reviews", waits=True),
    RESPONSE: Kind("response", "staylog review respond", "/v1/reviews/{review_id}/response"),
    SUPPLEMENT: Kind("evidence", "staylog review evidence", "/v1/reviews/{review_id}/evidence"),
    ELSEWHERE: Kind("review", "staylog review import", "/v1/reviews/cross-platform"),
    NOTICE: Kind("notice", "staylog booking notice", "/v1/bookings"),
    CLAIM: Kind("claim", "staylog booking claim", "/v1/bookings", waits=True),
}


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is sent beside a statement, which names it by its hash."""

    path: Path
    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Errand:
    """Which statement goes where, and the files it leaves. What is said of bookings gets no receipt, so there is no
    `out`. `log` is the key that a receipt is checked by, if it is known."""

    kind: str
    ledger: str
    submission: Path
    out: Path | None = None
    log: Verifier | None = None
    document: Document | None = None

    @property
    def word(self) -> str:
        return KINDS[self.kind].word

    @property
    def again(self) -> str:
        beside = f" --document {shlex.quote(str(self.document.path))}" if self.document else ""
        return f"{KINDS[self.kind].command} --again {shlex.quote(str(self.submission))}{beside}"

    @property
    def pending(self) -> Path:
        """Where the ledger's word goes that it will decide."""
        whose = self.out or self.submission
        return whose.with_stem(f"{whose.stem}.pending")

    def send(self, body: Mapping[str, Any]) -> tuple[client.Answer, dict[str, Any]]:
        """What the ledger gives for the signed statement."""
        kind, data = KINDS[self.kind], encode(body)
        path = kind.path.format_map(body)
        if self.document is None:
            return client.submit(self.ledger, path, data, waits=kind.waits)
        document = (self.document.media_type, self.document.data)
        whole, media_type = client.in_parts(attestation=(client.JSON, data), document=document)
        return client.submit(self.ledger, path, whole, media_type=media_type)


def line(name: str, text: str) -> None:
    """One thing that is told, under a heading; what others have written in it commands no terminal."""
    click.echo(f"{name:<10} {printable(text)}")


def tell_command(text: str) -> None:
    click.echo(f"  {printable(text)}")
