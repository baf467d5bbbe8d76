"""What a ledger was made with: its base URL, and fingerprints of its service.key. One row, filled when the ledger is
made, or opened for the first time after this upgrade."""

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "setting",
        sa.Column("one", KEY, primary_key=True, autoincrement=False),
        sa.Column("base_url", sa.Text, nullable=False),
        sa.Column("service_keys", sa.Text, nullable=False),
        sa.CheckConstraint("one = 1", name="setting_one"),
    )
