"""The attack table for JSON, credentials, proofs and DIDs (spec/credentials.md 10): a row is a test with its code.

Where a row has several forms, each is a case. `signed` makes a proof that holds, as a careless or dishonest issuer
would: what is refused here is refused although the signature is right, unless the test says that it was changed.
"""

import json
import unicodedata
from base64 import urlsafe_b64encode
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from ledger.canon import base58, did, jcs, proofs, strict_json
from ledger.canon.times import format_time
from ledger.errors import Misconfigured, StaylogError
from ledger.identity import contexts
from ledger.identity.did import offline
from ledger.identity.issuers import Issuer, Registry
from tests.identities import (
    GUEST,
    GUEST_CLAIMS,
    HOST,
    HOST_CLAIMS,
    IDV,
    ISSUER,
    LEDGER,
    NOW,
    PROPERTY,
    STATUS,
    THIEF,
    TRUST,
    Speaker,
    credential,
    hear,
    judge,
    signed,
    statement,
)
from tests.ledger.canon.test_ed25519 import SMALL, did_jwk

GRAPH_SUITES = (proofs.EDDSA_RDFC, proofs.ED25519_2020)


def refused(document: Any, role: str = "guest", **options: Any) -> str:
    with pytest.raises(StaylogError) as refusal:
        judge(document, role, **options)
    return refusal.value.code


def unread(data: bytes | str) -> str:
    with pytest.raises(StaylogError) as refusal:
        strict_json.loads(data)
    return refusal.value.code


def unheard(body: Any, kind: str, **options: Any) -> str:
    with pytest.raises(StaylogError) as refusal:
        hear(body, kind, **options)
    return refusal.value.code


def subject(document: dict[str, Any], **claims: Any) -> dict[str, Any]:
    return {**document, "credentialSubject": {**document["credentialSubject"], **claims}}


# JSON


def test_too_large() -> None:
    """A credential of more than 64 KiB; bodies are cut off by the service at 256 KiB."""
    listings = [{**PROPERTY, "listing_id": f"l-{number}", "right_to_let_method": "x" * 400} for number in range(120)]
    assert refused({**credential("host"), "credentialSubject": {**HOST_CLAIMS, "properties": listings}}, "host") == (
        "too_large"
    )


def test_nested_too_deeply() -> None:
    assert unread("[" * 17 + "]" * 17) == "too_deep"
    assert strict_json.loads("[" * 16 + "]" * 16)


def test_strings_over_the_limits_of_their_fields() -> None:
    assert refused(signed(subject(credential(), idv_method="x" * 513))) == "schema_invalid"
    assert unheard(statement("ReviewSubmission", review_text="x" * 2001), "ReviewSubmission") == "text_too_long"
    assert unheard(statement("ReviewSubmission", private_feedback="x" * 2001), "ReviewSubmission") == "text_too_long"
    assert unheard(statement("HostResponse", response_text="x" * 501), "HostResponse") == "text_too_long"
    # Code points count, not bytes.
    assert hear(statement("ReviewSubmission", review_text="\U0001f3e0" * 2000), "ReviewSubmission")


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '[{"a":{"b":1,"c":2,"b":3}}]', '{"a":1,"\\u0061":2}', '{"":0,"":0}'])
def test_duplicate_keys_at_every_level(text: str) -> None:
    assert unread(text) == "duplicate_key"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NaN", "malformed_json"),
        ("[-Infinity]", "malformed_json"),
        ("1e400", "number_out_of_range"),
        ("9007199254740992", "number_out_of_range"),
        ("-9007199254740992", "number_out_of_range"),
        ("1" * 5000, "number_out_of_range"),
        ('"\\ud800"', "not_utf8"),
        ('{"\\udfff":1}', "not_utf8"),
    ],
)
def test_numbers_and_surrogates_that_readers_differ_about(text: str, code: str) -> None:
    assert unread(text) == code


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_hundred_thousand_levels(opening: str) -> None:
    assert unread(opening * 100_000) in ("too_deep", "malformed_json")
    assert unread("[" * 100_000 + "]" * 100_000) == "too_deep"


