"""What a verification found: proved, redacted, withheld, not proved. Plain words, because people act on it."""

from dataclasses import dataclass, field
from typing import Any

# protocol.md 5, last paragraph: what no answer can prove by itself.
MAP_HEAD_HONESTY = "that the map head was derived honestly from all entries: an auditor's replay of the log shows it"
REAL_STAYS = "that guests and stays are real: that is the word of the operator and of the credential issuers"
DOMAIN = "who stands behind the DID: with did:web, whoever holds the domain holds the DID"


@dataclass(slots=True)
class Report:
    """`texts` gives the state of each committed text by log index: open, redacted, withheld or unasked."""

    subject: str
    size: int
    at: str | None = None
    proved: list[str] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    not_proved: list[str] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "size": self.size,
            "at": self.at,
            "proved": self.proved,
            "redacted": self.redacted,
            "withheld": self.withheld,
            "not_proved": self.not_proved,
        }
