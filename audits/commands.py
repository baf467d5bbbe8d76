"""`staylog audit`: replay a log, check what others found, and tell people about it."""

import gc
import json
import traceback
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from audits import page
from audits.audit import SAMPLE, Audit, Options
from audits.check_commands import check_fraud_file, check_promise_kept
from audits.given import read_mark, read_note, read_policy
from audits.source import open_source
from audits.state import last_audit, opened
from audits.terminal import FILE, FOLDER, OUT, printable, progress_bar, say_refusal, tell, write_text
from ledger.canon import did
from ledger.errors import Misconfigured, StaylogError
from ledger.log.note import Verifier

FINDINGS = "findings"
EXIT = {"clean": 0, "findings": 1, "incomplete": 2}
# What an audit makes is soon gone without the collector, and what stays is one large map: it need not look through that
# again and again.
YOUNG_OBJECTS = 200_000


class Commands(click.Group):
    """`staylog audit URL` runs an audit; the names of the other commands are theirs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not {"-h", "--help"}.intersection(args[:1]) and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Commands)
def audit() -> None:
    """Replay a whole log and prove any lie in it.

    \b
      staylog audit https://ledger.example --key VKEY --state ./audit
      staylog audit report --state ./audit --out report.html
      staylog audit check-fraud findings/map_root_mismatch-77.json --key VKEY
      staylog audit check-promise receipt.pending.json https://ledger.example

    `staylog audit URL` is short for `staylog audit run URL`, which `staylog audit run --help` explains.
    """


@audit.command()
@click.argument("where", metavar="URL")
@click.option("--key", "vkey", required=True, help="The log's public key, `name+id+base64`, from a source you trust.")
@click.option(
    "--state",
    type=FOLDER,
    help="A folder for what was seen: the next audit goes on from there, and notices if the past was rewritten.",
)
@click.option("--policy", type=FILE, help="A tlog-policy: whose cosignatures are counted, and how many are enough.")
@click.option(
    "--checkpoint", "seen", type=FILE, multiple=True, help="A checkpoint, receipt or answer somebody else got."
)
@click.option(
    "--mark",
    "marks",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help="The file last-signed of a service of this log, or its folder: what it signed or saw signed last.",
)
@click.option("--host", "hosts", multiple=True, metavar="DID", help="Compare the answer about this host too.")
@click.option(
    "--sample", type=click.IntRange(0, 10_000), default=SAMPLE, show_default=True, help="Hosts that are drawn."
)
@click.option(
    "--max-age",
    type=click.FloatRange(0, 1_000_000),
    metavar="HOURS",
    help="How old the newest map head may be; 25 is fair.",
)
@click.option("--out", type=FOLDER, help=f"Where fraud proofs go.  [default: {FINDINGS} in the state, or here]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    where: str,
    vkey: str,
    state: Path | None,
    policy: Path | None,
    seen: Sequence[Path],
    marks: Sequence[Path],
    hosts: Sequence[str],
    sample: int,
    max_age: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Replay every entry of the log at URL: a service, any web server with a mirror of it, or the folder of a mirror.

    Checked are the form of every entry and all rules that the log itself shows; every map head and host record, derived
    again; every checkpoint that was seen before, is listed, or is given with --checkpoint, and every --mark; all tiles
    and texts; answers about hosts that the checkpoint draws, and those given with --host; with --policy the times
    against cosignatures.

    Each finding becomes a file that `staylog audit check-fraud` checks with the log's key alone. Exit status 0 means
    that all is as it must be, 1 that there are findings, 2 that not everything could be checked. An audit that was
    broken off goes on where it was if it has a --state.
    """
    gc.set_threshold(YOUNG_OBJECTS)
    try:
        log = Verifier.parse(vkey)
        asked = ([read_note(path) for path in seen], [did.check(host) for host in hosts], sample)
        oldest = timedelta(hours=max_age) if max_age is not None else None
        options = Options(read_policy(policy), *asked, oldest, {str(path): read_mark(path) for path in marks})
        with progress_bar("audit") as (progress, say), opened(state, log) as kept:
            checking = Audit(open_source(where, say), log, kept, options, progress)
            result = checking.run()
            checking.findings.write(out or (state / FINDINGS if state is not None else Path(FINDINGS)), log)
            result = checking.told(result)
    except StaylogError as error:
        if as_json:
            click.echo(json.dumps({"verdict": "incomplete", "code": error.code, "refused": error.message}, indent=1))
        else:
            say_refusal(error)
        raise SystemExit(2) from None
    except Exception:
        # As an error of ours it would end with the status that means findings.
        traceback.print_exc()
        raise SystemExit(2) from None
    if as_json:
        click.echo(json.dumps(result, indent=1))
    else:
        _show(result, state)
    raise SystemExit(EXIT[result["verdict"]])


def _show(result: dict[str, Any], state: Path | None) -> None:
    console = Console(emoji=False)
    words = {"clean": "[green]clean[/]", "findings": "[red]findings[/]", "incomplete": "[yellow]not all was checked[/]"}
    at = f" as of {result['at']}" if result["at"] else ""
    console.print(f"[bold]{escape(printable(result['log']))}[/]: {words[result['verdict']]}", soft_wrap=True)
    console.print(f"  {result['size']:,} entries{at}, root {result['root']}", soft_wrap=True)
    tell(console, "checked", "green", result["checked"])
    for finding in result["findings"]:
        times = f" ({finding['count']:,} times)" if finding["count"] > 1 else ""
        tell(console, "finding", "red", [f"{finding['code']}, {finding['proof']}: {finding['claim']}{times}"])
        tell(console, "", "dim", [str(finding["file"])])
    tell(console, "unchecked", "yellow", result["unchecked"])
    tell(console, "never", "dim", result["never"])
    if result["findings"]:
        console.print("Each file can be checked by anyone: staylog audit check-fraud FILE --key VKEY", soft_wrap=True)
    elif state is None:
        console.print(
            "Nothing of this was kept. With --state DIR the next audit goes on from here and notices a rewritten past.",
            style="dim",
            soft_wrap=True,
        )


@audit.command()
@click.option("--state", type=FOLDER, required=True, help="The folder of the audit.")
@click.option("--out", type=OUT, default=Path("report.html"), show_default=True)
def report(state: Path, out: Path) -> None:
    """Write what the last audit in --state found as one HTML page that needs nothing else."""
    try:
        found = last_audit(state)
        if found is None:
            raise Misconfigured(
                "not_initialised", f"{state} has no audit: run `staylog audit URL --key VKEY --state {state}`"
            )
        write_text(out, page.render(found))
    except StaylogError as error:
        say_refusal(error)
        raise SystemExit(2) from None
    click.echo(f"{out}: {found['verdict']}, {found['size']:,} entries of {printable(found['log'])}")


audit.add_command(check_fraud_file)
audit.add_command(check_promise_kept)
