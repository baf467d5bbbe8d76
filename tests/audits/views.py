"""Logs of one key that show different histories to those who ask."""

from tests.audits.forger import Forger
from tests.running import Writer


def views(*sizes: int) -> list[Forger]:
    """Logs that begin alike and go on by as many batches, each with reviews of its own."""
    made = []
    for number, batches in enumerate(sizes):
        forger, writer = Forger.begun(Writer(1)), Writer(2 + number)
        for _ in range(batches):
            forger.add(writer.review())
            forger.head()
        made.append(forger)
    return made
