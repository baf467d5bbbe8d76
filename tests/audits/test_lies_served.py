"""Other forms of the lies of `test_lies`, by a real service: in what is served beside the log, and in its times."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from ledger.log import publish, record
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.cosignature import cosign
from ledger.log.drafts import Draft, make_draft
from ledger.log.entries import MEMBERS
from ledger.log.face import Event
from ledger.log.hostmap import map_key
from ledger.log.members import LEVELS, one_of
from ledger.log.note import Note
from ledger.log.pages import PagedMap
from ledger.log.reader import Reader, RecordState
from ledger.log.record import HostFold
from tests.api.site import Site
from tests.audits.convicting import DECLARED, Auditor, shows
from tests.audits.lying import Members, change_answers, change_rows, new_ledger, reviewed, shown, url
from tests.bits import flip
from tests.ledger.log.worked_example import WITNESS, WITNESS_KEY
from tests.reviewing import HOST
from tests.running import OTHER, Writer


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that is honest but for what it is made to say."""
    with shown(new_ledger(tmp_path_factory.mktemp("shared"))) as made:
        for guest in range(3):
            reviewed(made, guest)
        made.response(reviewed(made, 3)["review_id"])
        yield made


@pytest.fixture
def site(shared: Site, writer: Writer) -> Site:
    """The same at a size that nobody asked about: answers are kept."""
    shared.add(writer.policy())
    return shared


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    """A service of one's own, with two reviews."""
    with shown(new_ledger(tmp_path)) as made:
        reviewed(made, 0)
        reviewed(made, 1)
        yield made


def auditor_of(site: Site, folder: Path) -> Auditor:
    return Auditor(folder / "auditor", site.ledger.verifier)


def average(said: Members) -> None:
    said["average_ratings"]["overall"] = 5


def statistics(said: Members) -> None:
    said["statistics"]["histogram"][8] += 1


def level(said: Members) -> None:
    said["review_history"][0]["verification_level"] = "unconfirmed"


def rating(said: Members) -> None:
    said["review_history"][1]["ratings"]["overall"] = 1


def deletion(said: Members) -> None:
    del said["review_history"][1]


def response(said: Members) -> None:
    said["review_history"][0]["host_response"]["response_text"] = "We are so sorry."


def text(said: Members) -> None:
    event = next(each for each in said["proof"]["events"] if each["opening"])
    event["opening"]["text"] = "Perfect."


SERVED: list[tuple[str, Callable[[Members], None], str]] = [
    *(("full", average, "face_mismatch"), ("none", average, "face_mismatch"), ("none", statistics, "face_mismatch")),
    *(("full", level, "history_mismatch"), ("none", level, "history_mismatch"), ("full", rating, "history_mismatch")),
    *(("none", deletion, "history_mismatch"), ("none", response, "history_mismatch")),
    ("full", text, "opening_mismatch"),
]
DECLARED["test_an_answer_that_is_not_what_the_log_says"] = frozenset(("answer", code) for _, _, code in SERVED)


@pytest.mark.parametrize(("proof", "lie", "code"), SERVED, ids=[f"{lie.__name__} {proof}" for proof, lie, _ in SERVED])
def test_an_answer_that_is_not_what_the_log_says(
    proof: str,
    lie: Callable[[Members], None],
    code: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    site: Site,
) -> None:
    auditor = auditor_of(site, tmp_path)
    with monkeypatch.context() as patch:
        change_answers(patch, proof, lie)
        [(found, _, count)] = auditor.finds(url(site))
    assert (found, count) == (code, 1)
    assert auditor.convict() == [("answer", code)]


@shows(("answer", "sub_root_mismatch"))
def test_an_event_that_only_the_answer_hides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site) -> None:
    auditor, read = auditor_of(site, tmp_path), Reader.events

    def events(reader: Reader, host: str, size: int) -> list[Event]:
        return [event for event in read(reader, host, size) if event.entry.type != "response"]

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "events", events)
        assert auditor.finds(url(site)) == [("sub_root_mismatch", None, 1)]
    auditor.convict()


@shows(("rollback", "rolled_back"))
def test_an_older_checkpoint_that_is_served_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site, writer: Writer
) -> None:
    auditor, older = auditor_of(site, tmp_path), site.ledger.reader.published
    site.add(writer.policy())
    assert auditor.finds(url(site)) == []
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "published", older)
        assert auditor.finds(url(site)) == [("rolled_back", None, 1)]
    auditor.convict()


