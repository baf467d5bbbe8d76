"""What a monitor tells: a line for each alert, and a copy of it to a webhook. Codes are stable, messages may change."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from audits.monitor.memory import Memory
from audits.monitor.webhook import Refusal, Webhook
from audits.terminal import printable
from ledger.canon.times import format_time
from ledger.errors import Misconfigured, Unavailable

Alert = dict[str, Any]
# By code: how grave it is, and the status with which a round ends in which it is so. The smallest status wins.
KINDS: dict[str, tuple[str, int]] = {
    "inconsistency": ("critical", 1),
    "incomplete": ("warning", 2),
    "unsigned": ("error", 2),
    "gossip": ("warning", 2),
    "unreachable": ("error", 3),
    "stalled": ("error", 3),
    "unwitnessed": ("error", 3),
    "cosignature_invalid": ("error", 3),
    "behind": ("error", 3),
    "future": ("error", 3),
    "event": ("info", 4),
    "recovered": ("info", 0),
    "webhook": ("warning", 0),
    "looked": ("info", 0),
}
# Of no use to whoever gets the others: that they do not get them, and that there is nothing.
_LINES_ONLY = {"webhook", "looked"}
_CRITICAL = 0
# Alerts that wait for a webhook which does not answer; then the oldest of the least grave ones are let go.
MOST_WAITING = 1000


class Teller:
    """Writes lines, and keeps what the webhook has not taken yet. `size` is that of the log by now."""

    def __init__(
        self,
        log: str,
        source: str,
        memory: Memory,
        write: Callable[[str], None],
        clock: Callable[[], datetime],
        webhook: Webhook | None = None,
        *,
        as_json: bool = False,
    ) -> None:
        self.size = 0
        # By code, what was told in this round.
        self.counts: Counter[str] = Counter()
        self._from = {"log": log, "source": source}
        self._memory = memory
        self._write = write
        self._clock = clock
        self._webhook = webhook
        self._as_json = as_json
        # Alerts that nobody will get, since the last time that this was said.
        self._dropped = 0

    def tell(self, code: str, message: str, **more: Any) -> None:
        self.counts[code] += 1
        told = {"time": format_time(self._clock()), "level": KINDS[code][0], "code": code, "message": message}
        alert: Alert = {**told, **self._from, "size": self.size, **more}
        self._write(json.dumps(alert) if self._as_json else as_line(alert))
        if self._webhook is not None and not {code, more.get("ended")} & _LINES_ONLY:
            self._memory.waiting.append(alert)
            self._make_room()

    def _make_room(self) -> None:
        """Events go first, the oldest before the others; what is critical never goes."""
        waiting = self._memory.waiting
        while len(waiting) > MOST_WAITING:
            gravity, place = max((_gravity(alert), -place) for place, alert in enumerate(waiting))
            if gravity == _CRITICAL:
                return
            del waiting[-place]
            self._dropped += 1

    def deliver(self) -> str | None:
        """Give the webhook what waits for it; why it did not take all of it, if it did not."""
        if self._webhook is None:
            return None
        waiting, may_go_on = self._memory.waiting, self._webhook.budget()
        if self._dropped:
            self.tell("webhook", f"{self._dropped} alerts are lost: more than {MOST_WAITING} wait for it")
            self._dropped = 0
        # In their order otherwise: that a trouble is over comes after it.
        waiting.sort(key=_gravity)
        while waiting and may_go_on():
            try:
                self._webhook.post(json.dumps(waiting[0]).encode())
            except Refusal as error:
                self.tell("webhook", f"the alert {waiting[0]['code']} of {waiting[0]['time']} is lost: {error}")
            except Unavailable as error:
                return f"{error}; {len(waiting)} alerts wait"
            waiting.pop(0)
            # At once: whoever is stopped in between does not send it again. The round says so if it cannot be kept.
            with suppress(Misconfigured):
                self._memory.save()
        return None


def _gravity(alert: Alert) -> int:
    """For whom there is only so much room and time: the smallest first."""
    code = alert["code"]
    return _CRITICAL if KINDS[code][0] == "critical" else 2 if code == "event" else 1


def as_line(alert: Alert) -> str:
    return printable(f"{alert['time']} {alert['level']:<8} {alert['code']}: {alert['message']}")
