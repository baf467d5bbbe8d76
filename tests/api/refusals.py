"""Refusals over HTTP: what comes back, what is counted, that nothing was appended, and that whoever has shown who they
are gets the refusal signed. The cases are in `test_codes_of_*.py`, by what they are about."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.codes import CODES
from ledger.canon.times import format_time
from ledger.store.rows import run
from tests.api.hosts_and_guests import attest
from tests.api.site import Person, Site, problem, serving, submission_sha256, verify_signed
from tests.identities import NOW, RATINGS
from tests.reviewing import DOMAIN, HOST, credential, response, review, stay_receipt

BROWN, CURIOUS = Person("Brown"), Person("Curious")
FUTURE = NOW + timedelta(minutes=5, seconds=1)
REFERENCES = (f"B-{number}" for number in count(100))


@dataclass(frozen=True)
class Sent:
    """A request; in two parts if it has a document."""

    body: Any
    path: str = "/v1/reviews"
    media_type: str | None = "application/json"
    document: bytes | None = None
    method: str = "POST"

    def to(self, site: Site) -> httpx.Response:
        if self.method == "GET":
            return site.get(self.path)
        if self.document is not None:
            return attest(site, self.body, self.document)
        return site.post(self.path, self.body, self.media_type)


Make = Callable[[Site, ExitStack], Sent]


@dataclass(frozen=True)
class Case:
    """`signed`: the sender has shown who they are. `alone`: on a service of its own, with these options. `others`: what
    is appended meanwhile is not from here. `appended`: the types of the entries that the refusal itself is worth.
    `fields`: the places that `errors` names."""

    code: str
    what: str
    make: Make
    signed: bool = False
    alone: dict[str, Any] | None = None
    others: bool = False
    appended: tuple[str, ...] = ()
    retry_after: int | None = None
    fields: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.what}"


def raw(data: bytes | Callable[[], bytes], **options: Any) -> Make:
    return lambda site, stack: Sent(data if isinstance(data, bytes) else data(), **options)


def body(make: Callable[[], Any], **options: Any) -> Make:
    """Made when it is needed: most are signed."""
    return lambda site, stack: Sent(make(), **options)


def changed(**changes: Any) -> Make:
    """A review that is signed as it is; a member that is changed to None is left out."""
    return body(lambda: review(BROWN, reference=next(REFERENCES), **changes))


def rated(**ratings: Any) -> Make:
    return changed(ratings={name: value for name, value in (RATINGS | ratings).items() if value is not None})


def shown(document: Callable[[], Any]) -> Make:
    """A review by who holds this credential."""
    return body(lambda: review(BROWN, reference=next(REFERENCES), guest_credential=document()))


def reproved(**proof: Any) -> Make:
    """A review whose own proof was changed after signing."""

    def make() -> Any:
        made = review(BROWN, reference=next(REFERENCES))
        made["proof"] |= proof
        return made

    return body(make)


def with_receipt(make: Callable[[str], Any]) -> Make:
    """A review with this evidence, made for its reference."""

    def made() -> Any:
        reference = next(REFERENCES)
        return review(BROWN, reference=reference, booking_evidence=make(reference))

    return body(made)


def receipt(**changes: Any) -> Make:
    return with_receipt(lambda reference: stay_receipt(**{"guest": BROWN, "reference": reference, **changes}))


def answered(**changes: Any) -> Make:
    """A response to the review that the shared service has."""

    def make(site: Site, stack: ExitStack) -> Sent:
        review_id = first_review(site)
        return Sent(response(review_id, **changes), f"/v1/reviews/{review_id}/response")

    return make


def first_review(site: Site) -> str:
    """The review that every service here has: of GUEST, at HOST, answered by it."""
    history = site.reputation(HOST)["review_history"]
    if not history:
        review_id = site.review()["review_id"]
        site.response(review_id, text="Come again.")
        return str(review_id)
    return str(history[-1]["review_id"])


def person(guest: Person) -> list[str]:
    """As whom the ledger counts a guest."""
    shown = credential(guest)
    return [shown["issuer"], shown["credentialSubject"]["issuer_guest_id"]]


@contextmanager
def site_for(case: Case, shared: Callable[[], Site], folder: Path) -> Iterator[tuple[Site, ExitStack]]:
    with ExitStack() as stack:
        yield (shared() if case.alone is None else stack.enter_context(serving(folder, **case.alone))), stack


def try_refusal(case: Case, request: pytest.FixtureRequest, folder: Path) -> None:
    """The test of every case."""
    with site_for(case, lambda: request.getfixturevalue("shared"), folder) as (site, stack):
        check(case, site, case.make(site, stack))


def check(case: Case, site: Site, sent: Sent) -> None:
    counted, size, statements = site.refusals(), site.size, said(site)
    answer = sent.to(site)
    refused = problem(answer, case.code)
    # Counted once, and as nothing else.
    assert risen(counted, site.refusals()) == {case.code: 1}
    # Nothing became of it, but what it is worth to be told.
    now = said(site)
    assert tuple(now["entries"][len(statements["entries"]) :]) == case.appended
    if not case.appended:
        assert now == statements
        assert case.others or site.size == size
    assert {name: now[name] for name in KEPT} == {name: statements[name] for name in KEPT}
    # It says what is wrong where, and when to come again.
    if case.fields is not None:
        assert tuple(error["field"] for error in refused["errors"]) == case.fields
    later = answer.headers.get("retry-after")
    assert (later is not None) == (CODES[case.code].status in (429, 503))
    assert later is None or int(later) == case.retry_after
    # The address of the code explains it.
    explained = site.get(refused["type"].removeprefix(DOMAIN))
    assert explained.status_code == 200
    assert explained.json()["code"] == case.code
    assert explained.json()["explanation"] == CODES[case.code].explanation
    # Signed by the ledger, if it knows who asked.
    assert ("refusal" in refused) == case.signed
    if case.signed:
        check_signed(site, refused["refusal"], case.code, sent.body)


def check_signed(site: Site, refusal: dict[str, Any], code: str, submitted: Any) -> None:
    """The ledger's own word about exactly this submission, given now."""
    now = format_time(site.running.clock())
    assert verify_signed(refusal, *site.statements_key()) == {
        "type": "Refusal",
        "submission_sha256": submission_sha256(submitted),
        "code": code,
        "at": now,
    }
    assert refusal["proof"]["created"] == now