@shows(("resource", "tile_mismatch"))
def test_a_tile_that_is_not_the_trees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site) -> None:
    auditor, read = auditor_of(site, tmp_path), Reader.tile
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "tile", lambda *about: flip(read(*about), 300))
        assert auditor.finds(url(site)) == [("tile_mismatch", None, 1)]
    auditor.convict()


@shows(("resource", "bundle_mismatch"))
def test_a_rating_that_was_altered_in_the_database(tmp_path: Path, own: Site) -> None:
    auditor, receipt = auditor_of(own, tmp_path), reviewed(own, 2)
    altered = receipt["entry"].replace('"overall":4.5', '"overall":5').encode()
    change_rows(own, "UPDATE entry SET data = ? WHERE idx = ?", altered, receipt["index"])
    assert auditor.finds(url(own)) == [("bundle_mismatch", None, 1)]
    auditor.convict()


@shows(("transition", "map_root_mismatch"))
def test_a_host_that_the_map_leaves_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: Site, writer: Writer
) -> None:
    """Its absence is proved to whoever asks."""
    update, read, tell = PagedMap.update, Reader.events, Reader.record

    def updated(pages: PagedMap, top: int | None, values: dict[bytes, bytes], root: bytes | None) -> Any:
        return update(pages, top, {key: value for key, value in values.items() if key != map_key(OTHER)}, root)

    def events(reader: Reader, host: str, size: int) -> list[Event]:
        return [] if host == OTHER else read(reader, host, size)

    def of_record(reader: Reader, host: str, size: int) -> RecordState | None:
        return None if host == OTHER else tell(reader, host, size)

    auditor = auditor_of(own, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(PagedMap, "update", updated)
        patch.setattr(Reader, "events", events)
        patch.setattr(Reader, "record", of_record)
        index = own.add(writer.check(OTHER)).index
        assert auditor.finds(url(own)) == [("map_root_mismatch", index + 1, 1)]
    auditor.convict()


@shows(("entries", "response_late"))
def test_a_response_after_30_days(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: Site) -> None:
    auditor, review = auditor_of(own, tmp_path), reviewed(own, 2)
    own.running.clock.forward(days=31)
    with monkeypatch.context() as patch:
        patch.setattr(record, "RESPONSE_WINDOW", 10**9)
        index = own.response(review["review_id"])["index"]
    assert auditor.finds(url(own)) == [("response_late", index, 1)]
    auditor.convict()


@shows(("entries", "entry_invalid"))
def test_a_level_that_an_entry_lowers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: Site, writer: Writer
) -> None:
    auditor, review = auditor_of(own, tmp_path), own.add(writer.review(HOST.did))

    def lowering(fold: HostFold, index: int, members: Members) -> None:
        state = fold._named(index, members)
        fold._count(state, -1)
        state.level = members["level"]
        fold._count(state, 1)

    with monkeypatch.context() as patch:
        patch.setitem(MEMBERS["upgrade"], "level", one_of(*LEVELS))
        patch.setitem(record._RULES, "upgrade", lowering)
        upgrade: Draft = writer.upgrade(review)
        index = own.add(make_draft("upgrade", {**upgrade.members, "level": "unconfirmed"})).index
        assert own.reputation(HOST)["verified_reviews"] == 2
    assert auditor.finds(url(own)) == [("entry_invalid", index, 1)]
    auditor.convict()


@shows(("clock", "postdated"))
def test_a_clock_that_is_put_forward(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A witness saw at noon what says that it is of the afternoon."""
    running = new_ledger(tmp_path)
    noon = int(running.clock().timestamp())

    def witnessed(checkpoint: Checkpoint, key: SigningKey) -> str:
        note = Note.parse(sign_checkpoint(checkpoint, key))
        return str(Note(note.text, (*note.signatures, cosign(note.text, WITNESS.name, WITNESS_KEY, noon))))

    with monkeypatch.context() as patch:
        patch.setattr(publish, "sign_checkpoint", witnessed)
        with shown(running) as site:
            review = reviewed(site, 0)
            running.clock.forward(hours=2)
            index = site.response(review["review_id"])["index"]
            auditor = auditor_of(site, tmp_path)
            (auditor.folder / "policy").write_text(f"log {auditor.log}\nwitness w1 {WITNESS}\nquorum w1\n")
            assert auditor.finds(url(site), "--policy", "policy") == [("postdated", index + 1, 1)]
    auditor.convict()
