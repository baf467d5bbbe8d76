"""A draft is an entry but for its time."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canon import base64
from ledger.errors import BadEntry, NotProved, StaylogError
from ledger.log.drafts import artifact_draft, make_draft, parse_draft
from ledger.log.entries import parse_entry
from ledger.log.openings import Opening, commitment
from tests.running import Writer
from tests.world import World

SALT = bytes(range(32))
REVIEW = Writer().review()
INDEX_HEAD = b'{"type":"index_head","v":1,"seq":0,"count":0,"root":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}'


def as_line(**changes: Any) -> bytes:
    members = {"type": "review", "v": 1, **REVIEW.members, **changes}
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


@given(st.integers(0, 1000))
def test_an_entry_is_the_same_whichever_way_it_is_made(seed: int) -> None:
    for entry in World(seed).grow(4).log.entries:
        members = {name: value for name, value in entry.members.items() if name not in ("type", "v", "at")}
        made = make_draft(entry.type, members).at(str(entry.at))
        assert made == parse_entry(entry.data)


def test_an_artifact_is_its_hash_and_has_no_time() -> None:
    assert artifact_draft(SALT).at("2026-01-01T00:00:00Z").data == b"sha256:" + SALT.hex().encode()


def test_a_line_is_an_entry_without_at() -> None:
    draft = parse_draft(as_line(), SALT)
    assert (draft.type, draft.members, draft.opening) == ("review", REVIEW.members, None)


def test_a_line_may_have_the_text_itself() -> None:
    draft = parse_draft(as_line(text={"text": "Très bien"}), SALT)
    assert draft.opening == Opening("Très bien", SALT)
    assert draft.members["text"] == commitment(SALT, "Très bien".encode())
    own = parse_draft(as_line(text={"text": "Bien", "salt": base64.encode(bytes(32))}), SALT)
    assert own.opening == Opening("Bien", bytes(32))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"[]", "entry_malformed"),
        (b"{", "malformed_json"),
        (b'{"type":"review","type":"review"}', "duplicate_key"),
        (as_line(type="reviews"), "entry_unknown_type"),
        (as_line(type=None), "entry_unknown_type"),
        (as_line(type=["review"]), "entry_unknown_type"),
        (as_line(v=2), "entry_unknown_type"),
        (as_line(v=True), "entry_unknown_type"),
        (as_line(v=...), "entry_unknown_type"),
        (as_line(type="genesis"), "entry_invalid"),
        (as_line(type="map_head"), "entry_invalid"),
        (INDEX_HEAD, "entry_invalid"),
        (as_line(at="2026-01-01T00:00:00Z"), "entry_invalid"),
        (as_line(host_did=...), "entry_invalid"),
        (as_line(guest="did:web:me.example"), "entry_invalid"),
        (as_line(host_did="did:web:UPPER.example"), "entry_invalid"),
        (as_line(text={"text": ""}), "entry_invalid"),
        (as_line(text={"text": "\u3000\n"}), "entry_invalid"),
        (as_line(text={"salt": base64.encode(SALT)}), "entry_invalid"),
        (as_line(text={"text": "a", "salt": "AAAA"}), "entry_invalid"),
        (as_line(text={"text": "a", "more": "b"}), "entry_invalid"),
        (as_line(type="policy", text={"text": "a"}), "entry_invalid"),
    ],
)
def test_what_would_be_no_entry_is_no_draft(line: bytes, code: str) -> None:
    with pytest.raises(StaylogError) as refused:
        parse_draft(line, SALT)
    assert refused.value.code == code


def test_an_opening_fits_its_commitment() -> None:
    with pytest.raises(NotProved, match="does not open"):
        make_draft("review", REVIEW.members, opening=Opening("Another text", SALT))
    with pytest.raises(BadEntry, match="has no opening"):
        make_draft("review", {**REVIEW.members, "text": None}, opening=Opening("A text", SALT))
    with pytest.raises(BadEntry, match="has no opening"):
        make_draft("policy", {"policy": base64.encode(SALT)}, opening=Opening("A text", SALT))
