"""What a monitor tells: lines that parse, a webhook that may be dead, strangers that hang, and no secrets in any of it."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import pytest

from audits.monitor import alerts
from audits.monitor.alerts import KINDS, Teller, as_line
from audits.monitor.errands import Errands
from audits.monitor.memory import FILE, Memory
from audits.monitor.webhook import TRIES, Refusal, Webhook
from ledger.errors import Misconfigured, StaylogError, Unavailable
from tests.audits.forger import Forger, serving
from tests.audits.monitoring import Receiver, Switched, Watcher, closed_port, receiving, web
from tests.running import HOST, SetClock, Writer

DOWN = Unavailable("ledger_unreachable", "nobody answers")
TOKEN = "a-secret-token"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@contextmanager
def silent() -> Iterator[str]:
    """Somebody who takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    kept.append(listener.accept()[0])
                except OSError:
                    return

        thread = Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in kept:
            each.close()


def hook(url: str, **options: Any) -> Webhook:
    return Webhook(url, TOKEN, **{"sleep": lambda _: None, **options})


def made_teller(folder: Path, lines: list[str], **options: Any) -> Teller:
    return Teller(
        "ledger.example/log", "https://ledger.example", Memory(folder / FILE), lines.append, SetClock(), **options
    )


class TestLines:
    @pytest.mark.parametrize("code", KINDS)
    def test_each_has_time_level_code_message_log_and_size(self, code: str, tmp_path: Path) -> None:
        lines: list[str] = []
        teller = made_teller(tmp_path, lines, as_json=True)
        teller.size = 7
        teller.tell(code, "Something.", more=1)
        assert json.loads(lines[0]) == {
            "time": "2026-06-01T12:00:00Z",
            "level": KINDS[code][0],
            "code": code,
            "message": "Something.",
            "log": "ledger.example/log",
            "source": "https://ledger.example",
            "size": 7,
            "more": 1,
        }
        plain = made_teller(tmp_path, lines)
        plain.tell(code, "Something.")
        assert lines[1].split() == ["2026-06-01T12:00:00Z", KINDS[code][0], f"{code}:", "Something."]

    def test_what_a_stranger_says_stays_on_its_line(self, tmp_path: Path) -> None:
        hostile = "\x1b[2J\u202e\x07\r\n\u2028\x00\ud800"
        for as_json in (False, True):
            lines: list[str] = []
            made_teller(tmp_path, lines, as_json=as_json).tell("gossip", hostile)
            assert lines[0].isprintable()
        assert json.loads(lines[0])["message"] == hostile
        assert as_line({"time": "t", "level": "info", "code": "event", "message": "a\nb"}) == r"t info     event: a\nb"


