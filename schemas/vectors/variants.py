"""What makes tampering hard to see: other events with a multiproof that fits, entries and records in canonical form."""

import json
from typing import Any

from ledger.canon import base64, jcs
from ledger.log.checkpoint import open_checkpoint
from schemas.vectors.patch import Patch, replace
from schemas.vectors.story import LOG, Story


class Variants:
    """Collects the variants of one base."""

    def __init__(self, base: str, answer: dict[str, Any], world: Story) -> None:
        self.base, self.answer, self.proof, self.world = base, answer, answer["proof"], world
        self.made: list[dict[str, Any]] = []

    def add(self, name: str, code: str, reason: str, *patch: dict[str, Any]) -> None:
        variant = {"name": name, "base": self.base, "code": code, "reason": reason, "patch": list(patch)}
        self.made.append(variant)

    def events(self, events: list[dict[str, Any]]) -> Patch:
        """Other events, with a multiproof that fits them."""
        size = open_checkpoint(self.proof["checkpoint"], LOG).size
        nodes = self.world.log.tree.multiproof([*(event["index"] for event in events), size - 1], size)
        return [replace("/proof/events", events), replace("/proof/log_proof", [base64.encode(node) for node in nodes])]

    def entry(self, place: int, **changed: Any) -> Patch:
        """The entry of event `place` with other members, in canonical form."""
        members = json.loads(self.proof["events"][place]["entry"]) | changed
        return [replace(f"/proof/events/{place}/entry", jcs.dumps(members).decode())]

    def record(self, **changed: Any) -> Patch:
        return [replace("/proof/record", jcs.dumps(json.loads(self.proof["record"]) | changed).decode())]
