"""Lies in answers that no fixed question asks for: each is found by a question that the checkpoint draws."""

import json
import re
import time
from collections.abc import Callable
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from audits.audit import Audit, Options
from audits.draws import Draw
from audits.page import render
from audits.result import NEVER, SAMPLED
from audits.sampling import SILENT
from audits.state import opened
from ledger.canon import base64
from ledger.errors import Unavailable
from ledger.log.drafts import make_draft
from ledger.log.sequencer import Integrated
from tests.audits.bent import Bend, Bent, audit, require_clean
from tests.audits.convicting import DECLARED, convicted, shows
from tests.audits.forger import _NOWHERE, TRUST, VOUCHER, Forger
from tests.running import HOST, OTHER, Writer
from tests.world import LOG

REPUTATION = f"v1/hosts/{HOST}/reputation"
Members = dict[str, Any]
Change = Callable[[Members], object]


@pytest.fixture
def busy(writer: Writer) -> Forger:
    """A host with reviews of all levels, texts and responses, on several days; and one with a single review."""
    forger = Forger.begun(writer)
    for day in range(8):
        forger.clock.forward(days=1)
        level = ("guest_verified", "unconfirmed", "host_attested")[day % 3]
        review = forger.add(writer.review(level=level))
        forger.add(writer.response(review))
        if day == 4:
            forger.add(writer.upgrade(review))
        forger.add(writer.check())
        forger.head()
    forger.add(writer.review(OTHER))
    forger.head()
    return forger


def lying(forger: Forger, pattern: str, change: Change) -> Bend:
    """What is answered under paths that the pattern fits, changed."""

    def bend(path: str) -> bytes | None:
        if not re.search(pattern, path):
            return None
        said = json.loads(forger.get(path) or b"{}")
        change(said)
        return json.dumps(said).encode()

    return bend


def distrusted(said: Members) -> None:
    said["issuers"][0]["status"] = "removed"


def of_every_review(name: str, value: Any) -> Change:
    def change(said: Members) -> None:
        for review in said.get("review_history", ()):
            review[name] = value

    return change


def without_the_last(said: Members) -> None:
    if said.get("review_history"):
        said["review_history"].pop()


def member(name: str, value: Any) -> Change:
    return lambda said: said.__setitem__(name, value)


def later(said: Members) -> None:
    said["as_of"] = {**said["as_of"], "size": said["as_of"]["size"] + 1}


def another_root(said: Members) -> None:
    said["as_of"]["root"] = base64.encode(bytes(32))


def without_openings(said: Members) -> None:
    for event in said["proof"]["events"]:
        event["opening"] = None


def fewer(name: str) -> Change:
    def change(said: Members) -> None:
        for day in said["days"]:
            day[name] = 0

    return change


def twice(said: Members) -> None:
    said["days"] = [{**day, "review": 9} for day in said["days"]] + said["days"]


def long_ago(said: Members) -> None:
    said["days"].insert(0, {"date": "1999-01-01", "review": 9})


def years_ahead(said: Members) -> None:
    said["as_of"] = {"size": said["as_of"]["size"] + 1, "root": said["as_of"]["root"], "at": "2999-12-31T00:00:00Z"}
    said |= {"from": "2998-12-31", "to": "2999-12-31", "days": []}


def of_a_tree_that_no_one_signed(said: Members) -> None:
    said["as_of"]["size"] += 1
    said["days"].pop()


def no_days(said: Members) -> None:
    said["days"] = []


def sooner(said: Members) -> None:
    said["as_of"]["at"] = "2020-01-01T00:00:00Z"


def unlevelled(said: Members) -> None:
    said["verification_level"] = "unconfirmed" if said["verification_level"] != "unconfirmed" else "guest_verified"


def without_later_entries(said: Members) -> None:
    del said["entries"][1:]


def proved_elsewhere(said: Members) -> None:
    said["entries"][0]["index"] += 1


