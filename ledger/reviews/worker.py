"""The worker: asks hosts again, decides on what waits, and erases what has had its time.

It runs in a thread of its own in every service; the rows' leases keep several from doing the same work. Whatever it
does may be broken off at any point, and is done again by the next one: an entry has a key by which it is written once.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from threading import Event, Thread
from typing import Any

from ledger import metrics
from ledger.errors import Done, NotAccepted, NotYet, StaylogError, Unavailable
from ledger.reviews import bookings, claims, feedback, guests, pending, verification
from ledger.reviews.admission import Submission, admit, require_new
from ledger.reviews.desk import Desk
from ledger.reviews.guests import Guest
from ledger.reviews.pending import Leased, Waiting
from ledger.reviews.receipts import known_receipt
from ledger.reviews.stays import EVERYWHERE, begins
from ledger.reviews.verification import Shown, Unknown
from ledger.store.scrub import ERASED, FEW_REWRITTEN, MOST_REWRITTEN

# How often it is looked whether something is due, how much is done at once, and how often is tidied up.
WAKE_SECONDS = 2.0
AT_ONCE = 16
SCRUB_SECONDS, TIDY_SECONDS = 45, 3600

_logger = logging.getLogger(__name__)
# Decisions. Whatever else goes wrong says nothing of the submission, and it is tried again.
_REFUSALS = (NotAccepted, NotYet, Done)
Outcome = Mapping[str, Any]
UNANSWERED = "the host did not answer within 72 hours, and nothing else shows the stay"


class Worker:
    """`start` works for as long as the service runs; `work` does what is due now. Its desk is its own: what is asked of
    others belongs to one event loop."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._stop = Event()
        self._thread: Thread | None = None
        self._tidied: datetime | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """When what is under way is done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    async def work(self) -> int:
        """Everything that is due; how much that was. Nothing while the clock is not confirmed."""
        done = 0
        if not self._clock_is_confirmed():
            return done
        while leased := pending.lease(self._desk, AT_ONCE):
            await asyncio.gather(*map(self._settle, leased))
            done += len(leased)
            if self._stop.is_set():
                break
        return done

    def tidy(self, now: datetime | None = None) -> int:
        """Erase what has had its time; how many rows."""
        desk, now = self._desk, now or self._desk.clock()
        # Nothing goes before its day has come everywhere.
        today = now.astimezone(EVERYWHERE).date()
        return pending.forget(desk, now) + bookings.forget(desk, today) + feedback.forget(desk, today)

    def tidy_with_care(self) -> int:
        """Only what had had its time when this was done last, too: a clock that is ahead for a while erases nothing.
        Nothing while the clock is not confirmed."""
        if not self._clock_is_confirmed():
            self._tidied = None
            return 0
        before, self._tidied = self._tidied, self._desk.clock()
        return self.tidy(min(before, self._tidied)) if before is not None else 0

    def scrub(self, *, thoroughly: bool = False) -> None:
        """Takes what was erased out of the files, too: what this service erased since the last call or, with
        `thoroughly`, what any service did. A table that is in use is left to the next call."""
        store = self._desk.store
        tables = ERASED if thoroughly else sorted(store.traces.intersection(ERASED))
        if tables:
            store.scrub(*tables, rewrite=MOST_REWRITTEN if thoroughly else FEW_REWRITTEN)

    def _clock_is_confirmed(self) -> bool:
        try:
            self._desk.clock()
        except Unavailable:
            return False
        return True

    async def _settle(self, leased: Leased) -> None:
        """Decide on one, or have it asked again. What goes wrong with it is no reason to stop for the others."""
        desk, waiting = self._desk, leased.waiting
        outcome: Outcome | Unknown
        try:
            outcome = await (_claim if waiting.kind == "claim" else _review)(desk, waiting)
        except _REFUSALS as refusal:
            outcome = _refused(desk, waiting, refusal)
        except StaylogError as reason:
            _logger.info("a submission waits on: %s", reason.code)
            outcome = Unknown(reason.code, asked=False)
        except Exception:
            _logger.exception("a submission could not be decided on; it is tried again")
            outcome = Unknown("internal_error", asked=False)
        if isinstance(outcome, Unknown):
            asked = outcome.asked
            await desk.aside(lambda: pending.again(desk, leased, asked=asked))
        elif await desk.aside(lambda: pending.decide(desk, leased, outcome)):
            metrics.DECISIONS.labels(outcome.get("code", "accepted")).inc()

    def _run(self) -> None:
        asyncio.run(self._go_on())

    async def _go_on(self) -> None:
        """Within a minute the files are cleared of what was erased here, once an hour of what others erased and did not
        live to clear away."""
        now = asyncio.get_running_loop().time
        scrubbed, tidied = now(), now() - TIDY_SECONDS
        while not self._stop.is_set():
            try:
                await self.work()
                if now() - tidied >= TIDY_SECONDS:
                    tidied = now()
                    self.tidy_with_care()
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
        with suppress(StaylogError):
            self.scrub()


async def _review(desk: Desk, waiting: Waiting) -> Outcome | Unknown:
    """The outcome of a review, or that it waits on."""
    submission, guest = Submission.of(desk, waiting.body), waiting.guest
    desk.reader.refresh()
    if desk.reader.known(submission.replay_key) is not None:
        return await _published(desk, submission, guest)
    guests.require_trusted(desk, guest)
    require_new(desk, submission, guest)
    found = await _found(desk, waiting)
    if isinstance(found, Unknown):
        if not found.asked or not waiting.is_last(desk.clock()):
            return found
        if not desk.publishes_unanswered:
            await verification.tell(desk, waiting.body, guest, "unanswered")
            raise NotYet("booking_unverifiable", UNANSWERED)
    await admit(desk, submission, guest, found if isinstance(found, Shown) else None)
    return await _published(desk, submission, guest)


async def _found(desk: Desk, waiting: Waiting) -> Shown | Unknown:
    try:
        return await verification.verify(desk, waiting.body, waiting.guest)
    except NotAccepted as refusal:
        if refusal.code == "booking_denied":
            await verification.tell_denial(desk, waiting.body, waiting.guest)
        if refusal.code == "address_not_allowed":
            return Unknown(refusal.message)
        raise
    except NotYet as reason:
        # Nobody can be asked any more: the listing's endpoint is gone. That is as good as silence.
        return Unknown(reason.message)


async def _published(desk: Desk, submission: Submission, guest: Guest) -> Outcome:
    """The outcome of a review that is in the log: by whoever was broken off behind that, or by the guest. What the
    host says by now, and whom anybody trusts by now, changes nothing."""
    receipt = known_receipt(desk.reader, submission.replay_key, submission.unsealing(desk))
    if receipt is None:
        raise Unavailable("busy", "the review is in the log, and not under a checkpoint yet")
    if receipt["verification_level"] == "unconfirmed":
        await verification.tell(desk, submission.body, guest, "unanswered")
    beside = {name: receipt[name] for name in ("booking", "keys_seen", "private_feedback") if name in receipt}
    return {"status": "accepted", "index": receipt["index"], "beside": beside}


async def _claim(desk: Desk, waiting: Waiting) -> Outcome | Unknown:
    """The outcome of a claim: the host has until check-in to answer, when nobody knows how the stay will be."""
    claim, guest, unanswered = waiting.body, waiting.guest, NotYet("booking_unverifiable", claims.UNANSWERED)
    known = bookings.claim_about(desk, claim, guest)
    if known is not None and known.statement == claim:
        # By whoever was broken off behind this.
        return {"status": "accepted"}
    if desk.clock() >= begins(claim["check_in"], desk.listing(claim["host_did"], claim["listing_id"]).zone):
        # Nothing that the host says counts now; and a clock that is ahead for a moment decides nothing.
        if waiting.is_last(desk.clock()):
            raise unanswered
        return Unknown("the day of check-in has begun")
    guests.require_trusted(desk, guest)
    found = await claims.verify(desk, claim, guest)
    if isinstance(found, Shown):
        await desk.aside(lambda: bookings.keep_claim(desk, claim, guest, desk.clock()))
        return {"status": "accepted"}
    if found.asked and waiting.is_last(desk.clock()):
        raise unanswered
    return found


def _refused(desk: Desk, waiting: Waiting, refusal: StaylogError) -> Outcome:
    data = Submission.of(desk, waiting.body).data
    signed = desk.refusal(data, refusal.code)
    return {"status": "rejected", "code": refusal.code, "detail": refusal.message, "refusal": signed}
