"""Write the vectors: `python -m schemas.vectors.make`. Made again, the files are the same bytes."""

import json
from pathlib import Path
from typing import Any

from ledger.canon import base64
from ledger.log.tlog_proof import TlogProof
from schemas.vectors import story, tampered, world
from schemas.vectors.story import Story

TEST_KEY = {
    "name": story.ORIGIN,
    "seed": story.SEED.hex(),
    "warning": "A test key: its seed is public. Never use it anywhere else.",
}
# name, host, proof, first event of a page
ANSWERS = (
    ("full", world.COTTAGE, "full", 0),
    ("full-redacted", world.HARBOUR, "full", 0),
    ("full-unconfirmed", world.CABIN, "full", 0),
    ("full-withheld", world.MILL, "full", 0),
    ("full-no-texts", world.BARN, "full", 0),
    ("aggregate", world.COTTAGE, "aggregate", 0),
    ("page-0", world.HARBOUR, "page", 0),
    ("page-3", world.HARBOUR, "page", 3),
    ("page-6", world.HARBOUR, "page", 6),
    ("absent-zeros", world.ABSENT_ZEROS, "full", 0),
    ("absent-other", world.ABSENT_OTHER, "full", 0),
    ("absent-aggregate", world.ABSENT_OTHER, "aggregate", 0),
)
PAGE = 3
RECEIPT_OF = 5


def ledger(told: Story) -> dict[str, Any]:
    return {
        "about": "A whole small ledger: the exact text of every entry in log order, and every checkpoint signed.",
        "test_key": TEST_KEY,
        "vkey": str(story.LOG),
        "policy": story.POLICY.decode(),
        "entries": [entry.data.decode() for entry in told.log.entries],
        "checkpoints": [{"size": state.size, "checkpoint": state.note} for state in told.log.published],
    }


def answers(told: Story) -> dict[str, Any]:
    made: list[dict[str, Any]] = [
        {"name": name, "did": did, "kind": kind, "answer": told.log.answer(did, kind, start=start, count=PAGE)}
        for name, did, kind, start in ANSWERS
    ]
    return {
        "about": "Reputation answers from the ledger of ledger.json. `texts` is the state of each committed text by "
        "log index, for a reader who did not ask for the texts of unconfirmed reviews. A tampered variant is its base "
        "after an RFC 6902 patch, checked as an answer of the base's kind about the base's host; `code` says which "
        "refusal follows.",
        "test_key": TEST_KEY,
        "vkey": str(story.LOG),
        "answers": [{**each, "texts": _texts(told, each["answer"])} for each in made],
        "tampered": tampered.answers(told, {each["name"]: each["answer"] for each in made}),
        "page_sets": [
            {
                "did": world.HARBOUR,
                "pages": ["page-6", "page-0", "page-3"],
                "texts": _texts(told, told.log.answer(world.HARBOUR)),
            },
            {"did": world.HARBOUR, "pages": ["page-0", "page-6"], "code": "pages_incomplete"},
            {"did": world.HARBOUR, "pages": ["page-0", "page-3"], "code": "pages_incomplete"},
            {"did": world.HARBOUR, "pages": ["page-0", "page-0", "page-3", "page-6"], "code": "pages_incomplete"},
            {"did": world.HARBOUR, "pages": ["full-redacted"], "code": "wrong_kind"},
        ],
    }


def receipt(told: Story) -> dict[str, Any]:
    entry, (submission, salt) = told.log.entries[RECEIPT_OF], told.submissions[RECEIPT_OF]
    state = next(state for state in told.log.published if state.size > RECEIPT_OF)
    proof = TlogProof(RECEIPT_OF, tuple(told.log.tree.inclusion(RECEIPT_OF, state.size)), state.note)
    made = {
        "review_id": entry.members["review_id"],
        "status": "accepted",
        "verification_level": entry.members["level"],
        "index": RECEIPT_OF,
        "entry": entry.data.decode(),
        "openings": {
            "text": told.log.openings[RECEIPT_OF].as_json(),
            "evidence": {"salt": base64.encode(salt)},
        },
        "checkpoint": state.note,
        "tlog_proof": str(proof),
    }
    return {
        "about": "The receipt of the first review in ledger.json. `submission` is what the evidence salt opens; a real "
        "one carries a credential and a signature too, and so a verifier that is shown this one refuses the receipt as "
        "entry_differs_from_submission. A tampered variant is the receipt after an RFC 6902 patch.",
        "test_key": TEST_KEY,
        "vkey": str(story.LOG),
        "submission": submission,
        "receipt": made,
        "tampered": tampered.receipts(made),
    }


def example(told: Story) -> dict[str, Any]:
    about = (
        "An example: an invented host, signed with a test key that is never used elsewhere. To check it, take the vkey "
        "from ledger.json: a key that came with the answer itself would prove nothing."
    )
    return {"about": about, **told.log.answer(world.COTTAGE)}


def files() -> dict[str, str]:
    """Every file by name."""
    # Needs more than the base install, which is enough for the rest.
    from schemas.vectors import identity

    told = world.tell()
    made = {
        "ledger.json": ledger(told),
        "answers.json": answers(told),
        "receipt.json": receipt(told),
        "example-answer.json": example(told),
        "credentials.json": identity.credentials(),
        "statements.json": identity.spoken(),
    }
    return {
        name: json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n" for name, value in made.items()
    }


def _texts(told: Story, answer: dict[str, Any]) -> dict[str, str]:
    """A page that does not reach the redaction of a text can only say that the text is missing."""
    events = [(event["index"], json.loads(event["entry"])) for event in answer["proof"].get("events", [])]
    redacted = {(entry["review"], entry["part"]) for _, entry in events if entry["type"] == "redaction"}
    texts = {}
    for index, entry in events:
        if index in told.states:
            part = (index, "text") if entry["type"] == "review" else (entry.get("review"), "response")
            unexplained = told.states[index] == "redacted" and part not in redacted
            texts[str(index)] = "withheld" if unexplained else told.states[index]
    return texts


def main() -> None:
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
