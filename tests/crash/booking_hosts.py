"""Hosts of every kind: those that answer, late or at last, and those that never say anything that counts."""

import asyncio
import json
from collections import Counter
from datetime import timedelta
from typing import Any

from tests.hosting import HostSite, call_asgi
from tests.identities import NOW
from tests.network import Neighbourhood, Request, response
from tests.reviewing import DOMAIN, encoded

# How each kind behaves, and what becomes of a review of one: the level, by which evidence, or the code of the refusal;
# and which check the record has of each guest.
CONFIRMED, UNCONFIRMED = ("guest_verified", "callback"), ("unconfirmed", "none")
KINDS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "prompt": (CONFIRMED, None),
    "slow": (CONFIRMED, None),
    "dripping": (CONFIRMED, None),
    "back after a day": (CONFIRMED, None),
    "expired certificate": (UNCONFIRMED, "unanswered"),
    "certificate of somebody else": (UNCONFIRMED, "unanswered"),
    "broken": (UNCONFIRMED, "unanswered"),
    "talks rubbish": (UNCONFIRMED, "unanswered"),
    "answers another question": (UNCONFIRMED, "unanswered"),
    "denies": (("booking_denied",), "denied"),
    "knows other dates": (("booking_dates_mismatch",), None),
}
RUBBISH = (b"", b"null", b"\xff", b"[" * 60_000, b'{"known": true}', b"<html>", b"x" * 200_000)


class Behaving(HostSite):
    """A host of a kind. It is closed (503) until it is opened."""

    def __init__(self, outside: Neighbourhood, ledger_key: str, clock: Any, kind: str, number: int) -> None:
        super().__init__(outside, ledger_key, clock, f"house{number}.example", seed=220 + number)
        self.kind = kind
        self.down = 503
        self.questions = Counter[str]()
        if kind == "expired certificate":
            outside.host(self.name, outside.authority.context(self.name, expired=True))
        if kind == "certificate of somebody else":
            outside.host(self.name, outside.authority.context("elsewhere.example"))

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if self.down is not None:
            writer.write(response(b"{}", self.down))
            return
        path = request.url.removeprefix(f"https://{self.name}")
        reference = path.split("/")[-2]
        self.questions[reference] += 1
        status, body, media_type = await call_asgi(self.kit, request, path)
        if self.kind == "slow":
            await asyncio.sleep(1 + len(self.questions) % 3 / 2)
        if self.kind == "dripping" and self.questions[reference] < 3:
            await self._drip(writer)
        if self.kind == "broken" or self.kind == "back after a day" and self.clock() < NOW + timedelta(days=1):
            status = 500
        if self.kind == "talks rubbish":
            body = RUBBISH[self.questions.total() % len(RUBBISH)]
        if self.kind == "answers another question":
            body = self._for_another_challenge(body)
        writer.write(response(body, status, media_type))

    def _for_another_challenge(self, answer: bytes) -> bytes:
        said = {name: value for name, value in json.loads(answer).items() if name != "proof"}
        return encoded(self.speaker.sign(said, domain=DOMAIN, now=self.clock(), challenge="an-older-one"))

    async def _drip(self, writer: asyncio.StreamWriter) -> None:
        """Longer than anybody waits."""
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n")
        for _ in range(20):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.3)
