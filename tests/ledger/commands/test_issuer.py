"""`staylog issuer`, as an operator uses it."""

import json

import pytest

from ledger.log.entries import parse_entry
from tests.identities import IDV, ISSUER, THIEF
from tests.ledger.commands.test_operator import staylog
from tests.running import Running


def entries(running: Running) -> list[dict[str, object]]:
    size = running.ledger.reader.refresh().size
    parsed = [parse_entry(data) for data in running.ledger.reader.entries(0, size)]
    return [dict(entry.members) for entry in parsed if entry.type == "issuer"]


def test_an_issuer_is_trusted_listed_and_removed(running: Running) -> None:
    assert "No issuer is trusted yet" in staylog(running, "issuer", "list").output
    done = staylog(running, "issuer", "add", "guest", IDV, "--key", ISSUER.multikey, "--max-level", "identity_verified")
    assert done.exit_code == 0, done.output
    assert f"{IDV} is trusted for credentials of a guest, up to identity_verified" in done.output
    assert "entry 2, signed at size 4" in done.output
    again = staylog(running, "issuer", "add", "guest", IDV, "--key", ISSUER.multikey)
    assert (again.exit_code, "nothing was changed" in again.output) == (0, True)
    more = staylog(running, "issuer", "add", "guest", IDV, "--key", THIEF.multikey)
    assert more.exit_code == 0, more.output
    listed = staylog(running, "issuer", "list").output
    for shown in (IDV, "trusted", ISSUER.multikey, THIEF.multikey, "identity_verified"):
        assert shown in listed
    since = "2026-05-01T00:00:00Z"
    gone = staylog(running, "issuer", "remove", "guest", IDV, "--compromised-since", since)
    assert gone.exit_code == 0, gone.output
    assert f"compromised since {since}" in staylog(running, "issuer", "list").output
    [told] = json.loads(staylog(running, "issuer", "list", "--json").output)
    assert (told["status"], told["since"], len(told["keys"])) == ("compromised", since, 2)
    assert [entry["action"] for entry in entries(running)] == ["trusted", "trusted", "compromised"]


def test_a_did_key_needs_no_key(running: Running) -> None:
    done = staylog(running, "issuer", "add", "host", THIEF.did)
    assert done.exit_code == 0, done.output
    assert THIEF.did in done.output
    assert THIEF.multikey in staylog(running, "issuer", "list").output
    assert "any level" not in staylog(running, "issuer", "list").output


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["add", "guest", IDV], 1, "--key MULTIKEY"),
        (["add", "guest", IDV, "--key", "z6Mk"], 1, "(key_not_acceptable)"),
        (["add", "guest", "idv.example", "--key", ISSUER.multikey], 1, "(issuer_invalid)"),
        (["add", "guest", "https://idv.example/\udcff", "--key", ISSUER.multikey], 1, "(issuer_invalid)"),
        (["add", "guest", THIEF.did, "--key", ISSUER.multikey], 1, "(issuer_key_foreign)"),
        (["add", "host", IDV, "--key", ISSUER.multikey, "--max-level", "email_verified"], 2, "hosts have no levels"),
        (["add", "agent", IDV], 2, "agent"),
        (["remove", "guest", IDV], 1, "(issuer_unknown)"),
        (["remove", "guest", IDV, "--compromised-since", "yesterday"], 2, "YYYY-MM-DDTHH:MM:SSZ expected"),
        (["remove", "guest", IDV, "--compromised-since", "2999-01-01T00:00:00Z"], 2, "in the future"),
    ],
)
def test_what_cannot_be_done_is_explained(running: Running, arguments: list[str], status: int, told: str) -> None:
    done = staylog(running, "issuer", *arguments)
    assert done.exit_code == status
    assert told in done.output
    assert entries(running) == []


def test_a_name_that_looks_like_markup_is_listed(running: Running) -> None:
    odd = f"{IDV}/[/red]"
    assert staylog(running, "issuer", "add", "guest", odd, "--key", ISSUER.multikey).exit_code == 0
    listed = staylog(running, "issuer", "list")
    assert listed.exit_code == 0, listed.output
    assert odd in listed.output


def test_nobody_is_removed_twice(running: Running) -> None:
    staylog(running, "issuer", "add", "guest", IDV, "--key", ISSUER.multikey)
    assert staylog(running, "issuer", "remove", "guest", IDV).exit_code == 0
    done = staylog(running, "issuer", "remove", "guest", IDV)
    assert (done.exit_code, "(issuer_already)" in done.output) == (1, True)
