"""The file in a ledger's folder that names its witnesses (c2sp.org/tlog-policy), if it is of use for that log."""

from dataclasses import dataclass
from pathlib import Path

from ledger.errors import BadNote, Misconfigured
from ledger.log.note import Verifier
from ledger.log.policy import Policy
from ledger.net.plain import check_address
from ledger.store.rows import MAX_WITNESSES


@dataclass(frozen=True, slots=True)
class ServicePolicy:
    """A tlog-policy as the operator wrote it down, and what it means."""

    text: str
    meaning: Policy


def read_policy(path: Path, log: Verifier) -> ServicePolicy | None:
    """The tlog-policy in the ledger's folder, if there is one and it is of use for this log."""
    try:
        # Its bytes as they are: a line that Python made out of a carriage return would be none to other programs.
        text = path.read_bytes().decode()
        policy = Policy.parse(text)
        for witness in policy.witnesses.values():
            if witness.url is not None:
                check_address(witness.url)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, BadNote, Misconfigured) as error:
        raise Misconfigured("settings_invalid", f"the file {path.name}: {error}") from None
    asked = {witness.verifier for witness in policy.witnesses.values() if witness.url is not None}
    if log not in policy.logs:
        raise Misconfigured("settings_invalid", f"the file {path.name} is not about this log; add the line: log {log}")
    if len(policy.witnesses) > MAX_WITNESSES:
        raise Misconfigured("settings_invalid", f"the file {path.name} names more than {MAX_WITNESSES} witnesses")
    if not policy.satisfied_by(asked):
        raise Misconfigured(
            "settings_invalid", f"the quorum in {path.name} can never be there: too few witnesses have an address"
        )
    return ServicePolicy(text, policy)
