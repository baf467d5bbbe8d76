"""The story, chapter by chapter. Nothing is told that was not looked at: `expect` ends the story where it is not so."""

import json
import re
from collections.abc import Mapping
from typing import Any

from demo.actors import Cast
from demo.altering import an_altered_review
from demo.attempts import attempts, digest, refused_submission
from demo.auditor import an_auditor
from demo.evidence import Evidence
from demo.host_site import HostSite
from demo.service import Reply, Service
from demo.stage import VERIFIER, Stage, expect, short
from demo.tampering import lies
from demo.traces import files_with, in_common
from demo.watching import Watching
from ledger.log.checkpoint import open_checkpoint
from ledger.log.note import Verifier

DID = re.compile(r"did:key:\w+(?:#\w+)?")


def _lasting(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """A receipt but for the checkpoint that proves it: the first with a quorum, once there is one."""
    return {name: value for name, value in receipt.items() if name not in ("checkpoint", "tlog_proof")}


class Story:
    """`receipts` are those of accepted reviews, by booking reference."""

    def __init__(self, stage: Stage, service: Service, cast: Cast, site: HostSite, watching: Watching) -> None:
        self.stage, self.service, self.cast, self.site = stage, service, cast, site
        self.watching = watching
        self.log_key = ""
        self.receipts: dict[str, dict[str, Any]] = {}

    def tell(self) -> None:
        self.a_log_and_its_key()
        self.watching.a_witness(self.log_key)
        self.whose_word_counts()
        self.a_credential()
        self.a_stay_receipt()
        self.reviews()
        self.a_response()
        self.what_is_turned_away()
        evidence = Evidence(self.stage, self.service, self.cast, self.site, self.log_key)
        evidence.the_host_is_asked()
        evidence.a_silent_host()
        evidence.a_denial()
        self.what_lies_look_like(self.an_answer())
        self.a_receipt_for_ever()
        an_altered_review(self.stage, self.cast)
        self.what_is_kept_of_a_guest()
        evidence.a_text_that_must_go()
        an_auditor(self.stage, self.service, self.log_key)
        self.watching.two_histories(self.log_key)

    def a_log_and_its_key(self) -> None:
        self.stage.chapter(
            "A log and its key",
            "One tamper-evident log. Its operator signs every state of it, and with this public key anybody can check "
            "what the operator says later. In earnest, take it from a place you trust.",
        )
        command = ("staylog", "init", "--data", "ledger", "--base-url", self.service.url)
        self.stage.command(*command)
        self.log_key = self.stage.run(*command, says="Its public key").splitlines()[2].strip()
        self.stage.line(self.log_key)

    def whose_word_counts(self) -> None:
        self.stage.chapter(
            "Whose word counts",
            "An issuer looks at passports, so that hosts and ledgers need not. The operator pins its key, which is an "
            "entry in the log for everybody to see. Then the service starts.",
        )
        issuer = self.cast.issuer
        trust = ("staylog", "issuer", "add", "guest", issuer.did, "--key", issuer.multikey, "--data", "ledger")
        self.stage.command(*trust)
        self.stage.run(*trust, says=f"{issuer.did} is trusted for credentials of a guest\nentry 2, signed")
        self.stage.command("staylog", *self.service.command)
        self.service.start()
        expect("the key that the service shows", self.log_key, self.service.get("/v1/log/key").body["vkey"])
        shown = [
            (each["index"], each["issuer"], each["keys"]) for each in self.service.get("/v1/issuers").body["issuers"]
        ]
        expect("the issuers that the service shows", [(2, issuer.did, [issuer.multikey])], shown)
        self.stage.facts(("entry 2", f"{issuer.did} is trusted for credentials of guests"))

    def a_credential(self) -> None:
        self.stage.chapter(
            "A guest gets a credential",
            "Ada makes a key of her own, and shows the issuer her passport. It signs that this key belongs to a person "
            "whom it has seen. Who she is stays with the issuer. Six others get theirs too.",
        )
        for guest in self.cast.guests:
            guest.credential = self.cast.issuer.vouch_for(guest)
        made = self.cast.ada.credential
        subject, suites = (
            made["credentialSubject"],
            [proof.get("cryptosuite", proof["type"]) for proof in made["proof"]],
        )
        self.stage.facts(
            ("about", short(subject["id"])),
            ("says", f"{subject['idv_level']} ({subject['idv_method']}), until {made['validUntil'][:10]}"),
            ("signed", f"by {made['issuer']}, as {' and '.join(suites)}"),
        )

    def a_stay_receipt(self) -> None:
        self.stage.chapter(
            "A stay receipt, at booking time",
            "When Ada booked, her host Hanne signed a receipt for her. Nobody knew the rating then: a host who is "
            "asked only after the stay could keep a bad review from counting by not answering.",
        )
        receipt = self.cast.hanne.confirm(self.cast.adas)
        self.stage.facts(
            ("booking", f"{receipt['booking_reference']} by {short(receipt['guest_did'])}"),
            ("stay", f"{receipt['listing_id']}, {receipt['check_in']} to {receipt['check_out']}"),
            ("signed", f"by {short(receipt['host_did'])} at {receipt['proof']['created']}"),
        )

    def reviews(self) -> None:
        self.stage.chapter(
            "Reviews, and a receipt for each",
            "Three guests of Hanne review their stays; Ada also stayed at Olav's. Each gets an answer when the review "
            "is on disk, in the log and under a signed checkpoint. Sent again, it gets its receipt again.",
        )
        cast, url = self.cast, self.service.url
        adas = cast.ada.review(cast.adas, 5, "Quiet and warm, and the garden in bloom.", url)
        written = {
            "Ada": adas,
            "Ben": cast.ben.review(cast.bens, 2, "Cold, and no hot water.", url),
            "Cleo": cast.cleo.review(cast.cleos, 4.5, "Small, but all we needed.", url),
            "Ada at Olav's": cast.ada.review(cast.adas_at_olavs, 4, "The harbour at dawn!", url),
        }
        rows = []
        for title, review in written.items():
            reply = self.service.post("/v1/reviews", review)
            expect(f"the answer to the review: {title}", (201, None), reply.outcome)
            self.receipts[review["booking_reference"]] = reply.body
            rows.append((title, f"{review['ratings']['overall']:.1f} stars", f"201  {self._place(reply)}"))
            if title == "Ada":
                self.watching.back_up()
        again = self.service.post("/v1/reviews", adas)
        expect("the answer to Ada's review, sent again", (200, None), again.outcome)
        first = self.receipts[cast.adas.reference]
        expect("the receipt of Ada's review, sent again", _lasting(first), _lasting(again.body))
        self.stage.facts(*rows, ("Ada, again", "the same", f"200  entry {again.body['index']}"))
        self.stage.keep("ada-review.json", adas)

    def a_response(self) -> None:
        self.stage.chapter(
            "The host answers",
            "Hanne has no key that could remove Ben's two stars. She may answer them once, in public.",
        )
        review_id = self.receipts[self.cast.bens.reference]["review_id"]
        response = self.cast.hanne.respond(review_id, "The boiler broke that night. It is new now.", self.service.url)
        reply = self.service.post(f"/v1/reviews/{review_id}/response", response)
        expect("the answer to Hanne's response", (201, None), reply.outcome)
        self.stage.facts(("Hanne", response["response_text"]), ("", f"201  {self._place(reply)}"))

    def what_is_turned_away(self) -> None:
        self.stage.chapter(
            "What is turned away",
            "Every refusal has a code that explains itself. Whoever has shown who they are gets it signed: a ledger "
            "that turns away what it should take leaves evidence.",
        )
        document = self.service.get("/.well-known/did.json").body
        for attempt in attempts(self.cast, self.service.url):
            reply = self.service.post("/v1/reviews", attempt.review)
            expect(attempt.title, (attempt.status, attempt.code), reply.outcome)
            refusal = reply.body.get("refusal")
            expect(f"{attempt.title} Is the refusal signed?", attempt.signed, refusal is not None)
            if refusal is not None:
                refused = refused_submission(refusal, document)
                expect(f"{attempt.title} What is refused", (digest(attempt.review), attempt.code), refused)
            self.stage.facts((f"{attempt.status}", attempt.title), style="yellow")
            reason = f"{attempt.code}{', signed by the ledger' * attempt.signed}: {reply.body['detail']}"
            self.stage.facts(("   ", DID.sub(lambda found: short(found[0]), reason)))

    def an_answer(self) -> dict[str, Any]:
        self.stage.chapter(
            "One answer, checked offline",
            "What is Hanne's reputation? The answer comes with its proof. The verifier is one file that shares no code "
            "with the service; it has the answer and the log's key, and asks nobody.",
        )
        host = self.cast.hanne.did
        answer = self.service.get(f"/v1/hosts/{host}/reputation?proof=full").body
        self.stage.keep("answer.json", answer)
        reviews, stars = answer["verified_reviews"], answer["average_ratings"]["overall"]
        expect("the number of Hanne's reviews, and their mean", (3, 3.8), (reviews, stars))
        self.stage.facts(("answer.json", f"{reviews} verified reviews, {stars} stars overall"))
        self.stage.command("python", f"audits/{VERIFIER.name}", "answer.json", "--key", self.log_key, "--host", host)
        self.stage.report(self._verify("answer.json", says="3 of 3 reviews are listed"))
        return answer

    def what_lies_look_like(self, answer: Mapping[str, Any]) -> None:
        self.stage.chapter(
            "What lies look like",
            "The operator would rather be without Ben's two stars, and has every entry and all the code. From the "
            "laziest lie to the most diligent, each in a file, each to the same verifier:",
        )
        entries = self.service.get("/v1/log/entries?count=1000").body["entries"]
        review_id = self.receipts[self.cast.bens.reference]["review_id"]
        for number, lie in enumerate(lies(answer, review_id, entries), 1):
            name = f"lie-{number}.json"
            self.stage.keep(name, lie.answer)
            said = self._verify(name, says=f"Wrong: {lie.refusal}", status=1)
            self.stage.facts((name, lie.title))
            # What it compares may be longer than a line.
            reason = re.sub(r"\{.*?\}", "{...}", said.removeprefix("Wrong: "))
            self.stage.facts((f"{'Wrong:':<{len(name)}}", reason), style="red")

    def a_receipt_for_ever(self) -> None:
        self.stage.chapter(
            "A receipt for ever",
            "A liar could still sign another log, one without Ada's review. But this one is signed too, by the witness "
            "as well, and Ada keeps the receipt that shows it. To check it, no server is asked.",
        )
        review = json.loads((self.stage.folder / "ada-review.json").read_text("utf-8"))
        self.stage.keep("ada-receipt.json", self.service.post("/v1/reviews", review).body)
        shown = ("--submission", "ada-review.json", "--key", self.log_key, "--policy", "ledger/tlog-policy")
        command = ("staylog", "verify", "ada-receipt.json", *shown)
        self.stage.command(*command)
        said = self.stage.run(*command, says="the review rests on exactly this signed submission")
        expect("that the witness agrees", True, "1 of 1 witnesses of the policy agree" in said)
        self.stage.report(said.partition("\n")[2])

    def what_is_kept_of_a_guest(self) -> None:
        self.stage.chapter(
            "What is kept of a guest",
            "Ada was at Hanne's and at Olav's. Do her two entries in the log give away that she is one person?",
        )
        cast = self.cast
        bens, adas, at_olavs = (
            self.receipts[stay.reference]["entry"] for stay in (cast.bens, cast.adas, cast.adas_at_olavs)
        )
        shared = in_common(adas, at_olavs)
        expect("what a review of another guest shares with Ada's", shared, in_common(bens, at_olavs))
        words = [value for value in shared.values() if isinstance(value, str) and value != "review"]
        ledger = self.stage.folder / "ledger"
        secrets = (cast.ada.multikey, cast.ada.person, cast.adas.reference, cast.adas_at_olavs.reference)
        expect("the files with Ada's DID, her number or her bookings", [], files_with(ledger, *secrets))
        asked = [(stay.guest.multikey, stay.guest.person, stay.reference) for stay in (cast.doras, cast.fays)]
        expect("the files with the same of Dora and Fay", [], files_with(ledger, *asked[0], *asked[1]))
        expect("whether such a search finds Hanne's DID", True, files_with(ledger, cast.hanne.multikey) != [])
        self.stage.facts(
            ("they share", ", ".join(words)),
            ("", "which Ben's review and hers at Olav's share as well"),
            ("nowhere", "her DID, her number at the issuer, her bookings: in no file of the ledger"),
            ("", "nor those of Dora and Fay, about whose bookings a host was asked"),
        )

    def what_to_try(self) -> None:
        """What whoever reads this can do next; looked at as well."""
        self.stage.say("Now you:")
        host, review_id = self.cast.hanne.did, self.receipts[self.cast.bens.reference]["review_id"]
        for path in (
            f"/v1/hosts/{host}/reputation",
            f"/v1/reviews/{review_id}",
            "/v1/log/checkpoint",
            "/problems/booking_evidence_invalid",
        ):
            expect(f"the status of {path}", 200, self.service.get(path).status)
            self.stage.line(f"curl -s {self.service.url}{path}")
        expect("the status of the front page", 200, self.service.get("/").status)
        expect("the status of the page that verifies", 200, self.service.get("/verify").status)
        self.stage.say("In a browser, and what you see there checked by the browser itself:")
        self.stage.line(f"{self.service.url}/")
        self.stage.line(f"{self.service.url}/verify#{host}")
        self.stage.say("Change a character of answer.json, and verify it again:")
        answer = self.stage.folder / "answer.json"
        self.stage.line(f".venv/bin/python audits/{VERIFIER.name} {answer} --key {self.log_key} --host {host}")

    def _place(self, reply: Reply) -> str:
        """Where a receipt says that something is, once the signature under it holds."""
        signed = open_checkpoint(reply.body["checkpoint"], Verifier.parse(self.log_key))
        return f"entry {reply.body['index']}, under a signed checkpoint of {signed.size}"

    def _verify(self, name: str, *, says: str, status: int = 0) -> str:
        return self.stage.verify(name, self.log_key, self.cast.hanne.did, says=says, status=status)
