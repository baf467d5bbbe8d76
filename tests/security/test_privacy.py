"""Guest privacy (RFC-005 9.2): nothing that a ledger stores, shows or logs leads to a guest, or from one review of a
guest to another at another host.

A service in a process of its own takes 50 reviews of ten guests, and then all that may go right and wrong. What it left
behind is searched: the files of the database while it runs and after it has stopped, all rows, all public answers, all
tiles, all logs. Then attackers who have the database, but not the keys, try to pair the reviews.
"""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv6Address, ip_network
from itertools import count
from pathlib import Path
from random import Random
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from ledger.canon import base58, base64, jcs, proofs
from ledger.canon.times import format_time, parse_time
from ledger.identity.guestref import person
from ledger.identity.issuing import issue
from ledger.keys import ServiceKeys, read_service_keys
from tests.api.site import Person, published
from tests.engines import PostgresServer, postgres_wheel
from tests.identities import IDV, ISSUER, NOW, RATINGS, THIEF, Speaker
from tests.reviewing import DOMAIN, encoded, resigned, response, review, stay_receipt
from tests.security.pairing import ATTACKERS, Contest, Database, Dossier, Kept, by_label
from tests.security.traces import Search, encodings, spellings
from tests.waiting import until

SCRIPT = Path(__file__).with_name("private_service.py")
GUESTS, HOSTS = 10, 5
OTHER_ISSUER = Speaker(41)
# The chance below which an attacker is held to know something.
BOUND = 0.001


@dataclass(frozen=True)
class Guest:
    """Somebody whose every value is long enough to be told from noise."""

    name: str
    speaker: Person = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "speaker", Person(f"guest {self.name}"))

    def word(self, what: str) -> str:
        return sha256(f"{what} of {self.name}".encode()).hexdigest()[:24]

    @property
    def person(self) -> str:
        return f"ig-{self.word('person')}"

    @property
    def address(self) -> str:
        number = int(self.word("address")[:2], 16)
        return f"198.51.100.{number}" if number % 2 else str(IPv6Address(f"2001:db8:{number:x}:7:9::{number + 1:x}"))

    def credential(self, *, issuer: Speaker = ISSUER, person: str | None = None) -> dict[str, Any]:
        claims = {"id": self.speaker.did, "idv_level": "identity_verified", "idv_method": "passport"}
        return issue(
            "guest",
            {**claims, "issuer_guest_id": person or self.person},
            id_=f"{IDV}/credentials/{self.word('credential')}",
            issuer=issuer.did,
            method=issuer.method,
            key=issuer.key,
            valid_from=NOW - timedelta(days=10),
            valid_until=NOW + timedelta(days=70),
            canonize=lambda *_: [],
            suites=(proofs.EDDSA_JCS,),
        )


@dataclass(frozen=True)
class Told:
    """A review that was sent, by whom, about whom, and the receipt."""

    guest: Guest
    host: Person
    body: dict[str, Any]
    receipt: dict[str, Any]

    @property
    def index(self) -> int:
        return int(self.receipt["index"])


