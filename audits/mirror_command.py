"""`staylog mirror`: a copy of a log that outlives it."""

from pathlib import Path

import click
from rich.console import Console

from audits.audit import SAMPLE
from audits.mirror import KEY, Mirror
from audits.source import FolderSource, Source, open_source
from audits.terminal import FOLDER, printable, progress_bar, say_refusal, tell
from ledger.canon import strict_json
from ledger.errors import Malformed, NotFound, NotProved, StaylogError
from ledger.log.note import Verifier


@click.command()
@click.argument("where", metavar="URL")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--key", "vkey", help="The log's public key.  [default: that of the copy, at first as the log says itself]"
)
@click.option(
    "--sample", type=click.IntRange(0, 10_000), default=SAMPLE, show_default=True, help="Hosts that are drawn."
)
def mirror(where: str, folder: Path, vkey: str | None, sample: int) -> None:
    """Copy the log at URL to DIR, as files that any web server can serve and any auditor can use when it is gone.

    Checkpoint, tiles, entries, all signed checkpoints, public texts, and the answers about the hosts that an audit of
    that checkpoint draws. Run it again to bring the copy up to date; broken off, it goes on. What the log redacts is
    taken out of the copy too. Nothing is shown in the copy that does not hash to what the log signed.

    \b
      staylog mirror https://ledger.example ./copy
      staylog audit ./copy --key VKEY
      python3 -m http.server --directory ./copy
    """
    try:
        with progress_bar("mirror") as (progress, say):
            source = open_source(where, say)
            log = Verifier.parse(vkey) if vkey is not None else _copied_key(source, folder)
            copying = Mirror(source, folder, log, progress, hosts=sample)
            checkpoint = copying.update()
    except (NotProved, Malformed) as error:
        say_refusal(error)
        raise SystemExit(1) from None
    except StaylogError as error:
        say_refusal(error)
        raise SystemExit(2) from None
    click.echo(f"{folder} has the log {printable(log.name)} up to {checkpoint.size:,} entries")
    tell(Console(emoji=False), "not copied", "yellow", copying.missed)
    if vkey is None:
        click.echo(
            f"by the key {printable(str(log))}, which nobody has vouched for: compare it with a source you trust"
        )


def _copied_key(source: Source, folder: Path) -> Verifier:
    """The key of the copy that there is; else what the log says of itself."""
    try:
        document = FolderSource(folder).get(KEY)
    except NotFound:
        document = source.get(KEY)
    value = strict_json.loads(document)
    if not isinstance(value, dict) or not isinstance(value.get("vkey"), str):
        raise Malformed("answer_malformed", "the log does not say what its key is: name it with --key")
    return Verifier.parse(value["vkey"])
