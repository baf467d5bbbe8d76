"""`staylog key` and `staylog sign`: what everybody does who has a key."""

import json
from pathlib import Path
from typing import Any

import click

from ledger.canon import multikey, strict_json
from ledger.commands.common import FilePath, data_option, refusals
from ledger.commands.statement import Speaker, speaker_options
from ledger.errors import BadForm, Misconfigured
from ledger.keys import rotate_pepper, write_key
from ledger.settings import Settings, check_base_url


@click.group()
def key() -> None:
    """Make keys."""


@key.command()
@click.argument("file", type=FilePath)
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
            raise Misconfigured("key_unwritable", f"{file.name} cannot be written: {error.strerror}") from None
    public = multikey.encode(bytes(made.verify_key))
    click.echo(f"public key  {public}\nDID         did:key:{public}\nsecret key  in {file.name}: keep it to yourself")


@key.command("rotate-pepper")
@data_option
def rotate(data: Path) -> None:
    """Make a new secret for guest references, which the service takes when it starts next.

    Old ones stay in the file, so that guests are known again. Where several services run on one database, copy
    service.key to the others before any of them is started anew: they must make the same references.
    """
    with refusals():
        keys = Settings.of(data).service_keys
        if not keys.exists():
            raise Misconfigured("not_initialised", f"{data.name} has no ledger: run `staylog init`")
        peppers = rotate_pepper(keys)
    click.echo(f"guest references are made with {peppers.current} from the next start on")


@click.command()
@click.argument("file", type=click.File("rb"))
@speaker_options(required=True)
@click.option("--domain", metavar="URL", help="The ledger it is for, as https://ledger.example.")
@click.option("--challenge", help="The nonce of the question that a BookingVerification answers.")
def sign(file: Any, domain: str | None, challenge: str | None, **options: Any) -> None:
    """Sign the statement in FILE ("-" is standard input), and print it with its proof.

    A statement is a JSON object with a `type`: HostResponse, StayReceipt, BookingNotice and so on; without one it is a
    review. It is printed only if a ledger would hear it: its form, and who signs it. A StayReceipt needs no --domain.

    \b
      staylog sign response.json --key host.key --did did:web:cottage.example --domain https://ledger.example
    """
    with refusals():
        from ledger.identity import statements

        raw = file.read(statements.MAX_BYTES + 1)
        if len(raw) > statements.MAX_BYTES:
            raise BadForm("too_large", f"a statement has at most {statements.MAX_BYTES // 1024} KiB")
        body = strict_json.loads(raw)
        if not isinstance(body, dict):
            raise BadForm("schema_invalid", "a statement is a JSON object")
        kind = body.get("type", statements.UNNAMED)
        if not isinstance(kind, str) or kind not in statements.KINDS:
            raise BadForm("schema_invalid", f"type: one of {', '.join(statements.KINDS)} expected")
        domain = check_base_url(domain) if domain is not None else None
        signed = Speaker.of(options).sign(body, kind, domain, challenge)
    click.echo(json.dumps(signed, indent=1, ensure_ascii=False))
