"""A witness on a socket: add-checkpoint, the monitoring path, and a page and figures for those who look after it."""

import re
import sys
from collections.abc import Callable
from typing import Any

from audits.witness.http import Answer, BoundedServer, refusal
from audits.witness.judge import NotCosigned, Witness
from audits.witness.page import figures, page
from audits.witness.requests import RequestHandler
from ledger.log.add_checkpoint import PATH, SIZE_TYPE

# As Prometheus names its text format.
FIGURES = "text/plain; version=0.0.4; charset=utf-8"

_MONITORING = re.compile(r"/([0-9a-f]{64})/checkpoint")


class WitnessServer(BoundedServer):
    """`url` is how the world reaches it; what it tells of itself names that."""

    def __init__(
        self, witness: Witness, host: str = "127.0.0.1", port: int = 0, url: str | None = None, **bounds: Any
    ) -> None:
        """`bounds` are those of `BoundedServer`."""
        super().__init__(host, port, self._respond, RequestHandler, **bounds)
        self.witness = witness
        self.url = (url or self.listens_on).rstrip("/")

    def _respond(self, method: str, path: str, body: bytes) -> Answer:
        allowed, answer = self._route(path, body)
        if method != allowed:
            return refusal(405, "method_not_allowed", f"use {allowed}", Allow=allowed)
        try:
            return answer()
        except NotCosigned as error:
            if error.__cause__ is not None:
                # Not for whoever asked, but for whoever can mend it.
                sys.stderr.write(f"{error.code}: {error.__cause__}\n")
            return _refused(error)

    def _route(self, path: str, body: bytes) -> tuple[str, Callable[[], Answer]]:
        """The method of a path, and what is answered there."""
        if path == f"/{PATH}":
            return "POST", lambda: Answer(200, "cosigned", self.witness.add_checkpoint(body))
        if log := _MONITORING.fullmatch(path):
            return "GET", lambda: self._monitored(log[1])
        if path == "/metrics":
            return "GET", self._figures
        if path == "/":
            return "GET", lambda: Answer(200, "page", page(self.witness.verifier, self.url, self.witness.logs()))
        return "GET", lambda: refusal(404, "not_found", f"there is nothing here; logs post to {self.url}/{PATH}")

    def _figures(self) -> Answer:
        return Answer(200, "metrics", figures(self.outcomes(), self.refused(), self.witness.logs()), FIGURES)

    def _monitored(self, log: str) -> Answer:
        note = self.witness.checkpoint(log)
        if note is None:
            return refusal(404, "not_found", "this witness has cosigned nothing of that log")
        return Answer(200, "checkpoint", note)


def _refused(error: NotCosigned) -> Answer:
    if error.size is not None:
        return Answer(error.status, error.code, f"{error.size}\n", SIZE_TYPE)
    later = {"Retry_After": str(error.retry_after)} if error.retry_after is not None else {}
    return refusal(error.status, error.code, error.message, **later)
