"""How long anything that the database is asked may take, in seconds. Clients are told to come back within ten seconds,
so all that one submission may wait for fits into them."""

from dataclasses import dataclass

from ledger.settings import DEFAULT_DEADLINE

# VACUUM, checks of a whole log, changes of tables: no client waits for the answer.
PATIENT = 900.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Held by the store. `statement` is the one that operators set; the others follow from it."""

    statement: float = DEFAULT_DEADLINE

    @property
    def connect(self) -> int:
        """For each host of the URL. libpq counts whole seconds, and at least two."""
        return max(2, int(self.statement / 2))

    @property
    def lock(self) -> float:
        """For the write lock, or for a turn among this process's threads. Shorter than a statement's, so that a lock
        that others hold is never taken for a server that does not answer."""
        return self.statement * 0.75

    @property
    def table(self) -> float:
        """For a table that another has for itself, by one who reads: submissions are read for in one thread, and each
        may meet it several times."""
        return min(1.0, self.lock)

    @property
    def idle(self) -> float:
        """After this the server ends a transaction whose service asks nothing more: it is frozen, or cut off."""
        return self.statement * 2.5
