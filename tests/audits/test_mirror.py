"""A copy of a log says what the log says, and goes on saying it when the log is gone."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Ran

from audits.mirror import Mirror
from audits.source import FolderSource, Source, WebSource
from ledger.cli import main
from ledger.errors import NotProved, Unavailable
from ledger.log.members import LEVELS
from ledger.log.note import Verifier
from ledger.log.sequencer import Integrated
from tests.audits.honest import Served, web_server
from tests.audits.interrupted import Breaking, Rewriting, deadly_service, key, lying, staylog
from tests.audits.live import HOSTS, Live, live, shown
from tests.world import LOG

BUSY = "did:web:busy.example"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def copy(source: Source, folder: Path, log: Verifier = LOG, hosts: int = 20) -> Mirror:
    made = Mirror(source, folder, log, lambda _what, _done, _total: None, hosts=hosts, pause=0)
    made.update()
    return made


def command(*arguments: str | Path) -> Ran:
    return CliRunner().invoke(main, list(map(str, arguments)))


def audit(where: str | Path, log: Verifier, *more: str) -> tuple[int, dict[str, Any]]:
    ran = command("audit", where, "--key", str(log), "--json", *more)
    return ran.exit_code, json.loads(ran.stdout)


def whole_copy(folder: Path) -> Path:
    """A copy of a log of some bundles, made at once."""
    with web_server(Served(lying("none", batches=60)).get) as url:
        copy(WebSource(url), folder)
    return folder


@contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    """What `python -m http.server --directory` does."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def fill(service: Live) -> list[Integrated]:
    """Hosts with ports in their names, one with more than 1,000 events, texts of all levels, some redacted."""
    drafts = [
        service.writer.review(host, level=level, text=f"text {number} of {level} about {host}")
        for number in range(3)
        for host in (*HOSTS, BUSY)
        for level in LEVELS
    ]
    reviews = service.add(*drafts)
    service.add(*(service.writer.response(review, f"response to {review.index}") for review in reviews[::2]))
    service.add(*(service.writer.upgrade(review) for review in reviews[2::6]))
    for _ in range(5):
        service.add(*(service.writer.check(BUSY) for _ in range(200)))
    for review in reviews[:4]:
        service.redact(review)
    service.redact(reviews[0], "response")
    return reviews


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Live]:
    with live(tmp_path, database_url) as made:
        yield made


def test_the_audit_of_a_copy_is_the_audit_of_the_service(service: Live, tmp_path: Path) -> None:
    """From the folder, and from any web server; and when the log is gone. But for questions that are drawn, to which a
    copy has no answers."""
    fill(service)
    expected = audit(service.url, service.log)
    assert expected[0] == 0, expected
    sampled, checked = expected[1].pop("sampled"), expected[1]["checked"]
    assert {"list", "aggregate", "page", "full", "review", "days", "activity"} == set(sampled)
    expected[1]["checked"] = checked[: -len(sampled)]
    assert expected[1]["figures"]["answers"] == len(HOSTS) + 1
    made = command("mirror", service.url, tmp_path / "copy", "--key", str(service.log))
    assert made.exit_code == 0, made.output
    assert "not copied" not in made.output
    with plain_server(tmp_path / "copy") as url:
        for where in (tmp_path / "copy", url):
            status, result = audit(where, service.log)
            assert (result.pop("source"), result.pop("sampled")) == (str(where), {})
            assert (status, result) == (0, {name: value for name, value in expected[1].items() if name != "source"})


def test_it_follows_the_log_and_forgets_what_the_log_forgets(service: Live, tmp_path: Path) -> None:
    folder, reviews = tmp_path / "copy", fill(service)
    texts = dict(service.texts)
    copy(service.source(), folder, service.log)
    whole = b"".join(files(folder).values())
    gone = {review.index for review in reviews[:4]}
    gone |= {index for index, each in texts.items() if each.text == f"response to {reviews[0].index}"}
    for index, opening in texts.items():
        assert [part in whole for part in shown(opening)] == [index not in gone] * 2

    for review in reviews[4:8]:
        service.redact(review)
        gone.add(review.index)
    service.add(*(service.writer.review(HOSTS[0], text=f"new {number}") for number in range(200)))
    copy(service.source(), folder, service.log)
    whole = b"".join(files(folder).values())
    for index, opening in (texts | service.texts).items():
        assert [part in whole for part in shown(opening)] == [index not in gone] * 2
    status, result = audit(folder, service.log)
    assert (status, result["size"]) == (0, service.size)
    # But for what older checkpoints needed, it is as if it had been made now.
    copy(service.source(), tmp_path / "fresh", service.log)
    fresh = files(tmp_path / "fresh")
    assert {path: data for path, data in files(folder).items() if path in fresh or ".p/" not in path} == fresh


