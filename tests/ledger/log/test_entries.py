"""Every entry type: what is in, what is out. The public vectors have more; here each member is tried in turn."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canon import jcs, strict_json
from ledger.errors import BadEntry
from ledger.log.entries import MEMBERS, VRP_ARTIFACT, Entry, _read, _recognise, make_entry, parse_entry
from tests.world import World

HASH = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
AT = "2026-04-01T10:00:00Z"
HOST = "did:web:host.example"
REVIEW_ID = "rev-" + "a" * 26
EVIDENCE = {"booking": "stay_receipt", "commitment": HASH, "idv_level": None, "issuer": "https://idv.example/1"}
RATINGS = {"overall": 4.5, "accuracy": 1, "cleanliness": 5, "communication": 3, "value": 2.5}
ABOUT = {"review_id": REVIEW_ID, "review": 7, "host_did": HOST, "at": AT}
VALID: dict[str, dict[str, Any]] = {
    "genesis": {"origin": "a.example/log", "policy": HASH, "previous": None, "at": AT},
    "policy": {"policy": HASH, "at": AT},
    "issuer": {"role": "guest", "issuer": "did:web:idv.example", "action": "trusted", "keys": HASH, "max_idv_level": None, "since": None, "at": AT},
    "review": {
        "review_id": REVIEW_ID, "host_did": HOST, "listing_id": "l-1", "check_in": "2026-03-01", "check_out": "2026-03-02",
        "ratings": RATINGS, "level": "guest_verified", "evidence": EVIDENCE, "repeat": False, "text": None, "at": AT,
    },
    "response": {**ABOUT, "text": HASH, "statement": HASH},
    "upgrade": {**ABOUT, "level": "guest_verified", "evidence": EVIDENCE},
    "booking_check": {"host_did": HOST, "outcome": "denied", "booking": HASH, "at": AT},
    "redaction": {**ABOUT, "part": "text", "basis": "gdpr_17", "decision": HASH},
    "index_head": {"seq": 0, "count": 2, "root": HASH, "at": AT},
    "map_head": {"size": 3, "root": HASH, "at": AT},
}  # fmt: skip


@pytest.mark.parametrize("type_", VALID)
def test_valid_entries_of_every_type(type_: str) -> None:
    entry = make_entry(type_, **VALID[type_])
    assert (entry.type, entry.at, entry.host) == (type_, AT, VALID[type_].get("host_did"))
    assert parse_entry(entry.data) == entry
    assert set(VALID) == set(MEMBERS)


def refusal(type_: str, members: dict[str, Any]) -> str:
    with pytest.raises(BadEntry) as caught:
        make_entry(type_, **members)
    return caught.value.code


@pytest.mark.parametrize(("type_", "name"), [(type_, name) for type_, members in VALID.items() for name in members])
def test_every_member_is_needed_and_typed(type_: str, name: str) -> None:
    members = dict(VALID[type_])
    wrongs: list[Any] = [True if name != "repeat" else None, -1, 1.5, "", "x\n", [], {}, {"a": 1}]
    for wrong in wrongs:
        assert refusal(type_, {**members, name: wrong}) == "entry_invalid", (name, wrong)
    del members[name]
    assert refusal(type_, members) == "entry_invalid"
    assert refusal(type_, {**VALID[type_], f"{name}_": members}) == "entry_invalid"


@pytest.mark.parametrize(
    ("type_", "changes"),
    [
        ("review", {"host_did": "did:web:Host.example"}),
        ("review", {"listing_id": "a/b"}),
        ("review", {"listing_id": "a" * 129}),
        ("review", {"check_in": "2026-02-30"}),
        ("review", {"check_in": "2026-03-02"}),
        ("review", {"ratings": {**RATINGS, "overall": 4.25}}),
        ("review", {"ratings": {**RATINGS, "overall": 0.5}}),
        ("review", {"ratings": {**RATINGS, "overall": 5.5}}),
        ("review", {"ratings": {**RATINGS, "overall": True}}),
        ("review", {"ratings": {**RATINGS, "overall": "5"}}),
        ("review", {"ratings": {**RATINGS, "charm": 5}}),
        ("review", {"ratings": {"overall": 5}}),
        ("review", {"level": "unconfirmed"}),
        ("review", {"level": "host_attested"}),
        ("review", {"evidence": {**EVIDENCE, "booking": "none"}}),
        ("review", {"evidence": {**EVIDENCE, "booking": "hearsay"}}),
        ("review", {"evidence": {**EVIDENCE, "issuer": "http://idv.example"}}),
        ("review", {"evidence": {**EVIDENCE, "issuer": "https://"}}),
        ("review", {"evidence": {**EVIDENCE, "issuer": "https://["}}),
        ("review", {"evidence": {**EVIDENCE, "issuer": "https://a:b@idv.example"}}),
        ("review", {"evidence": {**EVIDENCE, "issuer": 'https://idv.example/"'}}),
        ("review", {"evidence": {**EVIDENCE, "issuer": "did:web:Idv.example"}}),
        ("review", {"evidence": {**EVIDENCE, "idv_level": "self_verified"}}),
        ("review", {"evidence": {**EVIDENCE, "note": "x"}}),
        ("review", {"review_id": "rev-" + "a" * 25 + "b"}),
        ("review", {"review_id": "rev-" + "A" * 26}),
        ("review", {"text": ""}),
        ("upgrade", {"evidence": {**EVIDENCE, "booking": "callback"}}),
        ("upgrade", {"level": "host_attested"}),
        ("response", {"text": None}),
        ("redaction", {"part": "ratings"}),
        ("redaction", {"basis": "embarrassing"}),
        ("booking_check", {"outcome": "lost"}),
        ("genesis", {"origin": "with blank"}),
        ("genesis", {"previous": "a+b"}),
        ("issuer", {"since": "2026-04-01"}),
    ],
)  # fmt: skip
def test_refused(type_: str, changes: dict[str, Any]) -> None:
    assert refusal(type_, {**VALID[type_], **changes}) == "entry_invalid"


def test_versions_and_types() -> None:
    others: list[dict[str, Any]] = [{"v": 2}, {"v": True}, {"v": 1.5}, {"v": None}]
    others += [{"type": "poem"}, {"type": None}, {"type": []}, {"type": VRP_ARTIFACT}]
    for changes in others:
        data = jcs.dumps({"type": "policy", "v": 1, **VALID["policy"], **changes})
        with pytest.raises(BadEntry) as caught:
            parse_entry(data)
        assert caught.value.code == "entry_unknown_type"


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_what_is_accepted_is_its_own_jcs_form(seed: int) -> None:
    for entry in World(seed).grow(4).log.entries:
        assert jcs.dumps(strict_json.loads(entry.data)) == entry.data


@pytest.mark.parametrize(
    "change",
    [('"overall":4.5', '"overall":4.50'), ('"accuracy":1', '"accuracy":1.0'), ('"accuracy":1', '"accuracy":1e0'), ('"overall":4.5', '"overall":45e-1'),
     ('"cleanliness":5', '"cleanliness":5.0'), ('"v":1', '"v":1.0'), ('"v":1', '"v":true'), ('"v":1', '"v":1e0'), ('"repeat":false', '"repeat":0')],
)  # fmt: skip
def test_a_number_has_one_spelling(change: tuple[str, str]) -> None:
    data = make_entry("review", **VALID["review"]).data.decode()
    assert change[0] in data
    with pytest.raises(BadEntry):
        parse_entry(data.replace(*change).encode())


def test_the_bytes_are_the_canonical_ones() -> None:
    data = make_entry("policy", **VALID["policy"]).data
    for other in (
        data.replace(b",", b", "),
        data + b"\n",
        b" " + data,
        data.replace(b"policy", b"\\u0070olicy"),
    ):
        with pytest.raises(BadEntry) as caught:
            parse_entry(other)
        assert caught.value.code == "entry_not_canonical"


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b'"x"', b"\xff", b'{"a":1,"a":1}', b"{" * 50])
def test_other_bytes(data: bytes) -> None:
    with pytest.raises(BadEntry) as caught:
        parse_entry(data)
    assert caught.value.code == "entry_malformed"


def test_an_entry_has_at_most_65535_bytes() -> None:
    with pytest.raises(BadEntry) as caught:
        parse_entry(b"x" * 65_536)
    assert caught.value.code == "entry_too_large"


def test_a_vrp_artifact_is_71_characters_and_names_no_host() -> None:
    entry = parse_entry(b"sha256:" + b"0123456789abcdef" * 4)
    assert (entry.type, entry.host, entry.at) == (VRP_ARTIFACT, None, None)


def strictly(data: bytes) -> Entry | None:
    """What the strict reader and the canonical writer say together, without the pattern."""
    try:
        entry = _read(data)
    except BadEntry:
        return None
    return entry if jcs.dumps(entry.members) == data else None


@pytest.mark.parametrize("type_", VALID)
def test_the_pattern_recognises_every_type(type_: str) -> None:
    entry = make_entry(type_, **VALID[type_])
    assert _recognise(entry.data) == entry == strictly(entry.data)


@given(st.integers(0, 500))
@settings(max_examples=20)
def test_the_pattern_recognises_whatever_a_ledger_writes(seed: int) -> None:
    for entry in World(seed).grow(6).log.entries:
        assert _recognise(entry.data) == entry == strictly(entry.data)


# What may replace a piece of an entry: other values, other spellings, things that only look like entries.
PIECES = [
    b"", b" ", b"\n", b"\\", b'"', b"\\u0061", b"\x00", b"\xff", "é".encode(), b"0", b"1", b"9", b"5.0", b"1e0", b"-1", b"4.5",
    b"null", b"true", b"{}", b"[]", b",", b":", b'"v":1', b'"v":1.0', b'"type":"review"', b"Z", b"%41", b"%3a", b"did:web:",
    b"2026-02-30", b"0000-01-01", b"24:00:00", b"A=", b"B=", b'"a":1,', b"9007199254740992", b"did:key:z", b"https://",
]  # fmt: skip


@given(st.sampled_from(sorted(VALID)), st.data())
@settings(max_examples=1500)
def test_the_pattern_lets_in_nothing_that_the_strict_reader_refuses(type_: str, data: st.DataObject) -> None:
    whole = make_entry(type_, **VALID[type_]).data
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(start + 12, len(whole))))
    changed = whole[:start] + data.draw(st.sampled_from(PIECES) | st.binary(max_size=3)) + whole[stop:]
    found = _recognise(changed)
    assert found is None or found == strictly(changed)
    try:
        read: Entry | None = parse_entry(changed)
    except BadEntry:
        read = None
    assert read == strictly(changed) or read is not None and read.type == VRP_ARTIFACT
