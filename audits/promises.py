"""A ledger's signed word that it will decide on a submission by a time, held against what it says after that time."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from audits.receipts import read_intake, verify_refusal
from audits.report import Report
from ledger.canon import jcs, multikey, strict_json
from ledger.canon.times import format_time, parse_time
from ledger.errors import Malformed, NotProved, StaylogError

TYPE = "StaylogBrokenPromise"
# A decision that is under way at the last minute is not late yet.
GRACE = timedelta(hours=1)
SKEW = timedelta(minutes=5)
# For so long a ledger tells what it decided, and it may have decided at once.
TOLD = timedelta(days=90)
WHO_SERVED = "that this is what the ledger answered: it is not signed, so it is the word of whoever recorded it; ask it"

_MEMBERS = {"type", "v", "claim", "intake", "key", "status", "seen_at"}


def judge(intake: Mapping[str, Any], status: Mapping[str, Any] | None, key: bytes, now: datetime) -> Report:
    """What became of the promise by now; `status` is what the ledger says of the submission, None if it knows of none.
    NotProved `promise_open` while there is time, `promise_broken` if there is no decision after it, `too_old` if a
    ledger need not know of it any more."""
    said, signer = read_intake(intake, key)
    end = parse_time(said["decide_by"])
    report = Report("intake receipt", 0, said["received_at"])
    report.proved.append(f"{signer} took in a submission at {said['received_at']}, to decide by {said['decide_by']}")
    if (decision := _decision(said, status, key)) is not None:
        report.proved.append(decision)
        return report
    if now - end <= GRACE:
        raise NotProved(
            "promise_open", f"there is time until {said['decide_by']}, and an hour for a decision under way"
        )
    if status is None and now - parse_time(said["received_at"]) >= TOLD:
        raise NotProved("too_old", f"a ledger tells what it decided for {TOLD.days} days, and these are over")
    raise NotProved("promise_broken", f"{signer} promised a decision by {said['decide_by']}, and {_lack(status)}")


def _decision(said: Mapping[str, Any], status: Mapping[str, Any] | None, key: bytes) -> str | None:
    """What was decided. A refusal counts if it is signed, and about this submission."""
    state = status.get("status") if status is not None else None
    if state == "accepted":
        return "the ledger says that it was accepted: its receipt shows that, see `staylog verify`"
    refusal = status.get("refusal") if status is not None and state == "rejected" else None
    if not isinstance(refusal, dict) or refusal.get("submission_sha256") != said["submission_sha256"]:
        return None
    try:
        verify_refusal(jcs.dumps(refusal), key)
    except StaylogError:
        return None
    return f"it was refused as {refusal['code']} at {refusal['at']}, and that is signed"


def _lack(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return "knows nothing of it"
    return "shows no signed refusal" if status.get("status") == "rejected" else "has none"


def broken(
    intake: Mapping[str, Any], status: Mapping[str, Any] | None, key: bytes, now: datetime, claim: str
) -> dict[str, Any]:
    """The file that shows it."""
    said = {"intake": intake, "key": multikey.encode(key), "status": status, "seen_at": format_time(now)}
    return {"type": TYPE, "v": 1, "claim": claim, **said}


def check_promise(data: bytes, key: bytes, now: datetime) -> Report:
    """What a file shows by now of a promise that was broken, or a refusal if it does not."""
    value = strict_json.loads(data)
    if not isinstance(value, dict) or value.keys() != _MEMBERS or value["type"] != TYPE or value["v"] != 1:
        raise Malformed("fraud_malformed", f"a {TYPE} of version 1 has exactly {', '.join(sorted(_MEMBERS))}")
    if not isinstance(value["intake"], dict) or not isinstance(value["status"], dict | None):
        raise Malformed("fraud_malformed", "the intake receipt and the status are objects")
    if value["key"] != multikey.encode(key):
        raise NotProved("signer_unknown", "the file is about another key than the one that was given")
    try:
        seen_at = parse_time(value["seen_at"])
    except ValueError as error:
        raise Malformed("fraud_malformed", f"seen_at: {error}") from None
    if seen_at > now + SKEW:
        raise NotProved("from_the_future", f"it was recorded at {value['seen_at']}, which is still to come")
    try:
        judge(value["intake"], value["status"], key, seen_at)
    except NotProved as found:
        if found.code != "promise_broken":
            raise
        report = Report("observed proof of promise_broken", 0, value["seen_at"])
        report.proved.append(f"{found}, as of {value['seen_at']}")
        report.not_proved.append(WHO_SERVED)
        return report
    raise NotProved("fraud_unproved", "the promise was kept")
