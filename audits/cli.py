"""`staylog verify`."""

import click


@click.command()
def verify() -> None:
    """Check a receipt, a tlog-proof or a reputation answer offline."""
