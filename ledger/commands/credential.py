"""`staylog key`, `credential` and `sign`: what issuers, guests and hosts do with their keys."""

import json
import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click
from nacl.signing import SigningKey

from ledger.canon import multikey, proofs, strict_json
from ledger.canon.times import format_time, parse_moment
from ledger.clock import utc_now
from ledger.commands.common import data_options, refusals
from ledger.errors import BadForm, Misconfigured, NotAccepted
from ledger.keys import read_key, rotate_pepper, write_key
from ledger.log.members import IDV_LEVELS
from ledger.settings import Settings, check_base_url

if TYPE_CHECKING:
    from ledger.identity.credentials import Credential
    from ledger.identity.issuers import Registry

_File = click.Path(dir_okay=False, path_type=Path)


@click.group()
def key() -> None:
    """Make keys."""


@key.command()
@click.argument("file", type=_File)
def new(file: Path) -> None:
    """Make a new Ed25519 key in FILE, which only its owner can read. An existing file is never overwritten.

    \b
      staylog key new guest.key
    """
    with refusals():
        try:
            made = write_key(file)
        except FileExistsError:
            raise Misconfigured("key_exists", f"{file.name} exists already; nothing was changed") from None
        except OSError as error:
            raise Misconfigured("key_unreadable", f"{file.name} cannot be written: {error.strerror}") from None
    public = multikey.encode(bytes(made.verify_key))
    click.echo(f"public key  {public}\nDID         did:key:{public}\nsecret key  in {file.name}: keep it to yourself")


@key.command("rotate-pepper")
@data_options
def rotate(data: Path, database_url: str | None) -> None:  # noqa: ARG001
    """Make a new secret for guest references, from the next start of the service on.

    Old ones stay in the file, so that guests are known again. Copy the file to all services of this ledger first.
    """
    with refusals():
        peppers = rotate_pepper(Settings.of(data).service_keys)
    click.echo(f"guest references are made with {peppers.current} from the next start on")


@click.group()
def credential() -> None:
    """Issue credentials of guests and hosts (OpenSTR RFC-004), and verify them."""


@credential.group()
def issue() -> None:
    """Sign a credential, and print it. Nothing is sent anywhere."""


def _issue_options(command: Any) -> Any:
    for option in reversed(
        [
            click.option("--issuer-key", type=_File, required=True, help="The issuer's secret key: staylog key new."),
            click.option("--issuer", help="Who issues: an https URL or a DID.  [default: the did:key of the key]"),
            click.option("--verification-method", metavar="URL", help="The name of the key, below the issuer's."),
            click.option("--subject", required=True, metavar="DID", help="Whom it is about."),
            click.option("--id", "id_", metavar="URI", help="The credential's own name.  [default: a random urn:uuid]"),
            click.option(
                "--days", type=click.IntRange(1, 3660), default=90, show_default=True, help="How long it holds."
            ),
            click.option("--status-list", metavar="URL", help="Where its revocation will be published."),
            click.option("--status-index", type=click.IntRange(0), help="Its place in that list."),
            click.option(
                "--suite",
                "suites",
                type=click.Choice(proofs.SUITES),
                multiple=True,
                help="How to sign; repeat.  [default: Ed25519Signature2020, which RFC-004 demands, and eddsa-jcs-2022]",
            ),
            click.option(
                "--claims",
                "claims_file",
                type=_File,
                metavar="FILE",
                help="A JSON object of more members of the subject.",
            ),
        ]
    ):
        command = option(command)
    return command


@issue.command()
@_issue_options
@click.option("--level", type=click.Choice(IDV_LEVELS), required=True, help="What was verified.")
@click.option("--method", required=True, help="How it was verified, in a few words.")
@click.option("--guest-id", required=True, help="The issuer's own reference of this person.")
def guest(level: str, method: str, guest_id: str, **options: Any) -> None:
    """A guest's credential: this DID belongs to a person whose identity was looked at.

    \b
      staylog credential issue guest --issuer-key issuer.key --subject did:key:z6Mk... \\
        --level identity_verified --method "passport, in person" --guest-id g-55 > credential.json
    """
    _issue("guest", {"idv_level": level, "idv_method": method, "issuer_guest_id": guest_id}, **options)


