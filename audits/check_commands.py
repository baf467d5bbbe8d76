"""`staylog audit check-fraud` and `check-promise`: what others found, and what a ledger promised."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from audits import promises
from audits.fraud import check_fraud
from audits.source import open_source
from audits.terminal import FILE, OUT, printable, say_refusal, show, telling, write_text
from ledger.canon import multikey, strict_json
from ledger.errors import Malformed, NotFound, NotProved, StaylogError
from ledger.log.note import Verifier


@click.command("check-fraud")
@click.argument("file", type=FILE)
@click.option("--key", required=True, help="The log's public key; of a broken promise the key #statements.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def check_fraud_file(file: Path, key: str, as_json: bool) -> None:
    """Check a fraud proof, with nothing but FILE and the key. Exit status 0 means that FILE shows what it claims, 1
    that it does not.

    `signed` means that the log's own signatures convict it. `observed` means that what was served was not signed: the
    file shows what is wrong with it, but not who served it. `witnessed` takes the word of a witness whose key is named.
    """
    with telling(as_json) as tell:
        data = file.read_bytes()
        if key.startswith("z"):
            tell(promises.check_promise(data, multikey.decode(key), datetime.now(UTC)))
        else:
            tell(check_fraud(data, Verifier.parse(key)))


@click.command("check-promise")
@click.argument("file", metavar="INTAKE.json", type=FILE)
@click.argument("where", metavar="URL")
@click.option("--key", help="The ledger's key #statements, as z6Mk...  [default: as its DID document says]")
@click.option("--out", type=OUT, help="Where the evidence goes.")
def check_promise_kept(file: Path, where: str, key: str | None, out: Path | None) -> None:
    """Look whether a ledger decided on what it took in, as it promised. INTAKE.json is what it answered then.

    Exit status 0 means that it decided, or has time; 1 that the time is over and there is no decision, of which a file
    is written that `staylog audit check-fraud` checks; 2 that it could not be checked.
    """
    now = datetime.now(UTC)
    try:
        source, saved = open_source(where), strict_json.loads(file.read_bytes())
        intake, id_ = _intake(saved)
        document = strict_json.loads(source.get(".well-known/did.json")) if key is None else {}
        known = multikey.decode(key) if key is not None else _statements_key(document, intake)
        try:
            told_now = strict_json.loads(source.get(f"v1/submissions/{id_}"))
        except NotFound:
            told_now = None
        status = told_now if isinstance(told_now, dict) else None
        try:
            show(promises.judge(intake, status, known, now))
        except NotProved as error:
            if error.code == "promise_open":
                click.echo(f"open: {printable(error.message)}")
                return
            if error.code != "promise_broken":
                raise
            told = out or file.with_name(f"{file.stem}.broken.json")
            evidence = promises.broken(intake, status, known, now, error.message)
            write_text(told, json.dumps(evidence, indent=1) + "\n")
            say_refusal(error)
            click.echo(f"The evidence is in {told}")
            raise SystemExit(1) from None
    except StaylogError as error:
        say_refusal(error)
        raise SystemExit(2) from None


def _intake(saved: Any) -> tuple[dict[str, Any], str]:
    intake, id_ = (saved.get("intake"), saved.get("submission_id")) if isinstance(saved, dict) else (None, None)
    named = isinstance(id_, str) and id_.isascii() and id_.replace("-", "").isalnum()
    if not isinstance(intake, dict) or not isinstance(id_, str) or not named:
        raise Malformed("receipt_malformed", "what the ledger answered has an intake and a submission_id")
    return intake, id_


def _statements_key(document: Any, intake: dict[str, Any]) -> bytes:
    """The key that the ledger's DID document has under the name by which the intake receipt is signed."""
    proof = intake.get("proof")
    name = proof.get("verificationMethod") if isinstance(proof, dict) else None
    methods = document.get("verificationMethod") if isinstance(document, dict) else None
    for method in methods if isinstance(methods, list) else ():
        if isinstance(method, dict) and name is not None and method.get("id") == name:
            return multikey.decode(str(method.get("publicKeyMultibase")))
    raise NotProved("signer_unknown", "the ledger's DID document has no key of the name by which the intake is signed")
