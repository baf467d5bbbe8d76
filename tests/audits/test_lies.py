"""A lying operator of a real service: each lie is found by an auditor, and its file convicts with nothing but the key.

Other forms of these lies are in `test_lies_served`; what else can be forged is in `test_lies_in_*`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.canon import jcs
from ledger.canon.times import format_time
from ledger.errors import Halted
from ledger.identity.issuers import Registry, distrust, trust
from ledger.log import batch, record
from ledger.log.face import Event
from ledger.log.hostmap import map_value
from ledger.log.reader import Reader
from ledger.log.record import HostFold, ReviewState
from tests.api.site import Site
from tests.audits.convicting import Auditor, shows
from tests.audits.lying import (
    Restored,
    change_rows,
    copy_folder,
    new_ledger,
    reviewed,
    rewritten,
    shown,
    url,
    without,
)
from tests.identities import IDV, ISSUER, Speaker
from tests.reviewing import GUESTS, HOST, credential
from tests.running import OTHER, Writer

MAP, FORK = ("transition", "map_root_mismatch"), ("fork", "log_forked")
RECORD = ("answer", "record_mismatch")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A service of one's own, with two reviews."""
    with shown(new_ledger(tmp_path)) as made:
        reviewed(made, 0)
        reviewed(made, 1)
        yield made


@pytest.fixture
def auditor(tmp_path: Path, site: Site) -> Auditor:
    return Auditor(tmp_path / "auditor", site.ledger.verifier)


@shows(FORK, lie="deleted review")
def test_a_deleted_review(tmp_path: Path, site: Site, auditor: Auditor) -> None:
    receipt = reviewed(site, 2)
    reviewed(site, 3)
    assert auditor.finds(url(site)) == []
    with shown(rewritten(site.running, tmp_path / "rewritten", without(receipt["review_id"]))) as lying:
        assert auditor.finds(url(lying)) == [("log_forked", None, 1)]
        # Who was not there before needs no more than the guest's receipt.
        newcomer = Auditor(tmp_path / "newcomer", auditor.log)
        (newcomer.folder / "receipt.json").write_text(json.dumps(receipt))
        assert newcomer.finds(url(lying), "--checkpoint", "receipt.json") == [("log_forked", None, 1)]
    auditor.convict()
    newcomer.convict()


@shows(FORK, lie="altered rating")
def test_an_altered_rating(tmp_path: Path, site: Site, auditor: Auditor) -> None:
    assert auditor.finds(url(site)) == []

    def embellished(members: dict[str, Any]) -> dict[str, Any]:
        return {**members, "ratings": {**members["ratings"], "overall": 5}} if "ratings" in members else members

    with shown(rewritten(site.running, tmp_path / "rewritten", embellished)) as lying:
        assert lying.size == site.size
        assert auditor.finds(url(lying)) == [("log_forked", None, 1)]
    auditor.convict()


@shows(MAP, lie="hidden host event")
def test_a_hidden_host_event(monkeypatch: pytest.MonkeyPatch, site: Site, auditor: Auditor, writer: Writer) -> None:
    """Neither record nor answers have it, so that every answer verifies."""
    count, read = HostFold.add, Reader.events

    def add(fold: HostFold, index: int, entry: Any) -> None:
        if entry.type != "booking_check":
            count(fold, index, entry)

    def events(reader: Reader, host: str, size: int) -> list[Event]:
        return [event for event in read(reader, host, size) if event.entry.type != "booking_check"]

    with monkeypatch.context() as patch:
        patch.setattr(HostFold, "add", add)
        patch.setattr(Reader, "events", events)
        hidden = site.add(writer.check(HOST.did))
        reviewed(site, 2)
        assert site.reputation(HOST)["statistics"]["checks"]["denied"] == 0
        assert auditor.finds(url(site)) == [("map_root_mismatch", hidden.index + 1, 2)]
    auditor.convict()


@shows(MAP, RECORD, lie="wrong average")
def test_a_wrong_average_under_the_signed_map(monkeypatch: pytest.MonkeyPatch, site: Site, auditor: Auditor) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(record, "half_stars", lambda _: 10)
        index = reviewed(site, 2)["index"]
        assert site.reputation(HOST)["average_ratings"]["cleanliness"] == 4.3
        assert auditor.finds(url(site)) == [("map_root_mismatch", index + 1, 1), ("record_mismatch", None, 1)]
    auditor.convict()


@shows(FORK, lie="split view")
def test_a_split_view_that_is_shown_to_two_auditors(tmp_path: Path, site: Site, auditor: Auditor) -> None:
    other = Auditor(tmp_path / "other", auditor.log)
    with shown(rewritten(site.running, tmp_path / "second")) as second:
        assert second.get("/log/checkpoint").text == site.get("/log/checkpoint").text
        reviewed(site, 2)
        receipt = reviewed(second, 3)
        assert auditor.finds(url(site)) == other.finds(url(second)) == []
        (auditor.folder / "checkpoint").write_text(second.get("/log/checkpoint").text)
        assert auditor.finds(url(site), "--checkpoint", "checkpoint") == [("log_forked", None, 1)]
        # It is not forgotten, though the tree grows and nobody shows the other one again.
        reviewed(site, 4)
        assert auditor.finds(url(site)) == [("log_forked", None, 1)]
        # A guest's receipt and an answer about a host have a checkpoint in them too.
        for name, shown_to_other in (("receipt", receipt), ("answer", second.reputation(HOST, "proof=full"))):
            friend = Auditor(tmp_path / name, auditor.log)
            (friend.folder / "file.json").write_text(json.dumps(shown_to_other))
            assert friend.finds(url(site), "--checkpoint", "file.json") == [("log_forked", None, 1)]
        # Who was shown the smaller tree can only tell that there is a larger one.
        (other.folder / "checkpoint").write_text(site.get("/log/checkpoint").text)
        [beyond] = other.misses(url(second), "--checkpoint", "checkpoint")
        assert f"a checkpoint of {site.size} is known" in beyond
    auditor.convict()
    friend.convict()


