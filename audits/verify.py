"""Offline verification of reputation answers (protocol.md 5): checks (a) to (e), and a report of what they showed.

Every function takes what was received and a key the caller trusts, and raises a StaylogError with a stable code at
the first thing that is wrong. `receipts` verifies single entries in the same way.
"""

from collections.abc import Sequence
from typing import Any

from audits.answer import Answer, parse_answer, parse_pages
from audits.face import same_json, verify_history, verify_summary
from audits.report import DOMAIN, MAP_HEAD_HONESTY, REAL_STAYS, Report
from ledger.canon import base64, did, strict_json
from ledger.errors import NotProved
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.face import Event
from ledger.log.hostmap import verify_map
from ledger.log.note import Verifier
from ledger.log.policy import Policy
from ledger.log.proofs import multiproof_root
from ledger.log.record import fold, sublog_leaf
from ledger.log.record_form import read_record
from ledger.log.tree import root_of

COMPLETE = (
    "these events are all that the map counts: nothing is left out, nothing added",
    "every count and average follows from these events",
)


def verify_answer(
    data: bytes,
    log: Verifier,
    host: str,
    *,
    kind: str | None = None,
    oldest: str | None = None,
    newest: str | None = None,
    text: str = "verified",
    policy: Policy | None = None,
) -> Report:
    """Check one answer about `host`.

    `kind`: refuse any other than full, aggregate or page. `oldest` and `newest`: the times between which the map head
    must lie to count as fresh. `text`: what was asked for, `verified` (the default), `all` or `none`; it decides which
    missing texts are reported as withheld. `policy`: demand its quorum of witnesses.
    """
    answer = parse_answer(data)
    if kind not in (None, answer.kind):
        raise NotProved("wrong_kind", f"a {kind} proof was asked for, the answer has a proof of kind {answer.kind}")
    checkpoint, record = _verify_state(answer, log, host)
    at = _verify_age(answer, oldest, newest)
    report = _report(f"{answer.kind} answer about {host}", log, checkpoint, at, host)
    report.witnessed(answer.checkpoint, log, policy)
    if record is None:
        report.proved.append("the map of that tree has no record of this host: it has no reviews")
    else:
        report.proved.append(f"the map of that tree counts {record['events']} events of this host")
    if answer.kind == "full":
        verify_history(answer)
        total = 0 if record is None else sum(record["reviews"].values())
        report.proved += COMPLETE if record is not None else ()
        report.proved.append(
            f"{len(answer.face['review_history'])} of {total} reviews are listed, each as its events give it"
        )
    elif answer.kind == "page":
        stop = answer.start + len(answer.events)
        report.proved.append(f"these are its events {answer.start} to {stop - 1}, without a gap")
        report.not_proved.append("that the sums are right: only all pages together show that")
    else:
        report.not_proved.append("that the sums are right: only the events show that, ask with ?proof=full")
    _report_texts(answer.events, text, report, complete=answer.kind == "full")
    return report


def verify_pages(
    pages: Sequence[bytes],
    log: Verifier,
    host: str,
    *,
    oldest: str | None = None,
    newest: str | None = None,
    text: str = "verified",
    policy: Policy | None = None,
) -> Report:
    """Check pages that together are a full answer: every event once, all at one checkpoint. They come in a document
    each, or in one document that is an array of them."""
    answers = sorted(parse_pages(pages), key=lambda answer: answer.start)
    if not answers:
        raise NotProved("pages_incomplete", "no page was given")
    for answer in answers:
        if answer.kind != "page":
            raise NotProved("wrong_kind", f"a page was expected, not a proof of kind {answer.kind}")
    did.check(host)
    checkpoints = [open_checkpoint(answer.checkpoint, log) for answer in answers]
    for answer, checkpoint in zip(answers, checkpoints, strict=True):
        _verify_inclusion(answer, checkpoint, host)
    for answer in answers:
        _verify_openings(answer.events)
    for answer in answers:
        _verify_map(answer, host)
    events, record = _verify_completeness(answers, checkpoints, host)
    for answer in answers:
        verify_summary(answer, host, record)
    checkpoint, at = checkpoints[0], _verify_age(answers[0], oldest, newest)
    report = _report(f"{len(answers)} pages about {host}", log, checkpoint, at, host)
    report.witnessed(answers[0].checkpoint, log, policy)
    report.proved += COMPLETE
    _report_texts(events, text, report, complete=True)
    return report


