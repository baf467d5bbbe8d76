"""Whatever a server says: none of it reaches the terminal as it is, and all of it ends in a status."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from audits.audit import Audit
from audits.mirror import Mirror
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.note import ED25519, Verifier
from tests.audits.honest import Honest, Served, web_server
from tests.audits.test_audit_commands import HOSTILE, keyed, run
from tests.world import KEY, LOG, World


def replaced(before: bytes, after: str) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(before, json.dumps(after).encode()[1:-1])


def whole(value: Any) -> Callable[[bytes], bytes]:
    return lambda _: value if isinstance(value, bytes) else json.dumps(value).encode()


@contextmanager
def serving(path: str, proof: str | None, change: Callable[[bytes], bytes]) -> Iterator[str]:
    world = World(7).grow(12)
    served = Served(world.log)

    def respond(asked: str, query: dict[str, str]) -> bytes:
        data = served.get(asked, query)
        return change(data) if asked.startswith(path) and query.get("proof") == proof else data

    with web_server(respond) as url:
        yield url


@pytest.mark.parametrize("command", ["audit", "mirror"])
@pytest.mark.parametrize(
    ("path", "proof", "change"),
    [
        ("log/checkpoint", None, replaced(b"ledger.example", HOSTILE)),
        ("log/tile/entries", None, whole(HOSTILE.encode())),
        ("log/tile/entries", None, whole(b"")),
        ("log/tile/0", None, whole(HOSTILE.encode())),
        ("v1/log/checkpoints", None, whole({"checkpoints": [{"size": HOSTILE, "checkpoint": ""}], "next": None})),
        ("v1/log/checkpoints", None, whole({"checkpoints": [{"size": 9, "checkpoint": HOSTILE}], "next": HOSTILE})),
        ("v1/log/checkpoints", None, whole({"checkpoints": [], HOSTILE: 1})),
        ("v1/log/checkpoints", None, whole({"checkpoints": {HOSTILE: HOSTILE}, "next": None})),
        ("v1/log/openings", None, whole({"openings": [{"index": 2, "text": HOSTILE, "salt": HOSTILE}]})),
        ("v1/log/openings", None, whole({"openings": HOSTILE})),
        ("v1/log/openings", None, whole(b'{"openings":[{"index":2,"text":"\\ud800","salt":"' + b"A" * 43 + b'="}]}')),
        ("v1/log/openings", None, whole(b"[" * 100_000)),
        ("v1/hosts", "full", whole({HOSTILE: HOSTILE})),
        ("v1/hosts", "full", whole({"pages": [HOSTILE]})),
        ("v1/hosts", "full", whole({"pages": []})),
        ("v1/hosts", "full", replaced(b"did:web", HOSTILE)),
        ("v1/hosts", "full", replaced(b"listing-", HOSTILE)),
        ("v1/hosts", None, whole([HOSTILE])),
        ("v1/hosts", None, whole({"plain": HOSTILE})),
        ("v1/hosts", None, replaced(b"rev-", HOSTILE)),
        ("v1/hosts", None, lambda data: data.replace(b'"total_reviews": ', b'"total_reviews": "\\u001b[2J", "x": ')),
        ("v1/log/key", None, whole({"vkey": HOSTILE})),
        ("v1/log/key", None, whole([HOSTILE])),
    ],
)
def test_nothing_that_a_server_says_reaches_the_terminal_raw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, path: str, proof: str | None, change: Any
) -> None:
    """Nor does it end in anything but a status."""
    for waiting in (Audit, Mirror):
        monkeypatch.setitem(waiting.__init__.__kwdefaults__ or {}, "pause", 0)
    with serving(path, proof, change) as url:
        if command == "mirror":
            ran = run(url, tmp_path / "copy", *([] if "key" in path else keyed()), command=("mirror",))
            assert ran.exit_code in (0, 1)
        else:
            ran = run(url, *keyed(), "--out", tmp_path)
            assert ran.exit_code in (1, 2)


def test_nor_does_the_name_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log chooses its name, and a copy without --key takes its word for it."""
    monkeypatch.setitem(Mirror.__init__.__kwdefaults__ or {}, "pause", 0)
    log = Verifier("evil\u202e\x9b[31m[red]", ED25519, LOG.public_key)
    world = Honest(1).grow(3)
    note = sign_checkpoint(
        Checkpoint(log.name, world.log.published[-1].size, world.log.tree.root(len(world.log.entries))), KEY
    )
    served = Served(world.log)

    def respond(path: str, query: dict[str, str]) -> bytes:
        said = {"log/checkpoint": note.encode(), "v1/log/key": json.dumps({"vkey": str(log)}).encode()}
        return said[path] if path in said else served.get(path, query)

    with web_server(respond) as url:
        copied = run(url, tmp_path, command=("mirror",))
        assert (copied.exit_code, "evil" in copied.stdout) == (0, True), copied.output
        assert run(url, *keyed(log), "--out", tmp_path / "findings").exit_code == 1
