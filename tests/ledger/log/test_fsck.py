"""What stands beside the entries belongs to entries that there are."""

import pytest
from sqlalchemy import text

from tests.running import Running

BEYOND = "is said to belong to an entry that does not exist"


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DELETE FROM adopted_policy", "the policy that entry 0 adopts is not stored, or another one is"),
        ("UPDATE adopted_policy SET policy = 'x'", "the policy that entry 0 adopts is not stored, or another one is"),
        ("INSERT INTO adopted_policy VALUES (1, 'x')", "a policy is stored for entry 1, which adopts none"),
        ("INSERT INTO known VALUES ({blob}, 99)", f"a submission, guest or booking {BEYOND}"),
        ("INSERT INTO receipt_salt VALUES (99, {blob}, NULL)", f"a salt {BEYOND}"),
        ("INSERT INTO feedback VALUES (99, {blob}, {blob}, 'k', '2026-01-01')", f"a private message {BEYOND}"),
    ],
)
def test_what_belongs_to_no_entry_is_found(running: Running, change: str, finding: str) -> None:
    assert running.fsck().findings == []
    blob = "x'00'" if running.ledger.store.is_sqlite else r"'\x00'::bytea"
    with running.ledger.store.write() as connection:
        connection.execute(text(change.format(blob=blob).replace("::", r"\:\:")))
    assert running.fsck().findings == [finding]
