"""Statements: each kind is heard where it belongs and nowhere else, and no byte of it can be changed."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import schemas
from ledger.canon import proofs
from ledger.canon.times import format_time
from ledger.errors import BadForm, StaylogError
from ledger.identity import statements
from ledger.identity.statements import KINDS
from tests.identities import (
    CHALLENGE,
    GUEST,
    HOST,
    LEDGER,
    NOW,
    RATINGS,
    THIEF,
    Speaker,
    bodies,
    credential,
    hear,
    statement,
)
from tests.ledger.identity.test_credentials import places

SPEAKERS = {kind: speaker for kind, (speaker, _) in bodies().items()}
KEPT = {"StayReceipt", "BookingNotice", "BookingClaim"}


def refusal(body: Any, kind: str, **options: Any) -> str:
    with pytest.raises(StaylogError) as refused:
        hear(body, kind, **options)
    return refused.value.code


def test_the_kinds_are_those_of_the_published_schema() -> None:
    schema = schemas.load("statements.v1.json")
    named = [reference["$ref"].removeprefix("#/$defs/") for reference in schema["oneOf"]]
    assert list(KINDS) == named == list(bodies())
    for kind in KINDS:
        form = schema["$defs"][kind]
        assert form["additionalProperties"] is False
        assert form["properties"]["type"] == {"const": kind}
        assert ("type" in form["required"]) == (kind != statements.UNNAMED)
        assert "proof" in form["required"]
        assert {name for name, kept in KINDS.items() if kept.kept} == KEPT


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_tells_who_signed(kind: str) -> None:
    signed = hear(statement(kind), kind)
    speaker = SPEAKERS[kind]
    assert (signed.speaker, signed.method, signed.key, signed.created) == (
        speaker.did,
        speaker.method,
        speaker.public,
        NOW,
    )


@pytest.mark.parametrize("expected", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_is_taken_for_another(kind: str, expected: str) -> None:
    """As it is; and under the other's name, signed anew by whoever makes it: the members do not fit."""
    if kind == expected:
        return
    with pytest.raises(BadForm, match=f"a {expected} is expected here, this is a {kind}"):
        hear(statement(kind), expected)
    renamed = SPEAKERS[kind].sign({**bodies()[kind][1], "type": expected})
    assert refusal(renamed, expected) == "schema_invalid"
    nameless = SPEAKERS[kind].sign({name: value for name, value in bodies()[kind][1].items() if name != "type"})
    assert refusal(nameless, expected) == "schema_invalid"


@pytest.mark.parametrize("kind", KINDS)
def test_the_type_is_signed(kind: str) -> None:
    """A statement cannot be renamed after it was signed, if another kind ever had the same members."""
    body = statement(kind)
    proof = body.pop("proof")
    body["type"] = "Other"
    with pytest.raises(StaylogError) as refused:
        proofs.verify(body, proof, [SPEAKERS[kind].public])
    assert refused.value.code == "proof_invalid"


def test_a_review_may_leave_its_type_out() -> None:
    assert hear(statement("ReviewSubmission", type=None), "ReviewSubmission").speaker == GUEST.did
    for kind in KINDS:
        if kind != "ReviewSubmission":
            assert refusal(statement(kind, type=None), kind) == "schema_invalid"


def changed(kind: str) -> Iterator[Any]:
    for path in places(statement(kind)):
        if path[0] not in ("proof", "type") and "proof" not in path:
            yield pytest.param(kind, path, id=f"{kind} {'.'.join(map(str, path))}")


