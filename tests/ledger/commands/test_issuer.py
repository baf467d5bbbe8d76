"""`staylog issuer`, as an operator uses it."""

import json
from typing import Any

import pytest
from click.testing import Result

from ledger.log.entries import parse_entry
from tests.identities import IDV, ISSUER, THIEF, Speaker, did_document
from tests.ledger.commands.test_credential_network import ask
from tests.ledger.commands.test_operator import staylog
from tests.network import Neighbourhood
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


# What issuers publish

OLD, NEW = Speaker(1, IDV, "#key-1"), Speaker(7, IDV, "#key-2")
WEB = Speaker(8, "did:web:gov.example", "#key-1")


def check(neighbourhood: Neighbourhood, running: Running, *options: str, **environment: str) -> Result:
    where = ("--data", str(running.settings.data), "--database-url", running.settings.database_url)
    return ask(neighbourhood, "issuer", "check", *where, *options, **environment)


def pin(running: Running, role: str, speaker: Speaker) -> None:
    assert staylog(running, "issuer", "add", role, speaker.did, "--key", speaker.multikey).exit_code == 0


def listed(running: Running) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(staylog(running, "issuer", "list", "--json").output)
    return told


def test_issuers_that_publish_what_is_pinned(running: Running, neighbourhood: Neighbourhood) -> None:
    """By https or by did:web, in one role or in both with a key each; each is asked once."""
    pin(running, "guest", OLD)
    pin(running, "host", NEW)
    pin(running, "host", WEB)
    neighbourhood.put(f"{IDV}/", did_document(OLD, NEW))
    neighbourhood.put("https://gov.example/.well-known/did.json", did_document(WEB))
    done = check(neighbourhood, running)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        f"{WEB.did}: published keys as pinned",
        f"{IDV}: published keys as pinned",
    ]
    assert neighbourhood.requests == {f"{IDV}/": 1, "https://gov.example/.well-known/did.json": 1}
    for each in listed(running):
        assert each["published"]["state"] == "as_pinned"
        assert each["published"]["since"] == each["published"]["checked_at"]
    assert staylog(running, "issuer", "list").output.count("as pinned") == 3


def test_an_issuer_that_publishes_other_keys_is_not_trusted_with_them(
    running: Running, neighbourhood: Neighbourhood
) -> None:
    pin(running, "guest", OLD)
    before, size = entries(running), running.ledger.reader.refresh().size
    neighbourhood.put(f"{IDV}/", did_document(NEW))
    done = check(neighbourhood, running)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{IDV}: published keys other than pinned",
        f"  new   {NEW.multikey}",
        f"  gone  {OLD.multikey}",
        "Nothing was changed. If the issuer confirms it by another way: staylog issuer add --help",
    ]
    [told] = json.loads(check(neighbourhood, running, "--json").stdout)
    assert (told["issuer"], told["state"], told["keys"]) == (IDV, "differs", [NEW.multikey])
    [row] = listed(running)
    assert (row["keys"], row["published"]["keys"]) == ([OLD.multikey], [NEW.multikey])
    assert row["published"]["since"] <= row["published"]["checked_at"]
    assert "other than pinned" in staylog(running, "issuer", "list").output
    assert (entries(running), running.ledger.reader.refresh().size) == (before, size)
    assert running.ledger.issuers().keys("guest", IDV) == [OLD.public]


def test_a_key_that_the_operator_adds_is_other_no_longer(running: Running, neighbourhood: Neighbourhood) -> None:
    """Without another look. What an issuer publishes that is removed is nobody's business."""
    pin(running, "guest", OLD)
    neighbourhood.put(f"{IDV}/", did_document(OLD, NEW))
    assert check(neighbourhood, running).exit_code == 1
    pin(running, "guest", NEW)
    [row] = listed(running)
    assert (row["published"]["state"], neighbourhood.connections) == ("as_pinned", 1)
    assert staylog(running, "issuer", "remove", "guest", IDV).exit_code == 0
    assert [row["published"] for row in listed(running)] == [None]


def test_an_issuer_that_takes_its_last_key_away(running: Running, neighbourhood: Neighbourhood) -> None:
    pin(running, "guest", OLD)
    neighbourhood.put(f"{IDV}/", did_document(OLD, assertionMethod=[]))
    done = check(neighbourhood, running)
    assert done.exit_code == 1
    assert [line for line in done.stdout.splitlines() if line.startswith("  ")] == [f"  gone  {OLD.multikey}"]


