"""A ledger whose clock the demo sets: the hours that a host has for its answer are not waited for.

It is another one, with a log and a key of its own, so that no time in the log of the first one is made up.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from api.app import create_app
from demo.actors import Host, Issuer
from demo.listener import Listener
from demo.service import HOST, Client
from ledger.clock import utc_now
from ledger.folder import init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.net.development import Development
from ledger.reviews.listings import add_listing
from ledger.reviews.pending import PATIENCE, SCHEDULE
from ledger.settings import Settings

# Longer than it could take, though the service's own worker comes between.
_STEPS = (*SCHEDULE, *(PATIENCE + timedelta(hours=hours) for hours in range(1, 25)))


class LedgerAhead(Client):
    """Served from a thread of the demo, once it is started, and ended by `close`."""

    def __init__(self) -> None:
        self._listener = Listener()
        super().__init__(f"http://{HOST}:{self._listener.port}")
        self._ahead = timedelta()

    def clock(self) -> datetime:
        return utc_now() + self._ahead

    def start(self, data: Path, development: Development, issuer: Issuer, host: Host) -> None:
        """A new ledger, which trusts the issuer, and knows where the host can be asked."""
        settings = Settings.of(data, base_url=self.url)
        init_folder(settings, clock=self.clock)
        ledger = open_ledger(settings, clock=self.clock, development=development)
        if (draft := trust(ledger.issuers(), "guest", issuer.did, [issuer.multikey], None)) is not None:
            ledger.sequencer.append([draft])
        with ledger.store.write() as connection:
            add_listing(connection, host.did, host.listing, None, "operator", host.booking_endpoint)
        self._worker = ledger.worker()
        self._listener.start(create_app(ledger), lifespan=True)

    def go_on(self, is_decided: Callable[[], bool]) -> timedelta:
        """Set the clock to each time at which something is due, and have it done, until all is decided; how far."""
        for self._ahead in _STEPS:
            asyncio.run(self._worker.work())
            if is_decided():
                break
        return self._ahead

    def close(self) -> None:
        self._listener.close()