@issue.command()
@_issue_options
@click.option("--listing", "listings", metavar="ID", multiple=True, required=True, help="A place it may let; repeat.")
@click.option("--country", required=True, metavar="CC", help="Where the places are, as GB.")
@click.option("--method", required=True, help="How the right to let was verified, in a few words.")
@click.option("--host-id", required=True, help="The issuer's own reference of this host.")
@click.option("--host-type", type=click.Choice(["individual", "business"]), default="individual", show_default=True)
def host(listings: tuple[str, ...], country: str, method: str, host_id: str, host_type: str, **options: Any) -> None:
    """A host's credential: who it is, and which places it may let. It needs a status list.

    \b
      staylog credential issue host --issuer-key issuer.key --subject did:web:cottage.example --listing rose-cottage \\
        --country GB --method "land registry" --host-id h-1 --status-list https://idv.example/status/1 --status-index 7
    """
    now = format_time(utc_now())
    places = [
        {
            "listing_id": listing,
            "property_ref": listing,
            "right_to_let_verified": True,
            "right_to_let_verified_at": now,
            "right_to_let_method": method,
            "address_verified": True,
            "country": country,
        }
        for listing in listings
    ]
    claims = {"host_type": host_type, "identity_verified": True, "identity_verified_at": now, "issuer_host_id": host_id}
    if options["status_list"] is None:
        raise click.UsageError("a host's credential must be revocable: give --status-list and --status-index.")
    _issue("host", {**claims, "properties": places}, **options)


def _issue(
    role: str,
    claims: dict[str, Any],
    *,
    issuer_key: Path,
    issuer: str | None,
    verification_method: str | None,
    subject: str,
    id_: str | None,
    days: int,
    status_list: str | None,
    status_index: int | None,
    suites: tuple[str, ...],
    claims_file: Path | None,
) -> None:
    if (status_list is None) != (status_index is None):
        raise click.UsageError("--status-list and --status-index go together.")
    with refusals():
        from ledger.identity.contexts import canonicaliser
        from ledger.identity.issuing import DEFAULT_SUITES, issue

        secret, now = read_key(issuer_key), utc_now().replace(microsecond=0)
        issuer, method = _names(secret, issuer, verification_method)
        made = issue(
            role,
            {"id": subject, **claims, **(_read_object(claims_file) if claims_file else {})},
            id_=id_ or f"urn:uuid:{UUID(bytes=os.urandom(16), version=4)}",
            issuer=issuer,
            method=method,
            key=secret,
            valid_from=now,
            valid_until=now + timedelta(days=days),
            status=_status(status_list, status_index),
            canonize=canonicaliser().canonize,
            suites=suites or DEFAULT_SUITES,
        )
    click.echo(json.dumps(made, indent=1, ensure_ascii=False))


def _status(status_list: str | None, index: int | None) -> dict[str, Any] | None:
    if status_list is None:
        return None
    return {
        "type": "BitstringStatusListEntry",
        "statusPurpose": "revocation",
        "statusListIndex": str(index),
        "statusListCredential": status_list,
    }


def _names(secret: SigningKey, speaker: str | None, method: str | None) -> tuple[str, str]:
    """Who speaks with a key, and the name of the key: below the speaker's."""
    public = multikey.encode(bytes(secret.verify_key))
    speaker = speaker or f"did:key:{public}"
    return speaker, method or f"{speaker}#{'0' if speaker.startswith('did:jwk:') else public}"


