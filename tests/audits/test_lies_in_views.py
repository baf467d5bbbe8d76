"""Two histories, or another one than was signed: checkpoints, tiles, bundles and answers that do not agree."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.audit import Options
from ledger.canon import base64
from ledger.log.openings import Opening
from ledger.log.tiles import encode_bundle, tile_resources
from tests.audits.convicting import Auditor, audit, convicted, shows
from tests.audits.forger import Forger, serving
from tests.audits.views import views
from tests.bits import flip
from tests.running import HOST, OTHER, Writer
from tests.world import LOG

FORK, BACK = ("fork", "log_forked"), ("rollback", "rolled_back")


@pytest.mark.parametrize(("mine", "theirs"), [(1, 1), (3, 3), (5, 1), (4, 3)])
@shows(FORK)
def test_two_who_were_shown_different_logs_find_out_when_one_gives_the_other_a_checkpoint(
    mine: int, theirs: int
) -> None:
    seen, other = views(mine, theirs)
    assert audit(seen).verdict == audit(other).verdict == "clean"
    note = other.notes[other.size]
    findings = audit(seen, options=Options(notes=[note]))
    assert convicted(findings) == [("log_forked", None)]


def test_who_has_the_smaller_tree_can_only_say_that_there_is_a_larger_one() -> None:
    """Which may be of the same log, as it is by now."""
    seen, other = views(1, 4)
    findings = audit(seen, options=Options(notes=[other.notes[other.size]]))
    assert (findings.verdict, findings.found) == ("incomplete", [])
    assert f"a checkpoint of {other.size} is known" in findings.unchecked[0]


@pytest.mark.parametrize("batches", [1, 2, 5])
@shows(FORK)
def test_what_an_auditor_kept_shows_that_the_past_was_rewritten(batches: int, tmp_path: Path) -> None:
    """Whether the new history is shorter than the old one, as long, or longer."""
    before, after = views(2, batches)
    assert audit(before, tmp_path).verdict == "clean"
    assert convicted(audit(after, tmp_path)) == [("log_forked", None)]
    # It is not forgotten, and the old history is still the one that was seen first.
    assert convicted(audit(after, tmp_path)) == [("log_forked", None)]


@shows(BACK)
def test_an_older_checkpoint_that_is_served_again(tmp_path: Path) -> None:
    [newer], [older] = views(3), views(2)
    assert audit(newer, tmp_path).verdict == "clean"
    assert convicted(audit(older, tmp_path)) == [("rolled_back", None)]
    # Who saw nothing before cannot know. The same log is believed again once it is there again.
    assert audit(older).verdict == audit(newer, tmp_path).verdict == "clean"


@shows(FORK)
def test_an_old_checkpoint_of_another_tree_in_the_list_of_all(tmp_path: Path) -> None:
    seen, other = views(3, 1)
    seen.notes[other.size] = other.notes[other.size]
    for _ in range(2):
        assert convicted(audit(seen, tmp_path)) == [("log_forked", None)]


@shows(FORK)
def test_an_answer_by_another_tree() -> None:
    seen, other = views(2, 2)
    path = f"v1/hosts/{HOST}/reputation"
    seen.instead[path] = other.get(f"{path}?proof=full") or b""
    assert ("log_forked", None) in convicted(audit(seen))


def grown(writer: Writer) -> Forger:
    """More than a bundle of entries, so that there are tiles above tiles."""
    forger = Forger.begun(writer)
    for _ in range(2):
        for _ in range(200):
            forger.add(writer.policy())
        forger.head()
    return forger


@pytest.mark.parametrize(
    ("path", "bit"), [("0/000", 8191 * 8), ("0/001.p/153", 0), ("0/001.p/153", 152 * 256 + 3), ("1/000.p/1", 77)]
)
@shows(("resource", "tile_mismatch"))
def test_a_wrong_tile(path: str, bit: int, writer: Writer, tmp_path: Path) -> None:
    forger = grown(writer)
    served = f"log/tile/{path}"
    forger.instead[served] = flip(forger.get(served) or b"", bit)
    for _ in range(2):
        findings = audit(forger, tmp_path)
        assert convicted(findings) == [("tile_mismatch", None)]
        assert f"tile/{path} is not" in findings.found[0].fraud.claim


@pytest.mark.parametrize("number", [0, 1])
@shows(("resource", "bundle_mismatch"))
def test_a_wrong_bundle(number: int, writer: Writer) -> None:
    forger = grown(writer)
    path = ("log/tile/entries/000", "log/tile/entries/001.p/153")[number]
    entries = list(forger.data[256 * number : 256 * number + 256])
    entries[7] = entries[7].replace(b'"v":1', b'"v":2')
    forger.instead[path] = encode_bundle(entries)
    assert convicted(audit(forger)) == [("bundle_mismatch", None)]
    # Cut off inside of an entry, or by one: what is left cannot be the tree's either.
    for cut in (encode_bundle(entries)[:-5], encode_bundle(entries[:-1]), b""):
        forger.instead[path] = cut
        assert convicted(audit(forger)) == [("bundle_mismatch", None)]


@shows(("unshown", "log_not_shown"))
def test_entries_that_do_not_lead_to_what_was_signed(writer: Writer, tmp_path: Path) -> None:
    forger, auditor = Forger.begun(writer), Auditor(tmp_path / "auditor", LOG)
    forger.sign(root=base64.decode(writer.hash()))
    with serving(forger) as url:
        assert auditor.finds(url) == [("log_not_shown", None, 1)]
    auditor.convict()


@given(st.data())
@settings(max_examples=25)
def test_no_changed_bit_of_what_is_served_goes_unnoticed(data: st.DataObject) -> None:
    forger = grown(Writer())
    path = "log/" + data.draw(st.sampled_from(list(tile_resources(forger.size))))
    right = forger.get(path) or b""
    forger.instead[path] = flip(right, data.draw(st.integers(0, len(right) * 8 - 1)))
    [(code, _)] = convicted(audit(forger))
    assert code == ("bundle_mismatch" if "entries" in path else "tile_mismatch")


def test_what_is_not_served_at_all_is_not_found_to_be_right(writer: Writer) -> None:
    forger = grown(writer)
    forger.missing |= {"log/tile/0/000", "log/tile/1/000.p/1"}
    findings = audit(forger)
    assert findings.verdict == "incomplete"
    assert [line.partition(":")[0] for line in findings.unchecked] == ["tile/0/000", "tile/1/000.p/1"]
    forger.missing.add("log/tile/entries/000")
    findings = audit(forger)
    assert (findings.verdict, findings.found) == ("incomplete", [])
    assert any("entries" in line for line in findings.unchecked)


def busy(writer: Writer) -> Forger:
    """A host whose answer comes in pages."""
    forger = Forger.begun(writer)
    for _ in range(4):
        for _ in range(250):
            forger.add(writer.check())
        forger.head()
    forger.add(writer.review())
    forger.head()
    return forger


@shows(("answer", "text_withheld"), ("answer", "face_mismatch"))
def test_what_is_withheld_from_a_host_with_many_events(writer: Writer) -> None:
    forger = busy(writer)
    assert audit(forger).verdict == "clean"
    opening = forger.openings.pop(forger.size - 2)
    [finding] = (findings := audit(forger)).found
    assert (finding.fraud.code, finding.index, finding.count) == ("text_withheld", forger.size - 2, 1)
    assert len(finding.fraud.evidence["documents"]) == 3
    convicted(findings)
    forger.openings[forger.size - 2] = opening
    path = f"v1/hosts/{HOST}/reputation"
    plain: dict[str, Any] = json.loads(forger.get(path) or b"")
    plain["average_ratings"]["overall"] = 5
    forger.plain[path] = json.dumps(plain).encode()
    assert convicted(audit(forger)) == [("face_mismatch", None)]


@pytest.mark.parametrize("left", [slice(1, None), slice(0, -1), slice(0, 3, 2), slice(0, 0)])
@shows(("answer", "history_mismatch"))
def test_a_list_that_leaves_reviews_out(left: slice, writer: Writer) -> None:
    """The newest, the oldest, one between or all; the counts beside it are right."""
    forger = Forger.begun(writer)
    for _ in range(2):
        forger.add(writer.review())
    forger.head()
    path = f"v1/hosts/{HOST}/reputation"
    answer = json.loads(forger.get(path) or b"")
    answer["review_history"] = answer["review_history"][left]
    forger.plain[path] = json.dumps(answer).encode()
    assert convicted(audit(forger)) == [("history_mismatch", None)]


@shows(("answer", "text_withheld"))
def test_a_text_that_is_withheld_from_those_alone_who_ask_about_the_host(writer: Writer) -> None:
    forger = Forger.begun(writer)
    path = f"v1/hosts/{HOST}/reputation"
    for query, served in (("?proof=full", forger.instead), ("", forger.plain)):
        answer = json.loads(forger.get(path + query) or b"")
        answer["review_history"][0]["review_text"] = None
        answer.get("proof", {"events": [{}]})["events"][0]["opening"] = None
        served[path] = json.dumps(answer).encode()
    findings = audit(forger)
    assert convicted(findings) == [("text_withheld", 4)]


@shows(("answer", "opening_mismatch"))
def test_a_text_that_is_not_the_one_that_was_written(writer: Writer) -> None:
    forger = Forger.begun(writer)
    review = forger.add(writer.review(OTHER, text="Mice."))
    forger.head()
    forger.openings[review.index] = Opening("Nice.", forger.openings[review.index].salt)
    assert convicted(audit(forger)) == [("opening_mismatch", None)]
