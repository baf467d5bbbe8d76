"""What a ledger took in and promised to decide on, held against what it says after that time."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from nacl.signing import SigningKey

from audits import check_commands
from audits.promises import judge
from ledger.canon import multikey
from ledger.canon.times import format_time, parse_time
from ledger.cli import main
from ledger.errors import NotProved
from ledger.identity import statements
from tests.api.hosts_and_guests import add_host, asking, settle, state
from tests.api.site import Person, Site, serving
from tests.audits.honest import web_server
from tests.engines import PostgresServer
from tests.hosting import HostSite

SECOND = timedelta(seconds=1)
NUMBERS = count()


class Pending:
    """A submission that waits at a real service, and the file in which its sender has what the service answered."""

    def __init__(self, site: Site, host: HostSite, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site
        self.host = host
        self.guest = Person(f"guest of {host.name}")
        host.down = 503
        answer = site.submit(asking(self.guest, host.speaker))
        assert answer.status_code == 202
        self.saved: dict[str, Any] = answer.json()
        self.end = parse_time(self.saved["intake"]["decide_by"])
        self.key = multikey.encode(site.statements_key()[1])
        self.file = folder / "review.json"
        self.evidence = folder / "review.broken.json"
        self.file.write_bytes(answer.content)
        self._monkeypatch = monkeypatch

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    def check(self, now: datetime, *more: str, where: str | None = None) -> Result:
        """`staylog audit check-promise` when it is `now`."""
        self._monkeypatch.setattr(check_commands, "datetime", SimpleNamespace(now=lambda _: now))
        arguments = ["audit", "check-promise", str(self.file), where or self.url, *more]
        ran = CliRunner().invoke(main, arguments)
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
        return ran

    def decide(self) -> None:
        self.host.down = None
        self.site.running.clock.forward(minutes=1)
        settle(self.site)
        assert state(self.site, self.saved["submission_id"])["status"] != "pending"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server: PostgresServer | None = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
    with serving(tmp_path_factory.mktemp("site"), server.url("promises") if server else None) as made:
        yield made


@pytest.fixture
def pending(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pending:
    return Pending(site, add_host(site, f"slow{next(NUMBERS)}.example"), tmp_path, monkeypatch)


def check_fraud(file: Path, key: str) -> Result:
    return CliRunner().invoke(main, ["audit", "check-fraud", str(file), "--key", key])


def test_there_is_time_until_the_end_and_an_hour(pending: Pending) -> None:
    for now in (pending.end - timedelta(days=3), pending.end, pending.end + timedelta(hours=1)):
        ran = pending.check(now)
        assert (ran.exit_code, ran.stdout.startswith("open: there is time until ")) == (0, True), ran.output
    assert not pending.evidence.exists()


def test_after_that_the_promise_is_broken_and_there_is_a_file_that_shows_it(pending: Pending, tmp_path: Path) -> None:
    now = pending.end + timedelta(hours=1) + SECOND
    ran = pending.check(now)
    assert ran.exit_code == 1
    assert f"promised a decision by {format_time(pending.end)}, and has none" in ran.stderr
    assert f"The evidence is in {pending.evidence}" in ran.stdout
    evidence = json.loads(pending.evidence.read_bytes())
    assert (evidence["status"]["status"], evidence["seen_at"]) == ("pending", format_time(now))
    checked = check_fraud(pending.evidence, pending.key)
    assert checked.exit_code == 0, checked.output
    assert "observed proof of promise_broken" in checked.stdout
    assert "that this is what the ledger answered" in checked.stdout
    # By the key that one has noted, and to where one likes.
    elsewhere = tmp_path / "evidence.json"
    assert pending.check(now, "--key", pending.key, "--out", str(elsewhere)).exit_code == 1
    assert elsewhere.read_bytes() == pending.evidence.read_bytes()


def test_a_submission_that_the_ledger_forgot_is_a_broken_promise(pending: Pending) -> None:
    """Until it may have forgotten what it decided."""
    unknown = {**pending.saved, "submission_id": f"sub-{'a' * 26}"}
    pending.file.write_text(json.dumps(unknown))
    received = parse_time(pending.saved["intake"]["received_at"])
    assert pending.check(pending.end).exit_code == 0
    later = pending.check(received + timedelta(days=90))
    assert (later.exit_code, pending.evidence.exists()) == (2, False)
    assert "too_old" in later.stderr
    ran = pending.check(received + timedelta(days=90) - SECOND)
    assert (ran.exit_code, "knows nothing of it" in ran.stderr) == (1, True)
    assert check_fraud(pending.evidence, pending.key).exit_code == 0


def test_a_submission_that_was_accepted_is_a_kept_promise(pending: Pending) -> None:
    pending.host.book(pending.guest)
    pending.decide()
    for now in (pending.end, pending.end + timedelta(days=30)):
        ran = pending.check(now)
        assert (ran.exit_code, "it was accepted" in ran.stdout) == (0, True), ran.output


def test_and_so_is_one_that_was_rejected_with_a_signature(pending: Pending, tmp_path: Path) -> None:
    pending.decide()
    ran = pending.check(pending.end + timedelta(days=30))
    assert (ran.exit_code, "it was refused as booking_denied" in ran.stdout) == (0, True), ran.output
    # What was kept is no evidence.
    status = state(pending.site, pending.saved["submission_id"])
    intake, seen_at = pending.saved["intake"], format_time(pending.end + timedelta(days=30))
    said = {"type": "StaylogBrokenPromise", "v": 1, "claim": "broken", "intake": intake, "key": pending.key}
    pending.evidence.write_text(json.dumps({**said, "status": status, "seen_at": seen_at}))
    refused = check_fraud(pending.evidence, pending.key)
    assert (refused.exit_code, "the promise was kept" in refused.stderr) == (1, True)


@contextmanager
def telling(pending: Pending, status: Any) -> Iterator[str]:
    """The same service, but for what it says of submissions."""

    def respond(path: str, _query: dict[str, str]) -> bytes:
        if path.startswith("v1/submissions"):
            return json.dumps(status).encode()
        return pending.site.get(f"/{path}").content

    with web_server(respond) as url:
        yield url


def test_a_refusal_without_a_signature_is_no_decision(pending: Pending) -> None:
    """Nor is anything else that is no word of a decision."""
    pending.decide()
    told = state(pending.site, pending.saved["submission_id"])
    refusal = told["refusal"]
    statuses: list[tuple[Any, str]] = [
        ({**told, "refusal": None}, "shows no signed refusal"),
        ({**told, "refusal": "booking_denied"}, "shows no signed refusal"),
        ({**told, "refusal": {**refusal, "code": "too_late"}}, "shows no signed refusal"),
        ({**told, "refusal": {**refusal, "submission_sha256": "0" * 64}}, "shows no signed refusal"),
        ({**told, "status": "pending"}, "has none"),
        ({**told, "status": ["accepted"]}, "has none"),
        ({}, "has none"),
        (["accepted"], "knows nothing of it"),
        ("accepted", "knows nothing of it"),
    ]
    for status, says in statuses:
        with telling(pending, status) as url:
            ran = pending.check(pending.end + timedelta(days=1), where=url)
        assert (ran.exit_code, says in ran.stderr) == (1, True), ran.output
        assert check_fraud(pending.evidence, pending.key).exit_code == 0


def test_tampered_evidence_is_refused(pending: Pending) -> None:
    assert pending.check(pending.end + timedelta(days=1)).exit_code == 1
    evidence = json.loads(pending.evidence.read_bytes())
    intake, other = evidence["intake"], multikey.encode(Person("another").public)
    tampered: dict[str, Any] = {
        "an earlier end": {**evidence, "intake": {**intake, "decide_by": "2026-06-02T12:00:00Z"}},
        "another submission": {**evidence, "intake": {**intake, "submission_sha256": "0" * 64}},
        "no signature": {**evidence, "intake": {name: value for name, value in intake.items() if name != "proof"}},
        "seen in time": {**evidence, "seen_at": format_time(pending.end)},
        "seen never": {**evidence, "seen_at": "yesterday"},
        "seen long after": {**evidence, "status": None, "seen_at": "2027-06-01T00:00:00Z"},
        "accepted": {**evidence, "status": {"status": "accepted"}},
        "a list": {**evidence, "status": []},
        "a member less": {name: value for name, value in evidence.items() if name != "claim"},
        "a member more": {**evidence, "more": 1},
        "another type": {**evidence, "type": "StaylogFraudProof"},
        "another version": {**evidence, "v": 2},
        "another key": {**evidence, "key": other},
        "nothing": [],
    }
    for name, value in tampered.items():
        pending.evidence.write_text(json.dumps(value))
        refused = check_fraud(pending.evidence, pending.key)
        assert (refused.exit_code, refused.stdout) == (1, ""), name
        assert isinstance(refused.exception, SystemExit), name
    pending.evidence.write_text(json.dumps(evidence))
    assert check_fraud(pending.evidence, pending.key).exit_code == 0
    assert check_fraud(pending.evidence, other).exit_code == 1
    assert check_fraud(pending.evidence, "z6Mknonsense").exit_code == 1
    # Nor is it a proof about a log.
    assert check_fraud(pending.evidence, str(pending.site.ledger.verifier)).exit_code == 1


def test_what_cannot_be_checked_is_no_broken_promise(pending: Pending, tmp_path: Path) -> None:
    """Status 2, a word about it, and no evidence."""
    late, saved = pending.end + timedelta(days=1), pending.saved
    other = multikey.encode(Person("another").public)
    assert "signature_invalid" in (wrong := pending.check(late, "--key", other)).stderr
    assert wrong.exit_code == 2
    assert pending.check(late, "--key", "z6Mknonsense").exit_code == 2
    assert pending.check(late, where=str(tmp_path)).exit_code == 2
    assert pending.check(late, where="http://[::1").exit_code == 2
    broken: list[Any] = [
        {**saved, "intake": {**saved["intake"], "decide_by": "2026-06-02T12:00:00Z"}},
        {**saved, "intake": {**saved["intake"], "proof": None}},
        {**saved, "intake": "IntakeReceipt"},
        {**saved, "submission_id": "../../log/checkpoint"},
        {**saved, "submission_id": "sub-é"},
        {**saved, "submission_id": 7},
        saved["intake"],
        [],
    ]
    for value in broken:
        pending.file.write_text(json.dumps(value))
        ran = pending.check(late)
        assert (ran.exit_code, ran.stdout, bool(ran.stderr)) == (2, "", True), value
    pending.file.write_text("{")
    assert pending.check(late).exit_code == 2
    assert not pending.evidence.exists()


@pytest.mark.parametrize(("received_at", "decide_by"), [("2026-01-01", "9999-12-31"), ("9999-12-31", "2026-01-02")])
def test_no_date_is_too_large(received_at: str, decide_by: str) -> None:
    """The ledger signs what it likes."""
    key = SigningKey(b"\x07" * 32)
    name, now = multikey.encode(bytes(key.verify_key)), datetime(2026, 11, 18, tzinfo=UTC)
    said = {
        "type": "IntakeReceipt",
        "submission_sha256": "0" * 64,
        "received_at": f"{received_at}T23:59:59Z",
        "decide_by": f"{decide_by}T23:59:59Z",
    }
    intake = statements.sign(said, key, f"did:key:{name}#{name}", now=now)
    with pytest.raises(NotProved) as refused:
        judge(intake, None, bytes(key.verify_key), now)
    assert refused.value.code == ("promise_open" if decide_by.startswith("9999") else "promise_broken")
