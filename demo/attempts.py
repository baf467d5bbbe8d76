"""What is tried against the ledger and turned away, and whether the ledger's signed word for it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from demo.actors import Cast, Stay
from ledger.canon import jcs, multikey, proofs


@dataclass(frozen=True, slots=True)
class Attempt:
    """A review that must be refused. `signed`: whoever has shown who they are gets the refusal signed."""

    title: str
    review: Mapping[str, Any]
    status: int
    code: str
    signed: bool


def attempts(cast: Cast, ledger: str) -> list[Attempt]:
    dreamt = Stay("HC-1099", cast.mallory, cast.hanne, left_days_ago=5)
    forged = cast.mallory.sign(dreamt.receipt(), domain=None, at=dreamt.booked, method=cast.hanne.method)
    booked = Stay("HC-1050", cast.cleo, cast.hanne, left_days_ago=-1)
    return [
        Attempt(
            "Mallory never stayed, and signs a receipt in Hanne's name.",
            cast.mallory.review(dreamt, 1, "Awful.", ledger, receipt=forged),
            403,
            "booking_evidence_invalid",
            signed=True,
        ),
        Attempt(
            "Mallory has a copy of Ada's credential, and only her own key.",
            cast.mallory.review(cast.adas, 1, "Awful.", ledger, credential=cast.ada.credential),
            403,
            "holder_mismatch",
            signed=False,
        ),
        Attempt(
            "Ada reviews the same booking again, in other words.",
            cast.ada.review(cast.adas, 1, "On second thoughts, dreadful.", ledger),
            409,
            "already_reviewed",
            signed=True,
        ),
        Attempt(
            "Cleo reviews a stay that ends tomorrow.",
            cast.cleo.review(booked, 5, "I will love it.", ledger),
            422,
            "stay_not_over",
            signed=False,
        ),
    ]


def refused_submission(refusal: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[str, str]:
    """The hash of what was refused and why, once the signature holds."""
    said = said_by_ledger(refusal, document)
    return said["submission_sha256"], said["code"]


def said_by_ledger(statement: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """What a statement says, once its signature holds: by the key that the ledger's DID `document` lists for what it
    asserts."""
    said = {name: value for name, value in statement.items() if name != "proof"}
    proofs.verify(said, statement["proof"], [multikey.decode(statements_key(document))])
    return said


def statements_key(document: Mapping[str, Any]) -> str:
    [method] = document["assertionMethod"]
    keys = {each["id"]: str(each["publicKeyMultibase"]) for each in document["verificationMethod"]}
    return keys[method]


def digest(statement: Mapping[str, Any]) -> str:
    return sha256(jcs.dumps(statement)).hexdigest()
