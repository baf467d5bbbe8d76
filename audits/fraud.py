"""Checking fraud proofs: one file and the log's key are enough. Each kind is made and checked in one module."""

from collections.abc import Callable
from dataclasses import dataclass

from audits import broken_rules, clocks, entry_differs, forks, replies, resources, served, transition
from audits.evidence import OBSERVED, SIGNED, TYPE, WITNESSED, Evidence, Fraud, Shown
from audits.report import Report
from ledger.canon import strict_json
from ledger.errors import Malformed, NotProved
from ledger.log.note import Verifier

WHO_SERVED = "that it came from this log: it is not signed, so this is the word of whoever recorded it; ask it yourself"
NO_WITNESS = "that the witness is to be believed: whoever has that key can say any time; compare it with one you trust"
NEWEST = "that the smaller one was served as the newest although the larger one had been signed"
ENTRIES = "that these are the hashes of what was served"
THIS_ASKED = (
    "that it was the answer to this question, that no later entry of its tree is about the same issuers, and that no "
    "checkpoint came before the one that is shown for as_of"
)
ASKED = "that all texts and 100 reviews were asked for, of that size, and that no later entry redacts one"

_MEMBERS = {"type", "v", "kind", "code", "claim", "log", "proof", "evidence"}


@dataclass(frozen=True, slots=True)
class _Kind:
    check: Callable[[str, Evidence, Verifier], Shown]
    proof: str
    not_proved: tuple[str, ...] = ()


_KINDS = {
    "entries": _Kind(broken_rules.check_entries, SIGNED),
    "prefix": _Kind(broken_rules.check_prefix, SIGNED),
    "transition": _Kind(transition.check, SIGNED),
    "fork": _Kind(forks.check_fork, SIGNED),
    "entry_differs_from_submission": _Kind(entry_differs.check, SIGNED),
    "clock": _Kind(clocks.check, WITNESSED, (NO_WITNESS,)),
    "rollback": _Kind(forks.check_rollback, OBSERVED, (NEWEST,)),
    "resource": _Kind(resources.check_resource, OBSERVED, (WHO_SERVED,)),
    "unshown": _Kind(resources.check_unshown, OBSERVED, (ENTRIES, WHO_SERVED)),
    "answer": _Kind(served.check, OBSERVED, (ASKED, WHO_SERVED)),
    "reply": _Kind(replies.check, OBSERVED, (THIS_ASKED, WHO_SERVED)),
    "activity": _Kind(replies.check_activity, OBSERVED, (WHO_SERVED,)),
}


def check_fraud(data: bytes, log: Verifier) -> Report:
    """What the file shows against `log`, or a refusal if it does not show what it claims."""
    fraud = _parse(data, log)
    kind = _KINDS[fraud.kind]
    if fraud.proof != kind.proof:
        raise Malformed("fraud_malformed", f"evidence of the kind {fraud.kind} is {kind.proof}, not {fraud.proof[:40]}")
    try:
        checkpoint, shown = kind.check(fraud.code, fraud.evidence, log)
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        raise Malformed("fraud_malformed", f"the evidence cannot be read: {error!r}") from None
    report = Report(f"{fraud.proof} proof of {fraud.code} against {log.name}", checkpoint.size)
    report.proved += shown
    report.not_proved += kind.not_proved
    return report


def _parse(data: bytes, log: Verifier) -> Fraud:
    value = strict_json.loads(data)
    if not isinstance(value, dict) or value.keys() != _MEMBERS or value["type"] != TYPE or value["v"] != 1:
        raise Malformed("fraud_malformed", f"a {TYPE} of version 1 has exactly {', '.join(sorted(_MEMBERS))}")
    texts = {name: value[name] for name in ("kind", "code", "claim", "log", "proof")}
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(value["evidence"], dict):
        raise Malformed("fraud_malformed", "the members of a fraud proof are texts, and its evidence is an object")
    if texts["kind"] not in _KINDS:
        raise Malformed("fraud_malformed", f"no evidence is of the kind {texts['kind'][:40]!r}")
    if texts.pop("log") != str(log):
        raise NotProved("signer_unknown", f"the proof is about {value['log'][:200]}; the key that was given is another")
    return Fraud(**texts, evidence=value["evidence"])
