"""What an honest credential tells, and that no claim can be changed in it."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from ledger.canon import proofs
from ledger.canon.times import format_time
from ledger.errors import NotAccepted, StaylogError
from ledger.identity import credentials
from ledger.identity.issuers import Issuer, Registry
from tests.identities import (
    GUEST,
    HOST,
    IDV,
    ISSUER,
    NOW,
    STATUS,
    TRUST,
    Speaker,
    canonize,
    credential,
    judge,
    signed,
)

ROLES = ("guest", "host")


def refusal(document: Any, role: str = "guest", trust: Registry = TRUST, **when: Any) -> str:
    with pytest.raises(StaylogError) as refused:
        judge(document, role, trust, **when)
    return refused.value.code


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_a_guest_is_told(suite: str) -> None:
    verdict = judge(credential(suites=(suite,)))
    assert (verdict.role, verdict.subject, verdict.issuer) == ("guest", GUEST.did, IDV)
    assert (verdict.claims["idv_level"], verdict.claims["issuer_guest_id"]) == ("payment_verified", "ig-55")
    assert (verdict.suite, verdict.key) == (suite, ISSUER.public)
    assert verdict.valid_until == NOW + timedelta(days=70)
    assert verdict.statuses == (STATUS,)


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_a_host_is_told_with_its_listings(suite: str) -> None:
    verdict = judge(credential("host", (suite,)), "host")
    assert (verdict.role, verdict.subject) == ("host", HOST.did)
    verdict.require_listing("rose-cottage")
    verdict.require_listing("loft-2")
    with pytest.raises(NotAccepted) as refused:
        verdict.require_listing("castle")
    assert refused.value.code == "listing_not_covered"


def test_the_cheapest_proof_of_a_set_counts() -> None:
    """Another proof beside it, of a suite that is not known here or broken, changes nothing."""
    document = credential()
    assert [proofs.suite_of(proof) for proof in document["proof"]] == [proofs.ED25519_2020, proofs.EDDSA_JCS]
    assert judge(document).suite == proofs.EDDSA_JCS
    document["proof"].append({"type": "JsonWebSignature2020", "jws": "e30..x"})
    assert judge(document).suite == proofs.EDDSA_JCS
    document["proof"][0]["proofValue"] = "z" + "2" * 87
    assert judge(document).suite == proofs.EDDSA_JCS
    del document["proof"][1]
    assert refusal(document) in ("proof_invalid", "proof_value_invalid")


def test_a_set_of_two_graph_proofs_takes_the_newer() -> None:
    suites = (proofs.ED25519_2020, proofs.EDDSA_RDFC)
    assert judge(credential(suites=suites)).suite == proofs.EDDSA_RDFC


@pytest.mark.parametrize("issuer", [{"id": IDV}, {"id": IDV, "name": "IDV"}, {"id": IDV, "description": "d"}])
@pytest.mark.parametrize("suite", proofs.SUITES)
def test_of_an_issuer_that_is_an_object_the_id_is_taken(issuer: dict[str, str], suite: str) -> None:
    assert judge(signed({**credential(), "issuer": issuer}, suite)).issuer == IDV


@pytest.mark.parametrize("did", ["key", "jwk", "web"])
def test_issuers_may_be_dids(did: str) -> None:
    speakers = {
        "key": Speaker(7),
        "jwk": Speaker(7, "did:jwk:eyJrdHkiOiJPS1AifQ", "#0"),
        "web": Speaker(7, "did:web:idv.example:a", "#key-1"),
    }
    speaker = speakers[did]
    trust = Registry([Issuer("guest", speaker.did, "trusted", (speaker.multikey,))])
    assert judge(credential(issuer=speaker), trust=trust).issuer == speaker.did


def test_every_pinned_key_of_an_issuer_counts() -> None:
    second = Speaker(8, IDV, "/keys/2")
    trust = Registry([Issuer("guest", IDV, "trusted", (ISSUER.multikey, second.multikey))])
    assert judge(credential(issuer=second), trust=trust).key == second.public
    assert judge(credential(), trust=trust).key == ISSUER.public


@pytest.mark.parametrize("level", ["email_verified", "identity_verified", "payment_verified"])
@pytest.mark.parametrize("highest", ["email_verified", "identity_verified", "payment_verified", None])
def test_an_issuer_is_trusted_up_to_a_level(level: str, highest: str | None) -> None:
    trust = Registry([Issuer("guest", IDV, "trusted", (ISSUER.multikey,), highest)])
    document = credential(idv_level=level, payment_method_type=None)
    # In the order of the alphabet as well.
    if highest is None or level <= highest:
        assert judge(document, trust=trust).claims["idv_level"] == level
    else:
        assert refusal(document, trust=trust) == "issuer_not_trusted"


def test_times_are_judged_to_the_second() -> None:
    document = credential()
    start, end = NOW - timedelta(days=10), NOW + timedelta(days=70)
    second = timedelta(seconds=1)
    assert judge(document, now=start - credentials.SKEW)
    assert refusal(document, now=start - credentials.SKEW - second) == "not_yet_valid"
    assert judge(document, now=end - second)
    assert refusal(document, now=end) == "expired"


def test_times_of_the_proof_are_judged() -> None:
    document, start = credential(), NOW - timedelta(days=10)
    early = format_time(start - credentials.SKEW - timedelta(seconds=1))
    late = format_time(NOW + credentials.SKEW + timedelta(seconds=1))
    assert refusal(signed(document, created=early)) == "proof_time_invalid"
    assert refusal(signed(document, created=late)) == "proof_time_invalid"
    assert judge(signed(document, created=format_time(NOW + credentials.SKEW)))
    assert judge(signed(document, created=format_time(start - credentials.SKEW)))
    assert judge(signed(document, expires=format_time(NOW + timedelta(seconds=1))))
    assert refusal(signed(document, expires=format_time(NOW))) == "proof_time_invalid"


def test_times_have_offsets_and_exist() -> None:
    document = credential()
    assert judge(signed({**document, "validUntil": "2026-06-01T14:00:00.5+02:00"}))
    assert refusal(signed({**document, "validUntil": "2026-06-01T14:00:00+02:00"})) == "expired"
    assert refusal(signed({**document, "validUntil": "2027-06-01T14:00:00"})) == "date_invalid"
    assert refusal(signed({**document, "validUntil": "2027-02-29T14:00:00Z"})) == "date_invalid"


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_times_at_the_ends_of_the_calendar_are_refused(time: str) -> None:
    document = credential()
    for name in ("validFrom", "validUntil"):
        assert refusal({**document, name: time}) == "date_invalid"
    for name in ("created", "expires"):
        options: dict[str, Any] = {name: time}
        assert refusal(signed(document, **options)) == "date_invalid"


def test_times_that_nobody_reads_exist_too() -> None:
    document = credential("host")
    document["credentialSubject"]["identity_verified_at"] = "2026-02-30T00:00:00Z"
    assert refusal(signed(document), "host") == "date_invalid"


@pytest.mark.parametrize(
    ("role", "level", "days", "code"),
    [
        ("guest", "payment_verified", 90, None),
        ("guest", "payment_verified", 91, "missing_status"),
        ("guest", "identity_verified", 91, "missing_status"),
        ("guest", "email_verified", 700, None),
        ("host", None, 30, "missing_status"),
    ],
)
def test_what_cannot_be_revoked_must_end_soon(role: str, level: str | None, days: int, code: str | None) -> None:
    claims: dict[str, Any] = {"idv_level": level, "payment_method_type": None} if level else {}
    document = credential(role, **claims)
    del document["credentialStatus"]
    document["validUntil"] = format_time(NOW - timedelta(days=10) + timedelta(days=days))
    if code is None:
        assert judge(signed(document), role).statuses == ()
    else:
        assert refusal(signed(document), role) == code


def test_several_statuses_are_all_told() -> None:
    statuses = [STATUS, {**STATUS, "id": f"{IDV}/status/1#0", "statusPurpose": "suspension", "statusListIndex": "0"}]
    assert judge(signed({**credential(), "credentialStatus": statuses})).statuses == tuple(statuses)
    nameless = [{name: value for name, value in status.items() if name != "id"} for status in statuses]
    assert judge(signed({**credential(), "credentialStatus": nameless})).statuses == tuple(nameless)


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_statuses_of_one_name_are_refused(suite: str) -> None:
    """In a graph they are one thing: purpose and place could be exchanged between them after signing."""
    statuses = [STATUS, {**STATUS, "statusPurpose": "suspension", "statusListIndex": "78"}]
    assert refusal(signed({**credential(), "credentialStatus": statuses}, suite)) == "schema_invalid"


def test_the_role_of_a_credential_is_told() -> None:
    assert [credentials.role_of(credential(role)) for role in ROLES] == list(ROLES)
    given: list[Any] = [{}, [], "x", None, {"type": "VerifiableCredential"}, {"type": ["VerifiableCredential"]}]
    for wrong in given:
        with pytest.raises(NotAccepted) as refused:
            credentials.role_of(wrong)
        assert refused.value.code == "wrong_credential_type"


def test_every_verdict_is_counted() -> None:
    def count(verdict: str) -> float:
        labels = {"role": "guest", "verdict": verdict}
        return REGISTRY.get_sample_value("staylog_credentials_total", labels) or 0

    before = count("accepted"), count("expired")
    judge(credential())
    refusal(credential(), now=NOW + timedelta(days=400))
    assert (count("accepted"), count("expired")) == (before[0] + 1, before[1] + 1)


# A claim changed anywhere breaks the proof


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every value of a document that is not an object or a list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*path, number))
    else:
        yield path


# Another value of the same form, where adding a letter would not give one.
OTHER = {
    "idv_level": "identity_verified",
    "age_range": "45_54",
    "payment_method_type": "credit_card",
    "host_type": "individual",
    "statusPurpose": "suspension",
    "statusListIndex": "78",
    "country": "FR",
    "country_of_residence": "FR",
    "business_country": "FR",
    "aggregate_rating": 4.9,
    "property_rating": 4.8,
}
# Members whose change is noticed before the proof is.
EARLIER = {"issuer": "issuer_not_trusted", "@context": "context_not_allowed", "type": "wrong_credential_type"}


def other(name: str | int, value: Any) -> Any:
    if name in OTHER:
        return OTHER[str(name)]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if "T" in value and value[0] == "2":
        return value.replace(":00", ":01", 1) if ":00" in value else value.replace(":15", ":16", 1)
    return value + "x"


def changes(role: str) -> Iterator[Any]:
    document = credential(role)
    del document["proof"]
    for path in places(document):
        yield pytest.param(role, path, id=f"{role} {'.'.join(map(str, path))}")


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(("role", "path"), [*changes("guest"), *changes("host")])
def test_a_claim_changed_anywhere_breaks_the_proof(suite: str, role: str, path: tuple[str | int, ...]) -> None:
    document = credential(role, (suite,))
    *way, last = path
    target: Any = document
    for step in way:
        target = target[step]
    target[last] = other(last, target[last])
    # The first type stays in the list, so that only the form is wrong; the level goes with the payment.
    wrong_form = {("type", 0), ("credentialSubject", "idv_level"), ("credentialStatus", "type")}
    code = "schema_invalid" if path in wrong_form else EARLIER.get(str(path[0]), "proof_invalid")
    assert refusal(document, role) == code
    # Not only because its form was looked at first.
    proof = document.pop("proof")
    with pytest.raises(StaylogError):
        proofs.verify(document, proof, [ISSUER.public], canonize)


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize("level", ["email_verified", "identity_verified"])
def test_the_level_cannot_be_changed(suite: str, level: str) -> None:
    """Neither way: by itself, with what goes with it."""
    document = credential(suites=(suite,), payment_method_type=None)
    document["credentialSubject"]["idv_level"] = level
    assert refusal(document) == "proof_invalid"


OPTIONAL = [
    *(("guest", ("credentialSubject", name)) for name in ("country_of_residence", "age_range", "phone_verified")),
    *(("guest", (name,)) for name in ("credentialStatus",)),
    *(("host", ("credentialSubject", name)) for name in ("business_name", "phone_verified", "reputation")),
    *(("host", ("credentialSubject", "properties", 0, name)) for name in ("property_reputation",)),
    *(("host", ("credentialSubject", "properties", number)) for number in (0, 1)),
    ("host", ("credentialSubject", "reputation", "rating_count")),
]


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(("role", "path"), OPTIONAL)
def test_a_claim_that_is_left_out_or_added_breaks_the_proof(suite: str, role: str, path: tuple[str | int, ...]) -> None:
    document = credential(role, (suite,))
    without = deepcopy(document)
    *way, last = path
    target: Any = without
    for step in way:
        target = target[step]
    del target[last]
    assert refusal(without, role) == "proof_invalid"
    assert refusal({**document, "proof": signed(without, suite)["proof"]}, role) == "proof_invalid"
