"""Every code of the design has a case, the document names them all, and no statement can be replayed as another."""

import json
from copy import deepcopy
from typing import Any

import httpx
import pytest

from api.codes import CODES
from tests.api import (
    test_codes_of_bodies,
    test_codes_of_bookings,
    test_codes_of_credentials,
    test_codes_of_limits,
    test_codes_of_other_platforms,
    test_codes_of_stays,
)
from tests.api.hosts_and_guests import PDF, attest, attestation, trust_hosts
from tests.api.refusals import BROWN, REFERENCES, first_review, said
from tests.api.site import Person, Site, problem
from tests.api.test_codes_of_credentials import revocable
from tests.identities import REVIEW_ID, bodies
from tests.reviewing import DOMAIN, HOST, response, review, stay_receipt

# Section 7 of the design, written out. "The credential rows" are the codes of the attack table in spec/credentials.md.
SECTION_7 = {
    400: "malformed_json duplicate_key too_deep not_utf8 schema_invalid rating_out_of_range text_too_long date_invalid "
    "did_not_canonical credential_by_reference",
    403: "holder_mismatch wrong_domain stale_proof self_review booking_denied booking_cancelled booking_dates_mismatch "
    "booking_evidence_invalid not_the_host response_window_closed",
    404: "review_not_found submission_not_found unknown_size",
    409: "already_reviewed already_responded",
    413: "too_large proof_too_large",
    415: "unsupported_media_type",
    422: "stay_not_over too_late booking_unverifiable",
    429: "rate_limited quota_exceeded",
    503: "issuer_unavailable status_unavailable host_did_unavailable busy",
}
CREDENTIAL_ROWS = {
    400: "schema_invalid number_out_of_range",
    403: "context_not_allowed undefined_term too_complex proof_type_not_supported proof_chain wrong_proof_purpose "
    "proof_value_invalid proof_invalid proof_time_invalid issuer_key_mismatch bad_verification_method "
    "issuer_not_trusted self_issued wrong_credential_type listing_not_covered expired not_yet_valid missing_expiry "
    "missing_status jwt_not_acceptable holder_binding_unavailable holder_mismatch address_not_allowed status_invalid",
}
# What the design asks for in words, and this ledger has a code for.
OURS = {
    400: "document_invalid document_mismatch key_not_acceptable parameter_invalid",
    403: "host_credential_required consent_mismatch credential_revoked credential_suspended did_document_invalid",
    409: "notice_outdated already_verified",
    422: "claim_too_late log_time_ahead",
    503: "guest_did_unavailable",
}
NOT_HERE = {
    "issuer_unavailable": "keys are pinned, nobody is asked for them: tests/ledger/commands",
    "too_complex": "a credential of the closed form has no objects without an id inside of each other",
    "unknown_size": "it is about reading: tests/api/test_problems.py",
    "proof_too_large": "it is about reading: tests/api/test_problems.py",
}
# What the OpenAPI document says of the operations besides; most of it is the operator's trouble.
ALSO_DOCUMENTED = {
    "bad_request": "tests/api/test_edge.py, tests/api/test_parts.py",
    "internal_error": "tests/api/test_problems.py",
    "not_stored": "tests/api/test_problems.py",
    "storage_unavailable": "tests/api/test_outage.py",
    "storage_full": "tests/crash/test_disk_full.py",
    "clock_unconfirmed": "tests/api/test_clock.py",
    "log_damaged": "tests/crash/test_damage.py",
    "log_behind": "tests/crash/test_restored.py",
    "commit_not_replicated": "tests/crash/test_synchronous_standby.py",
    "log_forked": "tests/crash/test_restored.py",
    "mark_missing": "tests/crash/test_forks.py",
    "mark_unreadable": "tests/crash/test_forks.py",
    "database_changed": "tests/crash/test_failover.py",
}
FILES = (
    test_codes_of_bodies,
    test_codes_of_bookings,
    test_codes_of_credentials,
    test_codes_of_limits,
    test_codes_of_other_platforms,
    test_codes_of_stays,
)
CASES = [case for file in FILES for case in file.CASES]