PLAIN, PROVED, AGGREGATE = r"reputation\?.*limit=\d+(&cursor=.*)?$", "proof=full", "proof=aggregate"
SIZED = r"size=\d+&limit="
UNSIZED, UNSIZED_PROVED = r"text=\w+&limit=\d+$", r"text=\w+&proof="
LIES: dict[str, tuple[str, str, Change]] = {
    "an issuer is said to be removed": ("issuers_mismatch", PLAIN, distrusted),
    "an issuer is said to be removed, where a proof is asked for": ("issuers_mismatch", PROVED, distrusted),
    "an issuer is said to be removed, beside the sums": ("issuers_mismatch", AGGREGATE, distrusted),
    "an issuer is said to be removed, beside a page": ("issuers_mismatch", "proof=page", distrusted),
    "an issuer is said to be removed, to most": ("issuers_mismatch", "reputation$", distrusted),
    "an issuer is left out": ("issuers_mismatch", AGGREGATE, member("issuers", [])),
    "a review's issuer is said to be compromised": ("issuers_mismatch", PLAIN, of_every_review("issuer_status", "compromised")),
    "a review's issuer is said to be compromised, to most": (
        "issuers_mismatch", "reputation$", of_every_review("issuer_status", "compromised")
    ),
    "as of a tree that has no map head": ("as_of_mismatch", PLAIN, later),
    "as of another root": ("as_of_mismatch", AGGREGATE, another_root),
    "as of nothing": ("as_of_mismatch", "proof=page", member("as_of", None)),
    "as of another root, to most": ("as_of_mismatch", "reputation$", another_root),
    "no cursor though there are more": ("cursor_mismatch", SIZED, member("next_cursor", None)),
    "no cursor though there are more, to most": ("cursor_mismatch", "reputation$", member("next_cursor", "more")),
    "a review is left out behind a cursor": ("history_mismatch", "cursor=", without_the_last),
    "a review is left out of short lists": ("history_mismatch", r"limit=[1-9]$", without_the_last),
    "texts of unconfirmed reviews are shown to all": (
        "history_mismatch", "text=verified.*limit", of_every_review("review_text", "Shown.")
    ),
    "texts are shown where none are asked for": ("history_mismatch", "text=none.*limit", of_every_review("review_text", "Shown.")),
    "other sums, beside the map": ("face_mismatch", AGGREGATE, member("total_reviews", 3)),
    "a text is kept back in a page": ("opening_missing", "text=all.*proof=page", without_openings),
    "a review without its response": ("review_mismatch", "v1/reviews/", without_later_entries),
    "a review at another level": ("review_mismatch", "v1/reviews/", unlevelled),
    "a review at another place": ("review_mismatch", "v1/reviews/", proved_elsewhere),
    "a review of another host": ("review_mismatch", "v1/reviews/", member("host_did", OTHER)),
    "a host's days without its checks": ("activity_mismatch", "/events", fewer("booking_check")),
    "a host without days": ("activity_mismatch", "/events", no_days),
    "an issuer's days without unconfirmed reviews": ("activity_mismatch", "/activity", fewer("unconfirmed")),
    "an issuer without days": ("activity_mismatch", "/activity", no_days),
    "other sums where no size is named": ("face_mismatch", UNSIZED, member("total_reviews", 3)),
    "a review is left out where no size is named": ("history_mismatch", UNSIZED, without_the_last),
    "an issuer is left out where no size is named": ("issuers_mismatch", UNSIZED_PROVED, member("issuers", [])),
    "a cursor without end": ("cursor_mismatch", SIZED, member("next_cursor", "A" * 201)),
    "a day is counted twice": ("activity_mismatch", "/(events|activity)", twice),
    "a day that was not asked for": ("activity_mismatch", "/(events|activity)", long_ago),
    "counts of long ago": ("activity_mismatch", "/(events|activity)", sooner),
}  # fmt: skip
KINDS = {"activity_mismatch": ("reply", "activity")}
DECLARED["test_a_lie_in_a_drawn_answer_is_found"] = frozenset(
    (kind, code) for code, _, _ in LIES.values() for kind in KINDS.get(code, ("reply",))
)


def asked_of(forger: Forger) -> list[str]:
    """Under which paths an audit asks, which finds nothing."""
    paths: list[str] = []
    require_clean(audit(forger, lambda path: paths.append(path)))
    return paths