@credential.command()
@click.argument("file", type=click.File("rb"))
@click.option("--key", "keys", metavar="MULTIKEY", multiple=True, help="Trust the credential's issuer with this key.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="STAYLOG_DATA",
    show_envvar=True,
    help="Trust the issuers that the ledger in this folder trusts.",
)
@click.option("--database-url", envvar="STAYLOG_DATABASE_URL", show_envvar=True, help="That ledger's database.")
@click.option("--listing", metavar="ID", help="Also require that a host's credential covers this listing.")
@click.option("--at", metavar="TIME", help="Judge as of this time, as 2026-07-04T09:30:00Z.  [default: now]")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def verify(
    file: Any,
    keys: tuple[str, ...],
    data: Path | None,
    database_url: str | None,
    listing: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Verify the credential in FILE ("-" is standard input), offline: form, contexts, issuer, times and proof.

    Exit status 0 means that it holds; otherwise one line says why not. Whether it was revoked is not looked up.
    """
    with refusals():
        from ledger.identity.contexts import canonicaliser
        from ledger.identity.credentials import MAX_BYTES, role_of
        from ledger.identity.credentials import verify as judge

        raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise BadForm("too_large", f"a credential has at most {MAX_BYTES // 1024} KiB")
        document = strict_json.loads(raw)
        role = role_of(document)
        registry, trusted = _trust(document, role, keys, data, database_url)
        verdict = judge(document, role, registry, _time(at), canonicaliser().canonize)
        if listing is not None:
            if role != "host":
                raise NotAccepted("wrong_credential_type", "only a host's credential covers listings")
            verdict.require_listing(listing)
    _show(verdict, trusted, as_json)


def _time(at: str | None) -> datetime:
    try:
        return parse_moment(at) if at is not None else utc_now()
    except ValueError as error:
        raise click.UsageError(f"--at: {error}") from None


def _trust(
    document: Mapping[str, Any], role: str, keys: tuple[str, ...], data: Path | None, database_url: str | None
) -> tuple["Registry", str]:
    """Whom to trust, and in words what that rests on."""
    from ledger.identity.did import OFFLINE, method_of, offline
    from ledger.identity.issuers import Issuer, Registry

    named = document.get("issuer")
    issuer = str(named.get("id") if isinstance(named, dict) else named)
    if keys:
        for pinned in keys:
            multikey.decode(pinned)
        return Registry([Issuer(role, issuer, "trusted", keys)]), "yes, with the key you gave"
    if data is not None:
        from ledger.folder import open_ledger

        ledger = open_ledger(Settings.of(data, database_url))
        try:
            return ledger.issuers(), "yes, by this ledger"
        finally:
            ledger.close()
    if issuer.startswith("did:") and method_of(f"{issuer}::") in OFFLINE:
        own = tuple(multikey.encode(public) for public in offline(issuer).values())
        return Registry([Issuer(role, issuer, "trusted", own)]), "not asked: give --data to judge as a ledger does"
    raise NotAccepted(
        "issuer_not_trusted", f"no key of {issuer[:200]} is known: give one with --key, or a ledger with --data"
    )


def _show(verdict: "Credential", trusted: str, as_json: bool) -> None:
    lists = [str(status["statusListCredential"]) for status in verdict.statuses]
    facts: dict[str, Any] = {
        "role": verdict.role,
        "subject": verdict.subject,
        "issuer": verdict.issuer,
        "trusted": trusted,
        "proof": f"{verdict.suite} by {multikey.encode(verdict.key)}",
        "until": format_time(verdict.valid_until),
        "revoked": f"not looked up: {', '.join(lists)}" if lists else "cannot be; it ends by itself",
    }
    if as_json:
        click.echo(json.dumps({"valid": True, **facts, "claims": verdict.claims}, indent=1, ensure_ascii=False))
        return
    click.secho(f"valid credential of a {verdict.role}", fg="green")
    says = {name: value for name, value in verdict.claims.items() if name not in ("id", "properties")}
    says |= {"listings": ", ".join(place["listing_id"] for place in verdict.claims.get("properties", ()))}
    for name, value in {**facts, **says}.items():
        if name != "role" and value != "":
            click.echo(f"  {name.replace('_', ' '):<22} {value}")


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option("--key", "key_file", type=_File, required=True, help="The speaker's secret key: staylog key new.")
@click.option("--domain", metavar="URL", help="The ledger it is for, as https://ledger.example.")
@click.option("--did", "speaker", metavar="DID", help="Who speaks.  [default: the did:key of the key]")
@click.option("--verification-method", metavar="URL", help="The name of the key.  [default: DID#MULTIKEY]")
@click.option("--challenge", help="The nonce of the question that a BookingVerification answers.")
def sign(
    file: Any,
    key_file: Path,
    domain: str | None,
    speaker: str | None,
    verification_method: str | None,
    challenge: str | None,
) -> None:
    """Sign the statement in FILE ("-" is standard input), and print it with its proof.

    A statement is a JSON object with a `type`: HostResponse, StayReceipt, BookingNotice and so on; without one it is a
    review. Its form is checked before it is printed. A StayReceipt needs no --domain.

    \b
      staylog sign response.json --key host.key --did did:web:cottage.example --domain https://ledger.example
    """
    with refusals():
        from ledger.identity import statements

        body = strict_json.loads(file.read(statements.MAX_BYTES + 1))
        if not isinstance(body, dict):
            raise BadForm("schema_invalid", "a statement is a JSON object")
        kind = body.get("type", statements.UNNAMED)
        if not isinstance(kind, str) or kind not in statements.KINDS:
            raise BadForm("schema_invalid", f"type: one of {', '.join(statements.KINDS)} expected")
        secret = read_key(key_file)
        domain = check_base_url(domain) if domain is not None else None
        _, method = _names(secret, speaker, verification_method)
        signed = statements.sign(body, secret, method, now=utc_now(), domain=domain, challenge=challenge)
        statements.check(signed, kind)
    click.echo(json.dumps(signed, indent=1, ensure_ascii=False))


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = strict_json.loads(path.read_bytes())
    except OSError as error:
        raise BadForm("schema_invalid", f"{path.name} cannot be read: {error.strerror}") from None
    if not isinstance(value, dict):
        raise BadForm("schema_invalid", f"{path.name}: a JSON object expected")
    return value
