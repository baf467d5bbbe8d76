"""A log whose clock is not that of its witnesses: what is dated long after the time at which they saw it."""

from datetime import timedelta

import pytest

from audits.audit import Options
from ledger.log.policy import Policy
from tests.audits.convicting import DECLARED, audit, convicted
from tests.audits.forger import Forger
from tests.ledger.log.worked_example import OTHER, OTHER_KEY, WITNESS, WITNESS_KEY
from tests.running import Writer
from tests.world import LOG

POLICY = Policy.parse(f"log {LOG}\nwitness w1 {WITNESS}\nquorum w1\n")
DECLARED["test_the_times_of_a_log_are_held_against_those_of_its_witnesses"] = frozenset({("clock", "postdated")})


def witnessed(writer: Writer, ahead: timedelta, late: timedelta) -> Forger:
    """A witness that saw the checkpoint before the last one by its own clock, which runs `ahead` of the log's. The last
    batch comes `late` after that."""
    forger = Forger.begun(writer)
    review = forger.add(writer.review())
    forger.head()
    forger.cosign(forger.size, WITNESS, WITNESS_KEY, forger.clock() + ahead)
    forger.clock.now += late
    forger.add(writer.response(review))
    forger.head()
    forger.cosign(forger.size, WITNESS, WITNESS_KEY, forger.clock() + ahead)
    return forger


@pytest.mark.parametrize(
    ("ahead", "late", "found"),
    [
        (timedelta(seconds=-300), timedelta(), []),
        (timedelta(seconds=-301), timedelta(), [("postdated", 8), ("postdated", 10)]),
        (timedelta(days=-1), timedelta(hours=1), [("postdated", 8), ("postdated", 10)]),
        # A witness may be asked about an old checkpoint at any time: that shows nothing about what is not in it.
        (timedelta(days=1), timedelta(), []),
        (timedelta(days=1), timedelta(hours=1), []),
    ],
)
def test_the_times_of_a_log_are_held_against_those_of_its_witnesses(
    ahead: timedelta, late: timedelta, found: list[tuple[str, int]], writer: Writer
) -> None:
    findings = audit(witnessed(writer, ahead, late), options=Options(policy=POLICY))
    assert convicted(findings) == found
    assert findings.unchecked == []
    assert findings.figures["cosignatures"] == 2


def test_nobody_else_can_say_what_time_it_was(writer: Writer) -> None:
    """Neither a witness that the policy does not name, nor who signs in the name of one."""
    for name, key in ((OTHER, OTHER_KEY), (WITNESS, OTHER_KEY)):
        forger = Forger.begun(writer)
        forger.cosign(forger.size, name, key, forger.clock() + timedelta(days=3))
        forger.add(writer.check())
        forger.head()
        findings = audit(forger, options=Options(policy=POLICY))
        assert (findings.verdict, findings.found) == ("incomplete", [])
        assert findings.unchecked[0].startswith("that enough witnesses saw the newest checkpoint")
