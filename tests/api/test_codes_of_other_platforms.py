"""Every code by which a review of another platform is refused, over HTTP in two parts."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ledger.canon import proofs
from ledger.identity.contexts import canonicaliser
from tests.api.hosts_and_guests import PDF, attest, attestation, consent, host_credential, trust_hosts
from tests.api.refusals import BROWN, REFERENCES, Case, Make, Sent, try_refusal
from tests.api.site import Person, Site
from tests.identities import IDV, NOW, PROPERTY, STATUS, THIEF, Speaker, did_document, signed, status_list
from tests.identities import credential as usual_credential
from tests.reviewing import HOST, OTHER_HOST, credential, resigned

PATH = "/v1/reviews/cross-platform"
JSON_DOCUMENT = b'{"booking": "E-1", "guest": "Brown"}'


def attested(document: bytes = PDF, *, make: Callable[[], Mapping[str, Any]] | None = None, **changes: Any) -> Make:
    """An attestation that counts, unless it is changed."""

    def made(site: Site, stack: ExitStack) -> Sent:
        trust_hosts(site)
        named = {"document_sha256": sha256(document).hexdigest(), **changes}
        given = attestation(reference=next(REFERENCES), **{**named, **(make() if make is not None else {})})
        return Sent(given, PATH, document=document)

    return made


def signed_by(signer: Speaker, **options: Any) -> Make:
    def made(site: Site, stack: ExitStack) -> Sent:
        trust_hosts(site)
        return Sent(resigned(attestation(reference=next(REFERENCES)), signer, **options), PATH, document=PDF)

    return made


def consented(**changes: Any) -> Make:
    return attested(make=lambda: {"guest_statement": consent(BROWN, **changes)})


def credited(make: Callable[[], Any]) -> Make:
    return attested(make=lambda: {"host_credential": make()})


def again(site: Site, stack: ExitStack) -> Sent:
    """The booking of a platform has one review, whatever it says."""
    trust_hosts(site)
    assert attest(site, attestation(reference="A-1")).status_code == 201
    return Sent(attestation(reference="A-1", review_text="Better."), PATH, document=PDF)


def of_a_guest_who_has_reviewed(site: Site, stack: ExitStack) -> Sent:
    """With the guest's consent it is the guest's review, and they have given one."""
    trust_hosts(site)
    guest = Person("Twice")
    site.review(guest, HOST, "A-2")
    return Sent(attestation(reference="A-2", guest_statement=consent(guest)), PATH, document=PDF)


def revoked(site: Site, stack: ExitStack) -> Sent:
    trust_hosts(site)
    url = f"{IDV}/status/hosts"
    site.outside.put(url, status_list([77], url=url))
    document = {**host_credential(), "credentialStatus": {**STATUS, "id": f"{url}#77", "statusListCredential": url}}
    return Sent(attestation(reference=next(REFERENCES), host_credential=signed(document)), PATH, document=PDF)


def no_status(site: Site, stack: ExitStack) -> Sent:
    trust_hosts(site)
    url = f"{IDV}/status/absent"
    document = {**host_credential(), "credentialStatus": {**STATUS, "id": f"{url}#77", "statusListCredential": url}}
    return Sent(attestation(reference=next(REFERENCES), host_credential=signed(document)), PATH, document=PDF)


def of_an_absent_host(site: Site, stack: ExitStack) -> Sent:
    trust_hosts(site)
    site.outside.host("absent-host.example")
    site.outside.take_down("absent-host.example")
    return Sent(attestation(Speaker(8, "did:web:absent-host.example", "#key-1")), PATH, document=PDF)


def of_an_absent_guest(site: Site, stack: ExitStack) -> Sent:
    trust_hosts(site)
    site.outside.host("absent-guest.example")
    guest = Speaker(5, "did:web:absent-guest.example", "#key-1")
    return Sent(attestation(reference=next(REFERENCES), guest_statement=consent(guest)), PATH, document=PDF)


def of_the_host_itself(site: Site, stack: ExitStack) -> Sent:
    """The guest's key is one of the host's, by another name."""
    trust_hosts(site)
    host = Speaker(9, "did:web:two-names.example", "#key-1")
    site.outside.put("https://two-names.example/.well-known/did.json", did_document(host))
    return Sent(attestation(host, "S-1", guest_statement=consent(Speaker(9))), PATH, document=PDF)


def before_hosts_are_trusted(site: Site, stack: ExitStack) -> Sent:
    return Sent(attestation(), PATH, document=PDF)


def no_room_for_graphs(site: Site, stack: ExitStack) -> Sent:
    trust_hosts(site)
    shown = usual_credential("host", suites=(proofs.ED25519_2020,), id=HOST.did)
    turns = canonicaliser()._turns
    while turns._places.acquire(blocking=False):
        stack.callback(turns._places.release)
    return Sent(attestation(host_credential=shown), PATH, document=PDF)


CASES = [
    # The two parts.
    Case("malformed_json", "an attestation", lambda site, _: Sent(b'{"type":', PATH, document=PDF)),
    Case("schema_invalid", "no platform", attested(platform=None), fields=("",)),
    Case("schema_invalid", "another type of document", attested(document_type="image/png"), fields=("document_type",)),
    Case("schema_invalid", "a consent that is none", consented(consent=False), fields=("guest_statement.consent",)),
    Case("rating_out_of_range", "six stars", attested(ratings={"overall": 6}), fields=None),
    Case("text_too_long", "of a platform", attested(review_text="x" * 2001), fields=("review_text",)),
    Case("too_large", "an attestation", lambda site, _: Sent(b" " * (256 * 1024 + 1), PATH, document=PDF)),
    Case("too_large", "a document", attested(document=b"%PDF-" + bytes(5 * 1024 * 1024) + b"%%EOF")),
    Case("document_invalid", "nothing", attested(document=b""), signed=True),
    Case("document_invalid", "a picture", attested(document=b"\x89PNG\r\n\x1a\n" + bytes(64)), signed=True),
    Case("document_invalid", "half a PDF", attested(document=PDF[:-7]), signed=True),
    Case("document_invalid", "JSON that is said to be a PDF", attested(document=JSON_DOCUMENT), signed=True),
    Case("document_invalid", "a PDF that is said to be JSON", attested(document_type="application/json"), signed=True),
    Case("document_invalid", "a list", attested(document=b"[1]", document_type="application/json"), signed=True),
    Case(
        "document_invalid",
        "JSON with a member twice",
        attested(document=b'{"a": 1, "a": 2}', document_type="application/json"),
        signed=True,
    ),
    Case(
        "document_mismatch", "another document", attested(document_sha256=sha256(PDF + b"\n").hexdigest()), signed=True
    ),
    Case("unsupported_media_type", "JSON", lambda site, _: Sent(b"{}", PATH)),
    # Who attests.
    Case("not_the_host", "another host", signed_by(OTHER_HOST)),
    Case("proof_invalid", "somebody in its name", signed_by(Speaker(4, HOST.did, f"#{HOST.multikey}"))),
    Case("wrong_domain", "for another ledger", signed_by(HOST, domain="https://ledger.example")),
    Case("stale_proof", "of six minutes ago", signed_by(HOST, now=NOW - timedelta(minutes=6))),
    Case("stay_not_over", "tomorrow", attested(check_out="2026-06-02")),
    Case("host_did_unavailable", "the host", of_an_absent_host, retry_after=30),
    Case("host_credential_required", "none", attested(host_credential=None), signed=True),
    Case("not_the_host", "another host's credential", credited(lambda: host_credential(OTHER_HOST)), signed=True),
    Case(
        "listing_not_covered",
        "another listing",
        credited(lambda: host_credential(properties=[{**PROPERTY, "listing_id": "loft-2"}])),
        signed=True,
    ),
    Case("wrong_credential_type", "a guest's", credited(lambda: credential(BROWN)), signed=True),
    Case("issuer_not_trusted", "not for hosts", before_hosts_are_trusted, signed=True, alone={}),
    Case("credential_revoked", "the host's", revoked, signed=True),
    Case("status_unavailable", "of the host", no_status, signed=True, retry_after=30),
    Case(
        "proof_invalid",
        "not the issuer's",
        credited(lambda: signed(host_credential(), speaker=Speaker(9, IDV, "/keys/1"))),
        signed=True,
    ),
    # The guest's consent.
    Case("consent_mismatch", "another document", consented(document=b"%PDF-other%%EOF")),
    Case("consent_mismatch", "other stars", consented(ratings={**attestation()["ratings"], "overall": 1})),
    Case("consent_mismatch", "another text", consented(review_text="Cold.")),
    Case("consent_mismatch", "no text", consented(review_text=None)),
    Case("holder_mismatch", "by somebody else", consented(signer=THIEF), signed=True),
    Case("stale_proof", "of six minutes ago, of the guest", consented(now=NOW - timedelta(minutes=6)), signed=True),
    Case(
        "expired",
        "of the guest",
        consented(guest_credential=credential(BROWN, now=NOW - timedelta(days=100))),
        signed=True,
    ),
    Case("guest_did_unavailable", "not there", of_an_absent_guest, signed=True, retry_after=30),
    Case("self_review", "one key", of_the_host_itself, signed=True),
    Case(
        "self_review",
        "one DID",
        attested(make=lambda: {"guest_statement": consent(HOST)}),
        signed=True,
    ),
    Case("already_reviewed", "the booking of a platform", again, signed=True),
    Case("already_reviewed", "by the guest", of_a_guest_who_has_reviewed, signed=True),
    Case("busy", "graphs of hosts", no_room_for_graphs, signed=True, alone={}, retry_after=5),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    try_refusal(case, request, tmp_path)


def test_an_attestation_in_its_place_is_accepted(shared: Site) -> None:
    """So the refusals above are about what was changed: without the guest's consent, with it, and with structured
    data for a document."""
    trust_hosts(shared)
    host = Person("Elsewhere")
    alone = attest(shared, attestation(host, "G-1"))
    both = attest(shared, attestation(host, "G-2", guest_statement=consent(BROWN)))
    data = attestation(host, "G-3", document=JSON_DOCUMENT, document_type="application/json")
    assert [each.status_code for each in (alone, both, attest(shared, data, JSON_DOCUMENT))] == [201, 201, 201]
    assert alone.json()["verification_level"] == "host_attested"
    assert both.json()["verification_level"] == "guest_verified"
