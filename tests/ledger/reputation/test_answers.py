"""Reputation answers of a running ledger: they verify, page, stay the same, and hide what was not asked for."""

import json
from random import Random
from typing import Any

import pytest

from audits import standalone_verify
from audits.verify import verify_answer, verify_pages
from ledger.canon import base64
from ledger.errors import BadRequest, NotFound, StaylogError
from ledger.identity.issuers import distrust, trust
from ledger.log.sequencer import Integrated
from ledger.reputation.answers import FEW_EVENTS, Query, reputation
from tests.audits.mutations import mutate
from tests.identities import Speaker
from tests.running import HOST, OTHER, Running, Writer
from tests.schemas.validators import check_answer

NOBODY = "did:web:nobody.example"
LIES = 250


def ask(running: Running, host: str = HOST, **query: Any) -> dict[str, Any]:
    return dict(json.loads(reputation(running.ledger.reader, running.ledger.registries, host, Query(**query))))


def told(running: Running, writer: Writer) -> dict[str, Integrated]:
    """A host with everything that can happen to a review, among others."""
    names = ("plain", "doubtful", "raised", "silent", "attested", "redacted")
    levels = ("guest_verified", "unconfirmed", "unconfirmed", "guest_verified", "host_attested", "guest_verified")
    drafts = [writer.review(level=level, text=None if name == "silent" else f"{name} \u202etext")
              for name, level in zip(names, levels, strict=True)]  # fmt: skip
    reviews = dict(zip(names, running.add(*drafts, *(writer.review(OTHER) for _ in range(3))), strict=False))
    running.clock.forward(days=1)
    running.add(*(writer.response(reviews[name], f"To {name}.") for name in ("plain", "doubtful", "redacted")))
    running.add(writer.upgrade(reviews["raised"]), writer.redaction(reviews["redacted"]), writer.check())
    running.add(writer.redaction(reviews["redacted"], "response"), writer.review(OTHER))
    return reviews


def test_answers_of_every_kind_verify_and_have_their_form(running: Running, writer: Writer) -> None:
    told(running, writer)
    vkey = str(running.ledger.verifier)
    for host in (HOST, OTHER, NOBODY):
        for text in ("verified", "all", "none"):
            for kind in ("full", "aggregate", "page"):
                answer = ask(running, host, proof=kind, text=text, count=4)
                check_answer(answer)
                data = json.dumps(answer)
                report = verify_answer(data.encode(), running.ledger.verifier, host, text=text)
                assert report.withheld == []
                assert standalone_verify.verify([data], vkey, host)


@pytest.mark.parametrize("kind", ["full", "aggregate", "page"])
def test_no_lie_about_an_answer_verifies(running: Running, writer: Writer, kind: str) -> None:
    told(running, writer)
    random, vkey = Random(7), str(running.ledger.verifier)
    truths = [(host, ask(running, host, proof=kind, text="all", count=5)) for host in (HOST, OTHER, NOBODY)]
    for _ in range(LIES):
        host, truth = random.choice(truths)
        lie = json.dumps(mutate(random, truth))
        with pytest.raises(StaylogError):
            verify_answer(lie.encode(), running.ledger.verifier, host)
        with pytest.raises(Exception):
            standalone_verify.verify([lie], vkey, host)


def test_without_a_proof_the_same_is_said(running: Running, writer: Writer) -> None:
    told(running, writer)
    plain, full = ask(running, text="all"), ask(running, text="all", proof="full")
    assert plain == {name: value for name, value in full.items() if name != "proof"}
    assert plain["total_reviews"] == 6
    assert plain["verified_reviews"] == 4
    assert plain["statistics"]["reviews"] == {"guest_verified": 4, "host_attested": 1, "unconfirmed": 1}
    assert plain["statistics"]["checks"]["denied"] == 1