class Service:
    """The service in its process; `now` is what it takes for the time."""

    def __init__(self, folder: Path, database_url: str, stack: ExitStack) -> None:
        self.data = folder / "data"
        self.logs = {name: folder / name for name in ("log", "stdout", "stderr")}
        self._clock = folder / "clock"
        self._reads = count()
        self.now = NOW
        given = {"data": str(self.data), "database": database_url, "base_url": DOMAIN, "seed": 9}
        given |= {"log": str(self.logs["log"]), "clock": str(self._clock)}
        issuers = {IDV: [ISSUER.multikey], OTHER_ISSUER.did: []}
        with self.logs["stdout"].open("wb") as out, self.logs["stderr"].open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, str(SCRIPT), json.dumps({**given, "issuers": issuers})], stdout=out, stderr=err
            )
        stack.callback(self.stop)
        until(lambda: self.process.poll() is not None or b"listens on" in self.logs["stdout"].read_bytes(), 30)
        words = self.logs["stdout"].read_text().split()
        assert words, self.logs["stderr"].read_text()
        self.client = stack.enter_context(httpx.Client(base_url=words[-1], trust_env=False, timeout=30))

    @property
    def now(self) -> datetime:
        return parse_time(self._clock.read_text())

    @now.setter
    def now(self, moment: datetime) -> None:
        new = self._clock.with_suffix(".new")
        new.write_text(format_time(moment))
        new.replace(self._clock)

    def post(self, path: str, body: Any, guest: Guest | None) -> httpx.Response:
        headers = {"content-type": "application/json"} | ({"x-forwarded-for": guest.address} if guest else {})
        data = body if isinstance(body, bytes) else encoded(body)
        return self._ask("POST", path, content=data, headers=headers)

    def get(self, path: str) -> httpx.Response:
        """By readers of whom none reads too much: the clock stands."""
        return self._ask("GET", path, headers={"x-forwarded-for": f"192.0.2.{next(self._reads) // 100}"})

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Again, where a database has just been started and old connections to it are lost."""
        for _ in range(20):
            answer = self.client.request(method, path, **options)
            if answer.status_code != 503:
                break
        return answer

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


@dataclass(repr=False)
class Scene:
    """What happened, and what is left of it."""

    engine: str
    keys: ServiceKeys
    # The 50 reviews of the ten, in the order of the log, and those of others that followed.
    reviews: list[Told]
    later: dict[str, Told]
    bodies: list[dict[str, Any]]
    # By place: files while it runs and after it has stopped, rows, answers, logs.
    files: dict[str, bytes] = field(default_factory=dict)
    rows: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)
    logs: dict[str, bytes] = field(default_factory=dict)
    # The files after a guest's DID was put into a table.
    planted: dict[str, bytes] = field(default_factory=dict)
    database: Database = field(default_factory=lambda: Database((), ()))
    known: dict[int, list[bytes]] = field(default_factory=dict)
    salts: dict[int, list[bytes]] = field(default_factory=dict)
    # The keys of the limiter's rows in the order in which old pages and tuples show that they were changed, as far as
    # the end of the 50 reviews.
    changes: list[bytes] = field(default_factory=list)

    @property
    def guests(self) -> list[Guest]:
        return list(dict.fromkeys(told.guest for told in (*self.reviews, *self.later.values())))

    @property
    def places(self) -> dict[str, bytes]:
        return {**self.files, **self.rows, **self.answers, **self.logs}


class Sqlite:
    """The files of a database, and its rows."""

    name = "sqlite"

    def __init__(self, folder: Path, _stack: ExitStack) -> None:
        self.path = folder / "ledger.db"
        self.url = f"sqlite:///{self.path}"

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.path.parent.glob(f"{self.path.name}*")}

    def restart(self) -> None:
        """There is nothing but the files."""

    def query(self, query: str) -> list[tuple[Any, ...]]:
        """Tables in the order of their rows, of both files."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute(f"ATTACH '{self.path}-limits' AS limits")
            connection.text_factory = bytes
            return connection.execute(query).fetchall()

    def tables(self) -> list[str]:
        query = "SELECT '{0}.' || name FROM {0}.sqlite_master WHERE type = 'table'"
        return [name.decode() for file in ("main", "limits") for (name,) in self.query(query.format(file))]

    def execute(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
            connection.execute(statement, values)

    def physical(self, table: str) -> str:
        """What is known by keys has no numbers of rows: it stands in the order of the keys."""
        return table if table in ("known", "rate") else f"{table} ORDER BY rowid"

    def changes(self, folder: Path) -> list[bytes]:
        """The write-ahead log keeps old pages until it is written over: what each commit in it left behind."""
        file = Path(f"{self.path}-limits-wal")
        wal = file.read_bytes() if file.exists() else bytes(32)
        frame = 24 + int.from_bytes(wal[8:12])
        old: dict[bytes, int] = {}
        found, copy = [], folder / "copy"
        copyfile(f"{self.path}-limits", copy)
        for end in range(32 + frame, len(wal) + 1, frame):
            Path(f"{copy}-shm").unlink(missing_ok=True)
            Path(f"{copy}-wal").write_bytes(wal[:end])
            with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as connection:
                if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'rate'").fetchone()[0]:
                    new = dict(connection.execute("SELECT key, paid FROM rate"))
                    found += [key for key, paid in new.items() if old.get(key) != paid]
                    old = new
        return found


class Postgresql:
    """A server of one's own: the one that other tests share has their guests in its files."""

    name = "postgresql"

    def __init__(self, _folder: Path, stack: ExitStack) -> None:
        directory = stack.enter_context(TemporaryDirectory(prefix="staylog-", dir="/tmp"))
        self.server = PostgresServer(postgres_wheel(), Path(directory))
        stack.callback(self.server.stop)
        self.url = self.server.url("ledger")
        self._old = self._read()
        self._parameters = make_url(self.url).translate_connect_args() | {"host": directory}

    def files(self) -> dict[str, bytes]:
        """All that are not as they were before anybody said anything: most of them are the server's own."""
        return {name: data for name, data in self._read().items() if data != self._old.get(name)}

    def restart(self) -> None:
        """All that is in memory is written when it stops, also of tables that are not in the write-ahead log."""
        self.server.restart(immediate=False)

    def _read(self) -> dict[str, bytes]:
        if not os.access(self.server.data, os.R_OK | os.X_OK):
            pytest.skip("the files of the PostgreSQL server cannot be read by who runs the tests")
        files = {"log of the server": self.server.log.read_bytes()}
        for path in self.server.data.rglob("*"):
            # It is at work, and some files are gone by now.
            with suppress(FileNotFoundError):
                if path.is_file():
                    files[str(path.relative_to(self.server.data))] = path.read_bytes()
        return files

    def query(self, query: str) -> list[tuple[Any, ...]]:
        with self._connect() as connection:
            return connection.execute(query.encode()).fetchall()

    def tables(self) -> list[str]:
        return [name for (name,) in self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]

    def execute(self, statement: str, *values: Any) -> None:
        with self._connect() as connection:
            connection.execute(statement.replace("?", "%s").encode(), values)

    def physical(self, table: str) -> str:
        return f"{table} ORDER BY ctid"

    def changes(self, _folder: Path) -> list[bytes]:
        """An update leaves the old tuple where it was until the page is tidied up; each has the number of the
        transaction that made it. Stopping the server writes its pages."""
        [(path,)] = self.query("SELECT pg_relation_filepath('rate')")
        self.restart()
        data = (self.server.data / path).read_bytes()
        tuples = []
        for page in range(0, len(data), 8192):
            lower = int.from_bytes(data[page + 12 : page + 14], "little")
            for pointer in range(page + 24, page + lower, 4):
                item = int.from_bytes(data[pointer : pointer + 4], "little")
                offset, length = item & 0x7FFF, item >> 17
                if length:
                    made = data[page + offset : page + offset + length]
                    # The header is as long as its 23rd byte says; a short bytea has its length in one byte.
                    row = made[made[22] :]
                    tuples.append((int.from_bytes(made[:4], "little"), row[1:17]))
        return [key for _, key in sorted(tuples)]

    def _connect(self) -> psycopg.Connection[Any]:
        names = {"database": "dbname", "username": "user"}
        given = {names.get(name, name): value for name, value in self._parameters.items()}
        return psycopg.connect(**given, autocommit=True)


Engine = Sqlite | Postgresql
ENGINES: dict[str, Callable[[Path, ExitStack], Engine]] = {"sqlite": Sqlite, "postgresql": Postgresql}


@pytest.fixture(scope="module", params=ENGINES)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("privacy")
    with ExitStack() as stack:
        engine = ENGINES[request.param](folder, stack)
        service = Service(folder, engine.url, stack)
        yield play(service, engine, folder)


def play(service: Service, engine: Engine, folder: Path) -> Scene:
    guests = [Guest(f"number {number}") for number in range(GUESTS)]
    hosts = [Person(f"private host {number}") for number in range(HOSTS)]
    random, reviews = Random(5), []
    stays = [(guest, host) for guest in guests for host in hosts]
    for guest, host in random.sample(stays, len(stays)):
        service.now += timedelta(seconds=random.randrange(300, 900))
        reviews.append(tell(service, guest, host, f"first at {host.did}"))
    scene = Scene(engine.name, read_service_keys(service.data / "service.key"), reviews, {}, [])
    scene.database = examine(engine, scene)
    scene.changes = engine.changes(folder)
    until(lambda: service.get("/health").status_code == 200)
    scene.bodies = [told.body for told in reviews]
    scene.later = return_(service, hosts)
    scene.bodies += [told.body for told in scene.later.values()]
    scene.bodies += trouble(service, reviews, hosts)
    scene.known = rows_by_index(engine, "known", "key")
    scene.salts = rows_by_index(engine, "receipt_salt", "salt")
    told = (*reviews, *scene.later.values())
    scene.answers = {
        f"answer {path}": data
        for path, data in published(
            service.get, [host.did for host in hosts], [each.receipt["review_id"] for each in told]
        ).items()
    }
    scene.files = {f"running: {name}": data for name, data in engine.files().items()}
    scene.bodies += break_down(service, engine, guests[0], hosts[0])
    scene.rows = {f"rows of {table}": dump(engine, table) for table in engine.tables()}
    service.stop()
    scene.logs = {f"service's {name}": path.read_bytes() for name, path in service.logs.items()}
    scene.logs |= {f"mark's {path.name}": path.read_bytes() for path in service.data.glob("last-signed*")}
    engine.restart()
    scene.files |= {f"stopped: {name}": data for name, data in engine.files().items()}
    engine.execute("CREATE TABLE planted (word TEXT)")
    engine.execute("INSERT INTO planted VALUES (?)", guests[0].speaker.did)
    scene.planted = engine.files()
    engine.execute("DROP TABLE planted")
    return scene


def tell(service: Service, guest: Guest, host: Person, stay: str, **changes: Any) -> Told:
    """A review that is accepted."""
    body = written(service, guest, host, stay, **changes)
    answer = service.post("/v1/reviews", body, guest)
    assert answer.status_code == 201, answer.text
    return Told(guest, host, body, answer.json())


def written(service: Service, guest: Guest, host: Person, stay: str, **changes: Any) -> dict[str, Any]:
    reference = f"REF-{guest.word(stay)}"
    receipt = stay_receipt(guest.speaker, host, reference, nonce=guest.word(f"nonce {stay}"))
    told = {
        "guest_credential": guest.credential(),
        "review_text": f"Quiet and dry, {guest.word(f'text {stay}')}.",
        "private_feedback": f"Between us: {guest.word(f'feedback {stay}')}",
        "ratings": dict(RATINGS),
        "booking_evidence": receipt,
    }
    return review(guest.speaker, host, reference, now=service.now, **{**told, **changes})


def return_(service: Service, hosts: list[Person]) -> dict[str, Told]:
    """Guests who come again: as they are, with another DID, with another issuer; and who go elsewhere then."""
    first, again = Guest("who returns"), Guest("who returns with another key")
    same_person = again.credential(person=first.person)
    other_issuer = Guest("who changes the issuer")
    made = {
        "first": tell(service, first, hosts[0], "first"),
        "again": tell(service, first, hosts[0], "again"),
        "another DID": tell(service, again, hosts[0], "another DID", guest_credential=same_person),
        "elsewhere": tell(service, first, hosts[1], "elsewhere"),
        "another DID elsewhere": tell(service, again, hosts[2], "elsewhere too", guest_credential=same_person),
        "before": tell(service, other_issuer, hosts[0], "before"),
    }
    shown = other_issuer.credential(issuer=OTHER_ISSUER)
    made["another issuer"] = tell(service, other_issuer, hosts[0], "another issuer", guest_credential=shown)
    made["another issuer elsewhere"] = tell(service, other_issuer, hosts[3], "third", guest_credential=shown)
    return made


def trouble(service: Service, reviews: list[Told], hosts: list[Person]) -> list[dict[str, Any]]:
    """Responses, replays, refusals of all kinds, and a guest whose DID stands in an address. The refused bodies."""
    for told in reviews[:5]:
        receipt = told.receipt["review_id"]
        thanks = response(receipt, told.host, f"Thank you, whoever you are. {receipt}", now=service.now)
        assert service.post(f"/v1/reviews/{receipt}/response", thanks, None).status_code == 201
    for told in reviews[5:10]:
        again = service.post("/v1/reviews", told.body, told.guest)
        assert (again.status_code, again.json()) == (200, told.receipt)
    guest, host, other = reviews[0].guest, reviews[0].host, reviews[1].guest
    fresh = written(service, guest, host, "refused")
    wrong = {
        "already_reviewed": resigned(reviews[0].body, guest.speaker, now=service.now),
        "holder_mismatch": resigned(fresh, THIEF, now=service.now),
        "stale_proof": written(service, guest, host, "refused") | {"proof": reviews[0].body["proof"]},
        "proof_invalid": fresh | {"review_text": "Changed."},
        "booking_unverifiable": written(service, guest, host, "refused", booking_evidence=None),
        "booking_evidence_invalid": written(
            service, guest, host, "refused", booking_evidence=stay_receipt(other.speaker, host)
        ),
        "issuer_not_trusted": written(
            service, guest, host, "refused", guest_credential=guest.credential(issuer=Speaker(42))
        ),
        "wrong_domain": resigned(fresh, guest.speaker, domain="https://elsewhere.example"),
        "self_review": written(service, guest, guest.speaker, "refused"),
        "schema_invalid": {**fresh, "listing_id": guest.speaker.did, guest.speaker.did: guest.person},
        "did_not_canonical": {**fresh, "host_did": f"{guest.speaker.did}#{guest.person}"},
    }
    service.now += timedelta(minutes=4)
    for code, body in wrong.items():
        service.now += timedelta(seconds=3)
        answer = service.post("/v1/reviews", body, guest)
        assert answer.json().get("code") == code, answer.text
    for data in (
        encoded(fresh)[:-1],
        encoded(fresh) + encoded(fresh),
        encoded(fresh).replace(b'"type"', b'"proof"', 1),
    ):
        assert service.post("/v1/reviews", data, guest).status_code == 400
    assert service.get(f"/v1/hosts/{guest.speaker.did}/reputation").json()["total_reviews"] == 0
    assert service.get(f"/v1/reviews/{guest.person}").status_code == 400
    assert service.get(f"/{guest.speaker.did}?reference={fresh['booking_reference']}").status_code == 404
    return [fresh, *wrong.values()]


def break_down(service: Service, engine: Engine, guest: Guest, host: Person) -> list[dict[str, Any]]:
    """Faults of our own are logged with their traces: while a review is judged, and while it is written. The reviews."""
    made = []
    for number, table in enumerate(("known", "receipt_salt")):
        engine.execute(f"ALTER TABLE {table} RENAME TO gone")
        made.append(written(service, guest, host, f"fault {number}"))
        answer = service.post("/v1/reviews", made[-1], guest)
        assert answer.status_code == 500, answer.text
        engine.execute(f"ALTER TABLE gone RENAME TO {table}")
    return made


def rows_by_index(engine: Engine, table: str, column: str) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for index, value in engine.query(f"SELECT idx, {column} FROM {engine.physical(table)}"):
        found.setdefault(index, []).append(bytes(value))
    return found


def examine(engine: Engine, scene: Scene) -> Database:
    """What somebody who has the database sees of the 50 reviews."""
    known, salts = rows_by_index(engine, "known", "key"), rows_by_index(engine, "receipt_salt", "salt")
    entries = {index: (bytes(data), salt) for index, data, salt in engine.query("SELECT idx, data, salt FROM entry")}
    hosts = list(dict.fromkeys(told.host.did for told in scene.reviews))
    kept = []
    for told in scene.reviews:
        data, salt = entries[told.index]
        entry = json.loads(data)
        values = [bare(key) for key in known[told.index]] + salts[told.index] + [bytes(salt)]
        values += [base64.decode(entry["evidence"]["commitment"]), base64.decode(entry["text"])]
        at = parse_time(entry["at"])
        kept.append(Kept(int(at.timestamp()), hosts.index(told.host.did), told.host.did, tuple(values)))
    rates = [(bytes(key), paid) for key, paid in engine.query(f"SELECT key, paid FROM {engine.physical('rate')}")]
    return Database(tuple(kept), tuple(rates))


def bare(key: bytes) -> bytes:
    """A guest reference without what all have in common."""
    return bytes.fromhex(key.rpartition(b":")[2].decode()) if key.startswith(b"gr1:") else key


def dump(engine: Engine, table: str) -> bytes:
    """All values as they are: a server may store long ones compressed."""
    rows = engine.query(f"SELECT * FROM {table}")
    values = [value for row in rows for value in row if value is not None]
    return b"\0".join(bytes(v) if isinstance(v, bytes | memoryview) else str(v).encode() for v in values)


# The search


def secrets(scene: Scene) -> dict[str, bytes]:
    """Everything that must be found nowhere: whom the reviews are by, and what was said in confidence."""
    found: dict[str, bytes] = {}
    for guest in scene.guests:
        speaker, name = guest.speaker, guest.name
        texts = {"DID": speaker.did, "multikey": speaker.multikey, "issuer_guest_id": guest.person}
        texts |= {"person": jcs.dumps([IDV, guest.person]).decode(), "address": guest.address}
        texts["person in words"] = f"{IDV}{guest.person}"
        found |= {f"{what} of {name}": text.encode() for what, text in texts.items()}
        found[f"public key of {name}"] = speaker.public
        if ":" in guest.address:
            found[f"packed address of {name}"] = IPv6Address(guest.address).packed
            found[f"network of {name}"] = str(ip_network(f"{guest.address}/64", strict=False)).encode()
    for number, body in enumerate(scene.bodies):
        shown = body["guest_credential"]
        parts = {"reference": body["booking_reference"], "credential id": shown["id"]}
        parts |= {"feedback": body["private_feedback"], "own proof": body["proof"]["proofValue"]}
        parts["proof of the credential"] = shown["proof"]["proofValue"]
        if "booking_evidence" in body:
            parts["proof of the receipt"] = body["booking_evidence"]["proof"]["proofValue"]
            parts["nonce of the receipt"] = body["booking_evidence"].get("nonce", "")
        found |= {f"{what} {number}": text.encode() for what, text in parts.items() if text}
        for what in ("own proof", "proof of the credential"):
            found[f"signature, {what} {number}"] = base58.decode(parts[what][1:])
        found[f"credential {number}"] = jcs.dumps(shown)
        found[f"submission {number}"] = jcs.dumps(body)
    return found


def test_nothing_of_a_guest_is_found_anywhere(scene: Scene) -> None:
    """In plain text, base64, base64url, hex, UTF-16 and more, and as SHA-256 in any of these."""
    search = Search(secrets(scene))
    assert len(search.needles) > 10_000
    assert {name.partition(" ")[0] for name in scene.places} == {
        *("running:", "stopped:", "rows", "answer", "service's", "mark's")
    }
    assert search(scene.places) == {}


def test_the_search_finds_what_is_public(scene: Scene) -> None:
    """The DIDs of hosts and the texts of reviews are in files, rows and answers; otherwise it would search nothing."""
    told = scene.reviews[7]
    search = Search({"host": told.host.did.encode(), "text": told.body["review_text"].encode()})
    expected = {"host (as it is)", "text (as it is)"}
    for places in (scene.files, scene.rows, scene.answers):
        assert expected <= {what for names in search(places).values() for what in names}
    found = set(search(scene.files))
    if scene.engine == "sqlite":
        assert {"running: ledger.db-wal", "stopped: ledger.db"} <= found
        assert {"running: ledger.db-limits", "running: ledger.db-shm"} <= {*scene.files}
    else:
        for start in ("running: pg_wal/", "stopped: base/"):
            assert any(place.startswith(start) for place in found)


def test_the_search_finds_a_guest_in_the_database(scene: Scene) -> None:
    """Who was put into a table, for once."""
    guest = next(each for each in scene.guests if each.name == "number 0")
    search = Search({"DID": guest.speaker.did.encode()})
    found = search(scene.planted)
    assert found
    assert {what for names in found.values() for what in names} == {"DID (as it is)"}


def test_the_search_finds_every_spelling_at_every_place(tmp_path: Path) -> None:
    """A guest's DID in a file, wherever it begins and whatever stands around it."""
    guest, random = Guest("planted"), Random(3)
    values = {"DID": guest.speaker.did.encode(), "key": guest.speaker.public, "address": guest.address.encode()}
    search = Search(values)
    for name, value in values.items():
        for number, (how, needle) in enumerate(spellings(value)):
            file = tmp_path / f"{name} {number}"
            file.write_bytes(random.randbytes(random.randrange(4096)) + needle + random.randbytes(random.randrange(64)))
            assert search({"file": file.read_bytes()})["file"] >= {search.needles[needle]}, how
    for shift in range(64):
        for _, needle in encodings(values["DID"]):
            assert search.search(bytes(shift) + needle)
    assert search({"file": random.randbytes(1 << 20)}) == {}


def test_base64_is_found_inside_of_something_longer() -> None:
    """A program that encodes a whole document encodes the guest with it, at any of three alignments."""
    guest = Guest("planted")
    search = Search({"DID": guest.speaker.did.encode()})
    for before in range(6):
        document = json.dumps({"x" * before: guest.speaker.did, "y": 1}).encode()
        for _, whole in encodings(document):
            assert search.search(whole), whole


def test_everything_is_logged_that_any_library_logs(scene: Scene) -> None:
    """Otherwise the search of the logs would show nothing: with the level DEBUG, faults with their traces."""
    log = scene.logs["service's log"]
    assert b"DEBUG:" in log
    assert log.count(b"Traceback") >= 2
    assert b"POST '/v1/reviews' failed" in log
    assert b"the sequencer could not write" in log
    assert b"listens on" in scene.logs["service's stdout"]


def test_the_ledgers_secrets_are_nowhere(scene: Scene) -> None:
    """Pepper, booking key and statements key: neither in the database nor in answers nor in logs."""
    values = {"pepper": scene.keys.peppers.by_id["p1"], "booking": scene.keys.booking}
    values["statements"] = bytes(scene.keys.statements)
    assert Search(values)(scene.places) == {}


def test_who_asks_is_counted(scene: Scene) -> None:
    """Otherwise addresses would not be found for another reason: each review has a row of its person's day; those of
    addresses are gone by now, but for the last. No row tells a time: they are moved by up to two thousand years."""
    assert GUESTS * HOSTS < len(scene.database.rates) <= 2 * GUESTS * HOSTS
    assert {len(key) for key, _ in scene.database.rates} == {16}
    moments = [review.seconds for review in scene.database.reviews]
    assert all(abs(paid // 1_000_000 - moments[0]) > 365 * 86_400 for _, paid in scene.database.rates)


# One guest at several hosts

# What everybody may know of a review: it says nothing about who wrote it.
PUBLIC = {"type", "v", "host_did", "listing_id", "check_in", "check_out", "ratings", "level", "repeat", "at"}
PUBLIC_EVIDENCE = {"booking", "issuer", "idv_level"}


def stored_values(scene: Scene, told: Told) -> set[bytes]:
    """All that is kept because of one review, but for what is public by design."""
    entry = json.loads(told.receipt["entry"])
    members = {name: value for name, value in entry.items() if name not in {*PUBLIC, "evidence"}}
    evidence = {name: value for name, value in entry["evidence"].items() if name not in PUBLIC_EVIDENCE}
    assert members.keys() | evidence.keys() == {"review_id", "text", "commitment"}
    opening = told.receipt["openings"]["text"]["salt"]
    texts = [*members.values(), *evidence.values(), opening, told.receipt["openings"]["evidence"]["salt"]]
    values = {bare(key) for key in scene.known[told.index]} | set(scene.salts[told.index])
    return values | {text.encode() for text in texts}


def test_two_reviews_of_a_guest_at_two_hosts_share_no_value(scene: Scene) -> None:
    by_guest: dict[str, list[set[bytes]]] = {}
    for told in scene.reviews:
        by_guest.setdefault(told.guest.name, []).append(stored_values(scene, told))
    assert len(by_guest) == GUESTS
    for kept in by_guest.values():
        # Six keys, the salt that is the guest's alone, and four of the entry and its text.
        assert [len(values) for values in kept] == [6 + 1 + 5] * HOSTS
        assert len(set().union(*kept)) == sum(map(len, kept))


def test_who_comes_again_is_known_at_one_host_only(scene: Scene) -> None:
    """By the DID or by the person: another key, or another issuer, does not make a new guest. Elsewhere they are new."""
    repeats = {name for name, told in scene.later.items() if json.loads(told.receipt["entry"])["repeat"]}
    assert repeats == {"again", "another DID", "another issuer"}
    assert not any(json.loads(told.receipt["entry"])["repeat"] for told in scene.reviews)


# Attackers


def contest(scene: Scene) -> Contest:
    names = list(dict.fromkeys(told.guest.name for told in scene.reviews))
    return Contest(
        [review.host for review in scene.database.reviews], [names.index(told.guest.name) for told in scene.reviews]
    )


def dossiers(scene: Scene) -> list[Dossier]:
    """Of every guest, all that a host or the guests themselves may have told."""
    found = []
    for guest in dict.fromkeys(told.guest for told in scene.reviews):
        references = [told.body["booking_reference"] for told in scene.reviews if told.guest == guest]
        found.append(Dossier(guest.speaker.did, guest.speaker.public, IDV, guest.person, tuple(references)))
    return found


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_who_has_the_database_pairs_no_better_than_chance(scene: Scene, attacker: str) -> None:
    game = contest(scene)
    assert game.questions == GUESTS * HOSTS * (HOSTS - 1)
    assert game.chance(ATTACKERS[attacker](scene.database, dossiers(scene))) > BOUND


@pytest.mark.parametrize(
    "rows", [slice(None), slice(0, None, 2), slice(1, None, 2)], ids=["all", "addresses", "persons"]
)
def test_old_rows_of_the_limiter_do_not_pair_either(scene: Scene, rows: slice) -> None:
    """Its rows change in the order of the reviews: for each first that of the address, then that of the person. Who
    finds them as they were, in the write-ahead log of SQLite or in the dead tuples of PostgreSQL, sees which row
    changed with which review, and both are the same at all hosts."""
    number, changes = len(scene.reviews), scene.changes[rows]
    near = [
        {*changes[place * len(changes) // number : (place + 1) * len(changes) // number]} for place in range(number)
    ]
    game = contest(scene)

    def alike(one: int, other: int) -> float:
        return len(near[one] & near[other])

    right, chance = game.right(game.answers(alike)), game.chance(alike)
    assert chance > BOUND, f"{right} of {game.questions} pairs are right"


def test_who_has_the_pepper_pairs_them_all(scene: Scene) -> None:
    """So the values do tell guests apart, and it is the pepper that keeps them apart."""
    known, pepper = dossiers(scene), scene.keys.peppers.by_id["p1"]
    labels = []
    for kept in scene.database.reviews:
        persons = [person(pepper, kept.host_did, IDV, dossier.issuer_guest_id) for dossier in known]
        [label] = [number for number, value in enumerate(persons) if value in kept.values]
        labels.append(label)
    game = contest(scene)
    assert game.right(game.answers(by_label(labels))) == game.questions
    assert game.chance(by_label(labels)) <= BOUND


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_few_bits_would_be_noticed(scene: Scene, bits: int) -> None:
    """A value that has a few bits in common wherever a guest goes is enough to fail."""
    labels = [sha256(told.guest.speaker.did.encode()).digest()[0] >> 8 - bits for told in scene.reviews]
    assert contest(scene).chance(by_label(labels)) <= BOUND


def test_chance_is_one_in_ten(scene: Scene) -> None:
    game = contest(scene)
    assert game.right(game.answers(lambda *_: 0)) == pytest.approx(game.questions / GUESTS)
    assert game.chance(lambda *_: 0) == 1
