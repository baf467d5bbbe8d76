"""What is not shown in a copy: what does not hash to what the log signed, and what the log says of itself by now."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from nacl.signing import SigningKey

from audits import mirror
from audits.result import Result
from audits.source import FolderSource, WebSource
from audits.state import opened
from ledger.errors import NotProved
from ledger.log.note import ED25519, Verifier
from tests.audits.honest import Honest, Served, audited, web_server
from tests.audits.interrupted import Rewriting, key
from tests.audits.live import HOSTS
from tests.audits.test_mirror import command, copy, files, whole_copy
from tests.world import LOG

OTHER = Verifier(LOG.name, ED25519, bytes(SigningKey(bytes(32)).verify_key))
# What a service says of itself, and the logs of these tests do not.
DOCUMENTS = len(mirror.DOCUMENTS)


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_copy(tmp_path_factory.mktemp("whole"))


def audit(folder: Path) -> Result:
    with opened(None, LOG) as state:
        return audited(FolderSource(folder), state).run()


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "changed": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "short": lambda data: data[:-32],
    "long": lambda data: data + bytes(32),
    "empty": lambda _: b"",
    "html": lambda _: b"<!doctype html><title>Not found</title>",
}


@pytest.mark.parametrize("place", ["log/tile/entries/000", "log/tile/entries/001", "log/tile/0/001", "log/tile/1/"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_lie_is_not_shown_in_the_copy(log_folder: Path, tmp_path: Path, place: str, change: str) -> None:
    """What does not hash to the signed root is not kept."""
    path = next(name for name in sorted(files(log_folder)) if name.startswith(place))
    lied = Rewriting(FolderSource(log_folder), path, CHANGES[change])
    with pytest.raises(NotProved, match="does not lead to the signed root"):
        copy(lied, tmp_path / "copy")
    assert not (tmp_path / "copy/log/checkpoint").exists()
    copy(FolderSource(log_folder), tmp_path / "copy")
    assert files(tmp_path / "copy") == files(log_folder)


class Growing:
    """A log over HTTP that is told when to grow, and what to change of what it serves."""

    def __init__(self) -> None:
        self.world = Honest(6)
        self.world.take("issuer", "issuer", "issuer")
        self.world.grow(10, 12)
        self.changes: dict[str, Callable[[bytes], bytes]] = {}

    def respond(self, path: str, query: dict[str, str]) -> bytes:
        data, change = Served(self.world.log).get(path, query), self.changes.get(path)
        return data if change is None else change(data)


@pytest.fixture
def growing() -> Iterator[tuple[Growing, str]]:
    made = Growing()
    with web_server(made.respond) as url:
        yield made, url


def test_an_older_copy_stays_as_it_was(growing: tuple[Growing, str], tmp_path: Path) -> None:
    log, url = growing
    told = ("mirror", url, str(tmp_path), *key())
    assert command(*told).exit_code == 0
    before, clean = files(tmp_path), audit(tmp_path)
    assert clean["verdict"] == "clean"
    log.world.grow(10, 12)
    size = log.world.log.published[-1].size
    log.changes[f"log/tile/entries/000.p/{size}"] = CHANGES["changed"]
    refused = command(*told)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "root_mismatch" in refused.stderr
    assert files(tmp_path) == before
    assert audit(tmp_path) == clean
    log.changes.clear()
    assert command(*told).exit_code == 0
    assert audit(tmp_path)["size"] == size


def test_a_log_that_has_become_smaller_is_not_copied(growing: tuple[Growing, str], tmp_path: Path) -> None:
    log, url = growing
    assert command("mirror", url, tmp_path, *key()).exit_code == 0
    before, published = files(tmp_path), log.world.log.published
    log.changes["log/checkpoint"] = lambda _: published[-3].note.encode()
    refused = command("mirror", url, tmp_path, *key())
    assert refused.exit_code == 1
    assert "rolled_back" in refused.stderr
    assert f"the log has {published[-3].size} entries, the copy {published[-1].size}" in refused.stderr
    assert files(tmp_path) == before


def test_the_key_of_the_copy_is_the_one_that_counts(growing: tuple[Growing, str], tmp_path: Path) -> None:
    log, url = growing
    first = command("mirror", url, tmp_path)
    assert first.exit_code == 0, first.output
    assert f"by the key {LOG}, which nobody has vouched for" in first.output
    # The log names another key by now, and signs by the old one.
    log.changes["v1/log/key"] = lambda data: data.replace(str(LOG).encode(), str(OTHER).encode())
    log.world.grow(2)
    for _ in range(2):
        again = command("mirror", url, tmp_path)
        assert again.exit_code == 0, again.output
        assert "it does not name the key by which the log signs" in again.output
        assert json.loads((tmp_path / "v1/log/key").read_bytes())["vkey"] == str(LOG)
    for refused in (command("mirror", url, tmp_path, "--key", str(OTHER)), command("mirror", url, tmp_path / "new")):
        assert refused.exit_code == 1
        assert "signer_unknown" in refused.stderr
    assert not (tmp_path / "new").exists()
    assert command("mirror", url, tmp_path, "--key", "nonsense").exit_code == 1


def openings(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({"start": 0, "openings": change(json.loads(data)["openings"])}).encode()


@pytest.mark.parametrize(
    "change",
    [
        openings(lambda found: [{**each, "text": "Something else."} for each in found]),
        openings(lambda found: [{**each, "salt": found[0]["salt"]} for each in found[1:]]),
        openings(lambda found: [{**each, "index": each["index"] + 1} for each in found]),
        openings(lambda _: []),
        openings(lambda _: ["text"]),
        openings(lambda _: 7),
        openings(lambda found: [{**found[0], "index": [1]}]),
        openings(lambda found: [{**found[0], "text": "\ud800"}]),
        openings(lambda found: [{**found[0], "text": 7}]),
        lambda _: b"[]",
        lambda _: b"{",
        lambda _: b"\xff",
    ],
)
def test_texts_that_were_not_committed_to_are_not_shown(
    growing: tuple[Growing, str], tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    """And that they are missing is said."""
    log, url = growing
    log.changes["v1/log/openings/0"] = change
    made = copy(WebSource(url), tmp_path)
    assert len(made.missed) == 1 + DOCUMENTS
    assert "texts" in made.missed[0]
    whole = b"".join(data for path, data in files(tmp_path).items() if "openings" in path)
    assert b"Something else." not in whole
    assert audit(tmp_path)["findings"] == []


@pytest.mark.parametrize("proof", ["full", "none"])
def test_answers_that_do_not_say_what_the_log_says_are_not_shown(tmp_path: Path, proof: str) -> None:
    log = Growing()

    def respond(path: str, query: dict[str, str]) -> bytes:
        data = log.respond(path, query)
        lies = path.startswith("v1/hosts/did:web:host1") and query.get("proof", "none") == proof
        return data.replace(b'"total_reviews": ', b'"total_reviews": 1') if lies else data

    with web_server(respond) as url:
        made = copy(WebSource(url), tmp_path)
        assert "total_reviews" in made.missed[0]
        assert len(made.missed) == 1 + DOCUMENTS
    assert not (tmp_path / "v1/hosts/did:web:host1.example").exists()
    result = audit(tmp_path)
    assert (result["verdict"], len(result["unchecked"])) == ("incomplete", 1)


def test_what_was_damaged_in_the_copy_is_not_told_as_a_lie_of_the_log(log_folder: Path, tmp_path: Path) -> None:
    """Texts are fetched again. For the rest one begins anew."""
    folder = Path(copytree(log_folder, tmp_path / "copy"))
    (folder / "v1/log/openings/0").write_text('{"openings": [')
    (folder / "v1/log/checkpoints").write_text('{"checkpoints": [{"size": 5, "checkpoint": 7}], "next": null}')
    copy(FolderSource(log_folder), folder)
    assert files(folder) == files(log_folder)
    (folder / "log/tile/0/000").write_bytes(b"damaged")
    with pytest.raises(NotProved, match="begin with an empty folder"):
        copy(FolderSource(log_folder), folder)


def test_a_host_whose_name_is_too_long_for_a_file_is_missed(tmp_path: Path) -> None:
    host = f"did:web:{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 4}"
    assert len(host) == 256
    world = Honest(2, (*HOSTS, host))
    world.take("issuer", "issuer", "issuer")
    world.grow(30)
    with web_server(Served(world.log).get) as url:
        assert "File name too long" in copy(WebSource(url), tmp_path).missed[0]
    result = audit(tmp_path)
    assert (result["findings"], len(result["unchecked"])) == ([], 1)