def test_texts_are_shown_as_asked(running: Running, writer: Writer) -> None:
    reviews = told(running, writer)
    index = {review.index: name for name, review in reviews.items()}

    def texts(**query: Any) -> dict[str, Any]:
        listed = ask(running, **query)["review_history"]
        return {index[review["index"]]: (review["review_text"], review["host_response"]) for review in listed}

    at = "2026-06-02T12:00:00Z"
    answered = {"response_text": "To plain.", "submitted_at": at}
    hidden = {"response_text": None, "submitted_at": at}
    expected = {
        "plain": ("plain text", answered),
        "doubtful": (None, hidden),
        "raised": ("raised text", None),
        "silent": (None, None),
        "attested": ("attested text", None),
        "redacted": (None, hidden),
    }
    for proof in ("none", "full"):
        assert texts(proof=proof) == expected
        nothing = texts(proof=proof, text="none")
        assert {text for text, _ in nothing.values()} == {None}
        assert nothing["plain"][1] == hidden
        shown = texts(proof=proof, text="all")
        assert shown["doubtful"] == ("doubtful text", {"response_text": "To doubtful.", "submitted_at": at})
        assert shown["redacted"] == (None, hidden)


def test_a_page_hides_a_response_to_an_unconfirmed_review_of_an_earlier_page(running: Running, writer: Writer) -> None:
    reviews = running.add(writer.review(level="unconfirmed"), writer.review(level="unconfirmed"))
    running.add(*map(writer.response, reviews), writer.upgrade(reviews[1]))

    def openings(text: str, **query: Any) -> list[bool]:
        events = ask(running, proof="page", text=text, start=2, **query)["proof"]["events"]
        return [event["opening"] is not None for event in events]

    assert openings("all") == [True, True, False]
    assert openings("verified") == [False, True, False]
    assert openings("none") == [False] * 3
    later = running.add(writer.upgrade(reviews[0]))
    assert openings("verified", count=3) == [True, True, False]
    assert openings("verified", count=3, size=later[0].index) == [False, True, False]


def test_a_redacted_text_is_gone_from_the_database(running: Running, writer: Writer) -> None:
    told(running, writer)
    with running.ledger.store.read() as connection:
        stored = [text for (text,) in connection.exec_driver_sql("SELECT text FROM entry WHERE text IS NOT NULL")]
    assert not [text for text in stored if "redacted" in text]


def test_an_answer_without_proof_stays_the_same_until_the_hosts_next_event(running: Running, writer: Writer) -> None:
    running.add(writer.review())
    before, proved = ask(running), ask(running, proof="full")
    running.clock.forward(hours=1)
    running.add(writer.review(OTHER), writer.policy())
    assert ask(running) == before
    assert ask(running, proof="full") != proved
    assert before["as_of"] == {**before["as_of"], "size": 4, "at": "2026-06-01T12:00:00Z"}
    running.add(writer.check())
    assert ask(running)["as_of"]["size"] == 9


def test_as_of_is_a_published_checkpoint_also_inside_an_imported_file(running: Running, writer: Writer) -> None:
    """The record was written by the first of two batches; only the second was signed."""
    running.add(writer.review(), *(writer.policy() for _ in range(300)))
    as_of = ask(running)["as_of"]["size"]
    assert as_of == running.ledger.reader.published.size == 305
    assert running.ledger.reader.published_at(as_of).size == as_of


def test_lists_are_paged_on_one_checkpoint(running: Running, writer: Writer) -> None:
    running.add(*(writer.review(text=str(number)) for number in range(45)))
    for proof in ("none", "full"):
        seen, cursor = [], None
        while True:
            answer = ask(running, proof=proof, cursor=cursor, limit=20)
            seen += [int(review["review_text"]) for review in answer["review_history"]]
            running.add(writer.review(text="99"))
            cursor = answer["next_cursor"]
            if cursor is None:
                break
        newest = [99] * (len(seen) - 45)
        assert seen == [*newest, *range(44, -1, -1)]


@pytest.mark.parametrize("limit", [1, 44, 45, 46, 100])
def test_the_last_page_has_no_next(running: Running, writer: Writer, limit: int) -> None:
    running.add(*(writer.review() for _ in range(45)))
    answer = ask(running, limit=limit)
    assert len(answer["review_history"]) == min(limit, 45)
    assert (answer["next_cursor"] is None) == (limit >= 45)


