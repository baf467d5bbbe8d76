"""`staylog feedback collect`, against a service on a socket."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ledger.canon import base64
from ledger.commands import feedback as command
from ledger.identity.sealing import converted, seal, unseal
from tests.identities import Speaker
from tests.ledger.commands import fake_ledger, served
from tests.ledger.commands.fake_ledger import FakeLedger
from tests.ledger.commands.served import Place, accepted, refused, staylog, write_key
from tests.reviewing import GUESTS

place, here, fake = served.place, served.here, fake_ledger.fake
NUMBER = iter(range(120, 250))
OWN = "rev-" + "a" * 26


@pytest.fixture
def host(here: Path) -> Speaker:
    """One to whom nobody has spoken yet."""
    made = Speaker(next(NUMBER))
    write_key(here / "host.key", made)
    return made


def collect(*options: str) -> Result:
    return staylog("collect", "--key", "host.key", "--out", "messages", *options, group="feedback")


def said(place: Place, here: Path, host: Speaker, text: str, number: int = 0) -> str:
    """The review whose guest left private words."""
    files = ["--submission", f"of-{number}.json", "--out", f"receipt-{number}.json"]
    accepted(staylog("submit", *place.guest_of(here, GUESTS[number], host), *files, "--feedback", text))
    return str(json.loads((here / f"receipt-{number}.json").read_bytes())["review_id"])


def test_private_words_are_fetched_opened_and_erased(place: Place, here: Path, host: Speaker) -> None:
    ids = [said(place, here, host, f"The tap drips, {number}.\n\x1b[2J", number) for number in range(2)]
    output = accepted(collect())
    assert "saved      2 in messages" in output
    assert "erased     2 at the ledger" in output
    assert "\x1b" not in output
    for number, name in enumerate(ids):
        path = here / "messages" / f"{name}.txt"
        assert path.read_text() == f"The tap drips, {number}.\n\x1b[2J\n"
        assert path.stat().st_mode & 0o777 == 0o600
    assert (here / "messages").stat().st_mode & 0o777 == 0o700
    assert accepted(collect()) == "There is nothing for you.\n"


def test_they_may_be_left_there_and_are_not_saved_twice(place: Place, here: Path, host: Speaker) -> None:
    name = said(place, here, host, "The tap drips.")
    for _ in range(2):
        output = accepted(collect("--keep"))
        assert "at the ledger, too, for a year" in output
        assert "erased" not in output
    assert [path.name for path in (here / "messages").iterdir()] == [f"{name}.txt"]
    assert "erased     1" in accepted(collect())


def test_no_file_is_overwritten(place: Place, here: Path, host: Speaker) -> None:
    name = said(place, here, host, "The tap drips.")
    (here / "messages").mkdir()
    (here / "messages" / f"{name}.txt").write_text("precious")
    accepted(collect())
    assert (here / "messages" / f"{name}.txt").read_text() == "precious"
    assert (here / "messages" / f"{name}-2.txt").read_text() == "The tap drips.\n"


def test_nothing_is_erased_that_is_not_on_the_disk(
    place: Place, here: Path, host: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(place, here, host, "The tap drips.")
    (here / "messages").write_text("a file")
    done = collect()
    assert done.exit_code == 2
    with monkeypatch.context() as patched:
        patched.setattr("ledger.commands.statement.os.fsync", _full)
        (here / "messages").unlink()
        output = refused(collect(), "file_unwritable")
    assert "erased" not in output
    assert "erased     1" in accepted(collect())


def _full(_file: int) -> None:
    raise OSError(28, "No space left on device")


def test_words_that_were_sealed_to_an_older_key(place: Place, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has changed its key since signs with the new one, and opens with the old one."""
    site = place.host("oast.example")
    old, new = site.speaker, Speaker(77, site.speaker.did)
    name = said(place, here, old, "The tap drips.")
    write_key(here / "old.key", old)
    write_key(here / "host.key", new)
    site.publish(new)
    # Documents are looked at again after some minutes.
    monkeypatch.setattr(place.clock, "ahead", timedelta(minutes=6))
    monkeypatch.setattr("ledger.commands.statement.utc_now", place.clock)
    output = accepted(collect("--did", old.did))
    assert f"NOT opened {name}: it is sealed to {old.method}" in output
    assert "saved" not in output
    assert "erased" not in output
    output = accepted(collect("--did", old.did, "--open-with", "old.key"))
    assert "erased     1" in output
    assert (here / "messages" / f"{name}.txt").read_text() == "The tap drips.\n"


