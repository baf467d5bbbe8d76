"""`staylog key` and `staylog sign`: what everybody does who has a key."""

import json
from pathlib import Path
from typing import Any

import click

from ledger.canon import multikey, strict_json
from ledger.clock import utc_now
from ledger.commands.common import KeyFile, data_options, key_names, refusals
from ledger.errors import BadForm, Misconfigured
from ledger.keys import read_key, rotate_pepper, write_key
from ledger.settings import Settings, check_base_url


@click.group()
def key() -> None:
    """Make keys."""


@key.command()
@click.argument("file", type=KeyFile)
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


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option("--key", "key_file", type=KeyFile, required=True, help="The speaker's secret key: staylog key new.")
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
        _, method = key_names(secret, speaker, verification_method)
        signed = statements.sign(body, secret, method, now=utc_now(), domain=domain, challenge=challenge)
        statements.check(signed, kind)
    click.echo(json.dumps(signed, indent=1, ensure_ascii=False))