@pytest.mark.parametrize("cursor", ["", "x", "MTIuMw", "MTIuMw==", "\u00e9", "NC4w", "A" * 500])
def test_a_cursor_of_somebody_else_is_refused(running: Running, cursor: str) -> None:
    with pytest.raises((BadRequest, NotFound)) as refused:
        ask(running, cursor=cursor)
    assert refused.value.code in ("cursor_invalid", "unknown_size")


def test_a_cursor_goes_with_its_size_only(running: Running, writer: Writer) -> None:
    running.add(writer.review(), writer.review())
    cursor = ask(running, limit=1)["next_cursor"]
    assert ask(running, cursor=cursor, size=5)["review_history"]
    with pytest.raises(BadRequest, match="another size"):
        ask(running, cursor=cursor, size=2)


def test_every_published_size_can_be_asked_for_and_no_other(running: Running, writer: Writer) -> None:
    sizes = [2]
    for _ in range(3):
        sizes.append(running.add(writer.review(), writer.review(OTHER))[0].published.size)
    for number, size in enumerate(sizes):
        for proof in ("none", "full", "aggregate"):
            assert ask(running, size=size, proof=proof)["total_reviews"] == number
        running.answer(size=size)
    for size in (1, 3, 4, 100):
        with pytest.raises(NotFound) as refused:
            ask(running, size=size)
        assert refused.value.code == "unknown_size"


def test_a_host_with_ten_thousand_events_pages_and_proves(running: Running, writer: Writer) -> None:
    running.add(*(writer.review(text=None) for _ in range(9_990)), *(writer.check() for _ in range(10)))
    with pytest.raises(StaylogError, match="proof=page&from=0&count=500&size=10042") as refused:
        ask(running, proof="full")
    assert refused.value.code == "proof_too_large"
    pages = [
        reputation(running.ledger.reader, running.ledger.registries, HOST, Query(proof="page", start=start, count=500))
        for start in range(0, 10_000, 500)
    ]
    report = verify_pages(pages, running.ledger.verifier, HOST)
    assert "every count and average follows from these events" in report.proved
    assert standalone_verify.verify([page.decode() for page in pages], str(running.ledger.verifier), HOST)
    for start, count in ((10_000, 1), (0, 0), (-1, 5)):
        with pytest.raises(BadRequest) as outside:
            ask(running, proof="page", start=start, count=count)
        assert outside.value.code == "page_out_of_range"
    assert len(ask(running, proof="page", start=9_999, count=500)["proof"]["events"]) == 1


def test_a_page_stays_the_same_while_nothing_happens_to_the_host(running: Running, writer: Writer) -> None:
    """Its cursor too: it is of the checkpoint that the host's last event, or a change of trust, came with."""
    running.add(*(writer.review() for _ in range(5)))
    before = ask(running, limit=2)
    running.add(writer.review(OTHER))
    assert ask(running, limit=2) == before
    rest = ask(running, limit=3, cursor=before["next_cursor"])
    assert [review["index"] for review in rest["review_history"]] == [4, 3, 2]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("count", [3, FEW_EVENTS + 20])
def test_issuers_are_told_as_the_log_had_them(running: Running, writer: Writer, count: int) -> None:
    """Of few reviews and of many; at an older size as they were then."""
    name = "https://idv.example/issuers/1"
    trusted = trust(running.ledger.issuers(), "guest", name, [Speaker(1).multikey], None)
    assert trusted is not None
    running.add(trusted)
    running.add(*(writer.review() for _ in range(count)), writer.review(level="host_attested", evidence=NOBODYS))
    size = running.ledger.reader.published.size
    then = ask(running)
    assert then["issuers"] == [{"issuer": name, "status": "trusted", "reviews": count}]
    assert [review["issuer_status"] for review in then["review_history"]][:2] == [None, "trusted"]
    running.add(distrust(running.ledger.issuers(), "guest", name, "2026-05-01T00:00:00Z"))
    now = ask(running)
    assert now["issuers"] == [{"issuer": name, "status": "compromised", "reviews": count}]
    assert now["review_history"][1]["issuer_status"] == "compromised"
    assert ask(running, size=size)["issuers"] == then["issuers"]


NOBODYS = {"booking": "attestation", "commitment": base64.encode(bytes(32)), "idv_level": None, "issuer": None}
