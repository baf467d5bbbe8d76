"""The attack table for JSON, credentials, proofs and DIDs (spec/credentials.md 10): a row is a test with its code.

Where a row has several forms, each is a case. `identities.signed` makes a proof that holds, as a careless or dishonest
issuer would: what is refused is refused although the signature is right, unless the test says that it was changed.
"""

from typing import Any

import pytest

from ledger.canon import proofs, strict_json
from ledger.errors import StaylogError
from tests.identities import (
    hear,
    judge,
)

GRAPH_SUITES = (proofs.EDDSA_RDFC, proofs.ED25519_2020)


def refused(document: Any, role: str = "guest", **options: Any) -> str:
    with pytest.raises(StaylogError) as refusal:
        judge(document, role, **options)
    return refusal.value.code


def unread(data: bytes | str) -> str:
    with pytest.raises(StaylogError) as refusal:
        strict_json.loads(data)
    return refusal.value.code


def unheard(body: Any, kind: str, **options: Any) -> str:
    with pytest.raises(StaylogError) as refusal:
        hear(body, kind, **options)
    return refusal.value.code


def subject(document: dict[str, Any], **claims: Any) -> dict[str, Any]:
    return {**document, "credentialSubject": {**document["credentialSubject"], **claims}}
