"""What operators watch, counted where it happens; served at /metrics."""

from prometheus_client import Counter, Gauge, Histogram

REFUSALS = Counter("staylog_refusals", "Refusals by stable code", ["code"])
CREDENTIALS = Counter("staylog_credentials", "Verdicts on credentials: accepted, or a stable code", ["role", "verdict"])
STATUSES = Counter("staylog_status_checks", "What has become of credentials: good, or a stable code", ["outcome"])
FETCHES = Counter("staylog_fetches", "What was asked of others: fetched, or a stable code", ["profile", "outcome"])
ISSUERS_CHANGED = Gauge(
    "staylog_issuer_keys_differ", "1 when a trusted issuer publishes other keys than are pinned", ["issuer"]
)
BATCH_ENTRIES = Histogram(
    "staylog_batch_entries",
    "Entries integrated in one transaction, map heads not counted",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 255, 1000, 10000),
)
BATCH_SECONDS = Histogram(
    "staylog_batch_seconds",
    "From the start of a batch to its stored, signed checkpoint",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5, 30),
)
QUEUED = Gauge("staylog_queued_drafts", "Drafts that wait for the writer")
SIZE = Gauge("staylog_published_size", "Size of the newest published checkpoint")
WITNESS_REQUESTS = Counter(
    "staylog_witness_requests", "What came of asking witnesses: cosigned, or a stable code", ["witness", "outcome"]
)
WITNESSED = Gauge("staylog_witnessed_size", "Size of the newest checkpoint that enough witnesses cosigned")
LOG_TIME_AHEAD = Gauge(
    "staylog_log_time_ahead_seconds", "Time of the log's last entry minus the clock: above 0 the log's time is ahead"
)
HALTED = Gauge("staylog_halted", "1 when the log refuses to sign until an operator has looked")
SIGNING_REFUSED = Counter(
    "staylog_signing_refused",
    "Times that nothing was signed because the history was not sure, by stable code",
    ["code"],
)
CANNOT_WRITE = Gauge("staylog_cannot_write", "1 while this part keeps the ledger from writing", ["part", "code"])
DATABASE_REFUSALS = Counter(
    "staylog_database_refusals", "Calls that the database refused, by stable code and SQLSTATE", ["code", "sqlstate"]
)
STALLS = Counter("staylog_database_stalls", "How often the database was found not to answer within its deadline")
TRACES = Gauge("staylog_erased_not_scrubbed", "Tables whose erased rows may still be in the database's files")
SUBMISSIONS = Counter(
    "staylog_submissions", "What is sent in: accepted, repeated, pending, or a stable code", ["kind", "outcome"]
)
CALLBACKS = Counter(
    "staylog_callbacks", "What hosts said of bookings: confirmed, denied, dates_mismatch, unknown", ["outcome"]
)
DECISIONS = Counter(
    "staylog_decisions", "What became of submissions that waited: accepted, or a stable code", ["outcome"]
)
PENDING = Gauge("staylog_pending_submissions", "Submissions that wait for a decision, when last looked")
UNCOUNTED = Counter("staylog_uncounted_requests", "Requests let through because limits could not be counted")
