"""Canonical N-Quads: nothing is left out silently, nothing takes for ever, and two implementations agree."""

import re
from copy import deepcopy
from threading import Barrier, Event, Thread
from typing import Any

import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from ledger.canon import jcs
from ledger.canon.rdf import MAX_BLANK_NODES, MAX_QUADS, Canonicaliser
from ledger.errors import NotAccepted, StaylogError, Unavailable
from ledger.identity import contexts
from tests.identities import CLAIMS, GUEST_CLAIMS, HOST_CLAIMS, NOW, PROPERTY, STATUS, canonize, credential
from tests.timing import quickest
from tests.waiting import refused_at_once, until

CONTEXTS = {url: contexts._read(url) for url in contexts.PINS}


def graph(role: str = "guest", **claims: Any) -> dict[str, Any]:
    """A credential without its proof."""
    document = credential(role)
    del document["proof"]
    return {**document, "credentialSubject": {**document["credentialSubject"], **claims}}


def refusal(document: Any) -> str:
    with pytest.raises(StaylogError) as refused:
        canonize(document)
    return refused.value.code


# Nothing is left out


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"favourite_colour": "blue"}, "undefined_term"),
        ({"idv_levels": "x"}, "undefined_term"),
        ({"type": "Nope"}, "undefined_term"),
        ({"type": ["Nope"]}, "undefined_term"),
        ({"id": "relative"}, "undefined_term"),
        ({"id": "//evil.example/x"}, "undefined_term"),
        ({"id": "urn:x: b"}, "undefined_term"),
        ({"id": "https://a.example/<b>"}, "undefined_term"),
        ({"idv_method": 9.7}, "schema_invalid"),
        ({"idv_method": [0.1 + 0.2]}, "schema_invalid"),
        ({"idv_method": "half a pair \ud800"}, "schema_invalid"),
        ({"@type": None}, "schema_invalid"),
        ({"@set": [[]], "idv_level": {}}, "schema_invalid"),
        ({"id": "../up"}, "undefined_term"),
        ({"id": ""}, "undefined_term"),
        ({"idv_method": "bell \a"}, "schema_invalid"),
        ({"idv_method": "not a character \uffff"}, "schema_invalid"),
        ({"idv_method": ["fine", {"@value": "del \x7f"}]}, "schema_invalid"),
        ({"@context": "https://evil.example/v1"}, "context_not_allowed"),
        ({"idv_level": {"@value": 1, "@language": "x", "@type": "y"}}, "schema_invalid"),
    ],
)
def test_what_a_signature_would_not_cover_is_refused(change: dict[str, Any], code: str) -> None:
    assert refusal(graph(**change)) == code


def test_a_protected_term_cannot_be_redefined() -> None:
    document = graph()
    document["@context"] = [*document["@context"], {"idv_level": "https://evil.example/level"}]
    assert refusal(document) == "schema_invalid"


def test_options_of_a_proof_are_all_signed_in_each_allowed_list_of_contexts() -> None:
    """With the contexts of RFC-004's own example and a context that lacks the suite, one quad would be left."""
    options = {
        "type": "Ed25519Signature2020",
        "created": "2026-04-01T00:00:00Z",
        "expires": "2026-05-01T00:00:00Z",
        "verificationMethod": "https://idv.example/keys/1",
        "proofPurpose": "assertionMethod",
    }
    found = {canonize({**options, "@context": allowed})[0] for allowed in contexts.ALLOWED}
    assert len(found) == 1
    [quads] = found
    assert quads.count(b"\n") == len(options)
    for name in ("created", "verificationMethod", "proofPurpose"):
        other = {**options, name: {"proofPurpose": "authentication"}.get(name, "https://other.example")}
        assert canonize({**other, "@context": contexts.ALLOWED[0]})[0] != quads


def test_a_credential_means_the_same_in_each_allowed_list_of_contexts() -> None:
    for role in CLAIMS:
        found = {canonize({**graph(role), "@context": allowed})[0] for allowed in contexts.ALLOWED}
        assert len(found) == 1


# Nothing takes for ever


