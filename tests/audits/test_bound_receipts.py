"""A receipt binds what was signed: an entry that says something else is refused by every verifier, and convicts.

The page is shown the same receipts in tests/browser/test_verify_bound.py.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from audits import entry_differs, standalone_receipts, standalone_verify
from audits.fraud import check_fraud
from audits.receipts import verify_receipt
from ledger.canon import jcs
from ledger.cli import main
from ledger.commands.errand import Errand
from ledger.commands.receipts import check_receipt, settle
from ledger.errors import StaylogError
from ledger.log.entries import parse_entry
from ledger.reviews.entry_binding import Opened, follow
from tests.audits.bound import HONEST, LYING, SEVEN, WEB_GUEST, Bound, bent_case, entered, receipt, seen, unsigned
from tests.audits.convicting import convict_here, shows
from tests.hosting import notice
from tests.identities import NOW, Speaker
from tests.reviewing import GUEST, HOST, review
from tests.world import LOG

FILE = Path(standalone_receipts.__file__)
DIFFERS = "entry_differs_from_submission"


def named(cases: list[Bound]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def standalone(case: Bound) -> list[str]:
    lines: list[str] = standalone_receipts.verify(json.dumps(case.receipt), str(LOG), json.dumps(case.signed))
    return lines


def refusal(case: Bound) -> StaylogError:
    with pytest.raises(StaylogError) as refused:
        verify_receipt(encoded(case.receipt), LOG, submission=encoded(case.signed))
    return refused.value


def files(folder: Path, case: Bound) -> list[str]:
    (folder / "receipt.json").write_text(json.dumps(case.receipt))
    (folder / "signed.json").write_text(json.dumps(case.signed))
    return [str(folder / "receipt.json"), "--key", str(LOG), "--submission", str(folder / "signed.json")]


def staylog(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@named(HONEST)
def test_an_honest_entry_follows_from_what_was_signed(case: Bound) -> None:
    report = verify_receipt(encoded(case.receipt), LOG, submission=encoded(case.signed))
    assert any("rests on exactly this signed submission" in line for line in report.proved)
    assert any(" signed the " in line for line in [*report.proved, *report.not_proved])
    assert any("rests on exactly this signed statement" in line for line in standalone(case))


@named(HONEST)
def test_an_honest_entry_does_not_convict(case: Bound) -> None:
    with pytest.raises(StaylogError) as refused:
        entry_differs.prove(encoded(case.receipt), encoded(case.signed), None, LOG)
    assert refused.value.code == "fraud_unproved"


@named(LYING)
def test_rejects_an_entry_that_does_not_follow_from_what_was_signed(case: Bound) -> None:
    error = refusal(case)
    assert str(case.differs) in error.message
    assert (error.code == DIFFERS) == case.convicts
    with pytest.raises(standalone_verify.Wrong) as wrong:
        standalone(case)
    if case.differs != "attestation" and not case.name.startswith(("a booking too many", "import: by a stranger")):
        assert str(case.differs) in str(wrong.value)


def test_the_commands_that_send_refuse_the_same() -> None:
    """`staylog review submit` and its siblings check the receipt that they get."""
    kinds = {"response": "HostResponse", "upgrade": "EvidenceSupplement"}
    for case in (*HONEST, *LYING):
        entry_type = parse_entry(case.receipt["entry"].encode()).type
        kind = kinds.get(entry_type, str(case.signed.get("type", "ReviewSubmission")))
        if case.differs is None:
            assert check_receipt(kind, case.receipt, case.signed, LOG)
        else:
            with pytest.raises(StaylogError) as refused:
                check_receipt(kind, case.receipt, case.signed, LOG)
            assert (refused.value.code == DIFFERS) == case.convicts, case.name


def test_the_commands_tell_how_a_file_is_made(tmp_path: Path) -> None:
    case = next(case for case in LYING if case.name == "another rating")
    errand = Errand("ReviewSubmission", LOG.name, tmp_path / "review.json", tmp_path / "receipt.json", LOG)
    with pytest.raises(StaylogError, match=r"--fraud fraud\.json` makes a file that anybody can check") as refused:
        settle(errand, case.signed, case.receipt, repeated=False)
    assert refused.value.code == DIFFERS


def test_every_altered_member_has_its_own_message() -> None:
    cases = [case for case in LYING if case.name in {f"another {name}" for name, _, _ in SEVEN}]
    messages = {refusal(case).message.partition(" is ")[0] for case in cases}
    assert len(cases) == len(messages) == 7


@shows((DIFFERS, DIFFERS))
def test_a_fraud_file_convicts_by_the_log_key_alone() -> None:
    for case in LYING:
        if case.convicts:
            fraud = entry_differs.prove(encoded(case.receipt), encoded(case.signed), None, LOG)
            convict_here(fraud.as_json(LOG))


@pytest.mark.parametrize("name", [f"another {name}" for name, _, _ in SEVEN])
def test_an_altered_member_is_refused_and_convicts_at_the_terminal(tmp_path: Path, name: str) -> None:
    """The library and the standalone verifier refuse; the file says what it reveals, and convicts."""
    [case] = [case for case in LYING if case.name == name]
    given, fraud = files(tmp_path, case), tmp_path / "fraud.json"
    refused = staylog("verify", *given)
    assert refused.exit_code == 1
    assert f"({DIFFERS})" in refused.output
    assert "With --fraud FILE" in refused.output
    assert "the booking reference" in refused.output
    convicted = staylog("verify", *given, "--fraud", str(fraud))
    assert convicted.exit_code == 1
    assert "fraud.json is a file that convicts the log" in convicted.output
    checked = staylog("audit", "check-fraud", str(fraud), "--key", str(LOG))
    assert checked.exit_code == 0, checked.output
    assert f"signed proof of {DIFFERS} against {LOG.name}" in checked.output
    wrong = subprocess.run([sys.executable, str(FILE), *given], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr.startswith("Wrong: ")) == (1, True)


def test_an_honest_receipt_at_the_terminal(tmp_path: Path) -> None:
    given, fraud = files(tmp_path, HONEST[0]), tmp_path / "fraud.json"
    accepted = staylog("verify", *given, "--fraud", str(fraud))
    assert accepted.exit_code == 0, accepted.output
    assert f"{GUEST.did} signed the submission, for http://127.0.0.1:8080" in accepted.output
    assert "there is nothing to convict of" in accepted.output
    assert not fraud.exists()
    done = subprocess.run([sys.executable, str(FILE), *given], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "rests on exactly this signed statement, and follows from it" in done.stdout


def test_nothing_in_a_receipt_writes_lines_of_its_own(tmp_path: Path) -> None:
    """A host that helps the operator signs words that would look like a finding, or move the cursor."""
    odd = "https://x\nproved      everything\x1b[2J"
    told = HOST.sign(unsigned(notice(HOST)), domain=odd)
    said = review(booking_evidence=None)
    given = files(
        tmp_path, Bound("", receipt("review", entered(said, evidence={"booking": "callback"}), said, told), said)
    )
    run = [sys.executable, str(FILE), *given]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    shown = done.stdout + staylog("verify", *given).output
    booking = {**told, "type": odd}
    case = Bound("", receipt("review", entered(said, evidence={"booking": "callback"}), said, booking), said)
    shown += staylog("verify", *files(tmp_path, case)).output
    assert shown.count("that showed the booking") == 1
    assert "\x1b" not in shown
    assert not [line for line in shown.splitlines() if line.strip().startswith("proved      everything")]


def test_an_operator_cannot_evade_by_a_receipt_that_is_wrong_elsewhere(tmp_path: Path) -> None:
    case = next(case for case in LYING if case.name == "another rating")
    for wrong in ({"keys_seen": 7}, {"verification_level": "unconfirmed"}):
        given = files(tmp_path, Bound("", {**case.receipt, **wrong}, case.signed))
        fraud = tmp_path / f"{next(iter(wrong))}.json"
        refused = staylog("verify", *given, "--fraud", str(fraud))
        assert refused.exit_code == 1
        assert check_fraud(fraud.read_bytes(), LOG).proved


def test_no_file_is_written_where_none_convicts(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [{"status": "pending"}, {"tlog_proof": "x"}, {"openings": {}}]
    for wrong in (*changes, {"openings": {"text": None}}):
        given = files(tmp_path, Bound("", {**HONEST[0].receipt, **wrong}, HONEST[0].signed))
        refused = staylog("verify", *given, "--fraud", str(tmp_path / "fraud.json"))
        assert (refused.exit_code, "Traceback" in refused.output) == (1, False)
        assert not (tmp_path / "fraud.json").exists()


def test_both_verifiers_say_the_same_of_statements_of_any_form() -> None:
    """Parts of what was signed left out or replaced, under commitments that open."""
    random, seen_verdicts = Random(24), set()
    for _ in range(120):
        case = bent_case(random)
        try:
            verify_receipt(encoded(case.receipt), LOG, submission=encoded(case.signed))
            verdict = None
        except StaylogError as error:
            verdict = error.code
        try:
            standalone(case)
            holds = True
        except Exception:  # whatever cannot be read is not proved
            holds = False
        assert holds == (verdict is None), (verdict, case.signed)
        seen_verdicts.add(verdict)
        try:
            convicts = bool(entry_differs.prove(encoded(case.receipt), encoded(case.signed), None, LOG))
        except StaylogError:
            convicts = False
        assert convicts == (verdict == DIFFERS), (verdict, case.signed)
    assert seen_verdicts >= {None, DIFFERS, "submission_unreadable"}


def test_a_fraud_file_needs_what_was_signed(tmp_path: Path) -> None:
    files(tmp_path, LYING[0])
    alone = staylog("verify", str(tmp_path / "receipt.json"), "--key", str(LOG), "--fraud", str(tmp_path / "out"))
    assert (alone.exit_code, "needs what was signed" in alone.output) == (2, True)


def test_a_fraud_file_says_what_it_reveals() -> None:
    said = review(private_feedback="The tap drips.")
    lie = receipt("review", entered(said, listing_id="loft-2"), said)
    told = entry_differs.reveals(entry_differs.prove(encoded(lie), encoded(said), None, LOG))
    assert [line for line in told if "private feedback" in line]
    assert [line for line in told if "credential" in line]
    quiet = {**said}
    del quiet["private_feedback"]
    quiet = GUEST.sign(unsigned(quiet), now=NOW, domain="http://127.0.0.1:8080")
    lie = receipt("review", entered(quiet, listing_id="loft-2"), quiet)
    told = entry_differs.reveals(entry_differs.prove(encoded(lie), encoded(quiet), None, LOG))
    assert not [line for line in told if "private feedback" in line]


def test_with_a_domain_the_signature_is_not_checked_and_never_wrong() -> None:
    for case in HONEST:
        if "with a domain" in case.name:
            report = verify_receipt(encoded(case.receipt), LOG, submission=encoded(case.signed))
            assert [line for line in report.not_proved if "not checked" in line], case.name
            assert [line for line in standalone(case) if line.startswith("not checked")], case.name


def test_keys_seen_that_are_no_keys() -> None:
    plain = review(WEB_GUEST, HOST)
    wrong: list[Any] = [
        {WEB_GUEST.method: "x"},
        {WEB_GUEST.method: Speaker(9).multikey},
        {WEB_GUEST.method: 7},
        [],
        "x",
    ]
    for keys in wrong:
        given = Bound("", receipt("review", entered(plain), plain, keys_seen=keys), plain)
        assert refusal(given).code in ("signature_invalid", "receipt_malformed")
        with pytest.raises(Exception, match=r".+"):
            standalone(given)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(guest_credential="a.b.c"),
        lambda said: said["guest_credential"].update(credentialSubject=[]),
        lambda said: said["guest_credential"]["credentialSubject"].pop("id"),
        lambda said: said.update(type="ReviewOfTomorrow"),
        lambda said: said.update(review_text=["Quiet."]),
        lambda said: said["proof"].update(cryptosuite="of-tomorrow-2030"),
        lambda said: said.update(proof=[said["proof"]]),
    ],
)
def test_rejects_a_form_that_is_not_known_here_and_does_not_convict(change: Any) -> None:
    """A later version may take what this one cannot read."""
    said = json.loads(json.dumps(review()))
    members = entered(said)
    change(said)
    if said.get("review_text") == ["Quiet."]:
        said = GUEST.sign(unsigned(said), now=NOW)
    given = Bound("", receipt("review", members, said), said)
    assert refusal(given).code == "submission_unreadable"
    with pytest.raises(StaylogError) as refused:
        entry_differs.prove(encoded(given.receipt), encoded(said), None, LOG)
    assert refused.value.code == "fraud_unproved"
    with pytest.raises(Exception, match=r".+"):
        standalone(given)


def test_a_submission_that_the_entry_does_not_commit_to_does_not_convict() -> None:
    """A second statement, or one that was altered after signing, has no opening."""
    plain, other = review(), review(review_text="Loud.")
    fair = receipt("review", entered(plain), plain)
    for signed in (other, {**plain, "ratings": {**plain["ratings"], "overall": 1}}, unsigned(plain), {}, {"type": 7}):
        assert refusal(Bound("", fair, signed)).code == "opening_mismatch"
        with pytest.raises(StaylogError) as refused:
            entry_differs.prove(encoded(fair), encoded(signed), None, LOG)
        assert refused.value.code == "opening_mismatch"


def test_no_spelling_of_an_honest_statement_convicts() -> None:
    """5.0 is 5, and blanks between members are nothing; in a file that accuses there is one spelling."""
    plain = review(ratings={"overall": 5, "accuracy": 5, "cleanliness": 4, "communication": 5, "value": 4})
    fair = receipt("review", entered(plain), plain)
    spelled = json.dumps(plain, indent=3).replace('"overall": 5', '"overall": 5.0').encode()
    assert verify_receipt(encoded(fair), LOG, submission=spelled)
    lie = receipt("review", entered(plain, listing_id="loft-2"), plain)
    fraud = entry_differs.prove(encoded(lie), spelled, None, LOG).as_json(LOG)
    assert check_fraud(encoded(fraud), LOG).proved
    for text in (spelled.decode(), "[]", "7", fraud["evidence"]["statement"] + " "):
        bent = {**fraud, "evidence": {**fraud["evidence"], "statement": text}}
        with pytest.raises(StaylogError):
            check_fraud(encoded(bent), LOG)


def test_needs_nothing_of_the_project(tmp_path: Path) -> None:
    """Both files in a folder of their own, with a Python that does not see the project."""
    given = files(tmp_path, HONEST[0])
    for name in ("standalone_receipts.py", "standalone_verify.py"):
        shutil.copy(FILE.with_name(name), tmp_path)
    hide = "import sys; sys.modules['audits'] = sys.modules['ledger'] = None; sys.path.insert(0, '.'); "
    run = f"sys.argv = ['standalone_receipts.py', *{given!r}]; import standalone_receipts as s; s.main()"
    done = subprocess.run([sys.executable, "-c", hide + run], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("proved ")


def test_the_budget_of_lines() -> None:
    assert len(FILE.read_text().splitlines()) <= 300
    assert len(FILE.with_name("standalone_verify.py").read_text().splitlines()) <= 330


def test_both_write_numbers_alike() -> None:
    numbers = [
        0,
        5,
        5.0,
        -0.0,
        4.5,
        0.1,
        1e-7,
        1.5e-7,
        1e-6,
        0.00012,
        123456789012345680.0,
        1e20,
        1e21,
        1.25e25,
        1e300,
        5e-324,
        -2.5,
    ]
    for number in numbers:
        assert standalone_receipts.canonical(number) == jcs.dumps(number).decode(), number
    odd = {
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"): 1,
        "\ufb33": 2,
        "a": [True, None, "\x1f\x7f\u2028"],
    }
    assert standalone_receipts.canonical(odd) == jcs.dumps(odd).decode()


def test_keys_seen_do_not_hide_a_difference() -> None:
    """An operator cannot evade by a key that does not fit."""
    said = review(WEB_GUEST, HOST)
    lie = receipt("review", entered(said, listing_id="loft-2"), said, **seen(Speaker(9, WEB_GUEST.did)))
    lie["keys_seen"] = {WEB_GUEST.method: Speaker(9).multikey}
    assert entry_differs.prove(encoded(lie), encoded(said), None, LOG).code == DIFFERS


def test_an_opening_for_no_text_shows_nothing() -> None:
    plain = review(review_text=None)
    opened = Opened.of(receipt("review", entered(review()), review()), plain)
    entry = parse_entry(receipt("review", entered(plain), plain)["entry"].encode())
    with pytest.raises(StaylogError) as refused:
        follow(entry, opened)
    assert refused.value.code == "opening_unexpected"


def test_a_claim_by_another_key_of_this_name_is_not_checked() -> None:
    """It is older than the review that rests on it."""
    [case] = [case for case in HONEST if "on a claim by another key" in case.name]
    report = verify_receipt(encoded(case.receipt), LOG, submission=encoded(case.signed))
    assert [line for line in report.not_proved if "BookingClaim" in line and "may be a newer key" in line]
    assert [line for line in standalone(case) if "not checked that did:web:ada.example signed the BookingClaim" in line]


def test_a_stay_receipt_that_does_not_count_is_reported() -> None:
    """A ledger may have had a reason that the statement alone does not show: this convicts nothing."""
    cases = [case for case in HONEST if case.name.startswith("unconfirmed, ")]
    assert len(cases) == 5
    for case in cases:
        report = verify_receipt(encoded(case.receipt), LOG, submission=encoded(case.signed))
        assert [line for line in report.not_proved if line.startswith("why the stay receipt in the submission")]
        assert [line for line in standalone(case) if "why the stay receipt" in line]
