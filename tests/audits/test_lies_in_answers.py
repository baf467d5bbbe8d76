"""Lies in answers that most people get: to who asks for no proof, or for nothing in particular."""

import json
from typing import Any

import pytest

from audits.audit import Options
from audits.beside import sample
from ledger.canon import base64, strict_json
from ledger.log.checkpoint import open_checkpoint
from ledger.log.face import statistics
from ledger.log.tiles import TileTree
from tests.audits.bent import audit, require_clean
from tests.audits.convicting import convicted, shows
from tests.audits.forger import Forger
from tests.running import HOST, Writer
from tests.world import LOG

BARE = f"v1/hosts/{HOST}/reputation"
NOBODY = "did:web:nobody.example"
FACE, HISTORY = ("answer", "face_mismatch"), ("answer", "history_mismatch")


def flattering(forger: Forger, **members: Any) -> bytes:
    truth = json.loads(forger.get(BARE) or b"")
    best = dict.fromkeys(truth["average_ratings"], 5)
    return json.dumps({**truth, "average_ratings": best, "total_reviews": 999, **members}).encode()


@pytest.mark.parametrize("members", [{}, {"statistics": {"events": 3}}, {"statistics": None}], ids=str)
@shows(FACE)
def test_an_answer_to_who_asks_for_nothing_in_particular(forger: Forger, members: dict[str, Any]) -> None:
    """It says itself how many events it counts, and that decides nothing."""
    told = flattering(forger, **members)
    assert convicted(audit(forger, lambda path: told if path == BARE else None)) == [("face_mismatch", None)]


@pytest.mark.parametrize("said", [b"[]", b'{"statistics":[1]}', b'{"review_history":[7]}', b"", b"{", b"null"])
def test_one_that_is_no_answer_is_found_or_said_and_breaks_nothing(forger: Forger, writer: Writer, said: bytes) -> None:
    forger.add(writer.review())
    forger.head(root=base64.encode(bytes(32)))
    found = audit(forger, lambda path: said if path == BARE else None)
    # What the log's own signature convicts it of is told, whatever is served.
    assert ("map_root_mismatch", "signed") in {(each.fraud.code, each.fraud.proof) for each in found.found}
    found = audit(Forger.begun(writer), lambda path: said if path == BARE else None)
    assert found.verdict in ("findings", "incomplete")


@shows(FACE)
def test_a_proved_answer_that_brings_along_what_the_other_one_is_to_say(forger: Forger) -> None:
    """As the file of a mirror does, which is the same for whatever is asked."""
    truth, told = forger.get(BARE) or b"", flattering(forger)

    def bend(path: str) -> bytes | None:
        if path.startswith(BARE) and "proof=" in path:
            return json.dumps({**json.loads(forger.get(path) or b""), "plain": json.loads(truth)}).encode()
        # The bare address tells the truth, so that nothing else shows the lie.
        return told if path.startswith(f"{BARE}?") else None

    assert convicted(audit(forger, bend)) == [("face_mismatch", None)]


@shows(FACE)
def test_reviews_of_somebody_whom_the_log_does_not_know(forger: Forger) -> None:
    told = flattering(forger, host_did=NOBODY, statistics={"events": 7})
    found = audit(
        forger, lambda path: told if path.endswith(f"{NOBODY}/reputation") else None, None, Options(hosts=[NOBODY])
    )
    assert convicted(found) == [("face_mismatch", None)]


@shows(HISTORY)
def test_texts_that_are_kept_from_who_asks_for_nothing_in_particular(forger: Forger) -> None:
    told = json.loads(forger.get(BARE) or b"")
    told["statistics"] = statistics(strict_json.loads(forger.record(HOST)))
    told["review_history"][0] |= {"review_text": None, "host_response": None}
    found = audit(forger, lambda path: json.dumps(told).encode() if path == BARE else None)
    assert [code for code, _ in convicted(found)] == ["history_mismatch"]


def test_texts_of_unconfirmed_reviews_are_not_missed_there(forger: Forger, writer: Writer) -> None:
    forger.add(writer.review(level="unconfirmed"))
    forger.head()
    told = json.loads(forger.get(BARE) or b"")
    assert told["review_history"][0]["verification_level"] == "unconfirmed"
    told["review_history"][0]["review_text"] = None
    require_clean(audit(forger, lambda path: json.dumps(told).encode() if path == BARE else None))


def test_an_answer_may_be_of_any_moment_since(forger: Forger, writer: Writer) -> None:
    """The host gets an event, and its texts are redacted, each time that somebody asks."""
    shown: list[bytes] = []

    def bend(path: str) -> bytes | None:
        if path != BARE:
            return None
        review = forger.add(writer.review())
        forger.head()
        shown.append(forger.get(path) or b"")
        forger.openings.pop(review.index)
        forger.add(writer.redaction(review))
        forger.head()
        return shown[-1]

    found = audit(forger, bend)
    assert found.found == []
    assert len(shown) > 1
    # And one that lags behind.
    old = shown[0]
    answers = [old]
    require_clean(audit(forger, lambda path: answers.pop() if path == BARE and answers else None))


@shows(("answer", "sub_root_mismatch"), FACE)
def test_events_that_make_no_sense_keep_nobody_from_asking_about_the_others(forger: Forger, writer: Writer) -> None:
    """The first host that is drawn has a response to nothing; the averages of the others are wrong."""
    hosts = [HOST, *(f"did:web:h{number}.example" for number in range(3))]
    for host in hosts[1:]:
        forger.add(writer.response(forger.add(writer.review(host))))
        forger.head()
    first, *_ = sample(hosts, open_checkpoint(forger.notes[forger.size], LOG).root, 20)

    def bend(path: str) -> bytes | None:
        if not path.startswith("v1/hosts/") or "proof=" not in path:
            return None
        answer = json.loads(forger.get(path) or b"")
        if first in path:
            shown = [event for event in answer["proof"]["events"] if json.loads(event["entry"])["type"] == "response"]
            places = [*(event["index"] for event in shown), forger.size - 1]
            proof = map(base64.encode, TileTree(forger.tiles).multiproof(places, forger.size))
            answer["proof"] |= {"events": shown, "log_proof": list(proof)}
        else:
            answer["average_ratings"]["overall"] = 1.5
        return json.dumps(answer).encode()

    codes = [code for code, _ in convicted(audit(forger, bend))]
    assert codes == ["face_mismatch"] * 3 + ["sub_root_mismatch"]
