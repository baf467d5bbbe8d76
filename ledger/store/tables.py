"""The tables. Rows of the log are only ever added; a tile row grows at its end; `log_head` is the one row that moves;
a redaction empties the text of an entry. Beside the log stand what is known again, listings, what was looked up, and
what waits: submissions without a decision, notices and claims of bookings, private words for hosts. These are sealed
(`ledger.reviews.vault`), and rows of theirs go when their time is over.

Times are the text of protocol.md 2 (UTC), the same bytes on both engines.
"""

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, LargeBinary, MetaData, Table, Text, text

metadata = MetaData()
# SQLite keeps a table in its row-id tree only when the key is spelled INTEGER.
Key = BigInteger().with_variant(Integer(), "sqlite")
_WAITING = text("due_at IS NOT NULL")


def _index(*columns: str, unique: bool = False) -> Index:
    """Over the entries that have a value there: most have none."""
    present = text(f"{columns[0]} IS NOT NULL")
    name = f"ix_entry_{'_'.join(columns)}"
    return Index(name, *columns, unique=unique, sqlite_where=present, postgresql_where=present)


# The committed state, changed by compare-and-set on size; `pages` numbers the next map page
log_head = Table(
    "log_head",
    metadata,
    Column("one", Key, primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("map_top", BigInteger),
    Column("map_root", LargeBinary, nullable=False),
    Column("pages", BigInteger, nullable=False),
    Column("at", Text, nullable=False),
    CheckConstraint("one = 1", name="log_head_one"),
)
# What the ledger was made with: its base URL, and fingerprints of its service.key
setting = Table(
    "setting",
    metadata,
    Column("one", Key, primary_key=True, autoincrement=False),
    Column("base_url", Text, nullable=False),
    Column("service_keys", Text, nullable=False),
    CheckConstraint("one = 1", name="setting_one"),
)
# Every signed checkpoint; being here is being published
checkpoint = Table(
    "checkpoint",
    metadata,
    Column("size", Key, primary_key=True, autoincrement=False),
    Column("root", LargeBinary, nullable=False),
    Column("map_top", BigInteger),
    Column("map_root", LargeBinary, nullable=False),
    Column("pages", BigInteger, nullable=False),
    Column("at", Text, nullable=False),
    Column("note", Text, nullable=False),
)
# What witnesses signed under checkpoints: by their vkey, the line as a note has it
cosignature = Table(
    "cosignature",
    metadata,
    Column("size", Key, primary_key=True, autoincrement=False),
    Column("witness", Text, primary_key=True),
    Column("line", Text, nullable=False),
    Index("ix_cosignature_witness", "witness", "size"),
)
# Checkpoints that have the cosignatures which a policy asks for, by what it asks for: policies change
witnessed = Table(
    "witnessed",
    metadata,
    Column("quorum", Text, primary_key=True),
    Column("size", Key, primary_key=True, autoincrement=False),
)
# The log. Three columns repeat what the bytes say: map key of the host, a review's id, the review named. The last two
# have what opens the commitment in them, which is no part of the log; both are empty once it is redacted
entry = Table(
    "entry",
    metadata,
    Column("idx", Key, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    Column("host_key", LargeBinary),
    Column("review_id", Text),
    Column("about", BigInteger),
    Column("text", Text),
    Column("salt", LargeBinary),
    CheckConstraint("(text IS NULL) = (salt IS NULL)", name="entry_opening"),
    _index("host_key", "idx"),
    _index("review_id", unique=True),
    _index("about"),
)
# Every version of every host record, by the host's last entry in the batch that wrote it, with its sub-log's edge:
# new rows go to the end, and the host's entries lead to them
record = Table(
    "record",
    metadata,
    Column("idx", Key, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    Column("edge", LargeBinary, nullable=False),
)
# Tiles of the tree, level << 48 | index
tile = Table(
    "tile",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
# Copy-on-write pages of the host map
page = Table(
    "page",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
# The keys that an issuer entry pins, as the JCS list that its `keys` is the hash of
issuer_keys = Table(
    "issuer_keys",
    metadata,
    Column("idx", Key, primary_key=True, autoincrement=False),
    Column("keys", LargeBinary, nullable=False),
)
# What is known again, by keys that say nothing without the service's secrets: submissions, guests, bookings; and the
# first entry that had each
known = Table(
    "known",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("idx", BigInteger, nullable=False),
    # One tree for keys that come in no order, and not an index beside a table.
    sqlite_with_rowid=False,
)
# The salt that the speaker alone gets, with the receipt: a repetition gets the same receipt. What else is in a receipt
# is beside it, for who has the submission itself
receipt_salt = Table(
    "receipt_salt",
    metadata,
    Column("idx", Key, primary_key=True, autoincrement=False),
    Column("salt", LargeBinary, nullable=False),
    Column("beside", LargeBinary),
)
# The policies that hold from an entry on, by their hashes
adopted_policy = Table(
    "adopted_policy",
    metadata,
    Column("idx", Key, primary_key=True, autoincrement=False),
    Column("policy", Text, nullable=False),
)
# What is known of a host's listings: the time zone in which a stay ends, where to ask about bookings, and who says so
host_listing = Table(
    "host_listing",
    metadata,
    Column("host_did", Text, primary_key=True),
    Column("listing_id", Text, primary_key=True),
    Column("timezone", Text),
    Column("booking_endpoint", Text),
    Column("source", Text, nullable=False),
)
# What was submitted and is not decided, or was decided lately: by a key made from its id, which only who submitted it
# has. While it waits, `replay` knows the same submission again and `slot` its person at its host; `due_at` says when
# it is looked at next, `leased_until` that somebody is at it
submission = Table(
    "submission",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("replay", LargeBinary, unique=True),
    Column("slot", LargeBinary, unique=True),
    Column("due_at", Text),
    Column("tries", Integer, nullable=False),
    Column("leased_until", Text),
    Column("lease", LargeBinary),
    Column("forget_at", Text),
    Index("ix_submission_due_at", "due_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
    Index("ix_submission_forget_at", "forget_at"),
)
# Notices of hosts and claims of guests about one booking, `stay`; each speaker has one
booking = Table(
    "booking",
    metadata,
    Column("stay", LargeBinary, primary_key=True),
    Column("speaker", LargeBinary, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("forget_on", Text, nullable=False),
    Index("ix_booking_forget_on", "forget_on"),
)
# Private words of guests, sealed to a key of the host, whose name is beside them; by the review's index
feedback = Table(
    "feedback",
    metadata,
    Column("idx", Key, primary_key=True, autoincrement=False),
    Column("host_key", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("method", Text, nullable=False),
    Column("forget_on", Text, nullable=False),
    Index("ix_feedback_host_key", "host_key", "idx"),
    Index("ix_feedback_forget_on", "forget_on"),
)
# The did:web documents of hosts that were looked up: the hash of the keys in the last one, and when they were last seen
# to be others than before
did_document = Table(
    "did_document",
    metadata,
    Column("did", Text, primary_key=True),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("changed_at", Text),
)
# Every key that such a document has had, from the first to the last time that it was seen there
did_key = Table(
    "did_key",
    metadata,
    Column("did", Text, primary_key=True),
    Column("method", Text, primary_key=True),
    Column("multikey", Text, primary_key=True),
    Column("first_seen", Text, nullable=False),
    Column("last_seen", Text, nullable=False),
)
# What trusted issuers publish of their keys, by the last look at it, or why that is not known; and since when it is so
issuer_watch = Table(
    "issuer_watch",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("keys", Text, nullable=False),
    Column("since", Text, nullable=False),
    Column("checked_at", Text, nullable=False),
)