def codes(*tables: dict[int, str]) -> set[str]:
    return {code for table in tables for names in table.values() for code in names.split()}


def test_every_code_has_a_case_or_a_reason() -> None:
    designed = codes(SECTION_7, CREDENTIAL_ROWS, OURS)
    tried = {case.code for case in CASES}
    assert NOT_HERE.keys() <= designed
    assert not tried & NOT_HERE.keys()
    assert designed - NOT_HERE.keys() == tried
    for table in (SECTION_7, CREDENTIAL_ROWS, OURS):
        for status, names in table.items():
            for code in names.split():
                assert CODES[code].status == status, code


def test_no_two_cases_have_one_name() -> None:
    for file in FILES:
        names = [str(case) for case in file.CASES]
        assert [name for name in set(names) if names.count(name) > 1] == []


# Every operation that takes a statement, and the one that tells what became of it.
OPERATIONS = {
    "submit_review": "/v1/reviews",
    "submit_response": "/v1/reviews/{review_id}/response",
    "submit_evidence": "/v1/reviews/{review_id}/evidence",
    "submit_cross_platform": "/v1/reviews/cross-platform",
    "submit_booking": "/v1/bookings",
    "collect_feedback": "/v1/feedback",
    "submission": "/v1/submissions/{submission_id}",
}


def documented(site: Site, name: str) -> set[str]:
    [operation] = site.get("/schema/openapi.json").json()["paths"][OPERATIONS[name]].values()
    assert operation["operationId"] == name
    return {
        code
        for status, answer in operation["responses"].items()
        if status >= "400"
        for code in answer["description"].partition(": ")[2].split(", ")
    }


def test_the_document_names_the_codes_of_the_operations(shared: Site) -> None:
    all_of_them = {code for name in OPERATIONS for code in documented(shared, name)}
    tried = {case.code for case in CASES}
    assert tried <= all_of_them
    assert all_of_them - tried <= NOT_HERE.keys() | ALSO_DOCUMENTED.keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_an_operation_was_seen_to_refuse_is_documented_there(
    shared: Site, name: str, tried: dict[str, set[str]]
) -> None:
    assert tried[name] <= documented(shared, name)


@pytest.fixture(scope="module")
def tried() -> dict[str, set[str]]:
    """By operation, the codes of the cases whose address can be told without a service."""
    found: dict[str, set[str]] = {name: set() for name in OPERATIONS}
    found["submit_cross_platform"] = {case.code for case in test_codes_of_other_platforms.CASES}
    for case in test_codes_of_credentials.CASES:
        if "a response" not in case.what:
            found["submit_review"].add(case.code)
    for case in test_codes_of_bookings.CASES:
        for word, name in WORDS.items():
            if word in case.what:
                found[name].add(case.code)
    return found


WORDS = {
    "a claim": "submit_booking",
    "a notice": "submit_booking",
    "later": "submit_evidence",
    "feedback": "collect_feedback",
    "nobody's": "submission",
}

# No statement can be replayed as another.

RIGHT = {
    "/v1/reviews": ("ReviewSubmission",),
    "/v1/reviews/{}/response": ("HostResponse",),
    "/v1/reviews/{}/evidence": ("EvidenceSupplement",),
    "/v1/reviews/cross-platform": ("CrossPlatformReview",),
    "/v1/bookings": ("BookingNotice", "BookingClaim"),
    "/v1/feedback": ("FeedbackRequest",),
}
# What is said of a statement where it belongs: credentials of `bodies` can be revoked, and nobody says by what list;
# the review is verified, and has its response; no issuer of hosts' credentials is trusted.
READ = {
    "ReviewSubmission": "status_unavailable",
    "BookingClaim": "status_unavailable",
    "HostResponse": "already_responded",
    "EvidenceSupplement": "already_verified",
    "CrossPlatformReview": "issuer_not_trusted",
}


