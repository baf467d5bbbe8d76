"""What a ledger was made with, in one row: its base URL, and fingerprints of its service.key."""

from dataclasses import dataclass

from sqlalchemy import Connection

from ledger.store.rows import run


@dataclass(frozen=True, slots=True)
class Setting:
    base_url: str
    # The text of `ledger.key_fingerprints`.
    service_keys: str


def read_setting(connection: Connection) -> Setting | None:
    """None until the ledger is opened for the first time by a version that has this table."""
    rows = run(connection, "SELECT base_url, service_keys FROM setting")
    return Setting(*rows[0]) if rows else None


def write_setting(connection: Connection, setting: Setting) -> None:
    """Replaces what was there. The caller holds the write lock."""
    run(connection, "DELETE FROM setting")
    run(
        connection,
        "INSERT INTO setting (one, base_url, service_keys) VALUES (1, ?, ?)",
        [setting.base_url, setting.service_keys],
    )
