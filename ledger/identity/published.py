"""What issuers publish of their own keys: a DID document, or a document at their https address (RFC-004 3.2).

Nothing is trusted because it is published. A ledger asks in the background, to tell its operator of a change; whoever
judges a credential from a terminal, without a ledger, asks to have a key at all.
"""

from datetime import datetime

from ledger.errors import NotFetched, Unavailable
from ledger.identity.did import Keys, is_offline, offline
from ledger.identity.documents import Document, read_document, read_key
from ledger.identity.resolution import document_url
from ledger.net.fetch import DID, Fetcher
from ledger.net.lookups import FAILURE_SECONDS


async def issuer_document(fetcher: Fetcher, issuer: str) -> Document:
    """The keys that an issuer says it has."""
    url = document_url(issuer) if issuer.startswith("did:") else issuer
    return read_document((await fetcher.fetch(url.partition("#")[0], DID)).json(), issuer)


async def issuer_key(fetcher: Fetcher, issuer: str, method: str, now: datetime) -> Keys:
    """The key of an issuer that has the name `method`, from where the issuer publishes it."""
    if is_offline(issuer):
        return offline(issuer)
    url = document_url(issuer) if issuer.startswith("did:") else method.partition("#")[0]
    try:
        fetched = await fetcher.fetch(url, DID)
        return {method: read_key(fetched.json(), method, issuer, now)}
    except NotFetched as failure:
        raise Unavailable(
            "issuer_unavailable",
            f"the keys of {issuer} cannot be looked up now ({failure.code}): {failure.message}",
            retry_after=failure.retry_after or FAILURE_SECONDS,
        ) from failure