def drawn_for(forger: Forger, pattern: str) -> Forger:
    """Let the log grow until a question is drawn to which the lie is told."""
    for _ in range(60):
        if any(re.search(pattern, path) for path in asked_of(forger) if OTHER not in path):
            return forger
        forger.add(Writer(forger.size).policy())
        forger.head()
    raise AssertionError(f"no question is drawn that fits {pattern}")


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_in_a_drawn_answer_is_found(busy: Forger, lie: tuple[str, str, Change]) -> None:
    code, pattern, change = lie
    found = audit(drawn_for(busy, pattern), lying(busy, pattern, change))
    assert {each for each, _ in convicted(found)} == {code}


@shows(("reply", "events_mismatch"))
def test_another_page_than_the_one_asked_for_is_found(busy: Forger) -> None:
    """Its proof holds: it is of other events."""

    def bend(path: str) -> bytes | None:
        asked = re.search(r"proof=page&from=(\d+)", path)
        if asked is None or OTHER in path:
            return None
        return busy.get(path.replace(asked[0], f"proof=page&from={int(asked[1]) + (1 if asked[1] == '0' else -1)}"))

    assert {code for code, _ in convicted(audit(drawn_for(busy, "proof=page"), bend))} == {"events_mismatch"}


@pytest.mark.parametrize("change", [years_ahead, of_a_tree_that_no_one_signed])
@pytest.mark.parametrize(("resource", "kind"), [("events", "days"), ("activity", "activity")])
def test_counts_of_a_tree_that_the_log_does_not_list_are_not_taken(
    busy: Forger, resource: str, kind: str, change: Change
) -> None:
    """Of a newer tree the last days may be others: so the log must have signed it, and its time is near ours."""
    # Counts before a date must be of the days before that date, which no claim about the tree changes.
    busy = drawn_for(busy, rf"{HOST}/events$")
    while not any(path.endswith("/activity") for path in asked_of(busy)):
        busy.head()
        busy = drawn_for(busy, rf"{HOST}/events$")
    found = audit(busy, lying(busy, rf"({HOST}|issuers/.*)/{resource}$", change))
    assert (found.verdict, found.found) == ("incomplete", [])
    assert [each for each in found.unchecked if f"/{resource}: the counts are of" in each] == found.unchecked
    assert found.sampled[kind] == len([path for path in asked_of(busy) if resource in path]) - 1


def test_a_review_by_an_older_checkpoint_is_not_taken(busy: Forger) -> None:
    """Else the response or upgrade that came last could be kept from readers."""
    older = busy.size
    for review in [each for each in busy._told().events(HOST) if each.entry.type == "review"]:
        about = Integrated(review.index, review.entry, _NOWHERE, repeated=False)
        busy.add(Writer(review.index).redaction(about, "response"))
    busy.head()

    def bend(path: str) -> bytes | None:
        asked = re.fullmatch(r"v1/reviews/(.*)\?text=(.*)", path)
        return json.dumps(busy._told(older).review(asked[1], {"text": asked[2]})).encode() if asked else None

    found = audit(busy, bend)
    assert (found.verdict, found.sampled["review"]) == ("incomplete", 0)
    assert all(f"it is of {older} entries" in each for each in found.unchecked)


def test_the_result_says_what_was_asked_and_what_is_never_compared(busy: Forger) -> None:
    paths: list[str] = []

    def noted(path: str) -> bytes | None:
        paths.append(path)
        return None

    with opened(None, LOG) as state:
        result = Audit(Bent(busy, noted), LOG, state, Options(), clock=busy.clock, pause=0).run()
    asked = {
        "list": r"text=\w+&(size=\d+&)?limit=",
        "full": r"text=\w+&(size=\d+&)?proof=full",
        "aggregate": "proof=aggregate",
        "page": "proof=page",
        "review": "v1/reviews",
        "days": "/events",
        "activity": "/activity",
    }
    counts = {kind: sum(bool(re.search(pattern, path)) for path in paths) for kind, pattern in asked.items()}
    # Of each host one list and one full answer are always asked for.
    assert result["sampled"] == {**counts, "list": counts["list"] - 2, "full": counts["full"] - 2}
    for kind, count in result["sampled"].items():
        assert f"{count} {SAMPLED[kind]}" in result["checked"]
    assert result["never"] == NEVER
    assert "What an audit never compares" in render(result)