@shows(FORK, lie="rolled-back log")
def test_a_log_that_is_rolled_back_and_grows_again(tmp_path: Path) -> None:
    running = new_ledger(tmp_path)
    with shown(running) as site:
        reviewed(site, 0)
    backup = copy_folder(running, tmp_path / "backup")
    auditor = Auditor(tmp_path / "auditor", running.ledger.verifier)
    running.open()
    with shown(running) as site:
        reviewed(site, 1)
        assert auditor.finds(url(site)) == []
    mark = backup / running.settings.mark.name
    older = mark.read_bytes()
    mark.write_bytes(running.settings.mark.read_bytes())
    with pytest.raises(Halted, match="restored from an older copy"):
        Restored(backup, running)
    # Only who means to do it does it.
    mark.write_bytes(older)
    with shown(Restored(backup, running)) as lying:
        reviewed(lying, 2)
        reviewed(lying, 3)
        assert auditor.finds(url(lying)) == [("log_forked", None, 1)]
    auditor.convict()


@shows(("entries", "time_falls"), lie="backdated response")
def test_a_backdated_response(monkeypatch: pytest.MonkeyPatch, site: Site, auditor: Auditor, writer: Writer) -> None:
    """The window of 30 days is over, and another host's entry says so."""
    review = reviewed(site, 2)
    in_time = format_time(site.running.clock())
    site.running.clock.forward(days=40)
    site.add(writer.check(OTHER))
    with monkeypatch.context() as patch:
        # No map head of its own accord meanwhile.
        patch.setattr("ledger.log.sequencer.is_old", lambda *_: False)
        patch.setattr("ledger.log.integrate.entry_time", lambda *_: in_time)
        index = site.response(review["review_id"])["index"]
    site.add(writer.policy())
    # The map head of its batch is as old.
    assert auditor.finds(url(site)) == [("time_falls", index, 1), ("time_falls", index + 1, 1)]
    auditor.convict()


@shows(MAP, lie="forged map head in the past")
def test_a_map_head_that_was_forged_in_the_past(
    monkeypatch: pytest.MonkeyPatch, site: Site, auditor: Auditor, writer: Writer
) -> None:
    """For a while the map had a better record of the host; it is the right one again."""
    better = jcs.dumps({"v": 1, "host": HOST.did})
    with monkeypatch.context() as patch:
        patch.setattr(batch, "map_value", lambda _: map_value(better))
        index = reviewed(site, 2)["index"]
    site.add(writer.check(OTHER))
    reviewed(site, 3)
    reviewed(site, 4)
    assert auditor.finds(url(site)) == [("map_root_mismatch", index + 1, 2)]
    with monkeypatch.context() as patch:
        patch.setattr(batch, "map_value", lambda _: map_value(better))
        again = reviewed(site, 5)["index"]
    reviewed(site, 6)
    assert auditor.finds(url(site))[1:] == [("map_root_mismatch", again + 1, 1)]
    auditor.convict()


@shows(("answer", "text_withheld"), lie="withheld text")
def test_a_withheld_text(site: Site, auditor: Auditor) -> None:
    index = reviewed(site, 2, review_text="Mice.")["index"]
    change_rows(site, "UPDATE entry SET text = NULL, salt = NULL WHERE idx = ?", index)
    assert auditor.finds(url(site)) == [("text_withheld", index, 1)]
    auditor.convict()


@shows(MAP, RECORD, lie="lowered level")
def test_a_lowered_level_in_the_record(monkeypatch: pytest.MonkeyPatch, site: Site, auditor: Auditor) -> None:
    def lowered(**members: Any) -> ReviewState:
        return ReviewState(**{**members, "level": "unconfirmed"})

    with monkeypatch.context() as patch:
        patch.setattr(record, "ReviewState", lowered)
        index = reviewed(site, 2)["index"]
        assert site.reputation(HOST)["verified_reviews"] == 2
        assert auditor.finds(url(site)) == [("map_root_mismatch", index + 1, 1), ("record_mismatch", None, 1)]
    auditor.convict()


@shows(("prefix", "issuer_untrusted"), lie="review by an untrusted issuer")
def test_reviews_by_an_issuer_that_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, site: Site, auditor: Auditor
) -> None:
    """One that never was, one for more than it is trusted for, and one that is not any more."""
    evil = Speaker(66, "https://evil.example", "/keys/1")
    indices = []
    with monkeypatch.context() as patch:
        patch.setattr(Registry, "keys", lambda *_: [ISSUER.public, evil.public])
        indices.append(reviewed(site, 2, guest_credential=credential(GUESTS[2], issuer=evil))["index"])
        less = trust(site.ledger.issuers(), "guest", IDV, [], "email_verified")
        assert less is not None
        site.add(less)
        indices.append(reviewed(site, 3)["index"])
        site.add(distrust(site.ledger.issuers(), "guest", IDV, None))
        indices.append(reviewed(site, 4)["index"])
        assert auditor.finds(url(site)) == [("issuer_untrusted", index, 1) for index in indices]
    auditor.convict()