class TestWebhook:
    def test_every_alert_is_posted_with_the_token(
        self, receiver: Receiver, forger: Forger, tmp_path: Path, writer: Writer
    ) -> None:
        with serving(forger) as url:
            given: dict[str, Any] = {"webhook": hook(receiver.url), "hosts": [HOST]}
            with Watcher(web(url), tmp_path, forger.clock, **given) as watcher:
                watcher.look()
                forger.add(writer.review())
                forger.head()
                forger.clock.forward(hours=26)
                watcher.look()
                forger.head()
                watcher.look()
                assert [each["code"] for each in receiver.got] == ["stalled", "event", "recovered"]
                assert receiver.got == [json.loads(line) for line in watcher.lines]
                assert set(receiver.tokens) == {f"Bearer {TOKEN}"}

    def test_one_that_is_down_stops_nothing_and_gets_it_all_later(
        self, receiver: Receiver, forger: Forger, tmp_path: Path, writer: Writer
    ) -> None:
        slept: list[float] = []
        receiver.status = 503
        with serving(forger) as url:
            given: dict[str, Any] = {"webhook": hook(receiver.url, sleep=slept.append), "hosts": [HOST]}
            with Watcher(web(url), tmp_path, forger.clock, **given) as watcher:
                assert watcher.codes() == (0, [])
                for number in range(3):
                    forger.add(writer.review())
                    forger.head()
                    assert watcher.codes() == (4, ["event", *(["webhook"] if not number else [])])
                    watcher.restart()
                assert slept == [1.0, 2.0] * 3
                assert len(receiver.tokens) == 3 * TRIES
                receiver.status = 204
                assert watcher.codes() == (0, ["recovered webhook"])
                assert [each["event"]["index"] for each in receiver.got] == [7, 9, 11]
                assert watcher.codes() == (0, [])
                assert len(receiver.got) == 3
            said = "".join(watcher.lines)
            assert receiver.url.partition("/hooks")[0] in said
            for secret in (TOKEN, "a-secret-path"):
                assert secret not in said
                assert secret not in (tmp_path / FILE).read_text()

    @pytest.mark.parametrize("status", [301, 401, 404, 429, 500])
    def test_what_is_not_taken_waits(self, status: int, receiver: Receiver, tmp_path: Path) -> None:
        lines: list[str] = []
        receiver.status = status
        teller = made_teller(tmp_path, lines, webhook=hook(receiver.url))
        teller.tell("stalled", "It stands still.")
        assert f"it answers {status}; 1 alerts wait" in str(teller.deliver())
        receiver.status = 200
        assert teller.deliver() is None
        assert len(receiver.got) == 1

    def test_what_is_refused_is_let_go_and_said(self, receiver: Receiver, tmp_path: Path) -> None:
        lines: list[str] = []
        receiver.status = 422
        teller = made_teller(tmp_path, lines, webhook=hook(receiver.url))
        teller.tell("stalled", "It stands still.")
        assert teller.deliver() is None
        assert "webhook: the alert stalled of 2026-06-01T12:00:00Z is lost" in lines[1]
        assert Memory.open(tmp_path).waiting == []

    def test_nobody_waits_for_one_that_hangs(self, tmp_path: Path) -> None:
        with silent() as url:
            began, sender = monotonic(), hook(url, seconds=0.05)
            with pytest.raises(Unavailable, match=r"takes no alerts: (no answer|timed out)"):
                sender.post(b"{}")
            assert monotonic() - began < 5
        with pytest.raises(Unavailable, match="takes no alerts"):
            hook(closed_port()).post(b"{}")

    def test_not_everything_waits_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(alerts, "MOST_WAITING", 3)
        lines: list[str] = []
        teller = made_teller(tmp_path, lines, webhook=hook(closed_port()))
        for number in range(5):
            teller.tell("event", str(number))
        assert "3 alerts wait" in str(teller.deliver())
        assert [line for line in lines if "webhook: 2 alerts are lost" in line] == lines[5:]
        teller.deliver()
        assert len(lines) == 6

    def test_what_is_grave_stays_and_goes_first(
        self, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(alerts, "MOST_WAITING", 4)
        teller = made_teller(tmp_path, [], webhook=hook(receiver.url))
        for code in ("event", "stalled", "inconsistency", "event", "event", "recovered"):
            teller.tell(code, code)
        assert teller.deliver() is None
        assert [each["code"] for each in receiver.got] == ["inconsistency", "stalled", "recovered", "event"]
        lines: list[str] = []
        teller = made_teller(tmp_path, lines, webhook=hook(receiver.url))
        for number in range(6):
            teller.tell("stalled", str(number))
            teller.tell("inconsistency", str(number))
        teller.deliver()
        assert [each["message"] for each in receiver.got[4:]] == [*"012345"]
        assert "6 alerts are lost" in lines[-1]

    @pytest.mark.parametrize(
        ("url", "token"),
        [
            ("ftp://hooks.example/x", None),
            ("hooks.example/x", None),
            ("https://", None),
            ("https://user:word@hooks.example/x", None),
            ("https://hooks.example:0/x", None),
            ("https://hooks.example:99999/x", None),
            ("https://hooks.example/a b\r\n", None),
            ("https://hooks.example/x", ""),
            ("https://hooks.example/x", "a\r\nHost: b"),
        ],
    )
    def test_what_is_no_address_or_token_is_refused_without_showing_it(self, url: str, token: str | None) -> None:
        with pytest.raises(Misconfigured) as refused:
            Webhook(url, token)
        assert "word" not in refused.value.message.replace("password", "")

    def test_a_refusal_names_no_path(self, receiver: Receiver) -> None:
        receiver.status = 400
        with pytest.raises(Refusal) as refused:
            hook(receiver.url).post(b"{}")
        assert "secret" not in str(refused.value)


class TestStrangers:
    def test_one_that_hangs_is_not_waited_for_nor_asked_again(self) -> None:
        free, asked = Event(), list[str]()

        def hang() -> str:
            asked.append("hang")
            free.wait(30)
            return "late"

        errands: Errands[str] = Errands(0.5)
        calls: dict[str, Callable[[], str]] = {"hangs": hang, "answers": lambda: "at once"}
        for _ in range(2):
            came = errands.run(calls)
            assert (came["answers"], isinstance(came["hangs"], StaylogError)) == ("at once", True)
        assert asked == ["hang"]
        free.set()
        errands._out["hangs"].join()
        assert errands.run({"hangs": lambda: "again"}) == {"hangs": "again"}

    @pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), RecursionError(), OSError("x"), DOWN])
    def test_whatever_they_send_is_no_error_of_ours(self, error: Exception) -> None:
        def ask() -> str:
            raise error

        errands: Errands[str] = Errands(5)
        assert isinstance(errands.run({"one": ask})["one"], StaylogError)

    def test_a_round_goes_on_without_them(
        self, forger: Forger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One hangs, one is gone, one is honest."""
        monkeypatch.setattr("audits.source.TRIES", 1)
        with serving(forger) as url, silent() as hangs:
            gossip, began = [hangs, closed_port(), url], monotonic()
            given: dict[str, Any] = {"gossip": gossip, "seconds": 2, "patience": timedelta(minutes=5)}
            with Watcher(Switched(web(url)), tmp_path, forger.clock, **given) as watcher:
                assert watcher.codes() == (0, [])
                forger.clock.forward(minutes=5)
                status, told = watcher.look()
                assert (status, [each["code"] for each in told]) == (2, ["gossip", "gossip"])
                assert {word for each in told for word in gossip if word in each["message"]} == {*gossip[:2]}
                assert watcher.codes() == (2, [])
            assert monotonic() - began < 10


class TestMemory:
    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"unknown": 1}', b"\xff"])
    def test_what_is_damaged_is_said(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(Misconfigured, match="cannot be read"):
            Memory.open(tmp_path)

    def test_what_was_kept_comes_back(self, tmp_path: Path) -> None:
        memory = Memory.open(tmp_path)
        memory.told, memory.ahead, memory.waiting = 7, [["note", "where"]], [{"code": "event"}]
        memory.save()
        assert Memory.open(tmp_path) == memory
