"""What `staylog credential verify` finds out: by a ledger's trust, by keys that are given, or by those that the issuer
publishes."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from nacl.signing import SigningKey

from ledger.canon import multikey, strict_json
from ledger.clock import utc_now
from ledger.commands.network import command_fetcher
from ledger.errors import BadForm, Misconfigured, NotAccepted, StaylogError, Unavailable
from ledger.settings import Settings

if TYPE_CHECKING:
    from ledger.identity.credentials import Credential, Trust
    from ledger.identity.did import Keys
    from ledger.net.fetch import Fetcher

NO_STATUS = "cannot be; it ends by itself"
LOOKED_UP = "no: looked up just now"
OWN_KEY = "not asked: the key is the issuer's own; give --data to judge as a ledger does"
# Of the nine steps for hosts, those that are taken before the others.
FETCH, FORM, KEY = 1, 2, 5


class Verdict(NamedTuple):
    """A credential that counts, and in words what the trust in its issuer rests on and what was looked up."""

    credential: "Credential"
    trusted: str
    revoked: str


class StepFailed(StaylogError):
    """The step of nine that a host's credential failed at."""

    def __init__(self, step: int, reason: StaylogError) -> None:
        from ledger.identity.host_credentials import STEPS

        how = "cannot be taken now" if isinstance(reason, Unavailable) else "fails"
        super().__init__(reason.code, f'step {step} of {len(STEPS)}, "{STEPS[step - 1]}", {how}: {reason.message}')
        self.step = step
        self.reason = reason


@contextmanager
def _step(step: int, of_host: bool) -> Iterator[None]:
    """Whatever is refused in it fails at this step, if it is a host's credential."""
    try:
        yield
    except StaylogError as refusal:
        if of_host:
            raise StepFailed(step, refusal) from refusal
        raise


async def judge(
    source: str,
    keys: tuple[str, ...],
    data: Path | None,
    database_url: str | None,
    listing: str | None,
    offline: bool,
    now: datetime,
) -> Verdict:
    from ledger.identity.credentials import role_of
    from ledger.identity.host_credentials import fetch_credential

    fetcher = None if offline else command_fetcher()
    if fetcher is not None and "://" in source:
        with _step(FETCH, listing is not None):
            document = await fetch_credential(fetcher, source)
    else:
        document = _read(source)
    with _step(FORM, listing is not None):
        role = role_of(document)
        if listing is not None and role != "host":
            raise NotAccepted("wrong_credential_type", "only a host's credential covers listings")
    trust, trusted = await _trust(document, role, keys, data, database_url, fetcher, now)
    credential = await _verify(document, role, listing, trust, fetcher, now)
    if not credential.statuses:
        return Verdict(credential, trusted, NO_STATUS)
    lists = ", ".join(str(status["statusListCredential"]) for status in credential.statuses)
    return Verdict(credential, trusted, LOOKED_UP if fetcher else f"not looked up: {lists}")


async def _verify(
    document: Any, role: str, listing: str | None, trust: "Trust", fetcher: "Fetcher | None", now: datetime
) -> "Credential":
    """The verdict of whoever has this trust; without a fetcher whatever became of the credential since."""
    from ledger.identity.contexts import canonicaliser
    from ledger.identity.credentials import verify
    from ledger.identity.host_credentials import Failed, HostJudge
    from ledger.identity.status import StatusLists

    canonize = canonicaliser().canonize
    if fetcher is not None and role == "host":
        statuses = StatusLists(fetcher, utc_now, lambda: trust)
        verdict = await HostJudge(fetcher, trust, statuses, lambda: now, canonize).judge(document, listing)
        if isinstance(verdict, Failed):
            raise StepFailed(verdict.step, verdict.reason)
        return verdict
    credential = verify(document, role, trust, now, canonize)
    if fetcher is not None:
        await StatusLists(fetcher, utc_now, lambda: trust).require_good(credential)
    elif listing is not None:
        credential.require_listing(listing)
    return credential


def _read(source: str) -> Any:
    from ledger.identity.credentials import MAX_BYTES

    try:
        with click.open_file(source, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Misconfigured("file_unreadable", f"{source} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise BadForm("too_large", f"a credential has at most {MAX_BYTES // 1024} KiB")
    return strict_json.loads(raw)


async def _trust(
    document: Mapping[str, Any],
    role: str,
    keys: tuple[str, ...],
    data: Path | None,
    database_url: str | None,
    fetcher: "Fetcher | None",
    now: datetime,
) -> tuple["Trust", str]:
    """Whom to trust, and in words what that rests on."""
    from ledger.identity.did import is_offline, offline
    from ledger.identity.issuers import Issuer, Registry

    named = document.get("issuer")
    issuer = str(named.get("id") if isinstance(named, dict) else named)
    if keys:
        for pinned in keys:
            multikey.decode(pinned)
        return Registry([Issuer(role, issuer, "trusted", keys)]), "yes, with the key you gave"
    if data is not None:
        from ledger.folder import open_ledger

        with closing(open_ledger(Settings.of(data, database_url))) as ledger:
            return ledger.issuers(), "yes, by this ledger"
    if fetcher is not None:
        found = await _published(document, role, issuer, fetcher, now)
    elif is_offline(issuer):
        found = offline(issuer)
    else:
        raise NotAccepted(
            "issuer_not_trusted", f"no key of {issuer[:200]} is known: give one with --key, or a ledger with --data"
        )
    own = tuple(multikey.encode(public) for public in found.values())
    return Registry([Issuer(role, issuer, "trusted", own)]), OWN_KEY


async def _published(document: Any, role: str, issuer: str, fetcher: "Fetcher", now: datetime) -> "Keys":
    """The key that the credential names, from where its issuer publishes it."""
    from ledger.identity.credentials import choose_proof
    from ledger.identity.issuers import Issuer, Registry
    from ledger.identity.published import issuer_keys

    # By a key that has signed nothing. What else fails now fails with the right key too, and nobody is asked for it.
    other = multikey.encode(bytes(SigningKey.generate().verify_key))
    try:
        await _verify(document, role, None, Registry([Issuer(role, issuer, "trusted", (other,))]), fetcher, now)
    except StaylogError as refusal:
        if refusal.code != "proof_invalid":
            raise
    with _step(KEY, role == "host"):
        return await issuer_keys(fetcher, issuer, choose_proof(document)[1]["verificationMethod"], now)