@pytest.mark.parametrize(
    ("answer", "state", "told"),
    [
        ({"status": 404}, "unreachable", "could not be fetched (fetch_status)"),
        ({"media_type": "text/html"}, "unreadable", "could not be read (fetch_not_json)"),
        ({"value": b"{"}, "unreadable", "could not be read (fetch_not_json)"),
        ({"value": did_document(WEB)}, "unreadable", "could not be read (did_document_invalid)"),
        ({"value": []}, "unreadable", "could not be read (did_document_invalid)"),
    ],
)
def test_an_issuer_whose_keys_cannot_be_had(
    running: Running, neighbourhood: Neighbourhood, answer: dict[str, Any], state: str, told: str
) -> None:
    """Nothing is known of its keys then, so that none of them is gone."""
    pin(running, "guest", OLD)
    neighbourhood.put(f"{IDV}/", **{"value": did_document(OLD), **answer})
    done = check(neighbourhood, running)
    assert (done.exit_code, done.stdout) == (2, f"{IDV}: published keys {told}\n")
    [row] = listed(running)
    assert (row["status"], row["published"]["state"], row["published"]["keys"]) == ("trusted", state, [])
    assert told.partition(" (")[0] in staylog(running, "issuer", "list").output


def test_an_issuer_where_nobody_listens(running: Running, neighbourhood: Neighbourhood) -> None:
    """Another key of somebody else is the greater news."""
    pin(running, "guest", OLD)
    neighbourhood.take_down("idv.example")
    assert check(neighbourhood, running).exit_code == 2
    pin(running, "guest", WEB)
    neighbourhood.put("https://gov.example/.well-known/did.json", did_document(Speaker(9, WEB.did, "#key-1")))
    done = check(neighbourhood, running, "--json")
    assert done.exit_code == 1
    assert [each["state"] for each in json.loads(done.stdout)] == ["differs", "unreachable"]


def test_a_change_is_dated_from_the_first_time_it_was_seen(running: Running, neighbourhood: Neighbourhood) -> None:
    pin(running, "guest", OLD)
    neighbourhood.put(f"{IDV}/", did_document(NEW))
    check(neighbourhood, running)
    with running.ledger.store.write() as connection:
        connection.exec_driver_sql("UPDATE issuer_watch SET since = '2026-01-01T00:00:00Z'")
    check(neighbourhood, running)
    [same] = listed(running)
    assert same["published"]["since"] == "2026-01-01T00:00:00Z" < same["published"]["checked_at"]
    neighbourhood.put(f"{IDV}/", did_document(OLD))
    check(neighbourhood, running)
    [back] = listed(running)
    assert (back["published"]["state"], back["published"]["since"]) == ("as_pinned", back["published"]["checked_at"])


def test_issuers_without_an_address_are_not_looked_at(running: Running, neighbourhood: Neighbourhood) -> None:
    """Nor those that are trusted no longer."""
    assert staylog(running, "issuer", "add", "host", THIEF.did).exit_code == 0
    pin(running, "guest", OLD)
    assert staylog(running, "issuer", "remove", "guest", IDV).exit_code == 0
    neighbourhood.put(f"{IDV}/", did_document(NEW))
    done = check(neighbourhood, running)
    assert done.exit_code == 0, done.output
    assert "no trusted issuer has an address of its own" in done.stdout
    assert json.loads(check(neighbourhood, running, "--json").stdout) == []
    assert neighbourhood.connections == 0
    assert [each["published"] for each in listed(running)] == [None, None]


def test_a_ledger_with_a_public_address_has_no_neighbourhood(running: Running, neighbourhood: Neighbourhood) -> None:
    pin(running, "guest", OLD)
    neighbourhood.put(f"{IDV}/", did_document(OLD))
    assert "DEVELOPMENT: 1 names lead to this machine" in check(neighbourhood, running).stderr
    public = check(neighbourhood, running, STAYLOG_BASE_URL="https://ledger.example")
    assert (public.exit_code, public.stdout) == (2, "")
    assert "refused (development_refused)" in public.stderr
    assert neighbourhood.requests == {f"{IDV}/": 1}
