"""Every code by which a guest's credential, and what others publish about it and about DIDs, is refused."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ledger.canon import base58
from ledger.canon.times import format_time
from ledger.identity import contexts
from ledger.identity.guestref import GuestReferences
from ledger.identity.issuers import distrust
from tests.api.refusals import BROWN, REFERENCES, Case, Make, Sent, body, shown, try_refusal
from tests.api.site import Site
from tests.identities import IDV, NOW, STATUS, Speaker, did_document, packed, signed, status_list
from tests.identities import credential as usual_credential
from tests.ledger.canon.test_ed25519 import SMALL
from tests.reviewing import DOMAIN, HOST, credential, response, review, stay_receipt, unsigned
from tests.security.verdicts import subject


def claims(**changes: Any) -> Callable[[], Any]:
    """A credential of a careless issuer: it is signed whatever it says."""
    return lambda: signed(subject(credential(BROWN), **changes))


def issued(**changes: Any) -> Callable[[], Any]:
    """The same of what stands beside the claims; None leaves a member out."""

    def make() -> Any:
        document = {**credential(BROWN), **changes}
        return signed({name: value for name, value in document.items() if value is not None})

    return make


def forged(**proof: Any) -> Callable[[], Any]:
    """A credential whose proof was changed after signing."""

    def make() -> Any:
        document = credential(BROWN)
        document["proof"] |= proof
        return document

    return make


def tampered() -> Any:
    return subject(credential(BROWN), idv_level="payment_verified")


def self_issued() -> Any:
    document = {**credential(BROWN), "issuer": BROWN.did}
    return signed(document, speaker=BROWN)


def for_long() -> Any:
    return signed({**credential(BROWN), "validUntil": format_time(NOW + timedelta(days=81))})


def token() -> str:
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"none"}', b"{}", b""))


def envelope() -> Any:
    """As VC 2.0 has it."""
    return {
        "@context": [contexts.CREDENTIALS_V2],
        "type": "EnvelopedVerifiableCredential",
        "id": f"data:application/vc+jwt,{token()}",
    }


def weak_key() -> Any:
    """A guest chooses their key: one under which a signature binds nothing."""
    name = "z" + base58.encode(b"\xed\x01" + SMALL[0])
    made = review(BROWN, reference=next(REFERENCES), guest_credential=usual_credential(id=f"did:key:{name}"))
    made["proof"]["verificationMethod"] = f"did:key:{name}#{name}"
    return made


def revocable(url: str = STATUS["statusListCredential"], **status: Any) -> Any:
    entry = {**STATUS, "statusListCredential": url, "id": f"{url}#77", **status}
    return signed({**credential(BROWN), "credentialStatus": entry})


def listed(purpose: str = "revocation", **changes: Any) -> Make:
    """A review by the holder of a credential whose status list is marked at its place, or changed otherwise."""

    def make(site: Site, stack: ExitStack) -> Sent:
        url = f"{IDV}/status/{next(REFERENCES)}"
        document = status_list([77], url=url, purpose=purpose)
        site.outside.put(url, signed({**document, **changes}))
        return Sent(review(BROWN, reference=next(REFERENCES), guest_credential=revocable(url, statusPurpose=purpose)))

    return make


def listed_by_a_thief(site: Site, stack: ExitStack) -> Sent:
    url = f"{IDV}/status/stolen"
    forged = signed(status_list([], url=url), speaker=Speaker(4, IDV, "/keys/1"))
    site.outside.put(url, forged)
    return Sent(review(BROWN, reference=next(REFERENCES), guest_credential=revocable(url)))


def short_list(site: Site, stack: ExitStack) -> Sent:
    url = f"{IDV}/status/short"
    document = status_list([], url=url)
    document["credentialSubject"]["encodedList"] = packed(bytes(1024))
    site.outside.put(url, signed(document))
    return Sent(review(BROWN, reference=next(REFERENCES), guest_credential=revocable(url)))


def by_web(site: Site, name: str, *, put: bool = True, **document: Any) -> Sent:
    """A review by a guest with a did:web, whose document is as it should be unless it is changed, or not there."""
    guest = Speaker(5, f"did:web:{name}", "#key-1")
    if put:
        site.outside.put(f"https://{name}/.well-known/did.json", did_document(guest, **document))
    shown = signed(subject(credential(BROWN), id=guest.did))
    receipt = stay_receipt(guest, reference="web")
    return Sent(
        guest.sign(unsigned(guest, HOST, "web", guest_credential=shown, booking_evidence=receipt), domain=DOMAIN)
    )


def by_an_absent_guest(site: Site, stack: ExitStack) -> Sent:
    site.outside.host("absent.example")
    return by_web(site, "absent.example", put=False)


def at_web(site: Site, name: str, *, answers: bool, level: str = "identity_verified") -> Sent:
    """A review of a host with a did:web, whose document is not to be had unless it answers."""
    host = Speaker(6, f"did:web:{name}", "#key-1")
    if answers:
        site.outside.put(f"https://{name}/.well-known/did.json", did_document(host))
    elif not name[0].isdigit():
        site.outside.host(name)
        site.outside.take_down(name)
    return Sent(review(BROWN, host, next(REFERENCES), guest_credential=credential(BROWN, level=level)))


def by_a_host_that_is_gone(site: Site, stack: ExitStack) -> Sent:
    """It could be asked when it was reviewed."""
    host = Speaker(7, "did:web:gone.example", "#key-1")
    site.outside.put("https://gone.example/.well-known/did.json", did_document(host))
    review_id = site.review(BROWN, host, next(REFERENCES))["review_id"]
    site.outside.take_down("gone.example")
    site.running.clock.forward(minutes=6)
    return Sent(response(review_id, host, now=site.running.clock()), f"/v1/reviews/{review_id}/response")


def distrusted(site: Site, stack: ExitStack) -> Sent:
    site.add(distrust(site.ledger.issuers(), "guest", IDV, None))
    return Sent(review(BROWN))


def distrusted_meanwhile(site: Site, stack: ExitStack) -> Sent:
    """After the credential was looked at, and before the review came to the log."""
    make = GuestReferences.guest_refs

    async def refs(self: GuestReferences, *about: str) -> list[str]:
        site.add(distrust(site.ledger.issuers(), "guest", IDV, None))
        return await make(self, *about)

    stack.enter_context(patch.object(GuestReferences, "guest_refs", refs))
    return Sent(review(BROWN))


CASES = [
    # The credential.
    Case("schema_invalid", "a credential that is a list", shown(lambda: [credential(BROWN)])),
    Case("schema_invalid", "a claim in a list", shown(claims(idv_method=["passport"]))),
    Case(
        "context_not_allowed", "one more", shown(issued(**{"@context": [*contexts.ALLOWED[0], "https://evil.example"]}))
    ),
    Case("undefined_term", "one more claim", shown(claims(verified=True))),
    Case("jwt_not_acceptable", "a token", shown(token)),
    Case("jwt_not_acceptable", "a token in an envelope", shown(envelope)),
    Case("wrong_credential_type", "of a host", shown(lambda: usual_credential("host", id=BROWN.did))),
    Case("proof_type_not_supported", "of 2018", shown(forged(type="Ed25519Signature2018"))),
    Case("proof_chain", "a chain", shown(forged(previousProof="urn:uuid:1"))),
    Case("wrong_proof_purpose", "of a credential", shown(forged(proofPurpose="authentication"))),
    Case("proof_value_invalid", "of a credential", shown(forged(proofValue="u" + "A" * 86))),
    Case("proof_invalid", "a claim changed after signing", shown(tampered)),
    Case("proof_invalid", "not the pinned key", shown(lambda: credential(BROWN, issuer=Speaker(9, IDV, "/keys/1")))),
    Case(
        "proof_time_invalid",
        "before the credential holds",
        shown(lambda: signed(credential(BROWN), created=format_time(NOW - timedelta(days=11)))),
    ),
    Case("bad_verification_method", "no address", shown(forged(verificationMethod="/keys/1"))),
    Case("issuer_key_mismatch", "another origin", shown(forged(verificationMethod="https://other.example/keys/1"))),
    Case(
        "issuer_not_trusted",
        "nobody knows it",
        shown(lambda: credential(BROWN, issuer=Speaker(9, "https://other.example", "/keys/1"))),
    ),
    Case("issuer_not_trusted", "not any more", distrusted, alone={}),
    Case("issuer_not_trusted", "not any more, meanwhile", distrusted_meanwhile, signed=True, alone={}, others=True),
    Case("self_issued", "by the guest", shown(self_issued)),
    Case("missing_expiry", "for ever", shown(issued(validUntil=None))),
    Case("expired", "last month", shown(lambda: credential(BROWN, now=NOW - timedelta(days=100)))),
    Case("not_yet_valid", "next month", shown(lambda: credential(BROWN, now=NOW + timedelta(days=30)))),
    Case("missing_status", "91 days without", shown(for_long)),
    Case("holder_binding_unavailable", "not a DID", shown(claims(id="urn:uuid:0b1f3cf4-6d3a-4a3e-9f45-0cbf2f9a6d3c"))),
    Case("holder_binding_unavailable", "nobody", shown(issued(credentialSubject=None))),
    Case("key_not_acceptable", "of small order", body(weak_key)),
    # What others publish.
    Case("address_not_allowed", "a guest at a number", lambda site, _: by_web(site, "127.0.0.1", put=False)),
    Case("address_not_allowed", "a guest at a port", lambda site, _: by_web(site, "a.example%3A8443", put=False)),
    Case(
        "address_not_allowed",
        "a host at a number",
        lambda site, _: at_web(site, "10.0.0.5", answers=False),
        signed=True,
    ),
    Case("did_document_invalid", "another's", lambda site, _: by_web(site, "mixed.example", id="did:web:a.example")),
    Case("bad_verification_method", "not in it", lambda site, _: by_web(site, "keyless.example", assertionMethod=[])),
    Case(
        "guest_did_unavailable",
        "not there",
        by_an_absent_guest,
        retry_after=30,
    ),
    Case(
        "host_did_unavailable",
        "nobody answers, and the guest is not worth asking again for",
        lambda site, _: at_web(site, "down.example", answers=False, level="email_verified"),
        signed=True,
        retry_after=30,
    ),
    Case("host_did_unavailable", "a response", by_a_host_that_is_gone, alone={}, others=True, retry_after=30),
    Case("credential_revoked", "for good", listed()),
    Case("credential_suspended", "for now", listed("suspension")),
    Case("status_invalid", "of another issuer", listed(issuer="https://other.example")),
    Case("status_invalid", "of another address", listed(id=f"{IDV}/status/other")),
    Case("status_invalid", "too short", short_list),
    Case("status_invalid", "not at the issuer's", shown(lambda: revocable("https://other.example/status/1"))),
    Case("status_unavailable", "not there", shown(lambda: revocable(f"{IDV}/status/none")), retry_after=30),
    Case("status_unavailable", "not signed by the issuer", listed_by_a_thief, retry_after=30),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    try_refusal(case, request, tmp_path)
