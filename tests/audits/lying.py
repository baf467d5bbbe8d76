"""A real service on a socket whose operator lies: by patches of its own code, or with its own key over another past.

A patch holds until the test undoes it; whoever audits or checks runs in a process that has none.
"""

import json
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.server import Server, config
from ledger.canon.times import parse_time
from ledger.identity.issuers import trust
from ledger.log.drafts import Draft, make_draft
from ledger.log.entries import parse_entry
from ledger.reputation.answers import Query, reputation
from ledger.settings import Settings
from ledger.store.rows import run
from tests.api.site import Site
from tests.audits.forger import VOUCHER
from tests.identities import IDV, ISSUER
from tests.network import Neighbourhood
from tests.reviewing import DOMAIN, GUESTS
from tests.running import Running
from tests.waiting import until

Members = dict[str, Any]


@contextmanager
def shown(running: Running) -> Iterator[Site]:
    """The service of a ledger that is open; it closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    outside = Neighbourhood(running.settings.data)
    server = Server(config(create_app(running.ledger, DOMAIN, limits=False), "127.0.0.1", 0))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started, 20)
    port = listener.getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            yield Site(running, client, port, outside)
    finally:
        server.should_exit = True
        thread.join()
        outside.close()


def url(site: Site) -> str:
    return f"http://127.0.0.1:{site.port}"


def new_ledger(folder: Path) -> Running:
    """It trusts an issuer of guests, and one of those whose reviews are not submitted."""
    running = Running(folder / "data", f"sqlite:///{folder}/data/ledger.db")
    for issuer in (IDV, VOUCHER):
        draft = trust(running.ledger.issuers(), "guest", issuer, [ISSUER.multikey], None)
        assert draft is not None
        running.add(draft)
    return running


def reviewed(site: Site, guest: int, **changes: Any) -> Members:
    """The receipt of a review that a guest submits of a stay of their own."""
    return site.review(GUESTS[guest], reference=f"B-{guest}", **changes)


class Restored(Running):
    """A ledger in a folder that was copied, or that is opened once more."""

    def __init__(self, data: Path, like: Running) -> None:
        self.clock = like.clock
        self.development = like.development
        self.settings = type(like.settings).of(data, f"sqlite:///{data}/ledger.db")
        self.ledger = self.open()


def copy_folder(running: Running, folder: Path) -> Path:
    """Keys, mark and database as they are now; the ledger is closed."""
    return Path(shutil.copytree(running.settings.data, folder))


def rewritten(
    running: Running, folder: Path, change: Callable[[Members], Members | None] = lambda each: each
) -> Running:
    """A second ledger with the keys of the first, whose past is another: each entry as `change` has it, or without it,
    at the times that they had."""
    data = folder / "data"
    data.mkdir(mode=0o700, parents=True)
    # As if no log had been begun with the key.
    shutil.copy2(running.settings.log_key, Settings.of(data).unused_log_key)
    shutil.copy2(running.settings.service_keys, data)
    # The genesis is made anew, at the same time.
    reader, now = running.ledger.reader, running.clock.now
    entries = [parse_entry(data) for data in reader.entries(0, reader.published.size)]
    pinned = {index: json.loads(keys) for index, _, keys in reader.issuers(len(entries))}
    openings = reader.openings(0, len(entries))
    second = Running(data, f"sqlite:///{data}/ledger.db")
    batch: list[Draft] = []
    for index, entry in enumerate(entries[2:], 2):
        if entry.type == "map_head":
            second.clock.now = parse_time(str(entry.at))
            second.add(*batch)
            batch.clear()
            continue
        members = {name: value for name, value in entry.members.items() if name not in ("type", "v", "at")}
        changed = change({**members, "keys": pinned[index]} if index in pinned else members)
        if changed is not None:
            batch.append(make_draft(entry.type, changed, opening=openings.get(index)))
    second.clock.now = now
    return second


def without(review_id: str) -> Callable[[Members], Members | None]:
    return lambda members: None if members.get("review_id") == review_id else members


def change_rows(site: Site, statement: str, *values: Any) -> None:
    """Whoever has the database can write to it."""
    with site.ledger.store.write() as connection:
        run(connection, statement, values)


def change_answers(patch: pytest.MonkeyPatch, proof: str, change: Callable[[Members], object]) -> None:
    """What is said about hosts, when they are asked for with this kind of proof."""

    def lying(reader: Any, registries: Any, host: str, query: Query, *rest: Any) -> bytes:
        answer = reputation(reader, registries, host, query, *rest)
        if query.proof != proof:
            return answer
        said = json.loads(answer)
        change(said)
        return json.dumps(said).encode()

    patch.setattr("api.hosts.reputation", lying)
