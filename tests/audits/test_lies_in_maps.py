"""Map heads that do not follow from the entries: the one lie that no answer about another host can show."""

from collections.abc import Callable

import pytest

from ledger.canon import base64
from ledger.log.hostmap import HostMap, map_key, map_value
from tests.audits.convicting import audit, convict_here, shows
from tests.audits.forger import HASH, Forger
from tests.running import HOST, OTHER, Writer
from tests.world import HOSTS, LOG

FOUND = ("transition", "map_root_mismatch")


def found(forger: Forger) -> list[tuple[int | None, int]]:
    """Where a map head is wrong, and how many are from there on; each is proved, and there is nothing else."""
    findings = audit(forger)
    assert findings.unchecked == []
    for each in findings.found:
        assert (each.fraud.kind, each.fraud.code) == FOUND
        convict_here(each.fraud.as_json(LOG))
    return [(each.index, each.count) for each in findings.found]


@shows(FOUND)
def test_a_head_that_was_forged_in_the_past_is_found_though_all_after_it_are_right(writer: Writer) -> None:
    forger = Forger.begun(writer)
    forger.add(writer.review())
    forger.head(root=HASH)
    forged = forger.size - 1
    for _ in range(3):
        forger.add(writer.review(OTHER))
        forger.head()
    assert found(forger) == [(forged, 1)]


@shows(FOUND)
def test_heads_that_are_wrong_in_a_row_are_one_finding_and_are_counted(writer: Writer) -> None:
    forger = Forger.begun(writer)
    forged = []
    for _ in range(2):
        for _ in range(3):
            forger.add(writer.review())
            forger.head(root=writer.hash())
            forged.append(forger.size - 1)
        forger.add(writer.check(OTHER))
        forger.head()
    assert found(forger) == [(forged[0], 3), (forged[3], 3)]


def left_out(forger: Forger, writer: Writer) -> HostMap:
    """A host that the entries name has no place in the map."""
    known = {HOST: forger.record(HOST)}
    forger.add(writer.check(OTHER))
    return HostMap((map_key(host), map_value(record)) for host, record in known.items())


def hidden(forger: Forger, writer: Writer) -> HostMap:
    """What happened to a host is not in its record."""
    known = {HOST: forger.record(HOST)}
    forger.add(writer.check(HOST))
    return HostMap((map_key(host), map_value(record)) for host, record in known.items())


def taken_out(forger: Forger, writer: Writer) -> HostMap:
    """A host that the map had is gone, though no entry is about it."""
    forger.add(writer.check(OTHER))
    return HostMap([(map_key(OTHER), map_value(forger.record(OTHER)))])


def added(forger: Forger, writer: Writer) -> HostMap:
    """A host that no entry ever named has a record."""
    hosts = (HOST, HOSTS[1])
    return HostMap((map_key(host), map_value(forger.record(HOST))) for host in hosts)


@pytest.mark.parametrize("lie", [left_out, hidden, taken_out, added])
@shows(FOUND)
def test_a_map_of_other_hosts_or_other_records(lie: Callable[[Forger, Writer], HostMap], writer: Writer) -> None:
    forger = Forger.begun(writer)
    forger.head(root=base64.encode(lie(forger, writer).root()))
    forged = forger.size - 1
    forger.add(writer.check(HOST))
    forger.head()
    assert found(forger) == [(forged, 1)]


@shows(FOUND)
def test_the_first_head_of_all(writer: Writer) -> None:
    forger = Forger()
    forger.head(root=HASH)
    forger.add(writer.policy())
    forger.head()
    assert found(forger) == [(1, 1)]


@shows(FOUND)
def test_a_head_over_all_that_can_happen_to_reviews(writer: Writer) -> None:
    """New hosts and known ones, reviews of this batch and of older ones with what had happened to them before."""
    forger = Forger.begun(writer)
    verified = [forger.add(writer.review(host)) for host in HOSTS[:4]]
    unconfirmed = [forger.add(writer.review(host, "unconfirmed")) for host in HOSTS[2:]]
    forger.add(writer.response(verified[0]))
    forger.add(writer.redaction(verified[1]))
    forger.add(writer.upgrade(unconfirmed[0]))
    forger.head()
    for number in range(40):
        forger.add(writer.check(f"did:web:house{number}.example"))
    forger.add(writer.redaction(verified[0], "response"))
    forger.add(writer.redaction(verified[0], "text"))
    forger.add(writer.response(verified[1]))
    forger.add(writer.upgrade(unconfirmed[1]))
    forger.add(writer.response(unconfirmed[0]))
    forger.add(writer.response(forger.add(writer.review(HOSTS[5]))))
    forger.head(root=HASH)
    forged = forger.size - 1
    forger.add(writer.policy())
    forger.head()
    assert found(forger) == [(forged, 1)]
