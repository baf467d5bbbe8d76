"""The report of an audit as a page for people. Whatever stands in a log was written by others, and is shown as text."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from audits import plots
from audits.document import document
from audits.plots import stars
from audits.report import REAL_STAYS
from ledger.log.members import LEVELS
from ledger.pictures.figures import figure, growth, levels
from ledger.pictures.markup import code, listed, number, plural, section, table, terms, visible
from ledger.pictures.plots import words
from ledger.pictures.timeline import Bin, Timeline, timeline

_PROOFS = {
    "signed": "The operator's own signatures convict it. Whoever has the file and the log's key can check that.",
    "observed": "It was served like this, and is not signed. The file shows it; that it came from this operator is the "
    "auditor's word.",
    "witnessed": "The operator's signature and a witness's contradict each other. Compare the witness's key with one "
    "that you trust.",
}
_CHECKS = {
    "denied": "Bookings that hosts denied",
    "unanswered": "Questions that hosts left unanswered",
    "contradicted": "Denials that a receipt contradicted",
    "conflict": "Bookings shown by two guests",
}


def render(audit: Mapping[str, Any]) -> str:
    """The whole document. `audit` is the result that is also written as JSON, and the page says nothing else."""
    over_time = timeline(audit["days"])
    parts = [
        _verdict(audit),
        _about(audit),
        section("What was checked", _checked(audit)),
        section("Findings", _findings(audit)),
        section("What was not checked", _unchecked(audit)),
        section("What the log holds", _holdings(over_time)),
        section("Issuers", _issuers(audit["issuers"])),
    ]
    if audit["witnesses"]:
        parts.append(section("Witnesses", _witnesses(audit["witnesses"])))
    return document(f"Audit of {visible(audit['log'])}", "".join(parts))


def _verdict(audit: Mapping[str, Any]) -> str:
    findings, unchecked = audit["findings"], audit["unchecked"]
    signed = sum(finding["proof"] == "signed" for finding in findings)
    said = {
        "clean": ("Clean", "All that was checked is as it has to be."),
        "findings": (
            plural(len(findings), "finding"),
            f"Here the log is not as it has to be. Proved by the operator's own signatures: {number(signed)}; "
            f"by what was observed or witnessed: {number(len(findings) - signed)}.",
        ),
        "incomplete": (
            "Could not check everything",
            ("What could be checked is as it has to be. " if not findings else "")
            + f"{plural(len(unchecked), 'thing')} could not be checked.",
        ),
    }
    heading, explained = said[audit["verdict"]]
    if not audit["size"]:
        explained += " The log is empty."
    return f'<div class="verdict {audit["verdict"]}"><strong>{heading}</strong><p>{explained}</p></div>\n'


def _about(audit: Mapping[str, Any]) -> str:
    """What was audited: the verdict is about this and nothing else."""
    at = audit["at"] or ""
    moment = f'<time datetime="{visible(at)}">{visible(at.replace("T", " ").replace("Z", " UTC"))}</time>'
    items = [
        ("Log", code(audit["log"])),
        ("Up to", plural(audit["size"], "entry", "entries") + (f", as of {moment}" if at else "")),
        ("Root", code(audit["root"]) if audit["root"] else "none"),
        ("Key", code(audit["key"])),
        ("Read from", code(audit["source"])),
    ]
    trusted = (
        '<p class="quiet">All of this holds for this key. Compare it with a copy that did not come from this log.</p>\n'
    )
    return terms("about", items) + trusted


def _checked(audit: Mapping[str, Any]) -> str:
    figures = [(visible(words(name).capitalize()), number(value)) for name, value in audit["figures"].items()]
    return (
        "<p>The log is tamper-evident: its operator can change it, but not without a trace. An audit reads all of it "
        "and looks for traces.</p>\n" + terms("figures", figures) + listed(audit["checked"])
    )


def _findings(audit: Mapping[str, Any]) -> str:
    if not audit["findings"]:
        return "<p>None.</p>\n"
    present = {finding["proof"] for finding in audit["findings"]}
    proofs = [(proof.capitalize(), meaning) for proof, meaning in _PROOFS.items() if proof in present]
    return terms("about", proofs) + "".join(_finding(finding, audit["key"]) for finding in audit["findings"])


def _finding(finding: Mapping[str, Any], key: str) -> str:
    index, file = finding["index"], finding["file"]
    facts = [
        f"<b>{visible(finding['proof'].capitalize())}</b>",
        *([f"entry {number(index)}"] if index is not None else []),
        plural(finding["count"], "place"),
        code(finding["code"]),
    ]
    command = f"staylog audit check-fraud {shlex.quote(str(file))} --key {shlex.quote(key)}"
    check = f"<p>Check it:</p>\n<pre>{visible(command)}</pre>\n" if file else "<p>There is no file of it.</p>\n"
    return (
        f'<article class="finding">\n<h3>{visible(finding["claim"])}</h3>\n'
        f'<p class="quiet">{" · ".join(facts)}</p>\n{check}</article>\n'
    )


def _unchecked(audit: Mapping[str, Any]) -> str:
    complete = "<p>Nothing of what this audit sets out to check was left out.</p>\n"
    left = listed(audit["unchecked"]) if audit["unchecked"] else complete
    # What an earlier version found has no such list.
    never = audit.get("never", ())
    compared = f"<h3>What an audit never compares</h3>\n{listed(never)}" if never else ""
    return f"{left}{compared}<h3>What no audit can show</h3>\n" + listed([REAL_STAYS, _same_log(audit["witnesses"])])


def _same_log(witnesses: Sequence[Mapping[str, Any]]) -> str:
    same = "that everybody is shown the same log"
    seen = [witness["newest"] for witness in witnesses if witness["newest"] is not None]
    if not seen:
        return f"{same}: no witness has signed it. Compare size and root with those that others were shown"
    return f"{same} beyond {max(seen):,} entries, which is the most that a witness has signed"


def _holdings(over_time: Timeline) -> str:
    if not over_time.bins:
        return "<p>The log holds no entries.</p>\n"
    drawn = (growth(over_time), levels(over_time), _ratings(over_time), _redactions(over_time.total.redactions))
    return f'<div class="plots">\n{"".join(drawn)}</div>\n{_totals(over_time.total)}'


def _ratings(over_time: Timeline) -> str:
    rows = [(bin_.label, *(_mean(bin_, level) for level in LEVELS)) for bin_ in over_time.bins]
    caption = f"Mean overall rating of the reviews of each {over_time.unit}, 1 to 5 stars"
    head = ("In", *(words(level).capitalize() for level in LEVELS))
    return figure("Ratings", plots.ratings(over_time), caption + ".", table(caption, head, rows))


def _mean(bin_: Bin, level: str) -> str:
    mean = bin_.mean(level)
    return "–" if mean is None else f'<data value="{stars(mean)}">{stars(mean)}</data>'


def _redactions(redactions: Mapping[str, int]) -> str:
    rows = [(visible(words(basis)), number(times)) for basis, times in plots.by_basis(redactions).items()]
    caption = "Texts taken out for legal reasons, by the reason given"
    return figure(
        "Redactions", plots.redactions(redactions), caption + ".", table(caption, ("Basis", "Redactions"), rows)
    )


def _totals(total: Bin) -> str:
    reviews = [(words(level).capitalize(), number(total.reviews[level]), _mean(total, level)) for level in LEVELS]
    others = [
        ("Responses of hosts", number(total.counts["responses"])),
        ("Unconfirmed reviews that a receipt confirmed later", number(total.counts["upgrades"])),
        *((meaning, number(total.checks[outcome])) for outcome, meaning in _CHECKS.items()),
    ]
    by_level = table("All reviews, by the level at which they came in", ("Level", "Reviews", "Mean overall"), reviews)
    besides = table("What else the log says of stays", ("What", "Number"), others)
    return f'<div class="plots">\n<div>{by_level}</div>\n<div>{besides}</div>\n</div>\n'


def _issuers(issuers: Sequence[Mapping[str, Any]]) -> str:
    if not issuers:
        return "<p>No review names an issuer.</p>\n"
    rows = [
        (visible(issuer["issuer"]), number(issuer["reviews"]), visible(issuer["status"] or "no entry"))
        for issuer in issuers
    ]
    caption = "Who vouched for the guests, and what the log says last of each"
    return table(caption, ("Issuer", "Reviews", "Status"), rows)


def _witnesses(witnesses: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            visible(witness["name"]),
            number(witness["cosigned"]),
            number(witness["newest"]) if witness["newest"] is not None else "–",
        )
        for witness in witnesses
    ]
    caption = "Who else has signed checkpoints of this log, and the largest size"
    return table(caption, ("Witness", "Cosigned", "Newest size"), rows)