@pytest.mark.parametrize(
    "data", [b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}", "{}".encode("utf-16")]
)
def test_invalid_utf8_and_byte_order_marks(data: bytes) -> None:
    assert unread(data) == "not_utf8"


def test_unicode_is_kept_as_it_was_signed() -> None:
    """NFC and NFD are two texts: a signature over one is none over the other. Identifiers are ASCII."""
    body = statement("HostResponse", response_text=unicodedata.normalize("NFC", "café"))
    assert hear(body, "HostResponse")
    body["response_text"] = unicodedata.normalize("NFD", body["response_text"])
    assert unheard(body, "HostResponse") == "proof_invalid"
    assert unheard(statement("HostResponse", host_did="did:web:café.example"), "HostResponse") in (
        "schema_invalid",
        "did_not_canonical",
    )
    assert refused(signed(subject(credential(), id="did:web:café.example"))) == "schema_invalid"


# Contexts and terms


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(
    "context",
    [
        pytest.param(["https://www.w3.org/ns/credentials/v2"], id="one missing"),
        pytest.param([*contexts.ALLOWED[0], "https://evil.example/v1"], id="remote"),
        pytest.param([*contexts.ALLOWED[0], {"idv_level_x": "https://openstr.org/vocab#idv_level"}], id="inline"),
        pytest.param([*contexts.ALLOWED[0], {}], id="empty inline"),
        pytest.param(list(reversed(contexts.ALLOWED[0])), id="reordered"),
        pytest.param([*contexts.ALLOWED[0], contexts.OPENSTR_V1], id="repeated"),
        pytest.param(contexts.CREDENTIALS_V2, id="not a list"),
        pytest.param(["https://www.w3.org/2018/credentials/v1", contexts.OPENSTR_V1], id="VC 1.1"),
        pytest.param(None, id="null"),
    ],
)
def test_contexts_that_are_not_allowed(suite: str, context: Any) -> None:
    assert refused({**credential(suites=(suite,)), "@context": context}) == "context_not_allowed"


@pytest.mark.parametrize("where", ["credentialSubject", "credentialStatus"])
def test_a_context_further_inside(where: str) -> None:
    document = credential()
    document[where]["@context"] = contexts.ALLOWED[0]
    assert refused(document) == "context_not_allowed"


def test_a_context_appended_after_signing() -> None:
    """The prefix rule of eddsa-jcs-2022 would let it pass: with another list that is allowed, and in the proof."""
    document = credential(suites=(proofs.EDDSA_JCS,))
    document["@context"] = contexts.ALLOWED[1]
    assert refused(document) == "context_not_allowed"
    document = credential(suites=(proofs.EDDSA_JCS,))
    document["proof"]["@context"] = [*contexts.ALLOWED[0], "https://evil.example/v1"]
    assert refused(document) == "context_not_allowed"


@pytest.mark.parametrize("suite", GRAPH_SUITES)
@pytest.mark.parametrize(
    "extra", [{"verified": True}, {"@graph": []}, {"@included": []}, {"@reverse": {}}, {"@id": "urn:x"}, {"@type": "x"}]
)
@pytest.mark.parametrize("where", ["top", "subject", "status"])
def test_undefined_terms_and_keywords(suite: str, extra: dict[str, Any], where: str) -> None:
    """Added after signing: the graph, and so the signature, may be the same."""
    document = credential(suites=(suite,))
    places = {"top": document, "subject": document["credentialSubject"], "status": document["credentialStatus"]}
    places[where].update(extra)
    assert refused(document) == "undefined_term"


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize("name", ["relative", "_:b0", "55", "", "#x", "../x"])
@pytest.mark.parametrize("where", ["top", "subject"])
def test_relative_ids_and_blank_nodes(suite: str, name: str, where: str) -> None:
    document = credential(suites=(suite,))
    (document if where == "top" else document["credentialSubject"])["id"] = name
    assert refused(document) == "undefined_term"


