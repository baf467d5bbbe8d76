"""Key files: secret, never overwritten, read back as they were written."""

from pathlib import Path

import pytest

from ledger.canon import multikey
from ledger.errors import Misconfigured
from ledger.keys import read_key, read_log_key, write_key, write_log_key


def test_keys_come_back_and_are_for_their_owner_only(tmp_path: Path) -> None:
    log = write_log_key(tmp_path / "log.key", "ledger.example/log")
    statements = write_key(tmp_path / "statements.key")
    assert read_log_key(tmp_path / "log.key") == ("ledger.example/log", log)
    assert read_key(tmp_path / "statements.key") == statements
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_key_is_never_written_over_another(tmp_path: Path) -> None:
    write_key(tmp_path / "key")
    with pytest.raises(FileExistsError):
        write_key(tmp_path / "key")


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
    for read in (read_key, read_log_key):
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
