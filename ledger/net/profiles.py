"""What may be spent on each kind of question (design: one guarded fetcher)."""

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True, slots=True)
class Profile:
    """What may be spent on one kind of question. Redirects are followed within the origin."""

    name: str
    max_bytes: int
    seconds: float
    redirects: int = 0
    # Whether only those are asked whom the operator trusts.
    trusted: bool = False

    @property
    def most_received(self) -> int:
        """All that a connection may bring, with TLS, headers and chunks: whoever sends small pieces, or interim answers
        without end, would keep us busy."""
        return 2 * self.max_bytes + 64 * KIB


LISTING = Profile("listing", 256 * KIB, 10, redirects=3)
MANIFEST = Profile("manifest", 2048 * KIB, 10, redirects=3)
CREDENTIAL = Profile("credential", 64 * KIB, 3)
DID = Profile("did", 64 * KIB, 3)
JWKS = Profile("jwks", 64 * KIB, 3)
DISCOVERY = Profile("discovery", 64 * KIB, 3)
STATUS_LIST = Profile("status_list", 1024 * KIB, 3, trusted=True)
OFFER = Profile("offer", 64 * KIB, 5)
HINT = Profile("hint", 64 * KIB, 3)
CALLBACK = Profile("callback", 64 * KIB, 5)
PROFILES = (LISTING, MANIFEST, CREDENTIAL, DID, JWKS, DISCOVERY, STATUS_LIST, OFFER, HINT, CALLBACK)
