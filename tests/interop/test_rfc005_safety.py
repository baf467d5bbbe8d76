"""OpenSTR RFC-005 9.2, what is kept of guests, and 10.2, how reviews cannot be manipulated."""

import json
import re
from hashlib import sha256

from audits.receipts import verify_receipt
from ledger.canon import base64
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.tlog_proof import TlogProof
from ledger.store.rows import run
from tests.api.hosts_and_guests import (
    add_host,
    asking,
    attest,
    attestation,
    consent,
    trust_hosts,
)
from tests.api.site import Person, Site, problem
from tests.identities import Speaker
from tests.interop.rfc005 import CATEGORIES
from tests.reviewing import credential, review, stay_receipt

# 9.2 Guest data


def test_guests_are_not_stored(own: Site, host: Person, guest: Person) -> None:
    """9.2 one-way: of the guest there is a keyed hash per host, and nothing that leads back. The search for anything
    else, in files and in every encoding, is tests/security/test_privacy.py."""
    own.review(guest, host)
    with own.ledger.store.read() as connection:
        known = [bytes(key) for (key,) in run(connection, "SELECT key FROM known")]
        everything = b"".join(bytes(data) for (data,) in run(connection, "SELECT data FROM entry"))
    [reference] = [key for key in known if key.startswith(b"gr1:")]
    assert re.fullmatch(rb"gr1:p1:[0-9a-f]{64}", reference)
    # It is no hash that somebody without the ledger's secret could make.
    for guess in (guest.did, guest.multikey, f"{host.did}{guest.did}", f"{guest.did}{host.did}"):
        assert sha256(guess.encode()).hexdigest().encode() not in reference
    for value in (guest.did, guest.multikey, guest.public.hex(), base64.encode(guest.public)):
        assert value.encode() not in everything
        assert not any(value.encode() in key for key in known)


def test_a_history_cannot_be_put_together(own: Site, host: Person, guest: Person) -> None:
    """9.2 history: what is kept of one guest at two hosts has nothing in common. That nobody with the database pairs
    reviews better than by chance is shown in tests/security/test_privacy.py."""
    hosts, kept = (host, Person(f"other {host.did}")), []
    for each in hosts:
        receipt = own.review(guest, each, "B-1")
        with own.ledger.store.read() as connection:
            rows = run(connection, "SELECT key FROM known WHERE idx = ?", (receipt["index"],))
        kept.append({bytes(key) for (key,) in rows})
        assert json.loads(receipt["entry"])["repeat"] is False
    assert len(kept[0]) == len(kept[1]) == 6
    assert not kept[0] & kept[1]


# 10.2 Review manipulation


def test_mitigation_a_verified_guest_credential(site: Site, host: Person, guest: Person) -> None:
    """10.2 a verified GuestCredential: a host that invents a guest has no provider that says who it is."""
    forger = Speaker(9, "https://other.example", "/keys/1")
    problem(site.submit(review(guest, host, guest_credential=credential(guest, issuer=forger))), "issuer_not_trusted")
    problem(site.submit(review(host, host)), "self_review")


def test_mitigation_one_review_per_booking(site: Site, host: Person, guest: Person) -> None:
    """10.2 one review per booking: a guest with one stay has one voice."""
    site.review(guest, host)
    for stars in (1, 2, 3):
        body = review(guest, host, ratings=dict.fromkeys(CATEGORIES, stars))
        problem(site.submit(body), "already_reviewed")
    assert site.reputation(host)["statistics"]["reviews"]["guest_verified"] == 1


def test_mitigation_booking_confirmation(site: Site, host: Person, guest: Person) -> None:
    """10.2 booking confirmation: a stranger who was never booked has none; a receipt is for one guest and one stay."""
    stranger = Person("a stranger")
    evidence = stay_receipt(guest, host)
    problem(site.submit(review(stranger, host, booking_evidence=evidence)), "booking_evidence_invalid")
    problem(site.submit(review(stranger, host, booking_evidence=None)), "booking_unverifiable")


def test_mitigation_a_competitor(own: Site, guest: Person) -> None:
    """10.2 booking confirmation: where the host is asked, a stranger who invents references gets nowhere, and the host
    signs so; however often they try it is one entry, and no review."""
    host = add_host(own, "honest.example")
    host.book(guest, "B-1")
    for reference in ("B-1", "X-1", "X-2"):
        problem(own.submit(asking(Person("a competitor"), host.speaker, reference)), "booking_denied")
    own.submit(asking(guest, host.speaker))
    record = own.reputation(host.speaker)
    assert (record["total_reviews"], record["verified_reviews"]) == (1, 1)
    assert record["statistics"]["checks"]["denied"] == 1


def test_mitigation_a_host_that_denies(own: Site, guest: Person) -> None:
    """10.2 booking confirmation: a host cannot use it against a guest to whom it gave a receipt. Its denial stands
    beside the review, as contradicted."""
    host = add_host(own, "regretful.example")
    problem(own.submit(asking(guest, host.speaker)), "booking_denied")
    receipt = own.review(guest, host.speaker)
    assert receipt["verification_level"] == "guest_verified"
    checks = own.reputation(host.speaker)["statistics"]["checks"]
    assert (checks["denied"], checks["contradicted"]) == (1, 1)


def test_mitigation_one_review_whatever_shows_the_booking(own: Site, guest: Person) -> None:
    """10.2 one review per booking: by receipt, by asking, or by way of another platform, it is one voice."""
    trust_hosts(own)
    host = add_host(own, "once.example")
    host.book(guest)
    own.review(guest, host.speaker)
    problem(own.submit(asking(guest, host.speaker)), "already_reviewed")
    elsewhere = attestation(host.speaker, "B-1", guest_statement=consent(guest))
    problem(attest(own, elsewhere), "already_reviewed")
    assert own.reputation(host.speaker)["total_reviews"] == 1


def test_mitigation_immutability(own: Site, host: Person, guest: Person) -> None:
    """10.2 immutability: an operator who takes a review out of the database is found out by who has its receipt."""
    receipt = own.review(guest, host)
    own.review(guest, host, "B-2")
    checkpoint = open_checkpoint(receipt["checkpoint"], own.ledger.verifier)
    leaf = parse_entry(receipt["entry"].encode()).leaf_hash
    before = own.get(f"/v1/log/inclusion?index={receipt['index']}").json()
    assert base64.decode_hash(before["leaf_hash"]) == leaf
    assert TlogProof.parse(receipt["tlog_proof"]).verify(leaf, own.ledger.verifier) == checkpoint
    with own.ledger.store.write() as connection:
        run(connection, "UPDATE entry SET data = ? WHERE idx = ?", (b"sha256:" + b"0" * 64, receipt["index"]))
    assert own.get(f"/v1/log/inclusion?index={receipt['index']}").status_code == 500
    # The receipt needs nobody.
    verify_receipt(json.dumps(receipt).encode(), own.ledger.verifier)
