"""Equal commitments, wherever they stand: found in one audit or across several, and never in an honest log."""

from itertools import chain
from pathlib import Path

import pytest

from audits import committed
from audits.commitments import commitments
from audits.state import opened
from ledger.log.drafts import make_draft
from ledger.log.entries import parse_entry
from schemas.vectors import world
from tests.audits.bent import audit, require_clean
from tests.audits.convicting import convicted
from tests.audits.forger import Forger
from tests.audits.honest import Honest
from tests.running import OTHER, Writer
from tests.world import LOG


def check_like(forger: Forger, first: int, writer: Writer) -> int:
    """A booking check of another host with the commitment of the check at `first`."""
    booking = parse_entry(forger.data[first]).members["booking"]
    return forger.add(make_draft("booking_check", {**writer.check(OTHER).members, "booking": booking})).index


def test_finds_a_commitment_that_an_earlier_audit_saw(tmp_path: Path, writer: Writer) -> None:
    forger = Forger.begun(writer)
    first = forger.add(writer.check()).index
    forger.head()
    require_clean(audit(forger, state=tmp_path))
    index = check_like(forger, first, writer)
    forger.head()
    assert convicted(audit(forger, state=tmp_path)) == [("commitment_repeated", index)]
    # And again by the next one: it is still there.
    assert convicted(audit(forger, state=tmp_path)) == [("commitment_repeated", index)]


def test_finds_it_across_what_is_written_in_parts(monkeypatch: pytest.MonkeyPatch, writer: Writer) -> None:
    monkeypatch.setattr(committed, "FRESH", 3)
    forger = Forger.begun(writer)
    first = forger.add(writer.check()).index
    for _ in range(10):
        forger.add(writer.review())
    forger.head()
    index = check_like(forger, first, writer)
    forger.head()
    assert convicted(audit(forger)) == [("commitment_repeated", index)]


def test_four_reviews_with_one_commitment_are_one_finding_each_after_the_first(writer: Writer) -> None:
    """As `staylog log add` took them: all of nothing."""
    forger, nothing = Forger.begun(writer), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    evidence = {**writer.evidence("stay_receipt"), "commitment": nothing}
    invented = [forger.add(writer.review(evidence=evidence)).index for _ in range(4)]
    forger.head()
    found = convicted(audit(forger))
    assert found == [
        *(("commitment_of_nothing", index) for index in invented),
        *(("commitment_repeated", index) for index in invented[1:]),
    ]


def test_a_replay_of_an_earlier_version_is_made_anew(tmp_path: Path, writer: Writer) -> None:
    forger = Forger.begun(writer)
    require_clean(audit(forger, state=tmp_path))
    with opened(tmp_path, LOG) as state:
        snapshot = state.get("replay")
        del snapshot["looks_for"]
        state.put("replay", snapshot)
        state.commit()
        seen = state.seen()
    found = audit(forger, state=tmp_path)
    require_clean(found)
    with opened(tmp_path, LOG) as state:
        assert state.seen() == seen
        assert "looks_for" in state.get("replay")


def test_no_honest_log_has_two() -> None:
    """Nor the one of the published vectors, whose salts are numbered."""
    for log in (*(Honest(seed).grow(40).log for seed in range(3)), world.tell().log):
        entries = log.entries
        found = list(chain.from_iterable(commitments(entry.type, entry.members) for entry in entries))
        assert len(found) == len(set(found)) > 20