def test_terms_in_a_proof_that_its_suite_does_not_define() -> None:
    document = credential(suites=(proofs.ED25519_2020,))
    document["proof"]["jws"] = "x"
    assert refused(document) == "undefined_term"


def rdf_equal(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Edits that leave the graph as it is."""

    def edit(**claims: Any) -> dict[str, Any]:
        return subject(deepcopy(document), **claims)

    split = {name: document["credentialSubject"][name] for name in ("id", "idv_level")}
    rest = {name: value for name, value in document["credentialSubject"].items() if name != "idv_level"}
    renamed = {"@id": document["credentialSubject"]["id"], **rest}
    del renamed["id"]
    return {
        "true as text": edit(phone_verified="true"),
        "text in a list": edit(idv_method=[GUEST_CLAIMS["idv_method"]]),
        "text twice in a list": edit(idv_method=[GUEST_CLAIMS["idv_method"]] * 2),
        "@value": edit(idv_level={"@value": GUEST_CLAIMS["idv_level"]}),
        "a null": edit(idv_level=None),
        "subject in a list": {**document, "credentialSubject": [document["credentialSubject"]]},
        "subject split in two": {**document, "credentialSubject": [split, rest]},
        "@id for id": {**document, "credentialSubject": {"idv_level": "payment_verified", **renamed}},
        "status in a list": {**document, "credentialStatus": [document["credentialStatus"]]},
        "types reordered": {**document, "type": list(reversed(document["type"]))},
        "a type twice": {**document, "type": [*document["type"], document["type"][1]]},
        "id in a list": {**document, "id": [document["id"]]},
        "issuer in a list": {**document, "issuer": [document["issuer"]]},
        "date as @value": {**document, "validUntil": {"@value": document["validUntil"]}},
    }


@pytest.mark.parametrize("suite", GRAPH_SUITES)
@pytest.mark.parametrize("edit", rdf_equal(credential()))
def test_edits_that_leave_the_graph_as_it_is(suite: str, edit: str) -> None:
    assert refused(rdf_equal(credential(suites=(suite,)))[edit]) == "schema_invalid"


@pytest.mark.parametrize("suite", GRAPH_SUITES)
def test_reordered_properties_have_the_same_graph_and_say_the_same(suite: str) -> None:
    """The one such edit that cannot be seen. Nothing is read by place."""
    document = credential("host", (suite,))
    document["credentialSubject"]["properties"].reverse()
    judge(document, "host").require_listing("rose-cottage")


@pytest.mark.parametrize("suite", GRAPH_SUITES)
def test_most_of_these_edits_do_keep_the_signature(suite: str) -> None:
    """Otherwise the tests above would show nothing about the form."""
    document = credential(suites=(suite,))
    held = set()
    for name, edited in rdf_equal(document).items():
        unsigned = {member: value for member, value in edited.items() if member != "proof"}
        try:
            proofs.verify(unsigned, document["proof"], [ISSUER.public], contexts.canonicaliser().canonize)
            held.add(name)
        except StaylogError:
            pass
    assert set(rdf_equal(document)) - held == {"a null", "id in a list", "date as @value"}


@pytest.mark.parametrize("text", ["a\x00b", "bell\a", "line\nbreak", "tab\t", "del\x7f", "nel\x85", "\ufffe", "\uffff"])
def test_control_characters_in_a_credential(text: str) -> None:
    assert refused(signed(subject(credential(), idv_method=text))) == "schema_invalid"


@pytest.mark.parametrize("rating", [4.75, 1e-7, 5.1, 0.9])
def test_free_floats_in_a_credential(rating: float) -> None:
    document = credential("host")
    document["credentialSubject"]["reputation"]["aggregate_rating"] = rating
    assert refused(signed(document), "host") == "schema_invalid"


@pytest.mark.parametrize("suite", GRAPH_SUITES)
def test_two_numbers_with_one_signature(suite: str) -> None:
    """By the 16 digits of JSON-LD this is 3.3."""
    reputation = {"aggregate_rating": 3.3}
    document = credential("host", (suite,), reputation=reputation)
    assert judge(document, "host").claims["reputation"] == reputation
    document["credentialSubject"]["reputation"]["aggregate_rating"] = 3 + 0.1 + 0.2
    assert refused(document, "host") == "schema_invalid"


def test_a_context_that_an_upgrade_changed() -> None:
    known = contexts._read(contexts.OPENSTR_V1)
    assert contexts.pinned({contexts.OPENSTR_V1: known})
    changed = deepcopy(known)
    changed["@context"]["idv_level"] = "https://openstr.org/vocab#idv_method"
    with pytest.raises(Misconfigured) as refusal:
        contexts.pinned({contexts.OPENSTR_V1: changed})
    assert refusal.value.code == "context_changed"
    with pytest.raises(Misconfigured):
        contexts.pinned({"https://new.example/v1": known})


@pytest.mark.parametrize("suite", GRAPH_SUITES)
def test_blank_node_poison(suite: str) -> None:
    """Objects that the closed form lets pass: alike in pairs, with children that are alike in pairs."""
    figures = [{"verified_stays": number} for number in (1, 2)]
    places = [
        {**PROPERTY, "property_ref": ref, "property_reputation": figure} for ref in ("p", "q") for figure in figures
    ]
    document = subject(credential("host"), properties=places)
    document["proof"] = credential("host", (suite,))["proof"]
    assert refused(document, "host") == "too_complex"


# Proofs


@pytest.mark.parametrize(
    "proof",
    [
        {"type": "Ed25519Signature2018"},
        {"type": "JsonWebSignature2020"},
        {"type": "BbsBlsSignature2020"},
        {"type": "DataIntegrityProof", "cryptosuite": "ecdsa-rdfc-2019"},
        {"type": "DataIntegrityProof", "cryptosuite": "bbs-2023"},
        {"type": "DataIntegrityProof"},
        {},
    ],
    ids=str,
)
def test_unknown_proof_types(proof: dict[str, str]) -> None:
    known = credential(suites=(proofs.ED25519_2020,))
    kind = {name: value for name, value in known["proof"].items() if name != "type"}
    assert refused({**known, "proof": {**kind, **proof}}) == "proof_type_not_supported"
    assert refused({**known, "proof": [{**kind, **proof}]}) == "proof_type_not_supported"


def test_sets_and_chains_of_proofs() -> None:
    document = credential(suites=(proofs.EDDSA_JCS,))
    proof = document["proof"]
    assert judge({**document, "proof": [proof]})
    assert refused({**document, "proof": []}) == "schema_invalid"
    assert refused({**document, "proof": None}) == "schema_invalid"
    assert refused({**document, "proof": [proof, proof]}) == "schema_invalid"
    assert refused({**document, "proof": [proof] + [{"type": "x"}] * 4}) == "schema_invalid"
    assert refused({**document, "proof": {**proof, "previousProof": "urn:uuid:1"}}) == "proof_chain"
    assert refused({**document, "proof": [proof, {"type": "x", "previousProof": "urn:uuid:1"}]}) == "proof_chain"


def test_the_proof_that_counts_stands_alone() -> None:
    """A thief's proof of the cheaper suite beside the issuer's: it is the one that is verified, and refused."""
    document = credential(suites=(proofs.ED25519_2020,))
    forged = signed(document, proofs.EDDSA_JCS, Speaker(4, IDV, "/keys/1"))["proof"]
    assert refused({**document, "proof": [document["proof"], forged]}) == "proof_invalid"


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize("purpose", ["authentication", "keyAgreement", "", None, ["assertionMethod"]])
def test_other_purposes(suite: str, purpose: Any) -> None:
    document = credential(suites=(suite,))
    document["proof"]["proofPurpose"] = purpose
    assert refused(document) == "wrong_proof_purpose"


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("https://other.example/keys/1", "issuer_key_mismatch"),
        ("https://idv.example.evil.example/keys/1", "issuer_key_mismatch"),
        ("https://idv.example:8443/keys/1", "issuer_key_mismatch"),
        ("http://idv.example/keys/1", "issuer_key_mismatch"),
        (ISSUER.method.replace("idv", "IDV"), "issuer_key_mismatch"),
        ("https://idv.example@evil.example/keys/1", "bad_verification_method"),
        (f"did:key:{ISSUER.multikey}#{ISSUER.multikey}", "issuer_key_mismatch"),
        ("#key-1", "bad_verification_method"),
        ("/keys/1", "bad_verification_method"),
        ("", "bad_verification_method"),
        ({"id": ISSUER.method}, "bad_verification_method"),
    ],
    ids=str,
)
def test_methods_that_are_not_under_an_https_issuer(suite: str, method: Any, code: str) -> None:
    document = credential(suites=(suite,))
    document["proof"]["verificationMethod"] = method
    assert refused(document) == code


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("{did}", "bad_verification_method"),
        ("{did}#", "bad_verification_method"),
        ("{did}#key-1", "bad_verification_method"),
        ("{did}/path#{key}", "bad_verification_method"),
        ("{did}?versionId=1#{key}", "bad_verification_method"),
        ("{did}#{key}#{key}", "bad_verification_method"),
        ("#{key}", "bad_verification_method"),
        ("{thief}#{key}", "issuer_key_mismatch"),
        ("https://idv.example/keys/1", "issuer_key_mismatch"),
    ],
)
def test_methods_that_are_not_under_a_did(method: str, code: str) -> None:
    issuer = Speaker(7)
    trust = Registry([Issuer("guest", issuer.did, "trusted", (issuer.multikey,))])
    document = credential(issuer=issuer, suites=(proofs.EDDSA_JCS,))
    named = method.format(did=issuer.did, key=issuer.multikey, thief=THIEF.did)
    assert refused(signed(document, speaker=issuer, verificationMethod=named), trust=trust) == code


def test_a_did_jwk_has_one_key_name() -> None:
    issuer = Speaker(7, did_jwk(Speaker(7).public), "#0")
    trust = Registry([Issuer("guest", issuer.did, "trusted", (issuer.multikey,))])
    document = credential(issuer=issuer)
    assert judge(document, trust=trust)
    wrong = signed(document, speaker=issuer, verificationMethod=f"{issuer.did}#1")
    assert refused(wrong, trust=trust) == "bad_verification_method"


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(
    "value", ["", "z", "z" + "2" * 60, "u" + "A" * 86, "z0" + "2" * 86, "z1" + "z" * 87, "z" + "2" * 89, 5, None]
)
def test_proof_values_that_are_none(suite: str, value: Any) -> None:
    document = credential(suites=(suite,))
    document["proof"]["proofValue"] = value
    assert refused(document) == "proof_value_invalid"


def test_a_second_spelling_of_a_signature() -> None:
    """S plus the order of the group, and a leading zero in base58."""
    document = credential(suites=(proofs.EDDSA_JCS,))
    signature = base58.decode(document["proof"]["proofValue"][1:])
    order = 2**252 + 27742317777372353535851937790883648493
    other = (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    document["proof"]["proofValue"] = "z" + base58.encode(signature[:32] + other)
    assert refused(document) == "proof_invalid"


@pytest.mark.parametrize("key", SMALL[:5], ids=bytes.hex)
def test_small_order_keys(key: bytes) -> None:
    """A guest chooses their key: under this one, "signatures" would bind nothing."""
    for name in (f"did:key:z{base58.encode(bytes([0xED, 1]) + key)}", did_jwk(key)):
        with pytest.raises(StaylogError) as refusal:
            offline(name)
        assert refusal.value.code == "key_not_acceptable"
    name = f"did:key:z{base58.encode(bytes([0xED, 1]) + key)}"
    body = statement("ReviewSubmission", guest_credential=credential(id=name))
    body["proof"]["verificationMethod"] = f"{name}#{name.removeprefix('did:key:')}"
    assert unheard(body, "ReviewSubmission") == "key_not_acceptable"


@pytest.mark.parametrize(
    ("created", "code"),
    [
        (NOW - timedelta(days=10, minutes=6), "proof_time_invalid"),
        (NOW + timedelta(minutes=6), "proof_time_invalid"),
    ],
)
def test_proofs_from_before_the_credential_or_from_the_future(created: Any, code: str) -> None:
    assert refused(signed(credential(), created=format_time(created))) == code


def test_a_proof_that_has_expired() -> None:
    assert refused(signed(credential(), expires=format_time(NOW - timedelta(seconds=1)))) == "proof_time_invalid"


# Issuers and subjects


def test_issuers_that_are_not_trusted() -> None:
    unknown = Speaker(9, "https://other.example", "/keys/1")
    assert refused(credential(issuer=unknown)) == "issuer_not_trusted"
    guests_only = Registry([Issuer("guest", IDV, "trusted", (ISSUER.multikey,))])
    assert refused(credential("host"), "host", trust=guests_only) == "issuer_not_trusted"
    for status in ("removed", "compromised"):
        gone = Registry([Issuer("guest", IDV, status, (ISSUER.multikey,), since="2026-01-01T00:00:00Z")])
        assert refused(credential(), trust=gone) == "issuer_not_trusted"
    low = Registry([Issuer("guest", IDV, "trusted", (ISSUER.multikey,), "email_verified")])
    assert refused(credential(), trust=low) == "issuer_not_trusted"


def test_a_key_that_is_not_pinned() -> None:
    """The issuer's name and a method of its origin are not enough."""
    assert refused(credential(issuer=Speaker(9, IDV, "/keys/1"))) == "proof_invalid"


def test_another_issuers_credential_under_a_trusted_name() -> None:
    document = credential(issuer=Speaker(9, "https://other.example", "/keys/1"), suites=(proofs.EDDSA_JCS,))
    assert refused({**document, "issuer": IDV}) == "issuer_key_mismatch"


def test_self_issued() -> None:
    me = Speaker(9)
    trust = Registry([Issuer("guest", me.did, "trusted", (me.multikey,))])
    assert refused(credential(issuer=me, id=me.did), trust=trust) == "self_issued"
    assert refused(signed({**credential(id=IDV), "issuer": {"id": IDV}})) == "self_issued"


def test_wrong_types() -> None:
    assert refused(credential("host"), "guest") == "wrong_credential_type"
    assert refused(credential("guest"), "host") == "wrong_credential_type"
    for types in (["VerifiableCredential"], "OpenSTRHostCredential", [], None, ["VerifiablePresentation"]):
        assert refused(signed({**credential(), "type": types})) == "wrong_credential_type"
    both = ["VerifiableCredential", "OpenSTRGuestCredential", "OpenSTRHostCredential"]
    assert refused(signed({**credential(), "type": both})) == "schema_invalid"


def test_subjects_that_are_not_one_with_an_id() -> None:
    document = credential()
    claims = document["credentialSubject"]
    nameless = {name: value for name, value in claims.items() if name != "id"}
    for wrong in ([claims], [claims, claims], [], nameless, "did:key:z6Mk", None):
        assert refused(signed({**document, "credentialSubject": wrong})) == "schema_invalid"


def test_a_subject_without_a_key() -> None:
    """RFC-004 allows any URI; a review needs a signature of its holder."""
    opaque = credential(id="urn:uuid:0b1f3cf4-6d3a-4a3e-9f45-0cbf2f9a6d3c")
    assert judge(opaque)
    body = statement("ReviewSubmission", guest_credential=opaque)
    assert unheard(body, "ReviewSubmission") == "holder_binding_unavailable"


@pytest.mark.parametrize(("listing", "right"), [("castle", True), ("rose-cottage", False)])
def test_listings_that_are_not_covered(listing: str, right: bool) -> None:
    document = credential("host", properties=[{**PROPERTY, "right_to_let_verified": right}])
    with pytest.raises(StaylogError) as refusal:
        judge(document, "host").require_listing(listing)
    assert refusal.value.code == "listing_not_covered"


@pytest.mark.parametrize("right", ["true", 1, [True], {"@value": True}, None])
def test_a_right_to_let_that_is_not_the_literal_true(right: Any) -> None:
    document = credential("host")
    document["credentialSubject"]["properties"][0]["right_to_let_verified"] = right
    assert refused(signed(document), "host") == "schema_invalid"


def test_validity() -> None:
    document = credential()
    assert refused(document, now=NOW + timedelta(days=71)) == "expired"
    assert refused(document, now=NOW - timedelta(days=11)) == "not_yet_valid"
    without = {name: value for name, value in document.items() if name != "validUntil"}
    assert refused(signed(without)) == "missing_expiry"
    old = {**without, "expirationDate": "2030-01-01T00:00:00Z"}
    assert refused(signed(old)) == "missing_expiry"
    for wrong in ("2030-01-01", "2030-01-01T00:00:00", "2030-01-01 00:00:00Z", "tomorrow", 1893456000, None):
        assert refused(signed({**document, "validUntil": wrong})) == "schema_invalid"


def test_a_status_of_another_type() -> None:
    for change in ({"type": "StatusList2021Entry"}, {"statusListIndex": 77}, {"statusListIndex": "077"}):
        assert refused(signed({**credential(), "credentialStatus": {**STATUS, **change}})) == "schema_invalid"


# JSON Web Tokens


def token(header: dict[str, Any], payload: Any) -> str:
    def part(value: Any) -> str:
        return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    message = f"{part(header)}.{part(payload)}"
    return f"{message}.{urlsafe_b64encode(ISSUER.key.sign(message.encode()).signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "EdDSA", "typ": "vc+jwt", "kid": ISSUER.method},
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "ES256"},
        {"alg": "EdDSA", "jwk": {"kty": "OKP"}},
        {"alg": "EdDSA", "jku": "https://evil.example"},
        {"alg": "EdDSA", "x5c": []},
        {"alg": "EdDSA", "crit": ["b64"], "b64": False},
        {"alg": "EdDSA", "typ": "JWT"},
        {"alg": "EdDSA", "kid": THIEF.method},
        {"alg": "dir", "enc": "A256GCM"},
    ],
    ids=str,
)
def test_tokens_are_not_read_whatever_their_header_says(header: dict[str, Any]) -> None:
    """Bare, padded, in an envelope of VC 2.0, and inside of a review."""
    compact = token(header, credential())
    for given in (compact, compact + "=", f"{compact}.{compact}"):
        assert refused(given) == "jwt_not_acceptable"
    envelope = {
        "@context": [contexts.CREDENTIALS_V2],
        "type": "EnvelopedVerifiableCredential",
        "id": f"data:application/vc+jwt,{compact}",
    }
    assert refused(envelope) == "jwt_not_acceptable"
    assert unheard(statement("ReviewSubmission", guest_credential=compact), "ReviewSubmission") == "jwt_not_acceptable"


