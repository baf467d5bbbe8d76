"""A service as a process of its own: it writes, follows what others write, and answers what it is asked over a channel."""

import os
import pwd
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from time import sleep

from ledger.canon.times import format_time
from ledger.clock import utc_now
from ledger.errors import StaylogError
from ledger.folder import open_ledger
from ledger.log.mark import Mark
from ledger.log.mark_file import MarkFile
from ledger.settings import Settings
from tests.crash.harness import Child
from tests.running import SetClock, Writer
from tests.waiting import until

OPEN, ADDED, WELL = "open", "added", "ok"
# No two services write the same reviews.
_seeds = count(1000)


def serve(settings: Settings, seed: int, channel: Connection) -> None:
    """Tells whether it opened, or why not; then does what it is told until `close`. Its clock stands still, so that a
    slow failover is not one that took more than a minute."""
    try:
        ledger = open_ledger(settings, clock=SetClock(format_time(utc_now())))
    except StaylogError as error:
        channel.send((error.code, error.message))
        return
    ledger.sequencer.start()
    ledger.reader.follow(ledger.sequencer.halt)
    channel.send((OPEN, ""))
    writer = Writer(seed)
    while (asked := _next(channel)) != "close":
        try:
            if asked == "add":
                published = ledger.sequencer.submit(writer.review()).result(60).published
                channel.send((ADDED, str(Mark(published.size, published.root))))
            elif asked == "newest":
                published = ledger.reader.published
                channel.send((WELL, str(Mark(published.size, published.root))))
            else:
                reason = ledger.sequencer.halted or ledger.health.reason() or ledger.reader.trouble
                channel.send((reason.code, reason.message) if reason is not None else (WELL, ""))
        except StaylogError as error:
            channel.send((error.code, error.message))
    ledger.close()


def _next(channel: Connection) -> str:
    try:
        return str(channel.recv())
    except EOFError:
        return "close"


class Service(Child):
    """`opened` is OPEN, or the code by which it refused to start; `why` is the message of the last refusal."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(serve, settings, next(_seeds))
        self.why = ""
        self.opened = self._told()

    def add(self) -> str:
        """ADDED, or a code. The first tries after a database went away may only find that out."""
        for _ in range(50):
            outcome = self._ask("add")
            if outcome != "storage_unavailable":
                break
            sleep(0.1)
        return outcome

    def add_once(self) -> str:
        return self._ask("add")

    def newest(self) -> str:
        self._ask("newest")
        return self.why

    def health(self) -> str:
        return self._ask("health")

    def until_health(self, code: str) -> None:
        until(lambda: self.health() == code)

    def close(self) -> None:
        if self.opened == OPEN:
            self.channel.send("close")
        assert self.wait() == 0

    def _ask(self, what: str) -> str:
        self.channel.send(what)
        return self._told()

    def _told(self) -> str:
        assert self.channel.poll(60), "the service does not answer"
        code, self.why = self.channel.recv()
        return str(code)


def look_as_nobody(path: Path, channel: Connection) -> None:
    """What a process without rights finds in a mark file, and whether it may be replaced."""
    os.setuid(pwd.getpwnam("nobody").pw_uid)
    file = MarkFile(path)
    try:
        found = file.read()
        file.require_writable()
        channel.send((found.size if found is not None else None, file.may_be_replaced()))
    except StaylogError as error:
        channel.send((error.code, file.may_be_replaced()))
