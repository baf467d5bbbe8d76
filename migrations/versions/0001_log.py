"""The log: entries, tiles, map pages, host records, checkpoints, pinned keys; what is known again; listings; keys of
hosts, and what issuers publish; what waits for a decision, notices, claims, and private words."""

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "log_head",
        sa.Column("one", KEY, primary_key=True, autoincrement=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("root", sa.LargeBinary, nullable=False),
        sa.Column("map_top", sa.BigInteger),
        sa.Column("map_root", sa.LargeBinary, nullable=False),
        sa.Column("pages", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.CheckConstraint("one = 1", name="log_head_one"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("size", KEY, primary_key=True, autoincrement=False),
        sa.Column("root", sa.LargeBinary, nullable=False),
        sa.Column("map_top", sa.BigInteger),
        sa.Column("map_root", sa.LargeBinary, nullable=False),
        sa.Column("pages", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_table(
        "cosignature",
        sa.Column("size", KEY, primary_key=True, autoincrement=False),
        sa.Column("witness", sa.Text, primary_key=True),
        sa.Column("line", sa.Text, nullable=False),
    )
    op.create_index("ix_cosignature_witness", "cosignature", ["witness", "size"])
    op.create_table(
        "witnessed",
        sa.Column("quorum", sa.Text, primary_key=True),
        sa.Column("size", KEY, primary_key=True, autoincrement=False),
    )
    op.create_table(
        "entry",
        sa.Column("idx", KEY, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("host_key", sa.LargeBinary),
        sa.Column("review_id", sa.Text),
        sa.Column("about", sa.BigInteger),
        sa.Column("text", sa.Text),
        sa.Column("salt", sa.LargeBinary),
        sa.CheckConstraint("(text IS NULL) = (salt IS NULL)", name="entry_opening"),
    )
    for columns, unique in ((["host_key", "idx"], False), (["review_id"], True), (["about"], False)):
        present = sa.text(f"{columns[0]} IS NOT NULL")
        name = f"ix_entry_{'_'.join(columns)}"
        op.create_index(name, "entry", columns, unique=unique, sqlite_where=present, postgresql_where=present)
    op.create_table(
        "record",
        sa.Column("idx", KEY, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("edge", sa.LargeBinary, nullable=False),
    )
    for name in ("tile", "page"):
        op.create_table(
            name,
            sa.Column("id", KEY, primary_key=True, autoincrement=False),
            sa.Column("data", sa.LargeBinary, nullable=False),
        )
        if op.get_context().dialect.name == "postgresql":
            # Hashes do not compress; trying costs time on every write.
            op.execute(f"ALTER TABLE {name} ALTER data SET STORAGE EXTERNAL")
    op.create_table(
        "issuer_keys",
        sa.Column("idx", KEY, primary_key=True, autoincrement=False),
        sa.Column("keys", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "known",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("idx", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "receipt_salt",
        sa.Column("idx", KEY, primary_key=True, autoincrement=False),
        sa.Column("salt", sa.LargeBinary, nullable=False),
        sa.Column("beside", sa.LargeBinary),
    )
    op.create_table(
        "adopted_policy",
        sa.Column("idx", KEY, primary_key=True, autoincrement=False),
        sa.Column("policy", sa.Text, nullable=False),
    )
    op.create_table(
        "host_listing",
        sa.Column("host_did", sa.Text, primary_key=True),
        sa.Column("listing_id", sa.Text, primary_key=True),
        sa.Column("timezone", sa.Text),
        sa.Column("booking_endpoint", sa.Text),
        sa.Column("source", sa.Text, nullable=False),
    )
    _create_waiting()
    op.create_table(
        "did_document",
        sa.Column("did", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False),
        sa.Column("changed_at", sa.Text),
    )
    op.create_table(
        "did_key",
        sa.Column("did", sa.Text, primary_key=True),
        sa.Column("method", sa.Text, primary_key=True),
        sa.Column("multikey", sa.Text, primary_key=True),
        sa.Column("first_seen", sa.Text, nullable=False),
        sa.Column("last_seen", sa.Text, nullable=False),
    )
    op.create_table(
        "issuer_watch",
        sa.Column("issuer", sa.Text, primary_key=True),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("keys", sa.Text, nullable=False),
        sa.Column("since", sa.Text, nullable=False),
        sa.Column("checked_at", sa.Text, nullable=False),
    )
    if op.get_context().dialect.name == "postgresql":
        # The limiter's; on SQLite it has a file of its own.
        op.execute(
            "CREATE UNLOGGED TABLE rate (key bytea PRIMARY KEY, until bigint NOT NULL, paid bigint NOT NULL) "
            "WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)"
        )
        op.create_index("ix_rate_until", "rate", ["until"])


def _create_waiting() -> None:
    op.create_table(
        "submission",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("replay", sa.LargeBinary, unique=True),
        sa.Column("slot", sa.LargeBinary, unique=True),
        sa.Column("due_at", sa.Text),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("leased_until", sa.Text),
        sa.Column("lease", sa.LargeBinary),
        sa.Column("forget_at", sa.Text),
    )
    waiting = sa.text("due_at IS NOT NULL")
    op.create_index("ix_submission_due_at", "submission", ["due_at"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_index("ix_submission_forget_at", "submission", ["forget_at"])
    op.create_table(
        "booking",
        sa.Column("stay", sa.LargeBinary, primary_key=True),
        sa.Column("speaker", sa.LargeBinary, primary_key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("forget_on", sa.Text, nullable=False),
    )
    op.create_index("ix_booking_forget_on", "booking", ["forget_on"])
    op.create_table(
        "feedback",
        sa.Column("idx", KEY, primary_key=True, autoincrement=False),
        sa.Column("host_key", sa.LargeBinary, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("forget_on", sa.Text, nullable=False),
    )
    op.create_index("ix_feedback_host_key", "feedback", ["host_key", "idx"])
    op.create_index("ix_feedback_forget_on", "feedback", ["forget_on"])
