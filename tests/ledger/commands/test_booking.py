"""`staylog booking receipt`: what a host gives a guest."""

import errno
import json
import os
from pathlib import Path

import pytest
from click.testing import Result

from ledger.clock import utc_now
from ledger.identity.did import offline
from ledger.identity.statements import verify
from tests.identities import GUEST
from tests.ledger.commands.issuer_folder import Folder, run

STAY = ["--listing", "rose-cottage", "--check-in", "2026-05-20", "--check-out", "2026-05-24"]


def receipt(folder: Folder, *options: str) -> Result:
    usual = ["--key", str(folder.path / "issuer.key"), "--reference", "B-1042", "--guest", GUEST.did, *STAY]
    return run("booking", "receipt", *usual, *options)


@pytest.fixture(autouse=True)
def _here(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)


def test_a_host_signs_a_receipt_for_any_ledger(folder: Folder) -> None:
    done = receipt(folder)
    assert done.exit_code == 0, done.output
    path = folder.path / "stay-receipt.json"
    made = json.loads(path.read_bytes())
    assert path.stat().st_mode & 0o777 == 0o600
    assert "domain" not in made["proof"]
    heard = verify(made, "StayReceipt", domain="https://any.example", now=utc_now(), resolve=offline)
    assert heard.speaker == folder.did == made["host_did"]
    assert (made["booking_reference"], made["guest_did"]) == ("B-1042", GUEST.did)
    for told in (
        "stay-receipt.json",
        GUEST.did,
        "B-1042: rose-cottage, 2026-05-20 to 2026-05-24",
        f"signed by  {folder.did}",
        "Give the file to the guest now",
        "staylog review submit --receipt stay-receipt.json",
    ):
        assert told in done.output


@pytest.mark.parametrize(
    "names",
    [
        ["--did", "did:web:cottage.example", "--verification-method", "did:web:cottage.example#k1"],
        ["--verification-method", "did:web:cottage.example#k1"],
    ],
)
def test_a_host_with_a_domain_names_its_key(folder: Folder, names: list[str]) -> None:
    assert receipt(folder, *names, "--out", "named.json").exit_code == 0
    made = json.loads((folder.path / "named.json").read_bytes())
    assert made["host_did"] == "did:web:cottage.example"
    assert made["proof"]["verificationMethod"] == "did:web:cottage.example#k1"


def test_a_receipt_is_never_overwritten(folder: Folder) -> None:
    assert receipt(folder).exit_code == 0
    before = (folder.path / "stay-receipt.json").read_bytes()
    done = receipt(folder, "--reference", "B-1043")
    assert (done.exit_code, "(file_exists)" in done.output) == (1, True)
    assert (folder.path / "stay-receipt.json").read_bytes() == before
    (folder.path / "link.json").symlink_to("nowhere.json")
    assert "(file_exists)" in receipt(folder, "--out", "link.json").output


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--check-out", "2026-05-20"], "date_invalid"),
        (["--check-in", "2026-02-30"], "date_invalid"),
        (["--guest", "somebody"], "did_not_canonical"),
        (["--guest", "did:web:UPPER.example"], "did_not_canonical"),
        (["--listing", "not a listing"], "schema_invalid"),
        (["--reference", ""], "schema_invalid"),
        (["--reference", "\udcff"], "malformed_json"),
        (["--did", GUEST.did], "bad_verification_method"),
        (["--verification-method", "k1"], "did_not_canonical"),
        (["--key", "none.key"], "key_unreadable"),
        (["--out", "no/such/folder.json"], "file_unwritable"),
        (["--out", "x" * 300], "file_unwritable"),
    ],
)
def test_what_no_ledger_would_believe_is_not_written(folder: Folder, options: list[str], code: str) -> None:
    done = receipt(folder, *options)
    assert done.exit_code == 1, done.output
    assert f"({code})" in done.output
    assert [path.name for path in folder.path.iterdir()] == ["issuer.key"]


def test_half_a_receipt_is_not_left_behind(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ledger.commands.statement.os.fsync", full)
    done = receipt(folder)
    assert (done.exit_code, "No space left on device" in done.output) == (1, True)
    assert not Path("stay-receipt.json").exists()


def test_a_reference_does_not_command_the_terminal(folder: Folder) -> None:
    done = receipt(folder, "--reference", "B\u202e1")
    assert done.exit_code == 0, done.output
    assert "\u202e" not in done.output
    assert "B\\u202e1" in done.output