def test_a_fork_that_one_answer_shows_convicts(busy: Forger) -> None:
    """The review is the same in both histories."""
    other = deepcopy(busy)
    busy.add(Writer(2).policy())
    other.add(Writer(3).policy())
    for forger in (busy, other):
        forger.head()
    found = audit(busy, lambda path: other.get(path) if path.startswith("v1/reviews/") else None)
    assert {code for code, _ in convicted(found)} == {"log_forked"}


def test_a_fork_beyond_the_audited_checkpoint_is_kept_for_the_next_audit(busy: Forger, tmp_path: Path) -> None:
    other = deepcopy(busy)
    other.add(Writer(3).policy())
    other.head()
    found = audit(busy, lambda path: other.get(path) if path.startswith("v1/reviews/") else None, tmp_path)
    assert found.found == []
    busy.add(Writer(2).policy())
    busy.head()
    assert {code for code, _ in convicted(audit(busy, state=tmp_path))} == {"log_forked"}


@pytest.mark.parametrize("pattern", [UNSIZED, UNSIZED_PROVED, "v1/reviews", "/events", "/activity"])
def test_a_log_that_grows_while_it_is_asked_is_not_accused(busy: Forger, pattern: str) -> None:
    drawn_for(busy, pattern)

    def bend(path: str) -> bytes | None:
        if re.search(pattern, path):
            busy.clock.forward(hours=30)
            busy.add(make_draft("issuer", {**TRUST, "action": "removed"}))
            busy.add(make_draft("issuer", TRUST))
            busy.add(Writer(busy.size).review())
            busy.head()
        return None

    require_clean(audit(busy, bend))


def test_answers_without_a_size_may_lag_behind_for_a_moment(busy: Forger) -> None:
    """As of a cache, or of a process that has not seen the newest checkpoint yet."""
    drawn_for(busy, UNSIZED)
    size, left = busy.size, [2]
    busy.clock.forward(days=2)
    busy.add(Writer(5).check())
    busy.head()
    drawn_for(busy, UNSIZED)

    def bend(path: str) -> bytes | None:
        if re.search(UNSIZED, path) and left[0]:
            left[0] -= 1
            return busy.get(f"{path}&size={size}")
        return None

    require_clean(audit(busy, bend))


def test_a_bare_answer_may_come_from_a_cache(busy: Forger) -> None:
    """It may be as old as the service lets caches keep it; an audit waits that long before it counts as wrong."""
    old = busy.get(REPUTATION)
    busy.add(Writer(5).review())
    busy.head()
    pause, began = 0.01, time.monotonic()

    def cached(path: str) -> bytes | None:
        return old if path == REPUTATION and time.monotonic() < began + 25 * pause else None

    with opened(None, LOG) as state:
        checking = Audit(Bent(busy, cached), LOG, state, Options(), clock=busy.clock, pause=pause)
        checking.run()
    require_clean(checking.findings)
    # One that stays old is wrong.
    assert {code for code, _ in convicted(audit(busy, lambda path: old if path == REPUTATION else None))} == {
        "face_mismatch"
    }


def test_what_is_not_to_be_reached_hides_no_other_lie(busy: Forger) -> None:
    def bend(path: str) -> bytes | None:
        if "proof=aggregate" in path:
            raise Unavailable("ledger_unreachable", "it answers 503")
        return lying(busy, "/activity", no_days)(path)

    found = audit(busy, bend)
    assert convicted(found) == [("activity_mismatch", None)]
    assert any("proof=aggregate" in each for each in found.unchecked)


def test_who_never_answers_is_not_asked_for_ever(busy: Forger) -> None:
    paths: list[str] = []

    def bend(path: str) -> bytes | None:
        if "v1/" in path and ("text=" not in path or "proof=aggregate" in path) and not path.endswith("reputation"):
            paths.append(path)
            if "checkpoints" not in path and "openings" not in path:
                raise Unavailable("ledger_unreachable", "it answers 503")
        return None

    found = audit(busy, bend)
    assert len([path for path in paths if "checkpoints" not in path and "openings" not in path]) == SILENT
    assert found.verdict == "incomplete"
    assert any("not to be reached" in each for each in found.unchecked)


