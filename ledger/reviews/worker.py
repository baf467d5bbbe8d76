"""The worker: asks hosts again, decides on what waits, and erases what has had its time.

It runs in a thread of its own in every service; the rows' leases keep several from doing the same work. Whatever it
does may be broken off at any point, and is done again by the next one: an entry has a key by which it is written once.
"""

import asyncio
import logging
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any

from ledger import metrics
from ledger.canon.times import parse_time
from ledger.errors import (
    Halted,
    NotAccepted,
    NotYet,
    StaylogError,
    TooMany,
    Unavailable,
    Uncertain,
)
from ledger.reviews import bookings, claims, feedback, guests, pending, verification
from ledger.reviews.admission import Submission, admit, require_new
from ledger.reviews.desk import Desk
from ledger.reviews.pending import Leased, Waiting
from ledger.reviews.verification import Shown

# How often it is looked whether something is due, how much is done at once, and how often is tidied up.
WAKE_SECONDS = 2.0
AT_ONCE = 16
SCRUB_SECONDS, TIDY_SECONDS = 60, 3600

_logger = logging.getLogger(__name__)
# Nobody's decision: it is tried again.
_PASSING = (Unavailable, Uncertain, TooMany, Halted)
Outcome = Mapping[str, Any]


class Worker:
    """`start` works for as long as the service runs; `work` does what is due now. Its desk is its own: what is asked of
    others belongs to one event loop."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._stop = Event()
        self._thread: Thread | None = None
        # Whether something was decided or erased that the files may still tell of.
        self._left_traces = False

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """When what is under way is done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    async def work(self) -> int:
        """Everything that is due; how much that was."""
        done = 0
        while leased := pending.lease(self._desk, AT_ONCE):
            await asyncio.gather(*map(self._settle, leased))
            done += len(leased)
            if self._stop.is_set():
                break
        self._left_traces = self._left_traces or done > 0
        return done

    def tidy(self) -> int:
        """Erase what has had its time; how many rows."""
        desk = self._desk
        # Days end last at UTC-12: nothing goes before its day is over everywhere.
        today = desk.clock().date()
        gone = pending.forget(desk) + bookings.forget(desk, today) + feedback.forget(desk, today)
        self._left_traces = self._left_traces or gone > 0
        return gone

    def scrub(self, *, thoroughly: bool = False) -> None:
        """What rows were before goes too: sealed as they were, they are nobody's any more."""
        if self._left_traces or thoroughly:
            self._left_traces = not self._desk.store.scrub("submission", "booking", "feedback", rewrite=thoroughly)

    async def _settle(self, leased: Leased) -> None:
        """Decide on one, or have it asked again. What goes wrong with it is no reason to stop for the others."""
        desk, waiting = self._desk, leased.waiting
        try:
            outcome = await (_claim if waiting.kind == "claim" else _review)(desk, waiting)
        except _PASSING as reason:
            _logger.info("a submission waits on: %s", reason.code)
            outcome = None
        except StaylogError as refusal:
            outcome = _refused(desk, waiting, refusal)
        except Exception:
            _logger.exception("a submission could not be decided on; it is tried again")
            outcome = None
        if outcome is None:
            await desk.aside(lambda: pending.again(desk, leased))
        elif await desk.aside(lambda: pending.decide(desk, leased, outcome)):
            metrics.DECISIONS.labels(outcome.get("code", "accepted")).inc()

    def _run(self) -> None:
        asyncio.run(self._go_on())

    async def _go_on(self) -> None:
        """Once a minute the files are cleared of what was decided, once an hour of what has had its time."""
        now = asyncio.get_running_loop().time
        scrubbed, tidied = now(), now() - TIDY_SECONDS
        while not self._stop.is_set():
            try:
                await self.work()
                if now() - tidied >= TIDY_SECONDS:
                    tidied = now()
                    self.tidy()
                    self.scrub(thoroughly=True)
                if now() - scrubbed >= SCRUB_SECONDS:
                    scrubbed = now()
                    self.scrub()
            except StaylogError as error:
                # The database is away, most likely; others say so more loudly.
                _logger.warning("what waits was not looked at: %s", error.code)
            except Exception:
                _logger.exception("what waits was not looked at")
            await asyncio.to_thread(self._stop.wait, WAKE_SECONDS)


async def _review(desk: Desk, waiting: Waiting) -> Outcome | None:
    """The outcome of a review, or None while it waits on."""
    submission, guest = Submission.of(desk, waiting.body), waiting.guest
    guests.require_trusted(desk, guest)
    require_new(desk, submission, guest)
    shown: Shown | None = None
    try:
        found = await verification.verify(desk, waiting.body, guest)
        shown = found if isinstance(found, Shown) else None
    except NotAccepted as refusal:
        if refusal.code == "booking_denied":
            await verification.tell_denial(desk, waiting.body, guest)
        raise
    except NotYet:
        # Nobody can be asked any more: the listing's endpoint is gone. That is as good as silence.
        shown = None
    if shown is None and not waiting.is_last(desk.clock()):
        return None
    if shown is None and not desk.publishes_unanswered:
        await verification.tell(desk, waiting.body, guest, "unanswered")
        raise NotYet("booking_unverifiable", "the host did not answer within 72 hours, and nothing else shows the stay")
    accepted = await admit(desk, submission, guest, shown)
    if shown is None:
        await verification.tell(desk, waiting.body, guest, "unanswered")
    beside = {name: accepted.receipt[name] for name in ("booking", "private_feedback") if name in accepted.receipt}
    return {"status": "accepted", "index": accepted.receipt["index"], "beside": beside}


async def _claim(desk: Desk, waiting: Waiting) -> Outcome | None:
    """The outcome of a claim: the host has until check-in to answer, when nobody knows how the stay will be."""
    if desk.clock() >= parse_time(waiting.decide_by):
        raise NotYet("booking_unverifiable", claims.UNANSWERED)
    guests.require_trusted(desk, waiting.guest)
    shown = await claims.verify(desk, waiting.body, waiting.guest)
    if shown is None:
        return None
    await desk.aside(lambda: bookings.keep_claim(desk, waiting.body, waiting.guest, desk.clock()))
    return {"status": "accepted", "verified_by": shown.kind}


def _refused(desk: Desk, waiting: Waiting, refusal: StaylogError) -> Outcome:
    data = Submission.of(desk, waiting.body).data
    signed = desk.refusal(data, refusal.code)
    return {"status": "rejected", "code": refusal.code, "detail": refusal.message, "refusal": signed}
