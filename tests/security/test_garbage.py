"""Whatever stands anywhere in a credential or statement: a refusal with a code, never another error, never acceptance
of something else."""

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from api.codes import CODES
from ledger.canon import proofs
from ledger.errors import StaylogError
from ledger.identity.statements import KINDS
from tests.identities import CHALLENGE, ISSUER, bodies, credential, hear, judge, signed, statement
from tests.ledger.identity.test_credentials import places

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(
        ["did:key:z6Mk", "did:jwk:e30", "did:web:a", "https://idv.example", "_:b0", "@id", "z" + "2" * 87]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "type", "@id", "@context", "@value", "proof", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def all_places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Objects and lists too, and the whole."""
    found = {path[:length] for path in places(value) for length in range(1, len(path) + 1)}
    return sorted(found, key=str)


def put(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    changed = deepcopy(document)
    *way, last = path
    target = changed
    for step in way:
        target = target[step]
    target[last] = value
    return changed


def verdict(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except StaylogError as error:
        refusal = error
    assert refusal.code in CODES
    assert refusal.message
    return refusal


@settings(max_examples=300)
@given(st.data())
def test_garbage_in_a_credential(data: st.DataObject) -> None:
    role = data.draw(st.sampled_from(["guest", "host"]))
    suite = data.draw(st.sampled_from(proofs.SUITES))
    document = credential(role, (suite,))
    path = data.draw(st.sampled_from(all_places(document)))
    changed = put(document, path, data.draw(_values))
    found = verdict(judge, changed, role)
    if not isinstance(found, StaylogError):
        assert found.claims == document["credentialSubject"]


@settings(max_examples=200)
@given(st.data())
def test_garbage_that_an_issuer_signed(data: st.DataObject) -> None:
    """The proof holds, by the suite that takes anything: the form must refuse what is read later."""
    document = credential(data.draw(st.sampled_from(["guest", "host"])))
    role = "guest" if "OpenSTRGuestCredential" in document["type"] else "host"
    path = data.draw(st.sampled_from([path for path in all_places(document) if path[0] != "proof"]))
    found = verdict(judge, signed(put(document, path, data.draw(_values))), role)
    if not isinstance(found, StaylogError):
        assert isinstance(found.subject, str)
        assert found.key == ISSUER.public
        if role == "guest":
            assert found.claims["idv_level"] in ("email_verified", "identity_verified", "payment_verified")
            assert isinstance(found.claims["issuer_guest_id"], str)
        else:
            verdict(found.require_listing, "rose-cottage")


@settings(max_examples=300)
@given(st.data())
def test_garbage_in_a_statement(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    body = statement(kind)
    path = data.draw(st.sampled_from(all_places(body)))
    changed = put(body, path, data.draw(_values))
    found = verdict(hear, changed, kind)
    assert isinstance(found, StaylogError) or changed == body


@settings(max_examples=300)
@given(st.data())
def test_garbage_that_a_speaker_signed(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    speaker, body = bodies()[kind]
    path = data.draw(st.sampled_from(all_places(body)))
    changed = put(body, path, data.draw(_values))
    challenge = CHALLENGE if kind == "BookingVerification" else None
    found = verdict(hear, speaker.sign(changed, challenge=challenge), kind)
    if not isinstance(found, StaylogError):
        assert found.speaker == speaker.did


@settings(max_examples=200)
@given(st.data())
def test_garbage_in_several_places_of_a_statement(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    speaker, body = bodies()[kind]
    for name in data.draw(st.lists(st.sampled_from(sorted(body)), min_size=1, max_size=5)):
        body[name] = data.draw(_values)
    challenge = CHALLENGE if kind == "BookingVerification" else None
    signed_body = speaker.sign(body, challenge=challenge)
    if data.draw(st.booleans()):
        signed_body["proof"] = data.draw(_values)
    found = verdict(hear, signed_body, kind)
    if not isinstance(found, StaylogError):
        assert found.speaker == speaker.did


@given(_values)
def test_garbage_for_a_document(value: Any) -> None:
    assert isinstance(verdict(judge, value), StaylogError)
    for kind in KINDS:
        assert isinstance(verdict(hear, value, kind), StaylogError)