def statement(site: Site, kind: str) -> dict[str, Any]:
    """One of `bodies`, about the review that there is, rightly signed for this ledger."""
    speaker, unsigned = bodies()[kind]
    whole = json.loads(json.dumps(unsigned).replace(REVIEW_ID, first_review(site)))
    return speaker.sign(whole, domain=DOMAIN, challenge="x" * 16 if kind == "BookingVerification" else None)


def send(site: Site, address: str, given: Any) -> httpx.Response:
    if address.endswith("cross-platform"):
        return attest(site, given)
    return site.post(address.format(first_review(site)), given)


@pytest.mark.parametrize("address", RIGHT)
@pytest.mark.parametrize("kind", bodies())
def test_a_statement_is_taken_only_for_what_it_is(shared: Site, kind: str, address: str) -> None:
    """Where it does not belong it is refused by its form, as it is, with each type that is expected there, and without
    a type; and nothing is stored."""
    sent, before = statement(shared, kind), said(shared)
    untyped = {name: value for name, value in sent.items() if name != "type"}
    wrong = [{**sent, "type": expected} for expected in RIGHT[address] if expected != kind]
    if kind not in RIGHT[address]:
        wrong.append(sent)
    elif kind in READ:
        assert send(shared, address, sent).json()["code"] == READ[kind]
    if kind != "ReviewSubmission" or address != "/v1/reviews":
        wrong.append(untyped)
    for given in wrong:
        problem(send(shared, address, given), "schema_invalid")
    assert said(shared) == before


@pytest.mark.parametrize("kind", bodies())
def test_no_statement_is_evidence_but_a_receipt(shared: Site, kind: str) -> None:
    """What somebody has signed for another purpose shows no booking: a notice that the guest got hold of, an answer to
    somebody else's callback, another guest's review."""
    before = said(shared)
    sent = review(BROWN, reference=next(REFERENCES), booking_evidence=statement(shared, kind))
    code = "booking_evidence_invalid" if kind == "StayReceipt" else "booking_unverifiable"
    problem(shared.submit(sent), code)
    assert said(shared) == before


@pytest.mark.parametrize("kind", sorted(bodies().keys() - {"GuestConsent"}))
def test_no_statement_is_consent_but_a_consent(shared: Site, kind: str) -> None:
    trust_hosts(shared)
    before = said(shared)
    sent = attestation(reference=next(REFERENCES), guest_statement=statement(shared, kind))
    problem(attest(shared, sent, PDF), "schema_invalid")
    assert said(shared) == before


def test_a_statement_in_its_place_is_accepted(shared: Site) -> None:
    """So the refusals above are about what was changed: the review with its type and without, and the response."""
    host = Person("Green")
    first = shared.review(BROWN, host, "G-1")
    second = shared.review(BROWN, host, "G-2", type=None)
    assert [first["status"], second["status"]] == ["accepted", "accepted"]
    assert shared.response(second["review_id"], host)["status"] == "accepted"


def test_a_refused_review_occupies_nothing(shared: Site) -> None:
    """Whoever mends it may come again with the same booking."""
    host = Person("Grey")
    for wrong in (
        review(BROWN, host, "H-1", booking_evidence=None),
        review(BROWN, host, "H-1", booking_evidence=stay_receipt(BROWN, HOST, "H-1")),
        review(BROWN, host, "H-1", guest_credential=revocable()),
    ):
        assert shared.submit(wrong).status_code in (403, 422, 503)
    assert shared.review(BROWN, host, "H-1")["status"] == "accepted"


def test_the_same_again_gets_the_same_receipt(shared: Site) -> None:
    """Byte for byte or not: what is signed is the same."""
    host = Person("White")
    sent = review(BROWN, host, "W-1")
    first = shared.submit(sent)
    again = shared.submit(json.dumps(deepcopy(sent), indent=2, sort_keys=True).encode())
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    answer = response(first.json()["review_id"], host)
    assert [shared.respond(answer).status_code for _ in range(2)] == [201, 200]