def test_a_credential_in_both_forms_is_read_in_one() -> None:
    assert refused({**credential(), "vc": token({"alg": "EdDSA"}, credential())}) == "undefined_term"


# Holders, replays


def test_a_stolen_credential() -> None:
    """Every host that the guest booked with has a copy."""
    body = statement("ReviewSubmission")
    stolen = THIEF.sign({name: value for name, value in body.items() if name != "proof"})
    assert unheard(stolen, "ReviewSubmission") == "holder_mismatch"
    as_guest = THIEF.sign(stolen)
    as_guest["proof"]["verificationMethod"] = GUEST.method
    assert unheard(as_guest, "ReviewSubmission") == "proof_invalid"


def test_replays() -> None:
    """To another ledger, or later. The same body to the same ledger at once is for the ledger to know again."""
    body = statement("ReviewSubmission")
    assert unheard(body, "ReviewSubmission", domain="https://other.example") == "wrong_domain"
    assert unheard(body, "ReviewSubmission", now=NOW + timedelta(minutes=5, seconds=1)) == "stale_proof"
    assert unheard(body, "ReviewSubmission", now=NOW - timedelta(minutes=5, seconds=1)) == "stale_proof"
    for kind, name in (("HostResponse", "host_did"), ("FeedbackRequest", "host_did")):
        assert unheard(statement(kind, **{name: GUEST.did}), kind) == "not_the_host"


