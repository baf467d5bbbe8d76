"""`staylog credential issue`: what an issuer signs."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from ledger.canon import proofs, strict_json
from ledger.canon.times import format_time
from ledger.clock import utc_now
from ledger.commands.common import FilePath, key_names, refusals
from ledger.errors import BadForm
from ledger.keys import read_key
from ledger.log.members import IDV_LEVELS

METHOD_HELP = "The name of the key, below the issuer's.  [default: the issuer, # and the public key]"


@click.group()
def issue() -> None:
    """Sign a credential or a status list, and print it. Nothing is sent anywhere."""


def _issue_options(command: Any) -> Any:
    for option in reversed(
        [
            click.option("--issuer-key", type=FilePath, required=True, help="The issuer's secret key file."),
            click.option("--issuer", help="Who issues: an https URL or a DID.  [default: the did:key of the key]"),
            click.option("--verification-method", metavar="URL", help=METHOD_HELP),
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
                type=FilePath,
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
        issuer, method = key_names(secret, issuer, verification_method)
        made = issue(
            role,
            {"id": subject, **claims, **_more_claims(claims_file, {"id", *claims})},
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


@issue.command("status-list")
@click.option("--issuer-key", type=FilePath, required=True, help="The issuer's secret key file.")
@click.option("--issuer", help="Who issues: an https URL or a DID.  [default: the did:key of the key]")
@click.option("--verification-method", metavar="URL", help=METHOD_HELP)
@click.option(
    "--url", metavar="URL", required=True, help="Where it will be published: the --status-list of your credentials."
)
@click.option(
    "--mark", "marked", metavar="INDEX", type=click.IntRange(0), multiple=True, help="A place to mark; repeat."
)
@click.option(
    "--purpose",
    type=click.Choice(["revocation", "suspension"]),
    default="revocation",
    show_default=True,
    help="What a mark means: for good, or for now.",
)
@click.option("--places", type=click.IntRange(1), default=131_072, show_default=True, help="How many places it has.")
@click.option("--days", type=click.IntRange(1, 3660), help="How long it holds.  [default: without end]")
@click.option(
    "--suite",
    "suites",
    type=click.Choice(proofs.SUITES),
    multiple=True,
    help="How to sign; repeat.  [default: eddsa-jcs-2022]",
)
@click.option("--ttl", type=click.IntRange(0), metavar="SECONDS", help="How long others may keep it: an hour at most.")
def status_list(
    issuer_key: Path,
    issuer: str | None,
    verification_method: str | None,
    url: str,
    marked: tuple[int, ...],
    purpose: str,
    places: int,
    days: int | None,
    suites: tuple[str, ...],
    ttl: int | None,
) -> None:
    """A status list: which of your credentials are revoked. A credential's place is its --status-index.

    Publish it as application/json at its URL, which is on the issuer's own host. With every change make it anew, and
    name all places that are marked.

    \b
      staylog credential issue status-list --issuer-key issuer.key --issuer https://idv.example \\
        --url https://idv.example/status/1 --mark 7 --mark 4711 > status-1.json
    """
    with refusals():
        from ledger.identity.contexts import canonicaliser
        from ledger.identity.issuing import issue_status_list

        secret, now = read_key(issuer_key), utc_now().replace(microsecond=0)
        issuer, method = key_names(secret, issuer, verification_method)
        made = issue_status_list(
            marked,
            url=url,
            issuer=issuer,
            method=method,
            key=secret,
            valid_from=now,
            valid_until=now + timedelta(days=days) if days is not None else None,
            purpose=purpose,
            places=places,
            ttl_seconds=ttl,
            suites=suites or (proofs.EDDSA_JCS,),
            canonize=canonicaliser().canonize,
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


def _more_claims(path: Path | None, given: set[str]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        value = strict_json.loads(path.read_bytes())
    except OSError as error:
        raise BadForm("schema_invalid", f"{path.name} cannot be read: {error.strerror}") from None
    if not isinstance(value, dict):
        raise BadForm("schema_invalid", f"{path.name}: a JSON object expected")
    if twice := given & value.keys():
        raise BadForm("schema_invalid", f"{path.name}: {', '.join(sorted(twice))} is given by an option already")
    return value
