"""Key files: secret, never overwritten, read back as they were written."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.canon import multikey
from ledger.errors import Misconfigured
from ledger.keys import (
    read_key,
    read_log_key,
    read_service_keys,
    rotate_pepper,
    write_key,
    write_log_key,
    write_service_keys,
)


def test_keys_come_back_and_are_for_their_owner_only(tmp_path: Path) -> None:
    log = write_log_key(tmp_path / "log.key", "ledger.example/log")
    statements = write_key(tmp_path / "statements.key")
    assert read_log_key(tmp_path / "log.key") == ("ledger.example/log", log)
    assert read_key(tmp_path / "statements.key") == statements
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_service_keys_come_back_and_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "service.key"
    keys = write_service_keys(path)
    assert read_service_keys(path) == keys
    assert path.stat().st_mode & 0o777 == 0o600
    assert (len(keys.booking), [*keys.peppers]) == (32, [("p1", keys.peppers.by_id["p1"])])
    assert len({keys.booking, *keys.peppers.by_id.values(), bytes(keys.statements)}) == 3
    with pytest.raises(FileExistsError):
        write_service_keys(path)


def test_a_new_pepper_comes_first_and_the_old_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "service.key"
    before = write_service_keys(path)
    for newest in ("p2", "p3"):
        assert rotate_pepper(path).current == newest
    after = read_service_keys(path)
    assert [key_id for key_id, _ in after.peppers] == ["p3", "p2", "p1"]
    assert after.peppers.by_id["p1"] == before.peppers.by_id["p1"]
    assert len(set(after.peppers.by_id.values())) == 3
    assert (after.statements, after.booking) == (before.statements, before.booking)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["service.key"]


def test_after_an_old_pepper_was_forgotten_its_number_is_not_given_again(tmp_path: Path) -> None:
    path = tmp_path / "service.key"
    write_service_keys(path)
    rotate_pepper(path)
    given = json.loads(path.read_text())
    # Edited by hand: the checksum goes as well, and comes back with the next rotation.
    del given["peppers"]["p1"], given["sha256"]
    path.write_text(json.dumps(given, indent=1) + "\n")
    assert rotate_pepper(path).by_id.keys() == {"p2", "p3"}


def test_every_flipped_bit_of_the_service_keys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "service.key"
    write_service_keys(path)
    data = path.read_bytes()
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(Misconfigured) as refused:
            read_service_keys(path)
        assert refused.value.code == "key_unreadable"


@pytest.mark.parametrize(
    "change",
    [
        {"statements": "z1"},
        {"booking": "AAAA"},
        {"peppers": {}},
        {"peppers": {"p1": "AAAA"}},
        {"peppers": {"first": "A" * 43 + "="}},
        {"peppers": []},
        {"extra": 1},
        {"statements": None},
    ],
    ids=str,
)
def test_what_is_not_the_keys_of_a_service_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "service.key"
    write_service_keys(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}, indent=1) + "\n")
    with pytest.raises(Misconfigured) as refused:
        read_service_keys(path)
    assert refused.value.code == "key_unreadable"
    assert "A" * 43 not in refused.value.message


def test_secrets_do_not_show(tmp_path: Path) -> None:
    keys = write_service_keys(tmp_path / "service.key")
    for shown in (repr(keys), str(keys.peppers), repr(keys.peppers)):
        assert "p1" not in shown
        assert repr(keys.booking) not in shown


def test_a_key_is_never_written_over_another(tmp_path: Path) -> None:
    write_key(tmp_path / "key")
    with pytest.raises(FileExistsError):
        write_key(tmp_path / "key")


def test_what_lies_beside_a_key_is_not_touched(tmp_path: Path) -> None:
    """A crash, or somebody else, may have left a file there; a refused key leaves none."""
    key = write_key(tmp_path / "key")
    (tmp_path / "key.new").hardlink_to(tmp_path / "key")
    with pytest.raises(FileExistsError):
        write_key(tmp_path / "key")
    assert read_key(tmp_path / "key") == key
    (tmp_path / "victim").write_text("x")
    (tmp_path / "other.new").symlink_to(tmp_path / "victim")
    write_key(tmp_path / "other")
    assert (tmp_path / "victim").read_text() == "x"
    assert not (tmp_path / "other").is_symlink()
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"key", "key.new", "other", "other.new", "victim"}


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    write_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(Misconfigured, match="chmod 600"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize(
    "text",
    ["", "z", "zabc", "PRIVATE+KEY+x+00000000+AAAA", "PRIVATE+KEY+x", "PRIVATE+KEY+x+0+" + "A" * 44, "\u00e9"],
)
def test_what_is_not_a_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    (tmp_path / "key").chmod(0o600)
    for read in (read_key, read_log_key, read_service_keys):
        with pytest.raises(Misconfigured) as refused:
            read(tmp_path / "key")
        assert refused.value.code == "key_unreadable"


def test_a_log_key_under_another_name_is_refused(tmp_path: Path) -> None:
    """The key id covers the name: a renamed key signs for nobody."""
    path = tmp_path / "log.key"
    write_log_key(path, "ledger.example/log")
    path.write_text(path.read_text().replace("ledger", "ladder"))
    with pytest.raises(Misconfigured):
        read_log_key(path)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"log\.key cannot be read"):
        read_log_key(tmp_path / "log.key")


def test_multikey_is_the_one_of_did_key() -> None:
    """The example of the did:key specification."""
    public = bytes.fromhex("2e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6")
    assert multikey.encode(public) == "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"
