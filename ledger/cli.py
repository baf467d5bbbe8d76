"""The `staylog` command. Packages that `ledger` must not import add their commands by entry point."""

from importlib.metadata import entry_points, version

import click


class Commands(click.Group):
    """Commands registered under `staylog.commands`, loaded when they are called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *entry_points(group="staylog.commands").names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for entry_point in entry_points(group="staylog.commands", name=cmd_name):
            command: click.Command = entry_point.load()
            return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("staylog"))
def main() -> None:
    """Staylog: a tamper-evident reputation ledger for short-term rentals."""
