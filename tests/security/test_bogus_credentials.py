"""A flood of credentials that are expensive to refuse does not stop those that are cheap to verify."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from threading import Event, Lock

from ledger.canon import proofs
from ledger.canon.rdf import Canonicaliser
from ledger.errors import StaylogError
from ledger.identity import contexts
from ledger.identity.credentials import verify
from tests.identities import GUEST, ISSUER, NOW, TRUST, Speaker, credential, hear, signed, statement

PER_SECOND = 300
SECONDS = 2


def test_300_bogus_credentials_a_second_do_not_stop_a_review() -> None:
    """They name a trusted issuer, have the right form and times, and are signed by somebody else: only the graph tells.

    In forty threads, as a service would have them: more than the queue takes.
    """
    canonize = Canonicaliser(contexts.pinned({url: contexts._read(url) for url in contexts.PINS})).canonize
    bogus = signed(credential(), proofs.ED25519_2020, Speaker(9, ISSUER.did, "/keys/1"))
    verdicts: Counter[str] = Counter()
    counting, over = Lock(), Event()

    def attack(due: float) -> None:
        time.sleep(max(0, due - time.monotonic()))
        if over.is_set():
            return
        try:
            verify(bogus, "guest", TRUST, NOW, canonize)
            code = "accepted"
        except StaylogError as refusal:
            code = refusal.code
        with counting:
            verdicts[code] += 1

    review = statement("ReviewSubmission")
    took = []
    with ThreadPoolExecutor(40) as attackers:
        began = time.monotonic()
        for number in range(PER_SECOND * SECONDS):
            attackers.submit(attack, began + number / PER_SECOND)
        while time.monotonic() < began + SECONDS:
            start = time.monotonic()
            assert hear(review, "ReviewSubmission").speaker == GUEST.did
            verdict = verify(review["guest_credential"], "guest", TRUST, NOW, canonize)
            took.append(time.monotonic() - start)
            assert (verdict.suite, verdict.subject) == (proofs.EDDSA_JCS, GUEST.did)
            time.sleep(0.01)
        over.set()
    assert verdicts.keys() <= {"proof_invalid", "busy"}
    assert verdicts["proof_invalid"] > 0
    # Every review was verified at once: an order of magnitude below what anybody would notice.
    assert len(took) >= 5 * SECONDS
    assert median(took) < 0.25


def test_whoever_signs_with_jcs_never_waits_for_a_graph() -> None:
    """With the canonicaliser held and its queue full, a graph is told to come back and a review goes on."""
    canonicaliser = Canonicaliser(contexts.pinned({url: contexts._read(url) for url in contexts.PINS}), waiting=0)
    graph, plain = credential(suites=(proofs.ED25519_2020,)), credential()
    with canonicaliser._turns:
        try:
            verify(graph, "guest", TRUST, NOW, canonicaliser.canonize)
            code = "accepted"
        except StaylogError as refusal:
            code = refusal.code
        assert code == "busy"
        assert verify(plain, "guest", TRUST, NOW, canonicaliser.canonize).suite == proofs.EDDSA_JCS
        assert hear(statement("ReviewSubmission"), "ReviewSubmission")
    assert verify(graph, "guest", TRUST, NOW, canonicaliser.canonize).suite == proofs.ED25519_2020
