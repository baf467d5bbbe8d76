"""The witnesses of a running log: asked about every newest checkpoint, believed in nothing, waited for by nobody."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from audits.verify import verify_answer
from ledger.errors import Halted, Misconfigured, Unavailable
from ledger.log import witnesses
from ledger.log.add_checkpoint import SIZE_TYPE, AddCheckpoint
from ledger.log.note import Note, Verifier
from ledger.log.policy import Policy
from ledger.log.witness_policy import read_policy
from ledger.store.rows import MAX_WITNESSES, Published, run
from tests.audits.witnessing import Running as RunningWitness
from tests.audits.witnessing import witness_running
from tests.crash.harness import Backups
from tests.ledger.log.crooked import CROOK, Crook, Reply, crooked, honest_line, wait_for
from tests.running import HOST, Running, Writer


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "LONGEST_PAUSE", 0.05)


@contextmanager
def witness(
    running: Running, folder: Path, name: str = "witness.example/w1", port: int = 0
) -> Iterator[RunningWitness]:
    """One that trusts the log, with the log's own clock."""
    clock = running.clock
    with witness_running(folder, name, [running.ledger.verifier], lambda: clock().timestamp(), port=port) as made:
        yield made


def policy_of(running: Running, *lines: str, quorum: str = "none") -> str:
    return "\n".join([f"log {running.ledger.verifier}", *lines, f"quorum {quorum}", ""])


def follow(running: Running, text: str) -> None:
    """Open it again with this policy, and ask as a service does."""
    running.settings.tlog_policy.write_text(text)
    running.reopen()
    running.ledger.witnesses.start(running.ledger.sequencer.halt)


def state(running: Running, name: str = "w") -> tuple[str, int | None]:
    found = next(each for each in running.ledger.witnesses.states() if each.name == name)
    return found.state, found.size


def cosigners(running: Running) -> set[str]:
    return {each.name for each in Note.parse(running.ledger.reader.published.note).signatures[1:]}


def test_cosignatures_are_served_with_the_checkpoint_and_stay(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "w") as w:
        text = policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w")
        follow(running, text)
        for _ in range(3):
            running.add(writer.review())
            size = running.ledger.reader.published.size
            wait_for(lambda size=size: state(running) == ("cosigned", size))  # type: ignore[misc]
            assert cosigners(running) == {w.verifier.name}
    reader, policy = running.ledger.reader, Policy.parse(text)
    checkpoint, agreement = policy.verify(reader.published.note)
    assert (checkpoint.size, agreement.agree, agreement.quorum) == (reader.published.size, 1, True)
    assert [len(Note.parse(each.note).signatures) for each in reader.checkpoints(None, 10)] == [2, 2, 2, 2]
    assert [first.size for index in (0, 2, 3, 4, 6) if (first := reader.first_witnessed(index))] == [2, 4, 4, 6, 8]
    newest = reader.newest_witnessed()
    assert newest is not None
    assert newest == reader.published
    # The witness is gone. What it signed is not.
    running.reopen()
    assert running.ledger.reader.published.note == newest.note
    report = verify_answer(running.answer(), running.ledger.verifier, HOST, policy=policy)
    assert report.witnesses == (1, 1)
    assert running.fsck().findings == []


