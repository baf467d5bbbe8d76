"""What a witness tells of itself: a page of plain text for people, and figures in the text format of Prometheus."""

from collections.abc import Mapping
from datetime import UTC, datetime

from audits.witness.memory import Cosigned, Logs
from ledger.canon.times import format_time
from ledger.log.note import Verifier

PAGE = """\
{name} is a witness of transparency logs (c2sp.org/tlog-witness). It cosigns a checkpoint of a log
when it is shown that the log has only grown since the last one, so that nobody need believe the log alone.

Its key:

    {vkey}

To count on it, put this line into a tlog-policy, once you know from elsewhere that the key is right:

    {line}

The logs that it trusts, and what it cosigned last:

{logs}
Logs post to {url}/add-checkpoint. What was cosigned last is at
{url}/<hex SHA-256 of the log's origin>/checkpoint.
"""
# The last second that a calendar of four digits has: a cosignature may be dated far beyond it.
_LAST_SECOND = 253402300799


def page(witness: Verifier, url: str, logs: Logs) -> str:
    told = "".join(f"    {tell(origin, latest)}\n" for origin, latest in logs)
    line = policy_line(witness, url)
    return PAGE.format(name=witness.name, vkey=witness, line=line, logs=told or "    none yet\n", url=url)


def tell(origin: str, latest: Cosigned | None) -> str:
    if latest is None:
        return f"{origin}: nothing yet"
    at = datetime.fromtimestamp(min(latest.timestamp, _LAST_SECOND), UTC)
    return f"{origin}: {latest.checkpoint.size} entries, cosigned {format_time(at)}"


def policy_line(witness: Verifier, url: str) -> str:
    """By which a tlog-policy names this witness; the short name is only for that file."""
    short = witness.name.rpartition("/")[2]
    return f"witness {short if short not in ('', 'none') else 'witness'} {witness} {url}"


def figures(outcomes: Mapping[str, int], refused: Mapping[str, int], logs: Logs) -> str:
    known = [(f'origin="{_escape(origin)}"', latest) for origin, latest in logs if latest]
    answers = [(f'code="{code}"', number) for code, number in sorted(outcomes.items())]
    ended = [(f'reason="{reason}"', number) for reason, number in sorted(refused.items())]
    sizes = [(label, latest.checkpoint.size) for label, latest in known]
    times = [(label, latest.timestamp) for label, latest in known]
    return (
        _metric("answers_total", "counter", "What was answered, by code", answers)
        + _metric("connections_refused_total", "counter", "Connections refused or ended, by reason", ended)
        + _metric("log_size", "gauge", "The size of each log that was cosigned last", sizes)
        + _metric("log_cosigned_seconds", "gauge", "When that was, in seconds since 1970", times)
    )


def _metric(name: str, kind: str, told: str, values: list[tuple[str, int]]) -> str:
    name = f"staylog_witness_{name}"
    lines = "".join(f"{name}{{{label}}} {value}\n" for label, value in values)
    return f"# HELP {name} {told}\n# TYPE {name} {kind}\n{lines}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