def test_a_checkpoint_fixes_the_questions_that_are_drawn(busy: Forger) -> None:
    def asked() -> list[str]:
        paths = asked_of(busy)
        return [
            re.sub(r"size=\d+", "", path) for path in paths if path.startswith(("v1/hosts", "v1/reviews", "v1/issuers"))
        ]

    first = asked()
    assert asked() == first
    busy.head()
    assert asked() != first


def test_a_draw_is_what_its_description_says() -> None:
    """By the bytes: SHA-256 of root, purpose, 0x00 and the number of the draw."""
    draw = Draw(bytes(range(32)), "did:web:cottage.example")
    digests = [
        sha256(bytes(range(32)) + b"did:web:cottage.example\x00" + number.to_bytes(8, "big")).digest()
        for number in range(3)
    ]
    assert [draw.below(1000) for _ in digests] == [int.from_bytes(digest, "big") % 1000 for digest in digests]


def test_a_copy_is_asked_nothing_that_it_cannot_have(busy: Forger) -> None:
    """It has one file about a host for whatever is asked, and none for what is not copied."""
    paths: list[str] = []

    def copied(path: str) -> bytes | None:
        paths.append(path)
        return busy.get(f"{REPUTATION}?proof=full&limit=100&text=all") if path.startswith(REPUTATION) else None

    found = audit(busy, copied, None, Options(sample=0, hosts=[HOST]))
    require_clean(found)
    assert not any(path.startswith(("v1/reviews", "v1/issuers")) or "/events" in path for path in paths)
    assert found.sampled == {}


def test_members_that_a_service_leaves_out_are_said_to_be_missing(busy: Forger) -> None:
    def bare(said: Members) -> None:
        for name in ("issuers", "as_of"):
            said.pop(name, None)
        for review in said.get("review_history", ()):
            review.pop("issuer_status", None)

    found = audit(busy, lying(busy, "reputation", bare))
    assert (found.found, found.verdict) == ([], "incomplete")
    assert any("issuers, as_of" in each for each in found.unchecked)
    assert any("issuer_status" in each for each in found.unchecked)


@pytest.mark.parametrize("pattern", ["proof=aggregate", "proof=page", UNSIZED])
def test_members_that_a_drawn_answer_leaves_out_are_said_to_be_missing(busy: Forger, pattern: str) -> None:
    found = audit(drawn_for(busy, pattern), lying(busy, pattern, lambda said: said.pop("issuers")))
    assert (found.found, found.verdict) == ([], "incomplete")
    assert all(re.search(pattern, each.split(": ")[0]) and "issuers" in each for each in found.unchecked)


@pytest.mark.parametrize("pattern", ["/events", "/activity", "v1/reviews", "aggregate", "proof=page"])
@pytest.mark.parametrize("said", [b"", b"{", b"[]", b"{}", b'{"days":7}', b"null", b'{"entries":[1],"checkpoint":"x"}'])
def test_unreadable_answers_are_reported_and_break_nothing(busy: Forger, pattern: str, said: bytes) -> None:
    drawn_for(busy, pattern)
    found = audit(busy, lambda path: said if re.search(pattern, path) else None)
    # An object that has nothing of an answer is a wrong one.
    assert convicted(found) or any(re.search(pattern, each) for each in found.unchecked)
    assert found.verdict != "clean"


def test_questions_have_an_end_however_long_the_list_is(busy: Forger) -> None:
    """A service whose cursors lead in a circle is asked three pages."""
    paths: list[str] = []

    def circling(path: str) -> bytes | None:
        paths.append(path)
        if "cursor=" not in path:
            return None
        return busy.get(re.sub("&cursor=.*", "", path))

    found = audit(drawn_for(busy, "cursor="), circling)
    assert {each.fraud.code for each in found.found} == {"history_mismatch"}
    assert len([path for path in paths if "cursor=" in path]) <= 4


def test_a_status_that_changes_meanwhile_is_no_finding(busy: Forger) -> None:
    """The bare answer tells it at once; the audited checkpoint is of before."""
    done: list[str] = []

    def bend(path: str) -> bytes | None:
        if path == REPUTATION and not done:
            done.append(path)
            busy.add(make_draft("issuer", {**TRUST, "action": "removed"}))
            busy.head()
        return None

    require_clean(audit(busy, bend))
    assert (done, VOUCHER) == ([REPUTATION], TRUST["issuer"])
