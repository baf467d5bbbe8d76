"""The front page's word on witnesses: who is asked, who cosigned, and what it means that nobody is."""

from datetime import datetime

from api import twins
from api.shapes import WitnessReport, WitnessStatus
from ledger.pictures.markup import code, number, visible, visible_lines

TWIN = "/v1/log/witnesses"
STYLE = """
.witnesses { list-style: none; padding: 0; display: grid; gap: .8rem; }
.witness { --tone: var(--open); border-left: .25rem solid var(--tone); background: var(--soft); border-radius: .3rem;
  padding: .6rem .9rem; }
.witness p { margin: .15rem 0 0; } .witness b { color: var(--tone); } .witness code { background: none; padding: 0; }
.cosigned { --tone: var(--good); } .refused, .ahead, .lying, .contradicts { --tone: var(--bad); }
"""
_STATES = {
    "cosigned": "has cosigned",
    "waiting": "has not cosigned yet",
    "unreachable": "does not answer",
    "refused": "does not sign",
    "ahead": "says that it has seen more of this log than there is",
    "lying": "signs or says what does not hold",
    "contradicts": "shows that this log has signed another history, or more, than is here",
}
_EXPLAINED = """<p>A witness remembers the last checkpoint of a log that it has seen, and cosigns the next one only
when it is shown that the log has merely grown. So a log that enough witnesses cosign cannot show one history to you
and another to somebody else. Cosignatures are lines of the checkpoint itself: they are checked, not believed.</p>
"""
_NOBODY = """<p id="quorum"><strong>Nobody watches this log yet.</strong> Its answers can be checked all the same: that
they follow from what the operator signed. That everybody is shown the same log is the operator's word alone, until
auditors compare what they were shown, or witnesses cosign.</p>
"""


def witness_section(report: WitnessReport, vkey: str, now: datetime) -> str:
    if not report.witnesses:
        return _nobody(vkey)
    members = "".join(_witness(at, witness, report.size, now) for at, witness in enumerate(report.witnesses))
    policy = f'<pre data-twin="{TWIN}#/policy">{visible_lines(report.policy or "")}</pre>'
    return (
        f'{_EXPLAINED}<p id="quorum">{_quorum(report)}</p>\n<ul class="witnesses">\n{members}</ul>\n'
        f"<details><summary>The policy: who is asked, and how many are enough</summary>\n{policy}\n</details>\n"
    )


def _nobody(vkey: str) -> str:
    policy = f"log {vkey}\nwitness first WITNESS-VKEY https://witness.example/w1\nquorum first"
    return (
        f"{_NOBODY}{_EXPLAINED}<p>The operator adds a witness by a file {code('tlog-policy')} in the ledger's folder, "
        f"and starts the service again. For one witness it looks like this:</p>\n<pre>{visible_lines(policy)}</pre>\n"
    )


def _quorum(report: WitnessReport) -> str:
    agree = sum(witness.size == report.size for witness in report.witnesses)
    said = f"{number(agree)} of {number(len(report.witnesses))} witnesses cosigned the newest checkpoint"
    if report.quorum:
        return f"<strong>{said}: enough</strong> for the policy of this log."
    if report.witnessed is None:
        before = "No checkpoint has had enough yet."
    else:
        size = twins.number(f"{TWIN}#/witnessed/size", report.witnessed.size)
        before = f"The newest that had enough is of {size} entries."
    return (
        f"<strong>{said}: not enough</strong> for the policy of this log. {before} What came later rests on the "
        "operator's signature alone so far. Reviews go on being taken."
    )


def _witness(place: int, witness: WitnessStatus, newest: int, now: datetime) -> str:
    twin = f"{TWIN}#/witnesses/{place}"
    state = _STATES[witness.state]
    if witness.state == "cosigned":
        state += " the newest checkpoint" if witness.size == newest else " an earlier checkpoint"
    facts = []
    if witness.size is not None:
        facts.append(f"last cosigned {twins.number(f'{twin}/size', witness.size)} entries")
    if witness.at is not None:
        facts.append(twins.moment(f"{twin}/at", witness.at, now))
    detail = "" if witness.detail is None else f'<p data-twin="{twin}/detail">{visible(witness.detail)}</p>\n'
    return (
        f'<li class="witness {visible(witness.state)}">\n<p><strong data-twin="{twin}/name">{visible(witness.name)}'
        f"</strong> <b>{state}</b></p>\n<p>{', '.join(facts) or 'no cosignature so far'}</p>\n{detail}"
        f'<p class="quiet">{twins.code(f"{twin}/vkey", witness.vkey)}</p>\n</li>\n'
    )
