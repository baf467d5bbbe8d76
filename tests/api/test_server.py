"""What the process of a service sets up for itself. That it serves is shown by test_edge and test_docs."""

import gc
from typing import Any

from api.server import spare_the_collector
from tests.running import Running, Writer


def test_a_batch_is_over_before_the_collector_looks_at_it(running: Running, writer: Writer) -> None:
    looks: list[str] = []

    def count(phase: str, _info: dict[str, Any]) -> None:
        looks.append(phase)

    drafts = [writer.review(f"did:web:house{number}.example") for number in range(64)]
    thresholds = gc.get_threshold()
    gc.collect()
    spare_the_collector()
    gc.callbacks.append(count)
    try:
        running.ledger.sequencer.append(drafts)
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    assert looks == []