@pytest.mark.parametrize(("kind", "path"), [case for kind in KINDS for case in changed(kind)])
def test_a_value_changed_anywhere_breaks_the_proof(kind: str, path: tuple[str | int, ...]) -> None:
    """Whatever the form says to the change: the signature does not hold."""
    body = statement(kind)
    proof = body.pop("proof")
    *way, last = path
    target: Any = body
    for step in way:
        target = target[step]
    value = target[last]
    target[last] = value + "x" if isinstance(value, str) else not value if isinstance(value, bool) else [value]
    with pytest.raises(StaylogError) as refused:
        proofs.verify(body, proof, [SPEAKERS[kind].public])
    assert refused.value.code == "proof_invalid"
    with pytest.raises(StaylogError):
        hear({**body, "proof": proof}, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("type", "Ed25519Signature2020", "proof_type_not_supported"),
        ("cryptosuite", "eddsa-rdfc-2022", "proof_type_not_supported"),
        ("proofPurpose", "authentication", "wrong_proof_purpose"),
        ("proofValue", "z123", "proof_value_invalid"),
        ("proofValue", "z" + "1" * 64, "proof_invalid"),
        ("verificationMethod", "key-1", "bad_verification_method"),
        ("verificationMethod", GUEST.did, "bad_verification_method"),
        ("created", format_time(NOW + timedelta(seconds=1)), "proof_invalid"),
        ("created", "2026-06-01T12:00:00", "date_invalid"),
        ("created", "2026-06-31T12:00:00Z", "date_invalid"),
        ("created", "0001-01-01T00:00:00+05:00", "date_invalid"),
        ("created", 5, "schema_invalid"),
        ("domain", "https://other.example", "wrong_domain"),
        ("domain", LEDGER + "/", "wrong_domain"),
        ("domain", 5, "wrong_domain"),
        ("extra", "x", "schema_invalid"),
    ],
)
def test_every_member_of_the_proof_counts(kind: str, name: str, value: Any, code: str) -> None:
    body = statement(kind)
    body["proof"][name] = value
    assert refusal(body, kind) == code


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_is_one_of_the_speaker(kind: str) -> None:
    body, speaker = statement(kind), SPEAKERS[kind]
    body["proof"]["verificationMethod"] = f"{speaker.did}#other"
    assert refusal(body, kind) == "bad_verification_method"


@pytest.mark.parametrize("kind", KINDS)
def test_statements_are_made_now_unless_they_are_kept(kind: str) -> None:
    body, second = statement(kind), timedelta(seconds=1)
    assert hear(body, kind, now=NOW + statements.WINDOW)
    assert hear(body, kind, now=NOW - statements.WINDOW)
    assert refusal(body, kind, now=NOW - statements.WINDOW - second) == "stale_proof"
    if kind in KEPT:
        assert hear(body, kind, now=NOW + timedelta(days=800))
    else:
        assert refusal(body, kind, now=NOW + statements.WINDOW + second) == "stale_proof"


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_receipt_may_leave_the_ledger_out(kind: str) -> None:
    speaker, body = bodies()[kind]
    challenge = CHALLENGE if kind == "BookingVerification" else None
    portable = speaker.sign(body, domain=None, challenge=challenge)
    if kind == "StayReceipt":
        assert hear(portable, kind, domain="https://any.example").speaker == HOST.did
    else:
        assert refusal(portable, kind) == "schema_invalid"
    elsewhere = speaker.sign(body, domain="https://other.example", challenge=challenge)
    assert refusal(elsewhere, kind) == "wrong_domain"


def test_an_answer_is_bound_to_its_question() -> None:
    body = statement("BookingVerification")
    assert refusal(body, "BookingVerification", challenge="another") == "wrong_challenge"
    assert refusal(body, "BookingVerification", challenge=None) == "wrong_challenge"
    assert refusal(statement("HostResponse"), "HostResponse", challenge="x") == "wrong_challenge"


def test_whoever_is_expected_must_have_signed() -> None:
    for kind, speaker in SPEAKERS.items():
        forged = THIEF.sign(bodies()[kind][1], challenge=CHALLENGE if kind == "BookingVerification" else None)
        if kind == "EvidenceSupplement":
            # The body names nobody: whoever signed is told.
            assert hear(forged, kind).speaker == THIEF.did
            assert refusal(forged, kind, speaker=GUEST.did) == "holder_mismatch"
        else:
            assert refusal(forged, kind) == ("holder_mismatch" if speaker is GUEST else "not_the_host")


def test_whom_the_body_names_must_have_signed_whoever_is_expected() -> None:
    for kind in ("HostResponse", "CrossPlatformReview", "FeedbackRequest"):
        forged = THIEF.sign(bodies()[kind][1])
        assert refusal(forged, kind, speaker=THIEF.did) == "not_the_host"
        assert refusal(statement(kind), kind, speaker=THIEF.did) == "not_the_host"
        assert hear(statement(kind), kind, speaker=HOST.did)


def test_an_answer_is_heard_only_from_whom_was_asked() -> None:
    with pytest.raises(ValueError, match="name the speaker"):
        hear(statement("BookingVerification"), "BookingVerification", speaker=None)


@pytest.mark.parametrize("kind", ["ReviewSubmission", "BookingClaim", "CrossPlatformReview", "GuestConsent"])
def test_faults_inside_do_not_hide_those_outside(kind: str) -> None:
    """However many there are."""
    rubbish = {"credentialSubject": {"id": GUEST.did, **{f"x{number}": number for number in range(50)}}, "proof": 1}
    changes = {name: rubbish for name in statements.EMBEDDED if name in bodies()[kind][1]}
    assert changes
    speaker, body = bodies()[kind]
    for wrong in ({"extra": 1}, {"review_text": 5}, {"booking_reference": 5}):
        signed = speaker.sign({**body, **changes, **wrong})
        assert refusal(signed, kind) == "schema_invalid"
    proofs_that_are_none: list[Any] = [1, {}, None, []]
    for proof in proofs_that_are_none:
        assert refusal({**body, **changes, "proof": proof}, kind) == "schema_invalid"


