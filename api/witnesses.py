"""Who watches this log: the witnesses that its policy names, and what came of asking them."""

from litestar import get
from litestar.di import NamedDependency

from api.caching import SECOND
from api.openapi import responses
from api.shapes import ListedCheckpoint, WitnessReport, WitnessStatus
from ledger.errors import NotProved
from ledger.folder import Ledger
from ledger.log.note import Note


@get(
    "/v1/log/witnesses",
    response_headers={"Cache-Control": SECOND},
    responses=responses(),
    sync_to_thread=True,
    tags=["log"],
)
def witness_report(ledger: NamedDependency[Ledger]) -> WitnessReport:
    """The witnesses of this log, and whether enough of them agree. Their cosignatures are lines of the checkpoints
    themselves, so nothing said here needs to be believed. A missing quorum never keeps a review out."""
    return report(ledger)


def report(ledger: Ledger) -> WitnessReport:
    newest, policy = ledger.reader.published, ledger.witnesses.policy
    try:
        quorum = None if policy is None else policy.meaning.agreement(Note.parse(newest.note)).quorum
    except NotProved:
        # A line that was stored does not hold: `staylog fsck` names it. What has no sound cosignatures has no quorum.
        quorum = False
    witnessed = ledger.reader.newest_witnessed()
    return WitnessReport(
        None if policy is None else policy.text,
        newest.size,
        quorum,
        None if witnessed is None else ListedCheckpoint(witnessed.size, witnessed.note),
        [
            WitnessStatus(each.name, str(each.verifier), each.url, each.state, each.size, each.at, each.detail)
            for each in ledger.witnesses.states()
        ],
    )


HANDLERS = [witness_report]
