"""The one place that says why the ledger cannot write."""

from prometheus_client import REGISTRY

from ledger.errors import Unavailable
from ledger.health import Health
from tests.running import Running

FULL = Unavailable("storage_full", "the disk is full")
SLOW = Unavailable("storage_unavailable", "no answer")


def gauge(part: str, code: str) -> float | None:
    return REGISTRY.get_sample_value("staylog_cannot_write", {"part": part, "code": code})


def test_shows_the_oldest_reason_until_its_part_clears_it() -> None:
    health = Health()
    assert health.reason() is None
    health.report("disk", FULL)
    health.report("database", SLOW)
    assert health.reason() is FULL
    health.clear("disk")
    assert health.reason() is SLOW
    health.clear("database")
    health.clear("database")
    assert health.reason() is None


def test_the_metric_follows_the_reasons() -> None:
    health = Health()
    health.report("metric", FULL)
    assert gauge("metric", "storage_full") == 1
    health.report("metric", SLOW)
    assert (gauge("metric", "storage_full"), gauge("metric", "storage_unavailable")) == (0, 1)
    health.clear("metric")
    assert gauge("metric", "storage_unavailable") == 0


def test_the_ledgers_health_has_what_its_store_reports(running: Running) -> None:
    """Until something is written."""
    ledger = running.ledger
    assert ledger.store.reported(FULL) is ledger.health.reason() is FULL
    with ledger.store.write():
        pass
    assert ledger.health.reason() is None
