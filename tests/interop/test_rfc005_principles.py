"""OpenSTR RFC-005 7.1, what a reputation is built on."""

import json
from typing import Any

import pytest

from audits.receipts import verify_receipt
from audits.verify import verify_answer
from ledger.canon import base64
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.proofs import verify_consistency, verify_inclusion
from ledger.log.tlog_proof import TlogProof
from tests.api.site import Person, Site, problem
from tests.identities import IDV, THIEF, Speaker, signed
from tests.reviewing import DOMAIN, credential, resigned, review, stay_receipt, unsigned
from tests.security.verdicts import subject

# 7.1 Design principles


def test_portability_one_record_for_all_listings(site: Site, host: Person, guest: Person) -> None:
    """7.1 portability: reputation is the DID's, and not the listing's or a platform's; nobody had to register."""
    assert site.reputation(host)["total_reviews"] == 0
    for number, listing in enumerate(("beach-cottage", "loft-2")):
        receipt = stay_receipt(guest, host, f"B-{number}", listing_id=listing)
        site.review(guest, host, f"B-{number}", listing_id=listing, booking_evidence=receipt)
    record = site.reputation(host)
    assert record["host_did"] == host.did
    assert (record["total_reviews"], record["verified_reviews"]) == (2, 2)
    assert {listed["listing_id"] for listed in record["review_history"]} == {"beach-cottage", "loft-2"}


def test_portability_a_listing_name_is_nobodys(site: Site, host: Person, guest: Person) -> None:
    """7.1 portability: two hosts whose listings have the same id have two records."""
    other = Person(f"other {host.did}")
    site.review(guest, host)
    assert site.reputation(host)["total_reviews"] == 1
    assert site.reputation(other)["total_reviews"] == 0


def test_portability_the_answer_travels(site: Site, host: Person, guest: Person) -> None:
    """7.1 portability: whoever has the answer and the log's key can check it, without this service."""
    site.review(guest, host)
    answer = site.get(f"/v1/hosts/{host.did}/reputation?proof=full").content
    assert verify_answer(answer, site.ledger.verifier, host.did).withheld == []


def anonymous() -> dict[str, dict[str, Any]]:
    """Reviews that nobody stands for."""
    guest, host = Person("nobody in particular"), Person("host of nobody")
    whole = review(guest, host)
    nameless = credential(guest)
    del nameless["credentialSubject"]["id"]
    return {
        "without a signature": unsigned(guest, host),
        "without a credential": guest.sign(unsigned(guest, host, guest_credential=None), domain=DOMAIN),
        "with null for a credential": review(guest, host) | {"guest_credential": None},
        "a credential of nobody": review(guest, host, guest_credential=signed(nameless)),
        "a credential about a name without a key": review(
            guest, host, guest_credential=signed(subject(credential(guest), id="urn:uuid:1"))
        ),
        "an unsigned credential": review(
            guest, host, guest_credential={name: part for name, part in credential(guest).items() if name != "proof"}
        ),
        "signed by somebody else": resigned(whole, THIEF),
        "signed by somebody else in the guest's name": resigned(whole, Speaker(4, guest.did, f"#{guest.multikey}")),
        "changed after signing": whole | {"review_text": "Awful."},
        "an address for a credential": review(guest, host, guest_credential={"credential_uri": f"{IDV}/1"}),
        "a token for a credential": review(guest, host, guest_credential="e30.e30."),
    }


@pytest.mark.parametrize("which", anonymous())
def test_verifiability(site: Site, which: str) -> None:
    """7.1 verifiability: every review is signed by a guest with a verified credential; others are not accepted."""
    size = site.size
    answer = site.submit(anonymous()[which])
    assert answer.status_code in (400, 403)
    problem(answer, answer.json()["code"])
    assert site.size == size


def test_verifiability_of_what_was_accepted(site: Site, host: Person, guest: Person) -> None:
    """7.1 verifiability: the guest can prove that a review is theirs, by what they signed and the salt they got."""
    sent = review(guest, host)
    receipt = site.submit(sent)
    report = verify_receipt(receipt.content, site.ledger.verifier, submission=json.dumps(sent).encode())
    assert not any("whose review" in line for line in report.not_proved)


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH"])
def test_immutability_no_method_changes_anything(site: Site, host: Person, guest: Person, method: str) -> None:
    """7.1 immutability: there is no way to take a review, a response or an entry back, for nobody."""
    review_id = site.review(guest, host)["review_id"]
    site.response(review_id, host)
    size, entries = site.size, site.get("/v1/log/entries?count=1000").content
    for path in (
        "/v1/reviews",
        f"/v1/reviews/{review_id}",
        f"/v1/reviews/{review_id}/response",
        f"/v1/hosts/{host.did}/reputation",
        "/v1/log/entries",
    ):
        answer = site.client.request(method, path, content=b"{}", headers={"content-type": "application/json"})
        problem(answer, "method_not_allowed")
        assert method not in answer.headers["allow"]
    assert (site.size, site.get("/v1/log/entries?count=1000").content) == (size, entries)


def test_immutability_in_the_document(site: Site) -> None:
    """7.1 immutability: no operation of the whole service deletes or replaces."""
    paths = site.get("/schema/openapi.json").json()["paths"]
    assert {method for operations in paths.values() for method in operations} == {"get", "post"}
    writing = {path for path, operations in paths.items() if "post" in operations}
    assert writing == {
        "/v1/reviews",
        "/v1/reviews/{review_id}/response",
        "/v1/reviews/{review_id}/evidence",
        "/v1/reviews/cross-platform",
        "/v1/bookings",
        "/v1/feedback",
    }


def test_immutability_the_log_only_grows(site: Site, host: Person, guest: Person) -> None:
    """7.1 immutability: after a response the review is there byte for byte, and every newer checkpoint extends every
    older one."""
    receipt = site.review(guest, host)
    response_ = site.response(receipt["review_id"], host)
    site.review(guest, host, "B-2")
    assert response_["index"] > receipt["index"]
    shown = site.get(f"/v1/reviews/{receipt['review_id']}").json()["entries"]
    assert [entry["type"] for entry in shown] == ["review", "response"]
    assert [entry["entry"] for entry in shown] == [receipt["entry"], response_["entry"]]
    newest = open_checkpoint(site.get("/log/checkpoint").text, site.ledger.verifier)
    for note in (receipt["checkpoint"], response_["checkpoint"]):
        older = open_checkpoint(note, site.ledger.verifier)
        proof = site.get(f"/v1/log/consistency?first={older.size}&second={newest.size}").json()["proof"]
        path = [base64.decode_hash(node) for node in proof]
        verify_consistency(older.size, newest.size, older.root, newest.root, path)
    for made in (receipt, response_):
        leaf = parse_entry(made["entry"].encode()).leaf_hash
        TlogProof.parse(made["tlog_proof"]).verify(leaf, site.ledger.verifier)
        now = site.get(f"/v1/log/inclusion?index={made['index']}&size={newest.size}").json()
        nodes = [base64.decode_hash(node) for node in now["proof"]]
        verify_inclusion(leaf, made["index"], newest.size, nodes, newest.root)
