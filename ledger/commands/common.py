"""What the commands share: where the ledger is, how progress shows, and how a refusal is told."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from nacl.signing import SigningKey
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ledger.canon import multikey
from ledger.errors import Misconfigured, StaylogError
from ledger.log.mark import Mark
from ledger.settings import DEFAULT_DATA, Settings

Command = TypeVar("Command", bound=Callable[..., Any])
_ACCEPTED = f"{__name__}.accepted"
FilePath = click.Path(dir_okay=False, path_type=Path)


def data_option(command: Command) -> Command:
    """Where the ledger's folder is."""
    return click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_DATA,
        show_default=True,
        envvar="STAYLOG_DATA",
        show_envvar=True,
        help="The ledger's folder: keys, and the SQLite database unless another one is named.",
    )(command)


def data_options(command: Command) -> Command:
    """Where the ledger is: its folder and its database."""
    return click.option(
        "--database-url",
        envvar="STAYLOG_DATABASE_URL",
        show_envvar=True,
        help="postgresql://USER@HOST/NAME, or sqlite:///FILE.  [default: sqlite in the folder]",
    )(data_option(command))


def accept_clock_option(command: Command) -> Command:
    """The operator's word for the clock, on commands that add to the log."""
    return click.option(
        "--accept-clock",
        is_flag=True,
        help="The clock of this machine is right, though nothing confirms it: add to the log by it.",
    )(command)


def opening_options(command: Command) -> Command:
    """Where the ledger is, and with which word of the operator it is opened to write: see `settings_to_open`."""
    return click.option(
        "--accept-checkpoint",
        metavar="SIZE:ROOT",
        expose_value=False,
        callback=_accept,
        help="Go on from this checkpoint: nothing newer was ever signed. Needed once after some restores, see the "
        "operator's guide.",
    )(data_options(command))


def _accept(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    try:
        context.meta[_ACCEPTED] = str(Mark.of(value)) if value is not None else None
    except ValueError:
        raise click.BadParameter("SIZE:ROOT expected, as the refusal names it") from None


def settings_to_open(data: Path, database_url: str | None, base_url: str | None = None, **more: Any) -> Settings:
    """The settings of a command that has `opening_options`."""
    accepted = click.get_current_context().meta[_ACCEPTED]
    return Settings.of(data, database_url, base_url, accepted=accepted, **more)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on the terminal; silent where nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=Console(stderr=True, emoji=False), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task(what, total=None)

        def progress(phase: str, done: int, total: int) -> None:
            bar.update(task, description=f"{what} {phase}", completed=done, total=total)

        yield progress


@contextmanager
def refusals(status: int = 1) -> Iterator[None]:
    """A refusal is one plain message and an exit status, never a traceback."""
    try:
        yield
    except StaylogError as error:
        _say(error)
        raise SystemExit(status) from None
    except ModuleNotFoundError as error:
        _say(Misconfigured("extra_missing", f"this command needs {error.name}: pip install 'staylog[server]'"))
        raise SystemExit(status) from None


def _say(error: StaylogError) -> None:
    console = Console(stderr=True, emoji=False)
    console.print(f"[red]refused[/] [dim]({error.code})[/] {escape(printable(error.message))}", soft_wrap=True)
    # What the driver says is for the operator only, never for those who ask over the network.
    if driver := getattr(error.__cause__, "orig", None):
        console.print(f"[dim]{escape(str(driver).strip())}[/]", soft_wrap=True)


def from_command_line(option: str) -> bool:
    """Whether an option was typed, and does not come from the environment."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def printable(text: str) -> str:
    """Texts of others may hold commands for the terminal; these are shown, not obeyed."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def key_names(secret: SigningKey, speaker: str | None, method: str | None) -> tuple[str, str]:
    """Who speaks with a key, and the name of the key: below the speaker's."""
    public = multikey.encode(bytes(secret.verify_key))
    speaker = speaker or f"did:key:{public}"
    return speaker, method or f"{speaker}#{'0' if speaker.startswith('did:jwk:') else public}"
