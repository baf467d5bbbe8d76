"""A flood of credentials that are expensive to refuse does not stop those that are cheap to verify."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from ledger.canon import proofs
from ledger.canon.rdf import MAX_WAITING, Canonicaliser
from ledger.errors import StaylogError, Unavailable
from ledger.identity import contexts
from ledger.identity.credentials import verify
from tests.identities import GUEST, ISSUER, NOW, PROPERTY, TRUST, Speaker, credential, hear, signed, statement
from tests.waiting import refused_at_once

PER_SECOND = 300
SECONDS = 2
# They come in crowds, as floods do, each behind one that takes long.
CROWD = 30
AHEAD = 0.01


def test_300_bogus_credentials_a_second_do_not_stop_a_review() -> None:
    """They name a trusted issuer, have the right form and times, and are signed by somebody else: only the graph tells.

    Each in a thread of its own, as in a service. While the largest of a crowd is looked at, eight wait, and the rest
    are told to come back; a review and its credential, both signed over JCS, are verified meanwhile.
    """
    canonize = Canonicaliser(contexts.pinned({url: contexts._read(url) for url in contexts.PINS})).canonize
    forger = Speaker(9, ISSUER.did, "/keys/1")
    places = [{**PROPERTY, "listing_id": f"l-{number}"} for number in range(120)]
    large = signed(credential("host", properties=places), proofs.ED25519_2020, forger)
    small = signed(credential(), proofs.ED25519_2020, forger)

    def attack(number: int) -> str:
        """One of a crowd; the first of it is large, and a little earlier than the others."""
        crowd, place = divmod(number, CROWD)
        due = began + crowd * CROWD / PER_SECOND + (AHEAD if place else 0)
        time.sleep(max(0, due - time.monotonic()))
        try:
            verify(small if place else large, "guest" if place else "host", TRUST, NOW, canonize)
        except StaylogError as refusal:
            return refusal.code
        return "accepted"

    review, took = statement("ReviewSubmission"), []
    with ThreadPoolExecutor(CROWD) as attackers:
        began = time.monotonic()
        attacks = [attackers.submit(attack, number) for number in range(PER_SECOND * SECONDS)]
        while not all(attack.done() for attack in attacks):
            start = time.monotonic()
            assert hear(review, "ReviewSubmission").speaker == GUEST.did
            verdict = verify(review["guest_credential"], "guest", TRUST, NOW, canonize)
            took.append(time.monotonic() - start)
            assert (verdict.suite, verdict.subject) == (proofs.EDDSA_JCS, GUEST.did)
            time.sleep(0.005)
    verdicts = Counter(attack.result() for attack in attacks)
    assert verdicts.keys() == {"proof_invalid", "busy"}
    assert verdicts.total() == PER_SECOND * SECONDS
    # It takes a few milliseconds; the limit is for machines that do other work as well.
    assert median(took) < 0.5


def test_whoever_signs_with_jcs_never_waits_for_a_graph() -> None:
    """With the canonicaliser held and its queue full, a graph is told to come back and a review goes on."""
    canonicaliser = Canonicaliser(contexts.pinned({url: contexts._read(url) for url in contexts.PINS}), waiting=0)
    graph, plain = credential(suites=(proofs.ED25519_2020,)), credential()
    with canonicaliser._turns:
        refused = refused_at_once(lambda: verify(graph, "guest", TRUST, NOW, canonicaliser.canonize))
        assert (type(refused), refused.code) == (Unavailable, "busy")
        assert verify(plain, "guest", TRUST, NOW, canonicaliser.canonize).suite == proofs.EDDSA_JCS
        assert hear(statement("ReviewSubmission"), "ReviewSubmission")
    assert verify(graph, "guest", TRUST, NOW, canonicaliser.canonize).suite == proofs.ED25519_2020
    assert MAX_WAITING == 8
