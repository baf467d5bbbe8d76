"""Verdicts on hosts' credentials: the nine steps of OpenSTR RFC-004, each with the codes it refuses by.

The steps are told in the order of RFC-004, and taken in the order of cost. A verdict names the step that failed; which
of the others would have failed too is not looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.canon.proofs import Canonize
from ledger.clock import Clock
from ledger.errors import NotFetched, StaylogError, Unavailable
from ledger.identity.credentials import Credential, Trust, verify
from ledger.identity.status import StatusLists
from ledger.net.fetch import Fetcher
from ledger.net.lookups import FAILURE_SECONDS
from ledger.net.profiles import CREDENTIAL

STEPS = (
    "the document was fetched",
    "it is a host's credential, of the closed form",
    "it holds now",
    "its issuer is trusted for hosts",
    "the key is the issuer's",
    "the proof holds",
    "it is neither revoked nor suspended",
    "it names the listing",
    "the right to let the listing was verified",
)
FETCHED, FORM, STATUS, NAMED, RIGHT = 1, 2, 7, 8, 9
# What `credentials.verify` refuses by, where that is not the form.
_STEP_OF = {
    **dict.fromkeys(("missing_expiry", "expired", "not_yet_valid"), 3),
    **dict.fromkeys(("issuer_not_trusted", "self_issued"), 4),
    **dict.fromkeys(("issuer_key_mismatch", "bad_verification_method"), 5),
    **dict.fromkeys(
        (
            *("proof_type_not_supported", "proof_chain", "wrong_proof_purpose", "proof_value_invalid"),
            *("proof_invalid", "proof_time_invalid"),
        ),
        6,
    ),
    "missing_status": STATUS,
}


@dataclass(frozen=True, slots=True)
class Failed:
    """The step that failed, counted from 1, and why. What is Unavailable may pass later."""

    step: int
    reason: StaylogError


@dataclass(frozen=True, slots=True)
class HostJudge:
    """What it takes to judge: whom to ask, whom to trust, the time."""

    fetcher: Fetcher
    trust: Trust
    statuses: StatusLists
    clock: Clock
    canonize: Canonize

    async def judge(self, source: str | Mapping[str, Any], listing_id: str | None) -> Credential | Failed:
        """The credential, or the one at an address, if it passes; without a listing its first seven steps."""
        step = FETCHED
        try:
            document = await fetch_credential(self.fetcher, source) if isinstance(source, str) else source
            step = FORM
            credential = verify(document, "host", self.trust, self.clock(), self.canonize)
            step = STATUS
            await self.statuses.require_good(credential)
            if listing_id is not None:
                step = RIGHT if credential.names_listing(listing_id) else NAMED
                credential.require_listing(listing_id)
        except StaylogError as refusal:
            return Failed(_STEP_OF.get(refusal.code, step) if step == FORM else step, refusal)
        return credential


async def fetch_credential(fetcher: Fetcher, url: str) -> Any:
    """The document at an address, whatever it is."""
    try:
        return (await fetcher.fetch(url, CREDENTIAL)).json()
    except NotFetched as failure:
        raise Unavailable(
            "credential_unavailable",
            f"the credential cannot be had now ({failure.code}): {failure.message}",
            retry_after=failure.retry_after or FAILURE_SECONDS,
        ) from failure
