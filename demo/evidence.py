"""The chapters of booking evidence: a host that answers, one that is silent, one that denies; and a text that goes."""

import json
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from demo.actors import Cast, Host
from demo.ahead import LedgerAhead
from demo.attempts import digest, refused_submission, said_by_ledger, statements_key
from demo.host_site import HostSite
from demo.service import Client, Reply, Service
from demo.stage import VERIFIER, Stage, expect
from demo.traces import files_with
from ledger.canon import base64, proofs
from ledger.reviews.guest_binding import matches
from ledger.reviews.pending import LEAST_TRIES, PATIENCE

NEIGHBOUR = "Karl Brenner"
ASKED = {
    *("type", "openstr_version", "request_id", "index", "booking_reference", "listing_id", "host_did"),
    *("check_in", "check_out", "guest_binding"),
}
# Two reviews with a mean of three stars, one of which was denied, until a receipt said otherwise.
DENIER = ((2, 3.0), {"denied": 1, "contradicted": 1})
# A command that runs beside the service is seen there within a second.
SECONDS_TO_SEE = 10


class Evidence:
    """`doras` is the receipt of the review that a host confirmed when it was asked."""

    def __init__(self, stage: Stage, service: Service, cast: Cast, site: HostSite, log_key: str) -> None:
        self.stage, self.service, self.cast, self.site, self.log_key = stage, service, cast, site, log_key
        self.document = service.get("/.well-known/did.json").body
        self.doras: dict[str, Any] = {}

    def the_host_is_asked(self) -> None:
        dora, ines, stay = self.cast.dora, self.cast.ines, self.cast.doras
        self.stage.chapter(
            "The host is asked",
            "Dora has no receipt. So the ledger asks at the domain of her host Ines, which in this demo leads to this "
            "machine. It signs the question, and the host the answer. The question says nothing of the review: whoever "
            "answers does not know what hangs on it.",
        )
        self.site.open(ines, [stay], self.service.url, statements_key(self.document))
        where = (ines.did, ines.listing, "--booking-endpoint", ines.booking_endpoint)
        command = ("staylog", "listing", "add", *where, "--data", "ledger")
        self.stage.command(*command)
        self.stage.run(*command, says=f"its bookings are verified at {ines.booking_endpoint}")
        text = f"Calm water, but {NEIGHBOUR} next door shouts at night."
        review = dora.review(stay, 4, text, self.service.url, has_receipt=False)
        reply = self.service.post("/v1/reviews", review)
        expect("the answer to Dora's review", (201, None), reply.outcome)
        [asked] = self.site.asked[ines.domain]
        question = json.loads(asked)
        expect("what the question has", ASKED, set(question))
        expect("whether it is about Dora", True, matches(question["guest_binding"], dora.did))
        told = [each for each in (text, "rating", dora.multikey, dora.person) if each in asked.decode()]
        expect("what the question gives away", [], told)
        self._expect_confirmed(reply.body["booking"], ines)
        expect("what the review rests on", ("guest_verified", "callback"), _rests_on(reply))
        self.doras = reply.body
        self.stage.facts(
            ("asked", f"{stay.reference} at {ines.listing}, {question['check_in']} to {question['check_out']}"),
            ("not told", "the rating, the text, who the guest is: there is a salted hash of her DID, and no more"),
            ("answered", f"known, confirmed, and the same guest; signed by {ines.did}"),
            ("Dora", "4.0 stars  201  guest_verified, by callback"),
        )

    def a_silent_host(self) -> None:
        self.stage.chapter(
            "A silent host",
            "Emil does not find his receipt, and his host Tore does not answer when asked. Silence is no veto: after "
            "72 hours the review is published, beside the mean and not in it. So as not to wait, this chapter has "
            "another ledger, with a log and a key of its own, whose clock the demo sets ahead.",
        )
        with closing(LedgerAhead()) as ahead:
            ahead.start(self.stage.folder / "ahead", self.site.development, self.cast.issuer, self.cast.tore)
            self._hand_in(ahead, self._wait_in_vain(ahead))

    def a_denial(self) -> None:
        fay, ines, stay, url = self.cast.fay, self.cast.ines, self.cast.fays, self.service.url
        self.stage.chapter(
            "A denial, and a receipt",
            "Fay was at the lake too, and not happy. Ines remembers, and signs that there is no such booking. One's "
            "word against the other's: the review is refused, and the log keeps that it was denied. But when Fay "
            "booked, Ines had signed a receipt.",
        )
        review = fay.review(stay, 2, "Wasps in the bedroom.", url, has_receipt=False)
        refused = self.service.post("/v1/reviews", review)
        expect("the answer to Fay's review", (403, "booking_denied"), refused.outcome)
        said = refused_submission(refused.body["refusal"], self.document)
        expect("what is refused", (digest(review), "booking_denied"), said)
        expect("the record of Ines", ((1, 4.0), {"denied": 1}), _record(self.service, ines))
        taken = self.service.post("/v1/reviews", fay.review(stay, 2, "Wasps in the bedroom.", url))
        expect("the answer to Fay's review, with the receipt", (201, None), taken.outcome)
        expect("what the review rests on", ("guest_verified", "stay_receipt"), _rests_on(taken))
        expect("the record of Ines", DENIER, _record(self.service, ines))
        self.stage.facts(
            ("Fay", f"403  booking_denied, signed by the ledger: {refused.body['detail']}"),
            (ines.domain, "1 verified review, 4.0 stars, 1 denied"),
            ("Fay, with the receipt", "201  guest_verified, by stay_receipt"),
            (ines.domain, "2 verified reviews, 3.0 stars, 1 denied, 1 contradicted: Ines has signed both"),
        )

    def a_text_that_must_go(self) -> None:
        ines, ledger = self.cast.ines, self.stage.folder / "ledger"
        self.stage.chapter(
            "A text that must go",
            "Dora's text names a neighbour, who asks for it to go. That takes a law and a decision, and the log tells "
            "for ever which law it was. The text goes; the rating stays, and stays counted.",
        )
        review_id, salt = self.doras["review_id"], base64.decode(self.doras["openings"]["text"]["salt"])
        expect("the record of Ines", DENIER, _record(self.service, ines))
        for each in (NEIGHBOUR, salt):
            expect("whether files of the ledger have text and salt", True, files_with(ledger, each) != [])
        (self.stage.folder / "decision.txt").write_text(f"To be erased, as {NEIGHBOUR} has asked.\n")
        why = ("--part", "text", "--basis", "gdpr_17", "--decision", "decision.txt")
        command = ("staylog", "redact", review_id, *why, "--yes", "--data", "ledger")
        self.stage.command(*command)
        self.stage.run(*command, says="withdrawn: entry")
        self._wait_for_redaction(ines)
        expect("the record of Ines", DENIER, _record(self.service, ines))
        expect("the files of the ledger that have text or salt", [], files_with(ledger, NEIGHBOUR, salt))
        for path in (f"/v1/reviews/{review_id}?text=all", f"/v1/hosts/{ines.did}/reputation?text=all&proof=full"):
            expect(f"whether {path} has the text", False, NEIGHBOUR.encode() in self.service.get(path).data)
        self.stage.facts(
            ("gone", "the text and its salt: from the answers, and from every file of the ledger"),
            ("stays", "2 verified reviews, 3.0 stars; and that a text was redacted, by gdpr_17"),
        )
        self.stage.keep("redacted.json", self.service.get(f"/v1/hosts/{ines.did}/reputation?proof=full").body)
        options = ("redacted.json", "--key", self.log_key, "--host", ines.did)
        self.stage.command("python", f"audits/{VERIFIER.name}", *options)
        says = f"redacted    the text of {review_id}"
        self.stage.report(self.stage.verify("redacted.json", self.log_key, ines.did, says=says))

    def _wait_in_vain(self, ahead: LedgerAhead) -> str:
        """The id of the review that is published in the end."""
        tore = self.cast.tore
        text = "The mill wheel turned all night."
        review = self.cast.emil.review(self.cast.emils, 2.5, text, ahead.url, has_receipt=False)
        reply = ahead.post("/v1/reviews", review)
        expect("the answer to Emil's review", (202, None), reply.outcome)
        intake = said_by_ledger(reply.body["intake"], ahead.get("/.well-known/did.json").body)
        expect("what the ledger has taken in", digest(review), intake["submission_sha256"])
        path = f"/v1/submissions/{reply.body['submission_id']}"
        expect("what becomes of it", "pending", ahead.get(path).body["status"])
        waited = ahead.go_on(lambda: bool(ahead.get(path).body["status"] != "pending"))
        expect("whether Tore had his time", True, waited >= PATIENCE)
        decided = ahead.get(path).body
        expect("what became of it", "accepted", decided["status"])
        expect("the level of the review", "unconfirmed", decided["receipt"]["verification_level"])
        expect("Tore's record", ((0, None), {"unanswered": 1}), _record(ahead, tore))
        expect("what is beside it", (1, 2.5), _unconfirmed(ahead, tore))
        times = len(self.site.asked[tore.domain])
        expect("whether Tore was asked again and again", True, times >= LEAST_TRIES)
        self.stage.facts(
            ("Emil", f"202  taken in, signed by the ledger: decided on by {intake['decide_by']}"),
            ("at once", f"pending, at {path[:24]}... which only he knows"),
            ("72 hours later", f"Tore was asked {times} times, and said nothing: accepted as unconfirmed"),
            (tore.domain, "no mean; beside it 1 unconfirmed review, 2.5 stars, and 1 unanswered"),
        )
        return str(decided["receipt"]["review_id"])

    def _hand_in(self, ahead: LedgerAhead, review_id: str) -> None:
        tore = self.cast.tore
        evidence = self.cast.emil.hand_in(self.cast.emils, review_id, ahead.url, ahead.clock())
        reply = ahead.post(f"/v1/reviews/{review_id}/evidence", evidence)
        expect("the answer to Emil's receipt", (201, None), reply.outcome)
        expect("what the review rests on", ("guest_verified", "stay_receipt"), _rests_on(reply))
        expect("Tore's record", ((1, 2.5), {"unanswered": 1}), _record(ahead, tore))
        expect("what is beside it", (0, None), _unconfirmed(ahead, tore))
        self.stage.facts(
            ("the receipt   ", "Emil finds it, and hands it in: 201  guest_verified, by stay_receipt"),
            (tore.domain, "1 verified review, 2.5 stars, and still 1 unanswered"),
        )

    def _expect_confirmed(self, answer: Mapping[str, Any], host: Host) -> None:
        said = {name: value for name, value in answer.items() if name != "proof"}
        proofs.verify(said, answer["proof"], [bytes(host.key.verify_key)])
        told = tuple(map(said.get, ("known", "status", "guest_matches")))
        expect("the host's answer", (True, "confirmed", True), told)

    def _wait_for_redaction(self, host: Host) -> None:
        end = time.monotonic() + SECONDS_TO_SEE
        while not _reputation(self.service, host)["statistics"]["redactions"] and time.monotonic() < end:
            time.sleep(0.05)


def _rests_on(reply: Reply) -> tuple[str, str]:
    """The level that an entry says, and by which evidence."""
    entry = json.loads(reply.body["entry"])
    return entry["level"], entry["evidence"]["booking"]


def _reputation(ledger: Client, host: Host) -> dict[str, Any]:
    return ledger.get(f"/v1/hosts/{host.did}/reputation").body


def _record(ledger: Client, host: Host) -> tuple[tuple[int, float | None], dict[str, int]]:
    """How many verified reviews a host has, their mean, and what came of asking for bookings."""
    answer = _reputation(ledger, host)
    checks = {outcome: count for outcome, count in answer["statistics"]["checks"].items() if count}
    return (answer["verified_reviews"], answer["average_ratings"]["overall"]), checks


def _unconfirmed(ledger: Client, host: Host) -> tuple[int, float | None]:
    """How many unconfirmed reviews a host has, and their mean."""
    found = _reputation(ledger, host)["statistics"]
    return found["reviews"]["unconfirmed"], found["average_ratings"]["unconfirmed"]["overall"]