def poison(children: int) -> dict[str, Any]:
    """Plain nested objects, 1.1 kB: two that are alike, with children that are alike."""
    place = {"listing_id": "a", "property_reputation": [{"verified_stays": 1} for _ in range(children)]}
    return graph("host", properties=[deepcopy(place), deepcopy(place)])


@pytest.mark.parametrize("children", [2, 5, 8, 9])
def test_poison_is_refused_at_once(children: int) -> None:
    """With eight children pyld takes more than 25 seconds. Here it takes ten milliseconds, or on a slow machine as long
    as five graphs that are in order."""
    document = poison(children)
    assert refusal(document) == "too_complex"
    honest = quickest(lambda: canonize(graph()))
    assert quickest(lambda: refusal(document)) < max(0.010, 5 * honest)


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([{**PROPERTY, "listing_id": str(number)} for number in range(200)], id="200 listings"),
        pytest.param(
            [{"listing_id": str(number), "property_reputation": {"verified_stays": 1}} for number in range(50)],
            id="50 with the same figures",
        ),
        pytest.param([{"listing_id": "a"}, {"listing_id": "a"}], id="alike, and empty"),
    ],
)
def test_honest_shapes_are_canonicalised(places: list[dict[str, Any]]) -> None:
    assert canonize(graph("host", properties=places))[0].count(b"rose") == 0


def test_a_graph_that_is_too_large_is_refused() -> None:
    places = [{"listing_id": str(number)} for number in range(MAX_BLANK_NODES)]
    canonize(graph("host", properties=places, reputation=None))
    assert refusal(graph("host", properties=[*places, {"listing_id": "x"}], reputation=None)) == "too_complex"


