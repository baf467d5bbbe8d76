"""Guest privacy (RFC-005 9.2): nothing that a ledger stores, shows or logs leads to a guest, or from one review of a
guest to another at another host.

A service in a process of its own takes 50 reviews of ten guests, and then all that may go right and wrong. What it left
behind is searched: the files of the database while it runs and after it has stopped, all rows, all public answers, all
tiles, all logs. What waits, and what is on file of bookings, is searched in test_privacy_of_bookings.py; who would pair
the reviews of a guest is in test_pairing.py.
"""

import json
from ipaddress import IPv6Address, ip_network
from pathlib import Path
from random import Random

from ledger.canon import base58, jcs
from tests.identities import IDV
from tests.security.private_story import bare
from tests.security.private_world import GUESTS, HOSTS, Guest, Scene, Told
from tests.security.traces import Search, encodings, spellings


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
