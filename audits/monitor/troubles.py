"""Troubles have a beginning and an end, and each is told once: not every round, and not again after a restart."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from audits.monitor.alerts import Teller
from audits.monitor.memory import Memory
from ledger.canon.times import format_time, parse_time

AT_ONCE = timedelta(0)


class Troubles:
    """A trouble is `noted` in each round in which it is there, and told once it has lasted as long as one has patience.
    It ends in the first round in which it is looked for and not noted.

    Nobody knows what was between two rounds that are further apart than one has patience, or than `apart`: the monitor
    was down, could not look, or its clock was set. Then a trouble begins anew; but one that is there a third time has
    lasted, however seldom somebody looks."""

    def __init__(
        self, memory: Memory, teller: Teller, clock: Callable[[], datetime], apart: timedelta = AT_ONCE
    ) -> None:
        self._open = memory.troubles
        self._apart = apart
        self._teller = teller
        self._clock = clock
        self._noted: set[str] = set()
        self._looked: set[str] = set()

    def note(
        self,
        code: str,
        message: str,
        patience: timedelta = AT_ONCE,
        *,
        about: str = "",
        size: int = 0,
        lasting: bool = False,
        **more: Any,
    ) -> bool:
        """Whether it has been told by now. One that is `lasting` never ends."""
        key, now = f"{code} {about}".rstrip(), self._clock()
        begun = {"code": code, "since": format_time(now), "told": False, "size": size, "lasting": lasting}
        trouble = self._open.setdefault(key, begun)
        # In whole seconds, as times are kept.
        gap = parse_time(format_time(now)) - parse_time(trouble.get("noted", trouble["since"]))
        if not trouble["told"]:
            if gap < AT_ONCE:
                trouble = self._open[key] = begun
            elif gap > max(patience, self._apart) and not trouble.get("anew"):
                trouble = self._open[key] = {**begun, "anew": True}
        trouble["noted"] = format_time(now)
        self._noted.add(key)
        if not trouble["told"] and now - parse_time(trouble["since"]) >= patience:
            trouble["told"] = True
            self._teller.tell(code, message, since=trouble["since"], **more)
        return bool(trouble["told"])

    def reach(self, code: str, message: str, patience: timedelta, *, size: int, reached: int, about: str = "") -> bool:
        """Noted for as long as the log has `reached` less than the `size` that it had to reach when this began: while
        it grows, it is always a little behind."""
        key = f"{code} {about}".rstrip()
        if key in self._open and self._open[key]["size"] <= reached:
            self.end(key)
        self.look(code)
        return reached < size and self.note(code, message, patience, about=about, size=size)

    def look(self, *codes: str) -> None:
        self._looked |= {*codes}

    def settle(self) -> None:
        """At the end of a round."""
        for key, trouble in list(self._open.items()):
            if trouble["code"] in self._looked and key not in self._noted and not trouble["lasting"]:
                self.end(key)
        self._noted.clear()
        self._looked.clear()

    def end(self, key: str) -> None:
        trouble = self._open.pop(key, None)
        if trouble is not None and trouble["told"]:
            about = key.removeprefix(trouble["code"]).strip()
            message = f"{trouble['code']}{f' ({about})' if about else ''} is over; it began at {trouble['since']}"
            self._teller.tell("recovered", message, ended=trouble["code"], since=trouble["since"])

    def is_told(self, key: str) -> bool:
        return bool(self._open.get(key, {}).get("told"))

    def is_lasting(self) -> bool:
        """Whether there is one that never ends."""
        return any(trouble["lasting"] for trouble in self._open.values())

    def keep(self, key: str, **more: Any) -> None:
        """Remember something about a trouble for as long as it is there."""
        self._open[key] |= more

    def kept(self, key: str, name: str) -> Any:
        return self._open.get(key, {}).get(name)

    def find(self, **kept: Any) -> str | None:
        """The key of one that has this among what was kept about it."""
        for key, trouble in self._open.items():
            if all(value in trouble.get(name, ()) for name, value in kept.items()):
                return key
        return None

    def open(self) -> list[tuple[str, bool]]:
        """Code of each, and whether it was told."""
        return [(trouble["code"], trouble["told"]) for trouble in self._open.values()]
