"""PostgreSQL alone: limits of a day in a table that a crash does not empty; no samples of what may be erased.

ANALYZE copies values of each column into pg_statistic, where they would outlive the rows that they are from.
"""

from alembic import op

revision = "9"
down_revision = "8"

ERASABLE = {
    "entry": ("text", "salt"),
    "submission": ("sealed",),
    "booking": ("sealed",),
    "feedback": ("sealed",),
}
TYPES = {"text": "text", "salt": "bytea", "sealed": "bytea"}


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    op.execute(
        "CREATE TABLE day_rate (key bytea PRIMARY KEY, until bigint NOT NULL, paid bigint NOT NULL) "
        "WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)"
    )
    op.create_index("ix_day_rate_until", "day_rate", ["until"])
    for table, columns in ERASABLE.items():
        for column in columns:
            # The same type again: what is there stays as it is, and the samples of before go.
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {TYPES[column]}")
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
