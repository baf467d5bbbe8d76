"""The chapter of an operator that alters what a guest signed, and of the receipt that convicts it."""

import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from api.app import create_app
from demo.actors import Cast, Issuer
from demo.listener import Listener
from demo.service import HOST, Client
from demo.stage import Stage, expect
from ledger.canon import jcs
from ledger.folder import init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.log.openings import SALT_SIZE, commitment
from ledger.reviews.admission import review_draft
from ledger.reviews.receipts import receipt_of
from ledger.settings import Settings

RECEIPT, REVIEW, FRAUD = "altered-receipt.json", "altered-review.json", "fraud.json"


class AlteringLedger(Client):
    """A ledger whose operator writes other stars into the log than a guest signed. Started once, ended by `close`."""

    def __init__(self) -> None:
        self._listener = Listener()
        super().__init__(f"http://{HOST}:{self._listener.port}")

    def start(self, data: Path, issuer: Issuer) -> None:
        settings = Settings.of(data, base_url=self.url)
        init_folder(settings)
        self._ledger = open_ledger(settings)
        if (draft := trust(self._ledger.issuers(), "guest", issuer.did, [issuer.multikey], None)) is not None:
            self._ledger.sequencer.append([draft])
        self.log_key = str(self._ledger.verifier)
        self._listener.start(create_app(self._ledger), lifespan=True)

    def take(self, review: Mapping[str, Any], stars: float) -> dict[str, Any]:
        """The receipt of a review whose entry has other stars. The entry commits to the review as it was signed: a
        commitment to another one would not open, and the guest would see that at once."""
        shown, salt, desk = review["guest_credential"], os.urandom(SALT_SIZE), self._ledger.desk()
        members = {
            **{name: review[name] for name in ("host_did", "listing_id", "check_in", "check_out")},
            "ratings": dict.fromkeys(review["ratings"], stars),
            "level": "guest_verified",
            "evidence": {
                "booking": "stay_receipt",
                "issuer": shown["issuer"],
                "idv_level": shown["credentialSubject"]["idv_level"],
                "commitment": commitment(salt, jcs.dumps({"booking": None, "submission": review})),
            },
        }
        draft = review_draft(desk, members, review["review_text"], salt=salt)
        placed = self._ledger.sequencer.submit(draft).result()
        return receipt_of(self._ledger.reader, placed, draft)

    def close(self) -> None:
        self._listener.close()


def an_altered_review(stage: Stage, cast: Cast) -> None:
    stage.chapter(
        "An operator alters a review",
        "Ben sends his two stars to another ledger as well. Its operator has the key of that log and writes five stars "
        "into it. The log is well formed, so every audit of it is clean. Ben has a receipt, and what he signed.",
    )
    with closing(AlteringLedger()) as ledger:
        ledger.start(stage.folder / "altering", cast.issuer)
        review = cast.ben.review(cast.bens, 2, "Cold, and no hot water.", ledger.url)
        receipt = ledger.take(review, stars=5)
        entered = json.loads(receipt["entry"])["ratings"]["overall"]
        expect("the stars that Ben signed and those in the log", (2, 5), (review["ratings"]["overall"], entered))
        audit = ("audit", ledger.url, "--key", ledger.log_key, "--out", "altering-findings")
        stage.command("staylog", *audit)
        stage.run("staylog", *audit, says=": clean")
    stage.keep(RECEIPT, receipt)
    stage.keep(REVIEW, review)
    stage.facts(("the audit", "clean: nothing that is public shows the lie"))
    verify = ("verify", RECEIPT, "--key", ledger.log_key, "--submission", REVIEW, "--fraud", FRAUD)
    stage.command("staylog", *verify)
    said = stage.run("staylog", *verify, says="ratings.accuracy is 5 in the entry, and 2 in the submission", status=1)
    expect("whether it says what the file reveals", True, "the booking reference" in said)
    stage.facts(("refused", "ratings.accuracy is 5 in the entry, and 2 in the submission"), style="red")
    stage.say(
        "The file that Ben gets convicts this operator before everyone who has the log's key. It reveals what he "
        "signed, so he decides whom to show it to."
    )
    check = ("audit", "check-fraud", FRAUD, "--key", ledger.log_key)
    stage.command("staylog", *check)
    said = stage.run("staylog", *check, says="no honest log makes it from that")
    stage.report("\n".join(line for line in said.splitlines() if line.startswith("  ")))
