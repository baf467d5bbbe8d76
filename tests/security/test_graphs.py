"""Contexts, terms, edits that leave the graph as it is, and graphs that take for ever."""

from copy import deepcopy
from typing import Any

import pytest

from ledger.canon import proofs
from ledger.errors import Misconfigured, StaylogError
from ledger.identity import contexts
from tests.identities import (
    GUEST_CLAIMS,
    ISSUER,
    PROPERTY,
    credential,
    judge,
    signed,
)
from tests.security.verdicts import GRAPH_SUITES, refused, subject
from tests.timing import quickest


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
    honest = credential("host")
    poisoned = quickest(lambda: refused(document, "host"))
    assert refused(document, "host") == "too_complex"
    # Ten milliseconds, or on a slow machine as long as forty verdicts on credentials that are no graphs.
    assert poisoned < max(0.010, 40 * quickest(lambda: judge(honest, "host")))
