"""Logs that are read from folders with traps in them, in parts that must fit, and ahead of what is worked on."""

import os
import threading
import time
from functools import partial
from pathlib import Path
from random import Random

import pytest

from audits import source as source_module
from audits.reading import Reading
from audits.source import AHEAD, CONNECTIONS, FolderSource, ahead
from ledger.errors import BadEntry, Malformed, NotFetched, NotFound, Unavailable
from ledger.log.tiles import encode_bundle
from tests.audits.test_source import refusal


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A copy beside which there is a secret."""
        (tmp_path / "secret").write_text("secret")
        folder = tmp_path / "copy"
        (folder / "v1/hosts/did:web:a.example%3A1").mkdir(parents=True)
        (folder / "v1/hosts/did:web:a.example%3A1/reputation").write_text("{}")
        (folder / "inside").symlink_to(folder / "v1/hosts/did:web:a.example%3A1/reputation")
        (folder / "outside").symlink_to(tmp_path / "secret")
        (folder / "up").symlink_to("..")
        (folder / "loop").symlink_to("loop")
        return folder

    def test_files_are_found_by_their_paths(self, folder: Path) -> None:
        source = FolderSource(folder)
        assert source.get("v1/hosts/did:web:a.example%253A1/reputation?text=all&size=9") == b"{}"
        assert source.get("inside") == b"{}"

    @pytest.mark.parametrize(
        "path",
        [
            "../secret",
            "v1/../../secret",
            "%2e%2e/secret",
            "..%2fsecret",
            "v1/%2E%2E%2F%2E%2E%2Fsecret",
            "outside",
            "up/secret",
            "/etc/passwd",
            "%2Fetc%2Fpasswd",
            "v1//etc/passwd",
        ],
    )
    def test_nothing_outside_of_it_is_read(self, folder: Path, path: str) -> None:
        assert isinstance(refusal(lambda: FolderSource(folder).get(path)), NotFetched | NotFound)

    def test_what_is_no_file_is_not_there(self, folder: Path) -> None:
        for path in ("v1", "v1/hosts", "inside/deeper", "nothing", f"v1/hosts/did:web:{'a' * 248}/reputation", ""):
            assert isinstance(refusal(partial(FolderSource(folder).get, path)), NotFound), path

    def test_what_cannot_be_read_is_said(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for path in ("loop", "%00", "a%00b"):
            assert isinstance(refusal(partial(FolderSource(folder).get, path)), Unavailable), path
        monkeypatch.setattr(source_module, "MAX_BYTES", 1)
        assert refusal(lambda: FolderSource(folder).get("inside")).code == "fetch_too_large"


class TestTiles:
    def test_a_partial_tile_is_cut_from_the_full_one(self, tmp_path: Path) -> None:
        tile, entries = os.urandom(32 * 256), [bytes([number]) for number in range(256)]
        for kind, data in (("0", tile), ("entries", encode_bundle(entries))):
            (tmp_path / f"log/tile/{kind}").mkdir(parents=True)
            (tmp_path / f"log/tile/{kind}/000").write_bytes(data)
        reading = Reading(FolderSource(tmp_path), 100)
        assert reading.tile(0, 0) == tile[: 32 * 100]
        assert reading.bundle(0) == entries[:100]
        assert list(reading.entries(98, 100)) == entries[98:100]
        # A full one has nothing to be cut from.
        assert isinstance(refusal(lambda: Reading(FolderSource(tmp_path), 512).tile(0, 1)), NotFound)

    @pytest.mark.parametrize(
        "data", [b"", b"\x00", b"\x00\x05abc", encode_bundle([b"a"] * 3), encode_bundle([b"a"] * 5)]
    )
    def test_a_bundle_has_exactly_its_entries(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "log/tile/entries/000.p").mkdir(parents=True)
        (tmp_path / "log/tile/entries/000.p/4").write_bytes(data)
        assert isinstance(refusal(lambda: Reading(FolderSource(tmp_path), 4).bundle(0)), Malformed)
        (tmp_path / "log/tile/entries/000").write_bytes(data)
        (tmp_path / "log/tile/entries/000.p/4").unlink()
        if len(data) < 15:
            assert isinstance(refusal(lambda: Reading(FolderSource(tmp_path), 4).bundle(0)), Malformed | BadEntry)


class Far:
    """A source that things are fetched from ahead."""

    name, far = "far", True

    def get(self, path: str) -> bytes:
        return path.encode()


def fetching() -> int:
    return sum(thread.name.startswith("fetch") for thread in threading.enumerate())


class TestAhead:
    def test_things_come_in_their_order(self) -> None:
        random = Random(1)
        delays = [random.random() / 500 for _ in range(100)]

        def get(number: int) -> int:
            time.sleep(delays[number])
            return number * number

        assert list(ahead(Far(), get, range(100))) == [(number, number * number) for number in range(100)]
        assert fetching() == 0

    def test_not_more_than_a_few_are_fetched_ahead(self) -> None:
        fetched: list[int] = []
        for number, _ in ahead(Far(), fetched.append, range(1000)):
            assert len(fetched) <= number + AHEAD + 1
            assert fetching() <= CONNECTIONS
            if number == 20:
                break
        assert fetching() == 0
        assert len(fetched) <= 20 + AHEAD + 1

    @pytest.mark.parametrize("error", [Unavailable("busy", "no"), KeyboardInterrupt()])
    def test_an_error_comes_in_its_turn_and_ends_it(self, error: BaseException) -> None:
        fetched: list[int] = []

        def get(number: int) -> int:
            if number == 30:
                raise error
            fetched.append(number)
            return number

        came: list[int] = []
        with pytest.raises(type(error)):
            came.extend(number for number, _ in ahead(Far(), get, range(1000)))
        assert fetching() == 0
        assert max(fetched) <= 30 + AHEAD
        assert came == list(range(30))

    def test_whoever_stops_listening_ends_it(self) -> None:
        def work() -> None:
            for number, _ in ahead(Far(), lambda number: number, range(1000)):
                if number == 5:
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            work()
        assert fetching() == 0

    def test_from_nearby_each_is_fetched_when_it_is_needed(self, tmp_path: Path) -> None:
        fetched: list[int] = []
        for number, _ in ahead(FolderSource(tmp_path), fetched.append, range(10)):
            assert fetched == list(range(number + 1))
