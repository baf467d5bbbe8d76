"""Every code by which a body is refused for its form, or for its own proof."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.api.refusals import (
    BROWN,
    FUTURE,
    REFERENCES,
    Case,
    answered,
    body,
    changed,
    rated,
    raw,
    reproved,
    shown,
    try_refusal,
    with_receipt,
)
from tests.identities import IDV, NOW, REVIEW_ID, THIEF, Speaker, signed
from tests.ledger.canon.test_ed25519 import did_jwk
from tests.reviewing import DOMAIN, HOST, credential, encoded, resigned, response, review, stay_receipt, unsigned
from tests.security.verdicts import subject


def claims(**changes: Any) -> Any:
    return signed(subject(credential(BROWN), **changes))


def stolen() -> Any:
    return resigned(review(BROWN, reference=next(REFERENCES)), THIEF)


def stolen_in_their_name() -> Any:
    return resigned(review(BROWN, reference=next(REFERENCES)), Speaker(4, BROWN.did, f"#{BROWN.multikey}"))


def better_rated() -> Any:
    made = review(BROWN, reference=next(REFERENCES))
    made["ratings"]["overall"] = 5
    return made


CASES = [
    # The body.
    Case("malformed_json", "no JSON", raw(b'{"type": "ReviewSubmission"')),
    Case("malformed_json", "nothing", raw(b"")),
    Case("malformed_json", "NaN", raw(lambda: encoded(unsigned()).replace(b"4.5", b"NaN"))),
    Case("malformed_json", "a response", raw(b"[", path=f"/v1/reviews/{REVIEW_ID}/response")),
    Case("duplicate_key", "two references", raw(b'{"booking_reference": "A", "booking_reference": "B"}')),
    Case("duplicate_key", "further inside", raw(b'{"ratings": {"overall": 1, "overall": 5}}')),
    Case("too_deep", "15 levels", raw(b"[" * 15 + b"]" * 15)),
    Case("not_utf8", "Latin-1", raw('{"review_text": "Très bien"}'.encode("latin-1"))),
    Case("not_utf8", "half of a pair", raw(b'{"review_text": "\\ud83c"}')),
    Case("number_out_of_range", "2^53", raw(b'{"ratings": {"overall": 9007199254740992}}')),
    Case("schema_invalid", "not an object", raw(b"[]")),
    Case("schema_invalid", "no reference", changed(booking_reference=None), fields=("",)),
    Case("schema_invalid", "an unknown member", changed(stars=5), fields=("",)),
    Case("schema_invalid", "an empty reference", changed(booking_reference=""), fields=("booking_reference",)),
    Case("schema_invalid", "a listing with a slash", changed(listing_id="a/b"), fields=("listing_id",)),
    Case("schema_invalid", "a text that is a number", changed(review_text=5), fields=("review_text",)),
    Case("schema_invalid", "a proof with a challenge", reproved(challenge="x"), fields=("proof",)),
    Case(
        "schema_invalid",
        "a receipt without its guest",
        with_receipt(lambda _: {name: value for name, value in stay_receipt(BROWN).items() if name != "guest_did"}),
        fields=("booking_evidence",),
    ),
    Case(
        "schema_invalid",
        "a response to another review than its address",
        body(lambda: response(REVIEW_ID), path=f"/v1/reviews/{REVIEW_ID[:-1]}e/response"),
        fields=("review_id",),
    ),
    Case("schema_invalid", "an empty response", answered(text=""), fields=("response_text",)),
    Case(
        "schema_invalid", "a response of white space", answered(text="\u3000\n \u2028\x85"), fields=("response_text",)
    ),
    Case("rating_out_of_range", "6 stars", rated(overall=6), fields=("ratings.overall",)),
    Case("rating_out_of_range", "half a star", rated(value=0.5), fields=("ratings.value",)),
    Case("rating_out_of_range", "4.3 stars", rated(location=4.3), fields=("ratings.location",)),
    Case("text_too_long", "a review", changed(review_text="x" * 2001), fields=("review_text",)),
    Case("text_too_long", "feedback", changed(private_feedback="\U0001f3e0" * 2001), fields=("private_feedback",)),
    Case("text_too_long", "a response", answered(text="x" * 501), fields=("response_text",)),
    Case("date_invalid", "a day that does not exist", changed(check_in="2026-02-30"), fields=("check_in",)),
    Case("date_invalid", "another spelling", changed(check_out="24.05.2026"), fields=("check_out",)),
    Case("date_invalid", "no night", changed(check_in="2026-05-24"), fields=("check_out",)),
    Case("date_invalid", "a proof of no time", reproved(created="2026-06-31T12:00:00Z"), fields=("proof.created",)),
    Case("did_not_canonical", "a host in capitals", changed(host_did="did:web:Cottage.example")),
    Case("did_not_canonical", "a host that is no DID", changed(host_did="https://cottage.example")),
    Case(
        "did_not_canonical",
        "in a receipt",
        with_receipt(lambda _: stay_receipt(BROWN) | {"guest_did": "did:web:guest.example."}),
    ),
    Case(
        "credential_by_reference",
        "its address",
        changed(guest_credential={"credential_uri": f"{IDV}/credentials/1"}),
    ),
    Case("too_large", "a body", raw(b'{"review_text": "%s"}' % (b"x" * 256 * 1024))),
    Case("too_large", "a credential", shown(lambda: claims(idv_method="x" * 65536))),
    Case("unsupported_media_type", "text", raw(b"{}", media_type="text/plain")),
    Case("unsupported_media_type", "a form", raw(b"a=b", media_type="application/x-www-form-urlencoded")),
    Case("unsupported_media_type", "none", raw(b"{}", media_type=None)),
    Case("parameter_invalid", "no id", raw(b"{}", path="/v1/reviews/rev-1/response"), fields=("review_id",)),
    # The proof of the body.
    Case("proof_invalid", "changed after signing", body(better_rated)),
    Case("proof_invalid", "a thief in the name of the guest", body(stolen_in_their_name)),
    Case("proof_type_not_supported", "of the body", reproved(cryptosuite="ecdsa-jcs-2019")),
    Case("wrong_proof_purpose", "a login", reproved(proofPurpose="authentication")),
    Case("proof_value_invalid", "of the body", reproved(proofValue="z2")),
    Case("bad_verification_method", "another name of the key", reproved(verificationMethod=f"{BROWN.did}#key-1")),
    Case("wrong_domain", "another ledger", body(lambda: review(BROWN, domain="https://ledger.example"))),
    Case("wrong_domain", "a slash at the end", body(lambda: review(BROWN, domain=f"{DOMAIN}/"))),
    Case("wrong_domain", "a response to another", answered(domain="https://ledger.example")),
    Case("stale_proof", "of six minutes ago", body(lambda: review(BROWN, now=NOW - timedelta(minutes=6)))),
    Case("stale_proof", "from the future", body(lambda: review(BROWN, now=FUTURE))),
    Case("stale_proof", "a response", answered(now=FUTURE)),
    Case("holder_mismatch", "a stolen credential", body(stolen)),
    Case("self_review", "the host as a guest", body(lambda: review(HOST, HOST))),
    Case("self_review", "the host's key by another name", body(lambda: review(Speaker(3, did_jwk(HOST.public), "#0")))),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    try_refusal(case, request, tmp_path)
