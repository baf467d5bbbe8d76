"""What issuers publish of their own keys: a DID document, or a document at their https address (RFC-004 3.2).

Nothing is trusted because it is published. A ledger asks in the background, to tell its operator of a change; whoever
judges a credential from a terminal, without a ledger, asks to have a key at all.
"""

from datetime import datetime

from ledger.errors import NotAccepted, NotFetched, Unavailable
from ledger.identity.did import Keys, document_url, is_offline, offline
from ledger.identity.documents import Document, read_document, read_key
from ledger.net.fetch import Fetcher
from ledger.net.guard import check_url
from ledger.net.lookups import FAILURE_SECONDS
from ledger.net.profiles import DID


async def issuer_document(fetcher: Fetcher, issuer: str) -> Document:
    """The keys that an issuer says it has."""
    return read_document((await fetcher.fetch(_home(issuer), DID)).json(), issuer)


async def issuer_keys(fetcher: Fetcher, issuer: str, method: str, now: datetime) -> Keys:
    """The keys of an issuer, from where it publishes the one that has the name `method`: all of its document, or that
    one, where it has an address of its own."""
    if is_offline(issuer):
        return offline(issuer)
    address = method.partition("#")[0]
    try:
        # What stands at another address of the same origin may be somebody else's word: only a key may.
        if issuer.startswith("did:") or check_url(address) == check_url(_home(issuer)):
            keys = (await issuer_document(fetcher, issuer)).keys(now)
        else:
            keys = {method: read_key((await fetcher.fetch(address, DID)).json(), method, issuer, now)}
    except NotFetched as failure:
        raise Unavailable(
            "issuer_unavailable",
            f"the keys of {issuer} cannot be looked up now ({failure.code}): {failure.message}",
            retry_after=failure.retry_after or FAILURE_SECONDS,
        ) from failure
    if method not in keys:
        raise NotAccepted("bad_verification_method", f"{method} is not an Ed25519 key that may assert for {issuer} now")
    return keys


def _home(issuer: str) -> str:
    return document_url(issuer) if issuer.startswith("did:") else issuer.partition("#")[0]
