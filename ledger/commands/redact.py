"""`staylog redact`: withdraw a text because the law demands it."""

import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.canon import base64
from ledger.commands.common import FilePath, accept_clock_option, opening_options, printable, refusals, settings_to_open
from ledger.commands.statement import InFile, encode, require_free, save
from ledger.errors import BadForm, Misconfigured
from ledger.log.members import BASES, PARTS
from ledger.log.openings import SALT_SIZE
from ledger.log.tlog_proof import TlogProof

if TYPE_CHECKING:
    from ledger.folder import Ledger
    from ledger.log.sequencer import Integrated
    from ledger.reviews.redaction import Redactable
    from ledger.store.remains import Remains

MAX_DECISION = 5 << 20


@click.command()
@click.argument("review_id", metavar="REVIEW_ID")
@click.option(
    "--part", type=click.Choice(PARTS), required=True, help="The text of the review, or the host's response to it."
)
@click.option("--basis", type=click.Choice(BASES), required=True, help="By which law. It is published.")
@click.option(
    "--decision",
    type=InFile,
    required=True,
    metavar="FILE",
    help="The document that decides it, of at most 5 MiB. It is not published: only you can show that it is this one.",
)
@click.option("--out", type=FilePath, help="Where the record of it goes.  [default: redaction-REVIEW_ID.json]")
@click.option("--show", is_flag=True, help="Show the text, too, before you are asked.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@accept_clock_option
@opening_options
def redact(review_id: str, data: Path, database_url: str | None, **options: Any) -> None:
    """Withdraw the text of the review REVIEW_ID, or of the response to it, for ever.

    An entry in the log says so, with the legal basis, for everybody to see. The text and its salt are erased here;
    without the salt, what the log has of the text says nothing. Ratings stay, and stay counted. Works while a service
    runs, and is seen there within a second.

    \b
      staylog redact rev-fkmmyg4u5w6ie2v6ywyyj55rte --part text --basis court_order --decision judgment.pdf \\
        --data ./data

    Keep the decision and the file that is saved: together they show on which decision it was done.
    """
    out: Path = options["out"] or Path(f"redaction-{Path(review_id).name}.json")
    with refusals():
        from ledger.folder import open_ledger
        from ledger.reviews.redaction import find_part, redaction_draft, withdraw
        from ledger.store.remains import remains_of
        from ledger.store.scrub import MOST_REWRITTEN

        require_free(out)
        decision, salt = _read(options["decision"]), os.urandom(SALT_SIZE)
        ledger = open_ledger(settings_to_open(data, database_url), accept_clock=options["accept_clock"])
        try:
            _show(find_part(ledger.reader, review_id, options["part"]), options)
            _confirm(options["yes"])
            draft = redaction_draft(ledger.reader, review_id, options["part"], options["basis"], decision, salt)
            placed = withdraw(ledger.sequencer, draft)
            try:
                _save(out, encode(_record(ledger, placed, decision, salt)))
            finally:
                # SQLite's rows of entries never move.
                scrubbed = ledger.store.scrub("entry", rewrite=0 if ledger.store.is_sqlite else MOST_REWRITTEN)
                _tell(placed, remains_of(ledger.store, "entry", scrubbed=scrubbed))
        finally:
            ledger.close()
    click.echo(f"Keep {printable(str(out))} with the decision: only with its salt can you show which one it was.")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DECISION + 1)
    except OSError as error:
        raise Misconfigured("file_unreadable", f"{path.name} cannot be read: {error.strerror}") from None
    if len(data) > MAX_DECISION:
        raise BadForm("too_large", f"{path.name} has more than {MAX_DECISION >> 20} MiB")
    if not data:
        raise BadForm("schema_invalid", f"{path.name} is empty: a decision says something")
    return data


def _show(found: "Redactable", options: dict[str, Any]) -> None:
    members = found.review.entry.members
    click.echo(f"{options['part']} of {members['review_id']}, to be withdrawn by {options['basis']}")
    click.echo(f"  host   {members['host_did']}, {members['listing_id']}")
    click.echo(f"  stay   {members['check_in']} to {members['check_out']}, {found.level}")
    click.echo(f"  said   {found.said.entry.members['at']}, entry {found.said.index}")
    if options["show"]:
        lines = found.said.opening.text.split("\n") if found.said.opening else ["(it is not stored here)"]
        for line in lines:
            click.echo(f"  text   {printable(line)}")


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Misconfigured("confirmation_missing", "nobody is here to be asked, and nothing was done; say --yes")
    if not click.confirm("Withdraw it? This cannot be taken back."):
        click.echo("Nothing was done.")
        raise SystemExit(1)


def _record(ledger: "Ledger", placed: "Integrated", decision: bytes, salt: bytes) -> dict[str, Any]:
    """What shows that the log has the entry, and what opens its commitment to the decision."""
    members, note = placed.entry.members, placed.published.note
    path = ledger.reader.tree.inclusion(placed.index, placed.published.size)
    return {
        **{name: members[name] for name in ("review_id", "part", "basis")},
        "index": placed.index,
        "entry": placed.entry.data.decode(),
        "decision": {"salt": base64.encode(salt), "sha256": sha256(decision).hexdigest()},
        "checkpoint": note,
        "tlog_proof": str(TlogProof(placed.index, tuple(path), note)),
    }


def _save(out: Path, record: bytes) -> None:
    try:
        save(out, record)
    except Misconfigured:
        # It is done, and nobody else has the salt.
        click.echo(record.decode())
        raise


def _tell(placed: "Integrated", remains: Sequence["Remains"]) -> None:
    part = placed.entry.members["part"]
    click.echo(f"withdrawn: entry {placed.index}, signed at size {placed.published.size}")
    click.echo(f"  The {part} and its salt are erased here. The ratings stay, and stay counted.")
    click.echo("  The entry is public, and cannot be taken back.")
    click.echo("  Caches, mirrors and your own backups may still have the text: this ledger cannot call it back.")
    if not remains:
        click.echo("  No file of the database has it any more.")
    for each in remains:
        click.echo(f"  It may still be in {each.where}, until {each.until}.")