def test_answers_that_are_not_drawn_any_more_are_forgotten(service: Live, tmp_path: Path) -> None:
    """They are of an older checkpoint, and may have texts in them that are redacted by now."""
    folder, redacted = tmp_path / "copy", []
    for number in range(12):
        review = service.review(HOSTS[number % len(HOSTS)], f"secret {number}")
        copy(service.source(), folder, service.log, hosts=1)
        service.redact(review)
        redacted.append(service.texts[review.index])
    copy(service.source(), folder, service.log, hosts=1)
    assert len(list((folder / "v1/hosts").iterdir())) == 1
    whole = b"".join(files(folder).values())
    assert not any(part in whole for opening in redacted for part in shown(opening))


def test_it_outlives_the_service(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        fill(service)
        log = service.log
        assert command("mirror", service.url, tmp_path / "copy", "--key", str(log)).exit_code == 0
    # Nobody answers any more.
    assert audit(tmp_path / "copy", log)[0] == 0
    for host in HOSTS:
        answer = tmp_path / "copy/v1/hosts" / host / "reputation"
        checked = command("verify", answer, "--key", str(log), "--host", host, "--text", "all", "--json")
        assert checked.exit_code == 0, checked.output
        assert any("nothing is left out" in line for line in json.loads(checked.stdout)["proved"])
    pages = json.loads((tmp_path / "copy/v1/hosts" / BUSY / "reputation").read_bytes())["pages"]
    paths = [tmp_path / f"page{number}.json" for number in range(len(pages))]
    for path, page in zip(paths, pages, strict=True):
        path.write_text(json.dumps(page))
    checked = command("verify", *paths, "--key", str(log), "--host", BUSY, "--text", "all")
    assert checked.exit_code == 0, checked.output


# Broken off


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_copy(tmp_path_factory.mktemp("whole"))


def test_broken_off_anywhere_it_goes_on_to_the_same_copy(log_folder: Path, tmp_path: Path) -> None:
    source, random = FolderSource(log_folder), Random(4)
    calls = Breaking(source, 0, KeyboardInterrupt())
    copy(calls, tmp_path / "counted")
    expected = files(tmp_path / "counted")
    for number in range(5):
        folder = tmp_path / str(number)
        for _ in range(3):
            error: BaseException = random.choice([KeyboardInterrupt(), Unavailable("ledger_unreachable", "gone")])
            with suppress(KeyboardInterrupt, Unavailable):
                copy(Breaking(source, random.randrange(1, calls.calls), error), folder)
        copy(source, folder)
        assert files(folder) == expected


def test_killed_again_and_again_it_comes_to_the_same_copy(tmp_path: Path) -> None:
    random, kills, folder = Random(5), 0, tmp_path / "killed"
    with deadly_service(lying("none", batches=60)) as (url, killer):
        assert staylog("mirror", url, tmp_path / "fresh", *key()).communicate(timeout=60)[1] == b""
        requests, expected = killer.asked, files(tmp_path / "fresh")
        while kills < 3:
            process = staylog("mirror", url, folder, *key())
            killer.aim(process, random.randrange(1, requests), random.random() * 0.02)
            process.communicate(timeout=60)
            if process.returncode == -signal.SIGKILL:
                kills += 1
                # What there is of it shows a whole log, or none yet.
                if (folder / "log/checkpoint").exists():
                    assert audit(folder, LOG)[1]["findings"] == []
            else:
                # One that goes on asks less, and may come to its end.
                assert files(folder) == expected
                folder = tmp_path / f"killed after {kills}"
        last = staylog("mirror", url, folder, *key())
        assert (last.communicate(timeout=60)[1], last.returncode) == (b"", 0)
    assert files(folder) == expected


def test_what_was_broken_off_with_a_lie_in_it_is_mended(log_folder: Path, tmp_path: Path) -> None:
    """The lie was not looked at before; the copy says so once, and does not keep it."""
    lied = Rewriting(FolderSource(log_folder), "log/tile/entries/000", lambda data: data.replace(b"0Z", b"1Z"))
    with pytest.raises(KeyboardInterrupt):
        copy(Breaking(lied, 4, KeyboardInterrupt()), tmp_path)
    with pytest.raises(NotProved):
        copy(FolderSource(log_folder), tmp_path)
    copy(FolderSource(log_folder), tmp_path)
    assert audit(tmp_path, LOG)[0] == 0
