"""One review over HTTP: all its entries, each provable offline, and texts as they are asked for."""

import json
from typing import Any

import msgspec
import pytest

from api.shapes import Review
from ledger.log.entries import parse_entry
from ledger.log.openings import Opening
from ledger.log.tlog_proof import TlogProof
from tests.api.conftest import Service


def reviews_of(service: Service) -> dict[str, list[int]]:
    """The log indices of the entries about each review."""
    found: dict[str, list[int]] = {}
    for index, entry in enumerate(service.world.log.entries):
        if "review_id" in entry.members:
            found.setdefault(entry.members["review_id"], []).append(index)
    return found


def test_every_entry_about_a_review_is_proved(service: Service) -> None:
    kinds = set()
    for review_id, indices in reviews_of(service).items():
        response = service.get(f"/v1/reviews/{review_id}?text=all")
        answer = response.json()
        msgspec.json.decode(response.content, type=Review)
        assert response.headers["cache-control"] == "public, max-age=1"
        assert [entry["index"] for entry in answer["entries"]] == indices
        for shown in answer["entries"]:
            entry = parse_entry(shown["entry"].encode())
            kinds.add(entry.type)
            assert entry.type == shown["type"]
            assert entry.host == answer["host_did"]
            proof = TlogProof.parse(shown["tlog_proof"])
            proof.verify(entry.leaf_hash, service.ledger.verifier)
            assert (proof.index, proof.checkpoint, proof.extra) == (shown["index"], answer["checkpoint"], None)
            if shown["opening"] is not None:
                Opening.parse(shown["opening"]).require(entry.members["text"])
    assert kinds == {"review", "response", "upgrade", "redaction"}


def test_the_level_is_the_one_after_an_upgrade(service: Service) -> None:
    for review_id in reviews_of(service):
        answer = service.get(f"/v1/reviews/{review_id}").json()
        entries = [json.loads(entry["entry"]) for entry in answer["entries"]]
        upgraded = any(entry["type"] == "upgrade" for entry in entries)
        assert answer["verification_level"] == ("guest_verified" if upgraded else entries[0]["level"])


def texts(answer: Any) -> list[bool]:
    return [entry["opening"] is not None for entry in answer["entries"]]


def test_texts_are_shown_as_asked(service: Service) -> None:
    seen = set()
    for review_id, indices in reviews_of(service).items():
        answers = {
            text: service.get(f"/v1/reviews/{review_id}?text={text}").json() for text in ("verified", "all", "none")
        }
        stored = [index in service.world.log.openings for index in indices]
        level = answers["all"]["verification_level"]
        seen.add((level, any(stored)))
        assert texts(answers["all"]) == stored
        assert not any(texts(answers["none"]))
        assert texts(answers["verified"]) == ([False] * len(stored) if level == "unconfirmed" else stored)
        assert service.get(f"/v1/reviews/{review_id}").json()["entries"] == answers["verified"]["entries"]
    assert {(level, True) for level in ("guest_verified", "host_attested", "unconfirmed")} <= seen


def test_a_redacted_text_is_gone(fresh: Service) -> None:
    world = fresh.world
    index = 0

    def review() -> None:
        nonlocal index
        index = world.review(level="guest_verified", text=world.commit(world.next_index, "Do not keep this."))

    fresh.grow(review)
    review_id = world.log.entries[index].members["review_id"]
    assert "Do not keep this." in fresh.get(f"/v1/reviews/{review_id}").text
    host = world.log.entries[index].host
    address = f"/v1/hosts/{str(host).replace('%', '%25')}/reputation?proof=full"
    assert "Do not keep this." in fresh.get(address).text
    while not any(e.type == "redaction" and e.members["review_id"] == review_id for e in world.log.entries):
        fresh.grow(world.redaction)
    assert "Do not keep this." not in fresh.get(f"/v1/reviews/{review_id}?text=all").text
    assert "Do not keep this." not in fresh.get(address).text


@pytest.mark.parametrize("review_id", ["rev-x", "rev-" + "A" * 26, "rev-" + "a" * 27, "rev-" + "a" * 25 + "b", "%FF"])
def test_what_cannot_be_an_id_is_refused(service: Service, review_id: str) -> None:
    status, _, body = service.raw(f"/v1/reviews/{review_id}")
    assert (status, json.loads(body)["errors"][0]["field"]) == (400, "review_id")