def test_a_graph_of_too_many_quads_is_refused() -> None:
    nodes = [{"@id": f"urn:n:{number}", "https://example.org/p": [1, 2, 3, 4]} for number in range(MAX_QUADS // 4)]
    document = {"@context": {}, "@graph": nodes}
    assert canonize(document)[0].count(b"\n") == MAX_QUADS
    nodes[0]["https://example.org/p"] = [1, 2, 3, 4, 5]
    assert refusal(document) == "too_complex"


def test_symmetry_without_any_term_of_ours_is_refused() -> None:
    """Case 074 of the W3C's rdf-canon suite is a clique of blank nodes."""
    nodes = [{"id": f"_:n{number}", "proof": [{"id": f"_:n{other}"} for other in range(10)]} for number in range(10)]
    document = {"@context": {"id": "@id", "proof": "https://example.org/p"}, "@graph": nodes}
    assert refusal(document) == "too_complex"


# One at a time, and a bounded number waits


def test_more_than_eight_do_not_wait() -> None:
    canonicaliser = Canonicaliser(CONTEXTS)
    document, done = graph(), []
    started, go_on = Barrier(9), Event()

    def hold() -> None:
        with canonicaliser._turns:
            started.wait()
            go_on.wait()

    def wait() -> None:
        started.wait()
        done.append(canonicaliser.canonize(document))

    threads = [Thread(target=hold), *(Thread(target=wait) for _ in range(8))]
    for thread in threads:
        thread.start()
    until(lambda: canonicaliser._turns._places._value == 0)
    refused = refused_at_once(lambda: canonicaliser.canonize(document))
    go_on.set()
    for thread in threads:
        thread.join()
    assert isinstance(refused, Unavailable)
    assert (refused.code, refused.retry_after) == ("busy", 5)
    assert len(done) == 8
    assert canonicaliser.canonize(document) == done[0]


def test_threads_get_the_same_bytes() -> None:
    documents = [graph(role) for role in CLAIMS]
    expected, found = canonize(*documents), []
    many = Canonicaliser(CONTEXTS, waiting=100)
    threads = [Thread(target=lambda: found.append(many.canonize(*documents))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 16


def test_a_refusal_gives_the_turn_back() -> None:
    canonicaliser = Canonicaliser(CONTEXTS, waiting=0)
    for _ in range(3):
        with pytest.raises(NotAccepted):
            canonicaliser.canonize(graph(nope=1))
    assert canonicaliser.canonize(graph())


# Two implementations agree


def oracle(document: dict[str, Any]) -> bytes:
    """The canonical N-Quads by pyoxigraph. It cannot load contexts, so they stand in the document."""
    inlined = [CONTEXTS[url]["@context"] for url in document["@context"]]
    quads = pyoxigraph.parse(
        jcs.dumps({**document, "@context": inlined}),
        format=pyoxigraph.RdfFormat.JSON_LD,
        base_iri="urn:x-relative:/",
    )
    dataset = pyoxigraph.Dataset(quads)
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.RDFC_1_0)
    return "".join(sorted(f"{quad} .\n" for quad in dataset)).encode()


_words = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=30
)
_moments = st.datetimes(min_value=NOW.replace(tzinfo=None, year=2020)).map(
    lambda moment: moment.isoformat(timespec="seconds") + "+02:00"
)
# Whatever the published form lets pass.
_ids = st.from_regex(re.compile(schemas.load("common.v1.json")["$defs"]["uri"]["pattern"], re.ASCII), fullmatch=True)
_ratings = st.integers(10, 50).map(lambda tenths: tenths / 10)
_counts = st.integers(0, 2**53 - 1)
_dids = _ids | st.sampled_from([GUEST_CLAIMS["id"], HOST_CLAIMS["id"], "urn:uuid:1", "https://guests.example/7?q=1#x"])


def some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


_guests = some(
    {
        "id": _dids,
        "idv_level": st.sampled_from(["email_verified", "identity_verified", "payment_verified"]),
        "idv_method": _words,
        "issuer_guest_id": _words,
    },
    {"country_of_residence": st.just("NO"), "age_range": st.just("65_plus"), "phone_verified": st.booleans()},
)
_places = some(
    {
        "property_ref": _words,
        "right_to_let_verified": st.booleans(),
        "right_to_let_verified_at": _moments,
        "country": st.just("GB"),
    },
    {
        "local_registration_number": _words,
        "property_reputation": some(
            {}, {"property_rating": _ratings, "property_rating_count": _counts, "verified_stays": _counts}
        ),
    },
)
_hosts = some(
    {
        "id": _dids,
        "host_type": st.sampled_from(["individual", "business"]),
        "identity_verified": st.booleans(),
        "identity_verified_at": _moments,
        "properties": st.lists(_places, min_size=1, max_size=5).map(
            lambda places: [{**place, "listing_id": f"l-{number}"} for number, place in enumerate(places)]
        ),
        "issuer_host_id": _words,
    },
    {
        "business_name": _words,
        "reputation": some(
            {},
            {
                "aggregate_rating": _ratings,
                "rating_count": _counts,
                "response_rate_pct": st.integers(0, 100),
                "cancellation_rate_pct": st.integers(0, 100),
                "reputation_updated_at": _moments,
            },
        ),
    },
)


@settings(max_examples=150)
@given(
    role_and_claims=st.one_of(
        _guests.map(lambda claims: ("guest", claims)), _hosts.map(lambda claims: ("host", claims))
    ),
    which=st.sampled_from(contexts.ALLOWED),
    id_=_ids,
    status=st.booleans(),
)
def test_two_implementations_agree_about_credentials(
    role_and_claims: tuple[str, dict[str, Any]], which: list[str], id_: str, status: bool
) -> None:
    role, claims = role_and_claims
    document = {**graph(role), "@context": which, "id": id_, "credentialSubject": claims}
    if not status:
        del document["credentialStatus"]
    assert canonize(document) == [oracle(document)]


@pytest.mark.parametrize("kind", ["Ed25519Signature2020", "DataIntegrityProof"])
def test_two_implementations_agree_about_proofs(kind: str) -> None:
    options = {
        "type": kind,
        **({"cryptosuite": "eddsa-rdfc-2022"} if kind == "DataIntegrityProof" else {}),
        "created": "2026-04-01T00:00:00Z",
        "expires": "2026-05-01T00:00:00.25+01:00",
        "verificationMethod": "https://idv.example/keys/1",
        "proofPurpose": "assertionMethod",
    }
    for which in contexts.ALLOWED:
        document = {**options, "@context": which}
        assert canonize(document) == [oracle(document)]


def test_two_implementations_agree_about_full_credentials() -> None:
    for role in CLAIMS:
        document = graph(role)
        assert document["credentialStatus"] == STATUS
        assert canonize(document) == [oracle(document)]