def _verify_completeness(
    answers: Sequence[Answer], checkpoints: Sequence[Checkpoint], host: str
) -> tuple[list[Event], dict[str, Any]]:
    """All events of a host and its record, once its pages show them all, and show them at one checkpoint."""
    first = answers[0].record
    record = None if first is None else read_record(first, host)
    events: list[Event] = []
    for answer, checkpoint in zip(answers, checkpoints, strict=True):
        if (answer.record, checkpoint) != (first, checkpoints[0]):
            raise NotProved("pages_differ", "the pages are not of one checkpoint")
        _verify_page(answer, record)
        if answer.start != len(events):
            raise NotProved("pages_incomplete", f"event {len(events)} is missing or shown twice")
        events += answer.events
    if record is None or len(events) != record["events"]:
        raise NotProved("pages_incomplete", f"the pages end at event {len(events)}")
    return events, _verify_fold(events, first or "", host)


def _verify_state(answer: Answer, log: Verifier, host: str) -> tuple[Checkpoint, dict[str, Any] | None]:
    """Checks (a), (b) and (c) as far as one answer goes, and the members that follow from the record."""
    did.check(host)
    checkpoint = open_checkpoint(answer.checkpoint, log)
    _verify_inclusion(answer, checkpoint, host)
    _verify_openings(answer.events)
    _verify_map(answer, host)
    record = None
    if answer.record is not None and answer.kind == "full":
        record = _verify_fold(answer.events, answer.record, host)
    elif answer.record is not None:
        record = read_record(answer.record, host)
    if answer.kind == "page":
        _verify_page(answer, record)
    elif record is None and answer.events:
        raise NotProved("absent_with_events", "events without a record")
    verify_summary(answer, host, record)
    return checkpoint, record


def _verify_age(answer: Answer, oldest: str | None, newest: str | None) -> str:
    """Check (e). A map head from the future would stay fresh for ever."""
    at = str(answer.map_head.members["at"])
    if oldest is not None and at < oldest:
        raise NotProved("too_old", f"the map head dates from {at}, before {oldest}")
    if newest is not None and at > newest:
        raise NotProved("from_the_future", f"the map head dates from {at}, after {newest}")
    return at


def _report(subject: str, log: Verifier, checkpoint: Checkpoint, at: str, host: str) -> Report:
    report = Report(subject, checkpoint.size, at)
    report.proved.append(f"{log.name} signed a tree of {checkpoint.size} entries, with a map of all hosts as of {at}")
    report.not_proved += [MAP_HEAD_HONESTY, REAL_STAYS]
    if host.startswith("did:web:"):
        report.not_proved.append(DOMAIN)
    return report


def _verify_inclusion(answer: Answer, checkpoint: Checkpoint, host: str) -> None:
    """Check (a): all events and the map head are in the tree, the map head last, times in order."""
    head = answer.map_head
    if checkpoint.size < 2 or any(event.index < 2 for event in answer.events):
        raise NotProved("index_out_of_range", "a log starts with its genesis and a map head")
    if head.type != "map_head" or head.members["size"] != checkpoint.size - 1:
        raise NotProved("map_head_not_last", "the last leaf of the tree must be a map head that carries its own index")
    leaves = [(event.index, event.entry.leaf_hash) for event in answer.events]
    root = multiproof_root([*leaves, (checkpoint.size - 1, head.leaf_hash)], checkpoint.size, answer.log_proof)
    if root != checkpoint.root:
        raise NotProved("root_mismatch", "events, map head and log_proof do not lead to the root of the checkpoint")
    last = ""
    for event in answer.events:
        if event.entry.host != host:
            raise NotProved("foreign_event", f"event {event.index} does not name {host}")
        if event.entry.members["at"] < last:
            raise NotProved("time_falls", f"event {event.index} is older than the event before it")
        last = event.entry.members["at"]
    if head.members["at"] < last:
        raise NotProved("time_falls", "the map head is older than an event before it")


