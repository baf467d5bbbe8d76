"""What a verification found: proved, redacted, withheld, not proved. Plain words, because people act on it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ledger.canon.times import format_time
from ledger.errors import NotProved
from ledger.log.note import Verifier
from ledger.log.policy import Policy

# protocol.md 5, last paragraph: what no answer can prove by itself.
MAP_HEAD_HONESTY = "that the map head was derived honestly from all entries: an auditor's replay of the log shows it"
REAL_STAYS = "that guests and stays are real: that is the word of the operator and of the credential issuers"
UNWITNESSED = "that everybody is shown this same log: no witnesses were asked for, name them with a policy"
DOMAIN = "who stands behind the DID: with did:web, whoever holds the domain holds the DID"


@dataclass(slots=True)
class Report:
    """`texts` gives the state of each committed text by log index: open, redacted, withheld or unasked. `witnesses` has
    how many of a policy's witnesses agree, and how many there are."""

    subject: str
    size: int
    at: str | None = None
    proved: list[str] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    not_proved: list[str] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    witnesses: tuple[int, int] | None = None

    def witnessed(self, note: str, log: Verifier, policy: Policy | None) -> None:
        """What the witnesses of the policy say of the checkpoint; NotProved if these are not enough, or if the policy
        is not one for this log."""
        if policy is None:
            self.not_proved.append(UNWITNESSED)
            return
        if log not in policy.logs:
            raise NotProved("signer_unknown", f"the policy has no log line for the key {log}")
        _, found = policy.verify(note)
        self.witnesses = found.agree, found.asked
        enough = "and it asks for none" if policy.quorum is None else "which is enough for it"
        self.proved.append(f"{found.agree} of {found.asked} witnesses of the policy agree, {enough}")
        self.not_proved += [
            f"the ML-DSA-44 cosignature of {name}: not checked, install staylog[pq]" for name in found.unchecked
        ]
        self.proved += [f"{c.witness.name} cosigned this checkpoint at {moment(c.timestamp)}" for c in found.found]

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "size": self.size,
            "at": self.at,
            "proved": self.proved,
            "redacted": self.redacted,
            "withheld": self.withheld,
            "not_proved": self.not_proved,
            "witnesses": None if self.witnesses is None else dict(zip(("agree", "asked"), self.witnesses, strict=True)),
        }


def moment(timestamp: int) -> str:
    """A witness may sign any 63 bits; a calendar ends with the year 9999."""
    try:
        return format_time(datetime.fromtimestamp(timestamp, UTC))
    except (OverflowError, ValueError, OSError):
        return f"{timestamp} seconds after 1970"
