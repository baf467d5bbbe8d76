"""Readers in front of a service that is under attack: real processes, as `python -m benchmarks.floods` has them."""

from pathlib import Path

import pytest

from benchmarks.floods import fill, measure, serving


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("floods") / "data"
    fill(folder)
    return folder


@pytest.mark.parametrize("attack", ["endless header", "2,000 idle"])
def test_readers_are_served_while_a_flood_goes_on(data: Path, attack: str) -> None:
    """Without bounds each of them waits in vain: for the event loop, or for a file descriptor."""
    with serving("ours", data) as (port, pid):
        quiet = measure(port, pid, "quiet", 0.5)
        flooded = measure(port, pid, attack, 1)
    assert flooded.failed == 0
    assert flooded.asked > 5
    # Half of them at least notice little, whatever else this machine does.
    assert flooded.p50 < 20 * quiet.p50
    assert flooded.memory < quiet.memory + 50
