"""A ledger that asks its witness while it writes, until it is killed."""

from multiprocessing.connection import Connection

from ledger.folder import open_ledger
from ledger.settings import Settings
from tests.running import Writer


def writing(settings: Settings, seed: int, channel: Connection) -> None:
    ledger, writer = open_ledger(settings), Writer(seed)
    ledger.witnesses.start(ledger.sequencer.halt)
    while True:
        [placed] = ledger.sequencer.append([writer.review()])
        channel.send_bytes(str(placed.published.size).encode())
