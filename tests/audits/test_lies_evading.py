"""What an operator does who knows how audits work: texts that are missed in passing, what breaks the auditor, and what
makes it accuse somebody else."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from audits.audit import Audit, Options
from audits.source import FolderSource
from audits.state import opened
from ledger.errors import NotFetched, NotFound, Unavailable
from ledger.log.drafts import make_draft
from ledger.log.policy import Policy
from ledger.log.tiles import tile_resources
from tests.audits.bent import audit, require_clean
from tests.audits.convicting import convicted, shows
from tests.audits.forger import TRUST, Forger
from tests.ledger.log.worked_example import WITNESS, WITNESS_KEY
from tests.running import Writer
from tests.world import LOG

NOT_LAST = ("entries", "map_head_not_last")


# Texts


@shows(("answer", "text_withheld"))
def test_a_text_that_comes_while_the_log_is_followed(writer: Writer, tmp_path: Path) -> None:
    """One is left out of a bundle and not of the answer, so that the log is followed; then comes one that is withheld."""
    forger = Forger()
    forger.head()
    forger.add(make_draft("issuer", TRUST))
    forger.head()
    forger.add(writer.review())
    forger.head()
    read: list[str] = []

    def bend(path: str) -> bytes | None:
        read.append(path)
        if path == "log/checkpoint" and read.count(path) == 2:
            forger.openings.pop(forger.add(writer.review(text="Bed bugs.")).index)
            forger.head()
        return json.dumps({"openings": []}).encode() if path == "v1/log/openings/0" else None

    assert [code for code, _ in convicted(audit(forger, bend, tmp_path))] == ["text_withheld"]
    assert [code for code, _ in convicted(audit(forger, state=tmp_path, options=Options(sample=0)))] == [
        "text_withheld"
    ]


def test_who_cannot_read_on_accuses_nobody_of_withholding(forger: Forger, writer: Writer) -> None:
    """A redaction is on its way, and the process that answers then does not have it yet."""
    review = forger.add(writer.review())
    forger.head()
    seen: list[str] = []

    def bend(path: str) -> bytes | None:
        seen.append(path)
        if path == "log/checkpoint" and seen.count(path) == 1:
            forger.openings.pop(review.index)
        if path == "log/checkpoint" and seen.count(path) == 2:
            forger.add(writer.redaction(review))
            forger.head()
        if path.startswith("log/tile/") and seen.count("log/checkpoint") > 1:
            raise NotFound("not_found", path)
        return None

    found = audit(forger, bend)
    assert (found.found, found.verdict) == ([], "incomplete")
    require_clean(audit(forger))


def test_what_another_process_does_not_have_yet_is_asked_for_again(forger: Forger) -> None:
    lags = ["once", "twice"]

    def bend(path: str) -> bytes | None:
        if path.startswith("log/tile/entries/") and lags:
            lags.pop()
            raise NotFound("not_found", path)
        return None

    require_clean(audit(forger, bend))


# Checkpoints, tiles and times


@pytest.mark.parametrize("how", ["listed", "given"])
@shows(NOT_LAST)
def test_a_checkpoint_from_the_middle_of_a_batch(forger: Forger, writer: Writer, how: str) -> None:
    forger.add(writer.review())
    note = forger.sign()
    middle = forger.size
    forger.add(writer.check())
    forger.head()
    if how == "given":
        del forger.notes[middle]
    options = Options(notes=[note]) if how == "given" else None
    assert convicted(audit(forger, options=options)) == [("map_head_not_last", middle - 1)]


def test_whose_newest_checkpoint_ends_in_no_head_is_not_accused_of_the_others(forger: Forger, writer: Writer) -> None:
    forger.add(writer.review())
    forger.head()
    forger.add(writer.review())
    forger.sign()
    assert convicted(audit(forger)) == [("map_head_not_last", forger.size - 1)]


@shows(("clock", "postdated"))
def test_a_policy_that_is_given_later_is_applied_to_all_checkpoints(
    forger: Forger, writer: Writer, tmp_path: Path
) -> None:
    noon = forger.clock()
    forger.clock.forward(hours=2)
    forger.add(writer.review())
    forger.head()
    forger.cosign(forger.size, WITNESS, WITNESS_KEY, noon)
    late = forger.size - 1
    forger.add(writer.review())
    forger.head()
    require_clean(audit(forger, state=tmp_path))
    policy = Policy.parse(f"log {LOG}\nwitness w1 {WITNESS}\nquorum none\n")
    assert convicted(audit(forger, state=tmp_path, options=Options(policy=policy))) == [("postdated", late)]


@shows(("resource", "tile_mismatch"))
def test_what_a_mirror_was_right_in_the_service_has_still_to_show(
    forger: Forger, writer: Writer, tmp_path: Path
) -> None:
    for _ in range(130):
        forger.add(writer.review())
        forger.head()

    def bend(path: str) -> bytes | None:
        return bytes(len(forger.get(path) or b"")) if path.startswith("log/tile/0/000") else None

    require_clean(audit(forger, state=tmp_path, name="mirror"))
    assert convicted(audit(forger, bend, tmp_path)) == [("tile_mismatch", None)]


def test_nobody_is_accused_of_what_another_source_served(forger: Forger, writer: Writer, tmp_path: Path) -> None:
    """A mirror lies and is gone; its entries were kept. Then a tile of the honest service cannot be had."""
    for _ in range(3):
        forger.add(writer.review())
        forger.head()

    def lie(path: str) -> bytes | None:
        if path.startswith("log/tile/0"):
            raise Unavailable("ledger_unreachable", "it is gone")
        return (forger.get(path) or b"").replace(b"0Z", b"1Z") if path.startswith("log/tile/entries") else None

    def fail(path: str) -> bytes | None:
        if path.startswith("log/tile/0"):
            raise NotFetched("fetch_status", "it answers 500", status=500)
        return None

    with pytest.raises(Unavailable):
        audit(forger, lie, tmp_path, name="mirror", save_seconds=0)
    found = audit(forger, fail, tmp_path)
    assert (found.found, found.verdict) == ([], "incomplete")
    require_clean(audit(forger, state=tmp_path))


LISTS: dict[str, Callable[[list[dict[str, Any]]], dict[str, Any]]] = {
    "always the same": lambda listed: {"checkpoints": listed * 2, "next": listed[0]["size"]},
    "upwards": lambda listed: {"checkpoints": listed[::-1], "next": None},
    "of other sizes": lambda listed: {"checkpoints": [{**listed[0], "size": 1 << 40}], "next": 1 << 40},
    "on from elsewhere": lambda listed: {"checkpoints": listed, "next": (1 << 52) - 1},
}


@pytest.mark.parametrize("bend", LISTS.values(), ids=LISTS.keys())
def test_a_list_of_checkpoints_has_an_end(
    forger: Forger, bend: Callable[[list[dict[str, Any]]], dict[str, Any]]
) -> None:
    asked = 0

    def answer(path: str) -> bytes | None:
        nonlocal asked
        if not path.startswith("v1/log/checkpoints"):
            return None
        asked += 1
        return json.dumps(bend(json.loads(forger.get(path) or b"")["checkpoints"])).encode()

    found = audit(forger, answer)
    assert (found.found, asked) == ([], 1)
    assert "the list of" in " ".join(found.unchecked)


def test_a_log_that_stands_still_is_told_to_who_wants_to_know(forger: Forger) -> None:
    forger.clock.forward(hours=30)
    require_clean(audit(forger))
    require_clean(audit(forger, options=Options(max_age=timedelta(hours=30))))
    found = audit(forger, options=Options(max_age=timedelta(hours=29)))
    assert (found.found, found.verdict) == ([], "incomplete")
    assert "2026-06-01T12:00:00Z" in found.unchecked[0]


def test_a_head_from_the_future_is_told_to_those_who_ask_for_a_young_one(forger: Forger) -> None:
    """It would stay young for ever. Two clocks may differ by five minutes, as in all verifiers."""
    asked = Options(max_age=timedelta(hours=25))
    forger.clock.forward(minutes=-5)
    require_clean(audit(forger, options=asked))
    forger.clock.forward(seconds=-1)
    found = audit(forger, options=asked)
    assert (found.found, found.verdict) == ([], "incomplete")
    assert "2026-06-01T12:00:00Z, which is still to come" in found.unchecked[0]
    require_clean(audit(forger))


def test_texts_that_nobody_gets_are_not_asked_for_a_thousand_times(writer: Writer) -> None:
    forger, asked = Forger(), list[str]()
    forger.head()
    while forger.size < 2000:
        for _ in range(250):
            forger.add(writer.policy())
        forger.head()

    def bend(path: str) -> bytes | None:
        if path.startswith("v1/log/openings/"):
            asked.append(path)
            raise Unavailable("ledger_unreachable", "come back in a minute")
        return None

    found = audit(forger, bend)
    assert (found.found, asked) == ([], ["v1/log/openings/0"])


def test_an_older_copy_in_another_folder_of_the_same_name_is_no_rollback(
    forger: Forger, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for person in ("alice", "bob"):
        copy = tmp_path / person / "copy"
        paths = ["log/checkpoint", "v1/log/checkpoints?count=100", "v1/log/openings/0"]
        for path in (*paths, *(f"log/{path}" for path in tile_resources(forger.size))):
            file = copy / path.partition("?")[0]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(forger.get(path) or b"")
        forger.add(writer.check())
        forger.head()
    for person in ("bob", "alice"):
        monkeypatch.chdir(tmp_path / person)
        with opened(tmp_path / "state", LOG) as kept:
            checking = Audit(FolderSource(Path("copy")), LOG, kept, Options(sample=0), clock=forger.clock, pause=0)
            found.append((checking.run()["verdict"], checking.findings.found))
    assert found == [("clean", []), ("incomplete", [])]