def test_a_large_document_inside_is_not_looked_into() -> None:
    """Its own verdict has its own limits; here, each would have been seconds of work before any signature."""
    began = time.thread_time()
    for inside in (
        {"credentialSubject": {"id": GUEST.did}, "proof": [{}] * 80_000},
        {"credentialSubject": {"id": GUEST.did}, "credentialStatus": [{}] * 80_000},
    ):
        body = statement("ReviewSubmission")
        assert refusal({**body, "guest_credential": inside}, "ReviewSubmission") == "proof_invalid"
    assert time.thread_time() - began < 2


def test_a_key_that_the_did_does_not_list_is_refused() -> None:
    host = Speaker(3, "did:web:cottage.example", "#old")
    body = {"type": "FeedbackRequest", "host_did": host.did}
    keys = {f"{host.did}#new": host.public}
    assert refusal(host.sign(body), "FeedbackRequest", resolve=lambda _: keys) == "bad_verification_method"
    keys[host.method] = host.public
    assert hear(host.sign(body), "FeedbackRequest", resolve=lambda _: keys).method == host.method
    keys[host.method] = THIEF.public
    assert refusal(host.sign(body), "FeedbackRequest", resolve=lambda _: keys) == "proof_invalid"


@pytest.mark.parametrize(
    ("changes", "code", "fields"),
    [
        ({"ratings": {**RATINGS, "overall": 5.5}}, "rating_out_of_range", ["ratings.overall"]),
        ({"ratings": {**RATINGS, "value": 4.25}}, "rating_out_of_range", ["ratings.value"]),
        ({"ratings": {**RATINGS, "value": "5"}}, "rating_out_of_range", ["ratings.value"]),
        ({"ratings": {"overall": 5}}, "schema_invalid", ["ratings"] * 4),
        ({"ratings": {**RATINGS, "style": 5}}, "schema_invalid", ["ratings"]),
        ({"review_text": "x" * 2001}, "text_too_long", ["review_text"]),
        ({"check_in": "2026-5-20"}, "date_invalid", ["check_in"]),
        ({"check_in": "2026-02-30"}, "date_invalid", ["check_in"]),
        ({"check_out": "2026-05-20"}, "date_invalid", ["check_out"]),
        ({"check_out": 5}, "schema_invalid", ["check_out"]),
        ({"booking_reference": ""}, "schema_invalid", ["booking_reference"]),
        ({"booking_reference": "a\nb"}, "schema_invalid", ["booking_reference"]),
        ({"listing_id": "a b"}, "schema_invalid", ["listing_id"]),
        ({"guest_credential": None}, "schema_invalid", [""]),
        ({"stars": 5}, "schema_invalid", [""]),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_with_its_place(changes: dict[str, Any], code: str, fields: list[str]) -> None:
    body = statement("ReviewSubmission", **changes)
    with pytest.raises(BadForm) as refused:
        hear(body, "ReviewSubmission")
    assert refused.value.code == code
    assert [field for field, _ in refused.value.errors] == fields
    assert all(message for _, message in refused.value.errors)


def test_a_did_has_one_spelling() -> None:
    for name in ("did:web:Cottage.example", "did:web:a.example%3A443", "did:ion:x", "did:web:a..b"):
        body = HOST.sign({"type": "FeedbackRequest", "host_did": name})
        assert refusal(body, "FeedbackRequest") == "did_not_canonical"


@pytest.mark.parametrize("value", [[], "x", None, 5])
def test_a_statement_is_an_object(value: Any) -> None:
    assert refusal(value, "HostResponse") == "schema_invalid"


def test_what_is_inside_has_verdicts_of_its_own() -> None:
    """A wrong credential or receipt does not make the statement's own form wrong."""
    wrong = {**credential(), "type": ["Nope"], "proof": {}}
    assert hear(statement("ReviewSubmission", guest_credential=wrong, booking_evidence={"x": 1}), "ReviewSubmission")
    assert refusal(statement("ReviewSubmission", guest_credential=[]), "ReviewSubmission") == "schema_invalid"


def test_signing_replaces_an_older_proof() -> None:
    again = THIEF.sign(statement("FeedbackRequest", host_did=THIEF.did))
    assert hear(again, "FeedbackRequest").speaker == THIEF.did
    assert again["proof"]["domain"] == LEDGER