@pytest.mark.parametrize(("requests", "erased", "left"), [(6, 3, 0), (3, 2, 1)])
def test_many_are_fetched_answer_by_answer(
    place: Place, here: Path, host: Speaker, monkeypatch: pytest.MonkeyPatch, requests: int, erased: int, left: int
) -> None:
    monkeypatch.setattr("ledger.reviews.feedback.MOST", 1)
    monkeypatch.setattr(command, "MOST_REQUESTS", requests)
    ids = {said(place, here, host, "Dry.", number) for number in range(3)}
    output = accepted(collect())
    assert {path.stem for path in (here / "messages").iterdir()} == ids
    assert f"erased     {erased} at the ledger" in output
    assert (f"left       {left} at the ledger" in output) is (left > 0)


def test_a_host_asks_a_few_times_in_an_hour(place: Place, here: Path, host: Speaker) -> None:
    for _ in range(12):
        assert "nothing" in accepted(collect())
    output = refused(collect(), "quota_exceeded")
    assert "12 times in an hour" in output
    assert "There is nothing for you" not in output


def item(host: Speaker, name: str = OWN, text: str = "Dry.") -> dict[str, str]:
    sealed = base64.encode(seal(text, converted(host.public)))
    return {"review_id": name, "sealed": sealed, "key": host.method}


def given(fake: FakeLedger, *items: Any) -> None:
    fake.answers["/v1/feedback"] = (200, {}, json.dumps({"items": list(items)}).encode())


def test_a_message_for_another_key_is_saved_as_it_is(here: Path, host: Speaker, fake: FakeLedger) -> None:
    other = Speaker(78)
    given(fake, item(other))
    output = accepted(collect())
    assert f"NOT opened {OWN}: it is sealed to {other.method}" in output
    assert "1, which stay at the ledger: try again with --open-with KEY" in output
    saved = json.loads((here / "messages" / f"{OWN}.sealed.json").read_bytes())
    assert (saved["review_id"], saved["key"]) == (OWN, other.method)
    assert unseal(base64.decode(saved["sealed"]), other.key) == "Dry."
    write_key(here / "other.key", other)
    accepted(collect("--open-with", "other.key"))
    assert (here / "messages" / f"{OWN}.txt").read_text() == "Dry.\n"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"items": None},
        {"items": [None]},
        {"items": [{"review_id": OWN}]},
        {"items": [{"review_id": "../../x", "sealed": "AA==", "key": "k"}]},
        {"items": [{"review_id": f"{OWN}/x", "sealed": "AA==", "key": "k"}]},
        {"items": [{"review_id": 7, "sealed": "AA==", "key": "k"}]},
    ],
)
def test_an_answer_that_is_no_list_of_messages(here: Path, host: Speaker, fake: FakeLedger, answer: Any) -> None:
    fake.answers["/v1/feedback"] = (200, {}, json.dumps(answer).encode())
    refused(collect(), "answer_malformed")
    assert list((here / "messages").iterdir()) == []


def test_a_ledger_that_gives_the_same_again_is_left(here: Path, host: Speaker, fake: FakeLedger) -> None:
    given(fake, item(host))
    output = accepted(collect())
    assert re.search(r"erased +1 ", output)
    assert len(fake.requests) == 2


def test_what_is_asked_for_another_host_is_refused(place: Place, here: Path, host: Speaker) -> None:
    said(place, here, host, "The tap drips.")
    write_key(here / "thief.key", Speaker(79))
    refused(collect("--key", "thief.key", "--did", host.did), "bad_verification_method")
    assert "saved      1" in accepted(collect())