def risen(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {code: after[code] - before.get(code, 0) for code in after if after[code] != before.get(code, 0)}


# What is on file beside the log, sealed.
KEPT = ("booking", "submission", "feedback")


def said(site: Site) -> dict[str, list[Any]]:
    """The entries that guests and hosts caused, the places of what is known again, and what is on file."""
    entries = [json.loads(entry) for entry in site.get("/v1/log/entries?count=1000").json()["entries"]]
    operators = {place for place, entry in enumerate(entries) if entry["type"] in ("genesis", "issuer")}
    theirs = [entry["type"] for entry in entries if entry["type"] not in ("genesis", "issuer", "map_head")]
    with site.ledger.store.read() as connection:
        known = [index for (index,) in run(connection, "SELECT idx FROM known ORDER BY idx")]
        salts = [index for (index,) in run(connection, "SELECT idx FROM receipt_salt ORDER BY idx")]
        kept = {
            "booking": run(connection, "SELECT stay, speaker, sealed FROM booking ORDER BY stay, speaker"),
            "submission": run(connection, "SELECT key, sealed, tries FROM submission ORDER BY key"),
            "feedback": run(connection, "SELECT idx, sealed FROM feedback ORDER BY idx"),
        }
    return {
        "entries": theirs,
        "salts": salts,
        "known": [index for index in known if index not in operators],
        **{name: [tuple(map(_plain, row)) for row in rows] for name, rows in kept.items()},
    }


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
