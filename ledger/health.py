"""Why the ledger cannot write right now: one place for all reasons, read by /health and the metrics.

A part of the ledger reports a reason when it finds one and clears it when it is over. Reads go on meanwhile.
"""

from threading import Lock

from ledger import metrics
from ledger.errors import StaylogError


class Health:
    """Held by the open ledger and by the parts that report. Threads may share it."""

    def __init__(self) -> None:
        self._reasons: dict[str, StaylogError] = {}
        self._lock = Lock()

    def report(self, part: str, reason: StaylogError) -> None:
        """`part` cannot write because of `reason`, until it clears that; a later reason of a part replaces its earlier
        one."""
        with self._lock:
            self._forget(part)
            self._reasons[part] = reason
            metrics.CANNOT_WRITE.labels(part, reason.code).set(1)

    def clear(self, part: str) -> None:
        """`part` can write again. Without a reason reported before, nothing happens."""
        with self._lock:
            self._forget(part)

    def reason(self) -> StaylogError | None:
        """What /health answers: the reason that was reported first of those that still hold; None when all is well."""
        with self._lock:
            return next(iter(self._reasons.values()), None)

    def _forget(self, part: str) -> None:
        reason = self._reasons.pop(part, None)
        if reason is not None:
            metrics.CANNOT_WRITE.labels(part, reason.code).set(0)