def test_a_busy_log_asks_about_the_newest_and_proves_from_what_the_witness_has(
    running: Running, writer: Writer, tmp_path: Path
) -> None:
    with witness(running, tmp_path / "w") as w:
        follow(running, policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w"))
        for _ in range(30):
            running.add(writer.review(), writer.review())
        wait_for(lambda: state(running)[1] == running.ledger.reader.published.size)
        placed = running.add(writer.review())[0]
        wait_for(lambda: running.ledger.reader.first_witnessed(placed.index) is not None)


def test_a_quorum_is_there_once_enough_have_signed(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "a", "a.example/w") as a, crooked(lambda _: Reply(404, "")) as crook:
        lines = (f"witness a {a.vkey} {a.url}", f"witness b {CROOK} {crook.url}", "group both all a b")
        follow(running, policy_of(running, *lines, quorum="both"))
        running.add(writer.review())
        size = running.ledger.reader.published.size
        wait_for(lambda: state(running, "a") == ("cosigned", size) and state(running, "b")[0] == "refused")
        assert running.ledger.reader.newest_witnessed() is None
        crook.says = lambda request: Reply(200, honest_line(request, running.clock().timestamp()))
        wait_for(lambda: running.ledger.reader.newest_witnessed() is not None)
        assert cosigners(running) == {"a.example/w", CROOK.name}
        assert state(running, "b") == ("cosigned", size)


def test_one_that_is_down_does_not_hold_up_the_others_and_comes_back(
    running: Running, writer: Writer, tmp_path: Path
) -> None:
    with witness(running, tmp_path / "a", "a.example/w") as a, witness(running, tmp_path / "b", "b.example/w") as b:
        port = b.server.server_address[1]
        lines = (f"witness a {a.vkey} {a.url}", f"witness b {b.vkey} {b.url}", "group either any a b")
        text = policy_of(running, *lines, quorum="either")
        follow(running, text)
        wait_for(lambda: cosigners(running) == {"a.example/w", "b.example/w"})
        b.server.shutdown()
        b.server.server_close()
        running.add(writer.review())
        size = running.ledger.reader.published.size
        wait_for(lambda: state(running, "a") == ("cosigned", size) and state(running, "b")[0] == "unreachable")
        assert state(running, "b") == ("unreachable", 2)
        newest = running.ledger.reader.newest_witnessed()
        assert newest is not None
        assert newest.size == size
    with witness(running, tmp_path / "b", "b.example/w", port):
        wait_for(lambda: state(running, "b") == ("cosigned", size))


@contextmanager
def lied_to(running: Running, crook: Crook) -> Iterator[None]:
    """A log that follows an honest start."""
    crook.says = lambda request: Reply(200, honest_line(request, running.clock().timestamp()))
    follow(running, policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
    wait_for(lambda: state(running) == ("cosigned", 2))
    yield


@pytest.mark.parametrize(
    ("says", "becomes"),
    [
        (lambda _: Reply(409, "999\n", SIZE_TYPE), "ahead"),
        (lambda _: Reply(422, "no\n"), "lying"),
        (lambda _: Reply(200, "— a b\n"), "lying"),
        (lambda request: Reply(200, honest_line(request, 0)), "lying"),
        (lambda _: Reply(403, ""), "refused"),
        (lambda _: Reply(200, "x" * 100_000), "unreachable"),
    ],
)
def test_a_running_log_survives_a_lying_witness(running: Running, writer: Writer, says: object, becomes: str) -> None:
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        honest, crook.says = crook.says, says  # type: ignore[assignment]
        running.add(writer.review())
        wait_for(lambda: state(running) == (becomes, 2))
        running.add(writer.review())
        assert running.ledger.sequencer.halted is None
        assert cosigners(running) == set()
        crook.says = honest
        wait_for(lambda: state(running) == ("cosigned", 6))
        assert cosigners(running) == {CROOK.name}


def test_a_slow_witness_holds_up_nothing_but_itself(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):

        def slow(request: AddCheckpoint) -> Reply:
            crook.over.wait(1)
            return Reply(200, honest_line(request, running.clock().timestamp()))

        crook.says = slow
        began = time.monotonic()
        for _ in range(5):
            running.add(writer.review())
        assert time.monotonic() - began < 1
        crook.over.set()
        wait_for(lambda: state(running) == ("cosigned", 12))


def test_a_policy_of_no_use_is_refused(running: Running, tmp_path: Path) -> None:
    log, path = running.ledger.verifier, tmp_path / "tlog-policy"
    assert read_policy(path, log) is None
    many = [
        f"witness w{n} {Verifier(f'w{n}.example', 4, key)} http://127.0.0.1:{n + 1}"
        for n, key in enumerate(_keys(MAX_WITNESSES + 1))
    ]
    for text, part in (
        ("quorum none\n", f"add the line: log {log}"),
        (f"log {log}\n", "exactly one quorum line"),
        (f"log {log}\nwitness w {CROOK}\nquorum w\n", "too few witnesses have an address"),
        (f"log {log}\nwitness w {CROOK} ftp://a\nquorum none\n", "no http"),
        ("\n".join([f"log {log}", *many, "quorum none"]), f"more than {MAX_WITNESSES}"),
    ):
        path.write_text(text)
        with pytest.raises(Misconfigured, match=r"the file|quorum in") as refused:
            read_policy(path, log)
        assert part in refused.value.message
        assert refused.value.code == "settings_invalid"
    path.write_text("\n".join([f"log {log}", *many[1:], "quorum w1"]))
    read = read_policy(path, log)
    assert read is not None
    assert (read.text, len(read.meaning.witnesses)) == (path.read_text(), MAX_WITNESSES)
    path.write_bytes(b"\xff")
    with pytest.raises(Misconfigured):
        read_policy(path, log)


def _keys(count: int) -> list[bytes]:
    return [bytes(SigningKey(bytes([n + 1]) * 32).verify_key) for n in range(count)]


class TestTheStart:
    """A database that is restored together with its mark knows nothing of what was signed later. Its witnesses do."""

    @pytest.fixture
    def older(self, running: Running, writer: Writer, tmp_path: Path, database_url: str, request: Any) -> Backups:
        """A copy of everything, the mark too."""
        server = None if running.ledger.store.is_sqlite else request.getfixturevalue("postgres")
        backups = Backups(database_url, tmp_path / "backups", server)
        running.add(writer.review())
        running.ledger.close()
        backups.save("older")
        shutil.copytree(running.settings.data, tmp_path / "older")
        running.open()
        return backups

    def restore(self, running: Running, tmp_path: Path, older: Backups, text: str) -> None:
        running.ledger.close()
        older.restore("older")
        shutil.rmtree(running.settings.data)
        shutil.copytree(tmp_path / "older", running.settings.data)
        running.settings.tlog_policy.write_text(text)

    def test_what_a_witness_shows_keeps_an_older_copy_from_signing(
        self, running: Running, writer: Writer, tmp_path: Path, older: Backups
    ) -> None:
        with witness(running, tmp_path / "w") as w:
            text = policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w")
            follow(running, text)
            running.add(writer.review())
            wait_for(lambda: state(running) == ("cosigned", 6))
            self.restore(running, tmp_path, older, text)
            with pytest.raises(Halted) as halted:
                running.open()
            assert halted.value.code == "log_behind"
            for part in (
                "the witness w ",
                "it shows the checkpoint of 6 that this log signed",
                "bring back the newest",
            ):
                assert part in halted.value.message
        # Nobody to warn it: it goes on, and forks. The witness has the proof, and the next start is refused.
        running.open()
        running.add(writer.review(), writer.review())
        running.ledger.close()
        with witness(running, tmp_path / "w", port=w.server.server_address[1]):
            with pytest.raises(Halted) as halted:
                running.open()
            assert halted.value.code == "log_forked"
            assert "it shows another tree of 6 that this log signed" in halted.value.message
            running.settings.tlog_policy.unlink()
        running.open()

    def test_a_fork_that_shows_itself_later_halts_the_log(
        self, running: Running, writer: Writer, tmp_path: Path, older: Backups
    ) -> None:
        with witness(running, tmp_path / "w") as w:
            text = policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w")
            follow(running, text)
            running.add(writer.review())
            wait_for(lambda: state(running) == ("cosigned", 6))
        self.restore(running, tmp_path, older, text)
        running.open()
        ledger = running.ledger
        ledger.witnesses.start(ledger.sequencer.halt)
        running.add(writer.review(), writer.review())
        assert ledger.sequencer.halted is None
        with witness(running, tmp_path / "w", port=w.server.server_address[1]):
            wait_for(lambda: ledger.sequencer.halted is not None)
            assert state(running)[0] == "contradicts"
            with pytest.raises(Halted) as halted:
                running.add(writer.review())
            assert halted.value.code == "log_forked"
            running.settings.tlog_policy.unlink()

    @pytest.mark.parametrize(
        ("reply", "code"), [(Reply(409, "999\n", SIZE_TYPE), "log_behind"), (Reply(422, ""), "log_forked")]
    )
    def test_at_the_start_its_word_is_enough(self, running: Running, reply: Reply, code: str) -> None:
        """A fork is for ever, and a witness that lies is one line in a file."""
        with crooked(lambda _: reply) as crook:
            running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="none"))
            running.ledger.close()
            with pytest.raises(Halted) as halted:
                running.open()
            assert halted.value.code == code
            assert "take it out of the file tlog-policy" in halted.value.message
            running.settings.tlog_policy.unlink()
        running.open()

    def test_its_word_is_enough_though_it_takes_long_to_show_it(
        self, running: Running, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(witnesses, "SECONDS", 0.5)
        with crooked(lambda _: Reply(409, "999\n", SIZE_TYPE)) as crook:
            crook.hangs = True
            running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
            running.ledger.close()
            with pytest.raises(Halted, match="has cosigned 999"):
                running.open()
            running.settings.tlog_policy.unlink()
        running.open()

    def test_what_another_process_has_just_published_is_no_contradiction(
        self, running: Running, writer: Writer
    ) -> None:
        """The witness, which shows nothing, has seen more than this process had when it asked."""
        other = running.ledger

        def says(request: AddCheckpoint) -> Reply:
            if "\n2\n" in request.note:
                other.sequencer.append([writer.review()])
                return Reply(409, "4\n", SIZE_TYPE)
            return Reply(200, honest_line(request, running.clock().timestamp()))

        with crooked(says) as crook:
            running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
            opened = running.open()
            assert state(running) == ("cosigned", 4)
            other.close()
            assert opened.sequencer.halted is None

    def test_whoever_does_not_answer_is_not_waited_for(self, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(witnesses, "SECONDS", 0.2)
        with crooked(lambda _: Reply(500, "")) as crook:
            crook.says = lambda _: Reply(500, str(crook.over.wait(5)))
            running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
            began = time.monotonic()
            running.reopen()
            assert time.monotonic() - began < 3


def test_it_ends_at_once_though_a_witness_is_slow(running: Running, writer: Writer) -> None:
    """While it is being asked, and not only while its thread waits for news."""
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        honest = crook.says

        def slow(request: AddCheckpoint) -> Reply:
            time.sleep(0.5)
            return honest(request)

        crook.says = slow
        running.add(writer.review())
        wait_for(lambda: len(crook.asked) > 1)
        began = time.monotonic()
        running.reopen()
        assert time.monotonic() - began < 4


def test_asking_goes_on_after_the_database_was_away(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when that happens while it is judged what a witness shows."""
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        reader = running.ledger.reader
        refresh, away = reader.refresh, [True]

        def fails() -> Published:
            if away:
                raise Unavailable("storage_unavailable", "away")
            return refresh()

        honest, crook.says = crook.says, lambda _: Reply(422, "no\n")
        monkeypatch.setattr(reader, "refresh", fails)
        running.add(writer.review())
        asked = len(crook.asked)
        wait_for(lambda: len(crook.asked) > asked + 2)
        away.clear()
        wait_for(lambda: state(running) == ("lying", 2))
        crook.says = honest
        wait_for(lambda: state(running) == ("cosigned", 4))


def test_what_is_enough_for_one_policy_is_not_enough_for_another(
    running: Running, writer: Writer, tmp_path: Path
) -> None:
    with witness(running, tmp_path / "a", "a.example/w") as a, crooked(lambda _: Reply(404, "")) as crook:
        lines = (f"witness a {a.vkey} {a.url}", f"witness b {CROOK} {crook.url}", "group both all a b")
        for quorum, witnessed in (("none", None), ("a", 2), ("both", None), ("a", 2)):
            follow(running, policy_of(running, *lines, quorum=quorum))
            wait_for(lambda: state(running, "a") == ("cosigned", 2))
            newest = running.ledger.reader.newest_witnessed()
            assert (None if newest is None else newest.size) == witnessed
            first = running.ledger.reader.first_witnessed(0)
            assert (None if first is None else first.size) == witnessed
        # An address or a comment is no other policy.
        follow(running, "# the same\n" + policy_of(running, *lines, quorum="a"))
        assert running.ledger.reader.newest_witnessed() is not None


class TestPromptness:
    def settle(self, running: Running, size: int) -> float:
        began = time.monotonic()
        asyncio.run(running.ledger.witnesses.settled(size))
        return time.monotonic() - began

    def wait_for_quorum(self, running: Running, index: int) -> None:
        wait_for(lambda: running.ledger.reader.first_witnessed(index) is not None)

    def test_without_witnesses_nobody_waits(self, running: Running) -> None:
        assert self.settle(running, 10**6) < 0.1

    def test_a_receipt_waits_a_moment_once(
        self, running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(witnesses, "GRACE_SECONDS", 0.3)
        with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
            honest = crook.says
            placed = running.add(writer.review())[0]
            self.settle(running, placed.index + 1)
            assert running.ledger.reader.first_witnessed(placed.index) is not None
            crook.says = lambda _: Reply(404, "")
            placed = running.add(writer.review())[0]
            assert 0.3 <= self.settle(running, placed.index + 1) < 2
            # It is known by now that nobody comes.
            assert self.settle(running, placed.index + 1) < 0.1
            crook.says = honest
            self.wait_for_quorum(running, placed.index)
            # That came late. The next one does not, and from then on it is worth waiting again.
            placed = running.add(writer.review())[0]
            assert self.settle(running, placed.index + 1) < 0.1
            self.wait_for_quorum(running, placed.index)
            placed = running.add(writer.review())[0]
            self.settle(running, placed.index + 1)
            assert running.ledger.reader.first_witnessed(placed.index) is not None

    def test_who_is_always_late_is_waited_for_once(
        self, running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(witnesses, "GRACE_SECONDS", 0.3)
        with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
            honest = crook.says

            def late(request: AddCheckpoint) -> Reply:
                time.sleep(0.5)
                return honest(request)

            crook.says = late
            waited = []
            for _ in range(3):
                placed = running.add(writer.review())[0]
                waited.append(self.settle(running, placed.index + 1))
                self.wait_for_quorum(running, placed.index)
            assert [seconds >= 0.3 for seconds in waited] == [True, False, False]


def test_two_processes_ask_and_keep_one_line_each(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "w") as w:
        follow(running, policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w"))
        first = running.ledger
        second = running.open()
        second.witnesses.start(second.sequencer.halt)
        for ledger in (first, second, first, second):
            ledger.reader.follow()
            ledger.sequencer.append([writer.review()])
        size = max(first.reader.refresh().size, second.reader.refresh().size)
        for ledger in (first, second):
            wait_for(
                lambda ledger=ledger: (
                    ledger.reader.published.size == size  # type: ignore[misc]
                    and len(Note.parse(ledger.reader.published.note).signatures) == 2
                )
            )
        assert first.sequencer.halted is second.sequencer.halted is None
        with first.store.read() as connection:
            [(rows, distinct)] = run(connection, "SELECT count(*), count(DISTINCT size) FROM cosignature")
        assert rows == distinct > 0
        first.close()


def test_a_damaged_cosignature_is_found(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "w") as w:
        follow(running, policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w"))
        wait_for(lambda: state(running) == ("cosigned", 2))
    assert running.fsck().findings == []
    with running.ledger.store.write() as connection:
        run(connection, "UPDATE cosignature SET line = ?", ("— w AAAA\n",))
    assert len(running.fsck().findings) == 1
    with running.ledger.store.write() as connection:
        run(connection, "UPDATE cosignature SET size = ?", (3,))
        run(connection, "UPDATE witnessed SET size = ?", (3,))
    assert len(running.fsck().findings) == 2
