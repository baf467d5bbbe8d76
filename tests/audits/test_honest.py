"""No honest log is ever accused: whatever its history, and whatever it does while it is read."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.audit import Audit
from audits.mirror import Mirror
from audits.result import Result
from audits.source import FolderSource, Source, WebSource
from audits.state import opened
from ledger.errors import Unavailable
from ledger.log.memory import MemoryLog
from ledger.log.record import fold
from ledger.log.sequencer import Integrated
from tests.audits.honest import KINDS, Honest, Served, audited, expected_figures, lay_out, web_server
from tests.audits.live import HOSTS, Live, Meanwhile, on_engine
from tests.world import LOG

# What happens in each batch, as far as the rules allow it; a batch of nothing is a map head alone.
_batches = st.lists(st.lists(st.sampled_from(KINDS), max_size=10), max_size=14)
# Seldom the most that a batch may have.
_full = st.sampled_from([0] * 7 + [255])


def grown(seed: int, batches: list[list[str]], full: int = 0) -> Honest:
    world = Honest(seed)
    world.take("issuer", "issuer", "issuer")
    world.publish()
    for kinds in batches:
        world.take(*kinds)
        world.publish()
    while world.next_index < len(world.log.entries) + full:
        world.step()
    world.publish()
    return world


def require_clean(result: Result) -> Result:
    """Nothing is found, and nothing was left out."""
    assert (result["verdict"], result["findings"], result["unchecked"]) == ("clean", [], [])
    return result


def require_records(audit: Audit, log: MemoryLog) -> None:
    """What the auditor has of each host is what the definition gives."""
    folds = audit._replayer.rules.replay.hosts
    hosts = {entry.host for entry in log.entries if entry.host is not None}
    assert folds.keys() == hosts
    for host in hosts:
        events = [(index, entry) for index, entry in enumerate(log.entries) if entry.host == host]
        assert folds[host].record() == fold(host, events)


@given(st.integers(0, 1 << 32), _batches, _full)
@settings(max_examples=40)
def test_an_honest_log_is_clean(seed: int, batches: list[list[str]], full: int) -> None:
    log = grown(seed, batches, full).log
    with TemporaryDirectory() as folder, opened(None, LOG) as state:
        audit = audited(FolderSource(lay_out(log, Path(folder))), state)
        result = require_clean(audit.run())
        assert result["figures"] == expected_figures(log)
        assert result["size"] == len(log.entries)
        assert result["at"] == log.entries[-1].at
        require_records(audit, log)


@given(st.integers(0, 1 << 32), st.lists(_batches, min_size=2, max_size=4))
@settings(max_examples=8)
def test_audits_while_a_log_grows_say_what_one_at_the_end_says(seed: int, steps: list[list[list[str]]]) -> None:
    world = Honest(seed)
    with TemporaryDirectory() as kept, web_server(Served(world.log).get) as url:
        for batches in steps:
            world.take("issuer")
            for kinds in batches:
                world.take(*kinds)
                world.publish()
            with opened(Path(kept), LOG) as state:
                audit = audited(WebSource(url), state)
                in_steps = require_clean(audit.run())
        require_records(audit, world.log)
        with opened(None, LOG) as state:
            at_once = require_clean(audited(WebSource(url), state).run())
    assert at_once["figures"] == expected_figures(world.log)
    # Only what has changed is compared again.
    for result in (in_steps, at_once):
        result["figures"] = {name: result["figures"][name] for name in ("entries", "hosts", "map_heads", "texts")}
        result["checked"] = result["checked"][:2]
    assert in_steps == at_once


def test_a_long_list_of_checkpoints_and_a_host_in_pages_are_read_to_their_end() -> None:
    """More than a page of either."""
    world = Honest(3, HOSTS[:2])
    world.take("issuer", "issuer", "issuer")
    for _ in range(120):
        world.take("review", "redaction", "upgrade")
        world.publish()
    for _ in range(5):
        for _ in range(201):
            world._add("booking_check", {"host_did": HOSTS[0], "outcome": "denied", "booking": world.hash()})
        world.publish()
    asked: list[str] = []
    served = Served(world.log)

    def respond(path: str, query: dict[str, str]) -> bytes:
        asked.append(f"{path} {query.get('proof')} {'before' in query}")
        return served.get(path, query)

    with web_server(respond) as url, opened(None, LOG) as state:
        result = require_clean(audited(WebSource(url), state).run())
    assert result["figures"] == expected_figures(world.log)
    assert asked.count("v1/log/checkpoints None True") == 2
    # And one page that is drawn.
    assert asked.count(f"v1/hosts/{HOSTS[0]}/reputation page False") == 3 + 1


# A service that goes on


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with on_engine(request, tmp_path_factory.mktemp("service")) as made:
        yield made


def audit(service: Live, source: Source | None = None, **options: Any) -> Result:
    with opened(None, service.log) as state:
        return audited(source or service.source(), state, service.log, **options).run()


def audit_of_copy(service: Live, source: Source, folder: Path, pause: float = 0) -> Result:
    """The audit of a copy that is made now."""
    copying = Mirror(source, folder, service.log, lambda _what, _done, _total: None, hosts=20, pause=pause)
    copying.update()
    assert copying.missed == []
    return audit(service, FolderSource(folder))


# What is read, and when in an audit something may happen.
READ = {
    "checkpoint": "log/checkpoint$",
    "bundles": "tile/entries/",
    "tiles": "tile/0/",
    "openings": "openings/",
    "checkpoints": "log/checkpoints",
    "proved answer": "proof=full",
    "plain answer": r"reputation\?text=all&size=\d+&limit",
}
BARE = "reputation$"


@pytest.mark.parametrize("pattern", [*READ.values(), BARE], ids=[*READ, "bare answer"])
def test_texts_may_vanish_before_anything_is_read(service: Live, pattern: str) -> None:
    reviews = [service.review(host, f"text {number}") for number in range(2) for host in HOSTS]
    vanishing = Meanwhile(service.source(), pattern, lambda: [service.redact(review) for review in reviews])
    require_clean(audit(service, vanishing))
    assert vanishing.times == 0


@pytest.mark.parametrize("pattern", READ.values(), ids=READ.keys())
def test_and_while_a_copy_is_made(service: Live, pattern: str, tmp_path: Path) -> None:
    reviews = [service.review(host, f"text {number}") for number in range(2) for host in HOSTS]
    vanishing = Meanwhile(service.source(), pattern, lambda: [service.redact(review) for review in reviews])
    require_clean(audit_of_copy(service, vanishing, tmp_path / "copy"))
    assert vanishing.times == 0


@pytest.mark.parametrize("pattern", [*READ.values(), BARE], ids=[*READ, "bare answer"])
def test_and_again_and_again(service: Live, pattern: str) -> None:
    """Each time that something is read a review comes in, and the one before it is redacted."""
    reviews = [service.review(HOSTS[0], "gone soon")]

    def go_on() -> None:
        reviews.append(service.review(HOSTS[0], "gone soon"))
        service.redact(reviews[-2])

    result = audit(service, Meanwhile(service.source(), pattern, go_on, 30))
    # There may be texts for which there was no time.
    assert result["findings"] == []
    assert result["verdict"] in ("clean", "incomplete")


def test_a_log_that_never_rests_is_not_accused(service: Live, tmp_path: Path) -> None:
    """Three write and redact without end, while it is audited and copied again and again."""
    stop, written = Event(), list[Integrated]()

    def write(host: str) -> None:
        while not stop.wait(0.03):
            review = service.review(host, "gone soon")
            service.redact(review)
            written.append(review)

    threads = [Thread(target=write, args=(host,), daemon=True) for host in HOSTS]
    for thread in threads:
        thread.start()
    try:
        for number in range(2):
            # In earnest there is a second of patience; a moment is enough here.
            assert audit(service, pause=0.05)["findings"] == []
            with suppress(Unavailable):
                copied = audit_of_copy(service, service.source(), tmp_path / f"copy{number}", pause=0.05)
                assert copied["findings"] == []
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    require_clean(audit(service))
    require_clean(audit_of_copy(service, service.source(), tmp_path / "copy0"))
    assert len(written) > 5
