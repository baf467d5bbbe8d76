"""What happens in the privacy tests: 50 reviews of ten guests, and then all that may go right and wrong."""

import json
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from ledger.canon import base64
from ledger.canon.times import parse_time
from ledger.keys import read_service_keys
from tests.api.site import Person, published
from tests.identities import THIEF, Speaker
from tests.reviewing import encoded, resigned, response, stay_receipt
from tests.security.database_files import Engine, dump, rows_by_index
from tests.security.pairing import Database, Kept
from tests.security.private_world import GUESTS, HOSTS, OTHER_ISSUER, Guest, Scene, Service, Told, tell, written
from tests.waiting import until


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
    rates = [
        (bytes(key), paid)
        for table in ("rate", "day_rate")
        for key, paid in engine.query(f"SELECT key, paid FROM {engine.physical(table)}")
    ]
    return Database(tuple(kept), tuple(rates))


def bare(key: bytes) -> bytes:
    """A guest reference without what all have in common."""
    return bytes.fromhex(key.rpartition(b":")[2].decode()) if key.startswith(b"gr1:") else key