@pytest.mark.parametrize("domain", [LEDGER + "/", LEDGER.upper(), "https://ledger.example:443", "ledger.example"])
def test_domains_are_compared_as_text(domain: str) -> None:
    _, body = HOST, {"type": "FeedbackRequest", "host_did": HOST.did}
    assert unheard(HOST.sign(body, domain=domain), "FeedbackRequest") in ("wrong_domain", "schema_invalid")


# DIDs


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("did:key:z6Mk", "key_not_acceptable"),
        ("did:key:z6LSeu9HkTHSfLLeUs2nnzUSNedgDUevfNQgQjQC23ZCit6F", "key_not_acceptable"),
        ("did:key:f01", "did_not_canonical"),
        (f"{GUEST.did}#{GUEST.multikey}", "did_not_canonical"),
        (f"{GUEST.did}/path", "did_not_canonical"),
        (f"{GUEST.did}?query", "did_not_canonical"),
        ("did:jwk:e30", "key_not_acceptable"),
        ("did:jwk:e30=", "did_not_canonical"),
        ("did:jwk:e31", "did_not_canonical"),
        ("did:jwk:!!!!", "did_not_canonical"),
        ("did:web:cottage.example", "did_method_not_supported"),
        ("did:ion:abc", "did_not_canonical"),
        ("not a did", "did_not_canonical"),
    ],
)
def test_dids_that_have_no_key_here(name: str, code: str) -> None:
    with pytest.raises(StaylogError) as refusal:
        offline(name)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "change",
    [
        {"d": "AAAA"},
        {"crv": "X25519"},
        {"kty": "EC"},
        {"x": "AAAA"},
        {"x": None},
        {"x": "A" * 44},
        {"use": "enc"},
    ],
    ids=str,
)
def test_jwks_that_are_not_ed25519_public_keys(change: dict[str, Any]) -> None:
    x = urlsafe_b64encode(GUEST.public).rstrip(b"=").decode()
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": x}
    name = "did:jwk:" + urlsafe_b64encode(jcs.dumps({**jwk, **change})).rstrip(b"=").decode()
    did.check(name)
    with pytest.raises(StaylogError) as refusal:
        offline(name)
    assert refusal.value.code == "key_not_acceptable"


def test_a_reference_instead_of_a_credential() -> None:
    reference = {"credential_uri": "https://idv.example/credentials/55"}
    assert refused(reference) == "credential_by_reference"
    body = statement("ReviewSubmission", guest_credential=reference)
    assert unheard(body, "ReviewSubmission") == "credential_by_reference"


def test_an_untrusted_issuer_costs_nothing() -> None:
    """Trust and times come before the proof: pyld is never asked."""

    def never(*documents: dict[str, Any]) -> list[bytes]:
        raise AssertionError(documents)

    from ledger.identity.credentials import verify

    unknown = credential(issuer=Speaker(9, "https://other.example", "/keys/1"), suites=(proofs.ED25519_2020,))
    for document, now in ((unknown, NOW), (credential(suites=(proofs.ED25519_2020,)), NOW + timedelta(days=400))):
        with pytest.raises(StaylogError) as refusal:
            verify(document, "guest", TRUST, now, never)
        assert refusal.value.code in ("issuer_not_trusted", "expired")