def _verify_openings(events: Sequence[Event]) -> None:
    for event in events:
        committed = _committed(event)
        if event.opening is None:
            continue
        if committed is None:
            raise NotProved("opening_unexpected", f"event {event.index} commits to no text")
        event.opening.require(committed)


def _verify_map(answer: Answer, host: str) -> None:
    data = None if answer.record is None else answer.record.encode()
    verify_map(host, data, answer.other, answer.siblings, base64.decode_hash(answer.map_head.members["root"]))


def _committed(event: Event) -> str | None:
    return event.entry.members["text"] if event.entry.type in ("review", "response") else None


def _verify_fold(events: Sequence[Event], record: str, host: str) -> dict[str, Any]:
    """Checks (b) and (c): these are the events that the record counts, and the fold over them is the record, byte for
    byte. Where one is left out the fold would break another rule, and name that."""
    if not events:
        raise NotProved("record_invalid", "a record without events: an absent host has no record")
    _require_counted(events, strict_json.loads(record))
    folded = fold(host, ((event.index, event.entry) for event in events)).decode()
    counted: dict[str, Any] = strict_json.loads(folded)
    if folded != record:
        given = strict_json.loads(record)
        members = given if isinstance(given, dict) else {}
        names = sorted({*members, *counted})
        wrong = [name for name in names if not same_json(members.get(name, ""), counted.get(name, ""))]
        raise NotProved(
            "record_mismatch", f"the record differs from its events in {', '.join(map(repr, wrong)) or 'its spelling'}"
        )
    return counted


def _require_counted(events: Sequence[Event], record: Any) -> None:
    root = base64.encode(root_of(sublog_leaf(event.index, event.entry.leaf_hash) for event in events))
    counted = record.get("events") if isinstance(record, dict) else None
    if not same_json(counted, len(events)) or record.get("root") != root:
        raise NotProved(
            "sub_root_mismatch", f"the log counts {counted!r} events of this host, and the {len(events)} are not these"
        )


def _verify_page(answer: Answer, record: dict[str, Any] | None) -> None:
    """The events stand at their places in the host's own tree."""
    if record is None:
        raise NotProved("absent_with_events", "a host without a record has no pages")
    leaves = [
        (answer.start + place, sublog_leaf(event.index, event.entry.leaf_hash))
        for place, event in enumerate(answer.events)
    ]
    if base64.encode(multiproof_root(leaves, record["events"], answer.sub_proof)) != record["root"]:
        raise NotProved("sub_root_mismatch", f"these are not the host's events from number {answer.start}")


def _report_texts(events: Sequence[Event], text: str, report: Report, *, complete: bool) -> None:
    """Check (d): a missing text is redacted, was not asked for, or is withheld. A page alone cannot tell."""
    redactions = {(e.entry.members["review"], e.entry.members["part"]) for e in events if e.entry.type == "redaction"}
    upgraded = {e.entry.members["review"] for e in events if e.entry.type == "upgrade"}
    unconfirmed = {e.index for e in events if e.entry.members.get("level") == "unconfirmed" and e.index not in upgraded}
    for event in events:
        if _committed(event) is None:
            continue
        is_review = event.entry.type == "review"
        review = event.index if is_review else event.entry.members["review"]
        what = f"the {'text of' if is_review else 'response to'} {event.entry.members['review_id']}"
        if event.opening is not None:
            state = "open"
        elif (review, "text" if is_review else "response") in redactions:
            state = "redacted"
            report.redacted.append(f"{what}, by a redaction entry in the log")
        elif text == "none" or (text == "verified" and review in unconfirmed):
            state = "unasked"
        else:
            state = "withheld"
            if complete:
                report.withheld.append(f"{what} (entry {event.index}), without a redaction in the log")
            else:
                report.not_proved.append(f"that {what} is withheld: it is missing, but another page may redact it")
        report.texts[event.index] = state
    shown = sum(state == "open" for state in report.texts.values())
    if shown:
        report.proved.append(f"every text that is shown ({shown}) is the one committed to when it was submitted")
