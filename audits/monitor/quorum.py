"""Whether the checkpoints of a log have the cosignatures that a policy asks for."""

from dataclasses import replace
from datetime import timedelta
from itertools import islice

from audits.monitor.gossip import Signed
from audits.monitor.troubles import Troubles
from audits.reading import read_checkpoints
from audits.source import Source
from ledger.errors import NotProved, StaylogError
from ledger.log.note import Note, Verifier
from ledger.log.policy import Policy

# Of the newest checkpoints, so many are looked at for one that has the quorum.
RECENT = 100


def judge_witnesses(
    policy: Policy, shown: Signed, source: Source, log: Verifier, troubles: Troubles, patience: timedelta
) -> None:
    """A log that grows is always a little ahead of its witnesses: what counts is that a checkpoint which had no quorum
    has one, or a later one has, before the patience is over."""
    troubles.look("cosignature_invalid")
    agree, reached = 0, shown.size
    try:
        agreement = policy.agreement(Note.parse(shown.note))
        agree = agreement.agree
        if not agreement.quorum:
            reached = _newest_witnessed(policy, shown, source, log)
    except NotProved as error:
        troubles.note("cosignature_invalid", f"the checkpoint of {shown.size} entries: {error}")
        reached = 0
    signed = f"{agree} of {len(policy.witnesses)} witnesses cosigned the checkpoint of {shown.size} entries"
    last = f"the newest that has it is of {reached}" if reached else "no recent one has it"
    message = f"{signed}, which do not make the quorum {policy.quorum!r}; {last}"
    troubles.reach("unwitnessed", message, patience, size=shown.size, reached=reached)


def _newest_witnessed(policy: Policy, shown: Signed, source: Source, log: Verifier) -> int:
    try:
        for note in islice(read_checkpoints(source, 0, shown.size), RECENT):
            signed = Signed.read(note, log)
            if policy.agreement(Note.parse(note)).quorum:
                return signed.size
    except StaylogError:
        # What cannot be seen is not there.
        pass
    return 0


def without_quorum(policy: Policy | None, log: Verifier) -> Policy | None:
    """For an audit: the witnesses' times count there, and how long a quorum may be missing is judged here."""
    return replace(policy, logs=[log], quorum=None) if policy is not None else None
