"""Whatever happens in whatever order: proofs verify, the fold is the record, nothing acknowledged is lost, and only
keys that are trusted count."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from ledger.canon import multikey
from ledger.errors import Misconfigured, NotAccepted
from ledger.identity.issuers import distrust, trust
from ledger.log.integrate import SomeRefused
from ledger.log.sequencer import Integrated
from tests.engines import PostgresServer
from tests.identities import IDV, Speaker
from tests.running import HOST, OTHER, Running, Writer

HOSTS = st.sampled_from([HOST, OTHER, "did:key:z6MkqRYqQiSgvZQdnBytw86Qbs2ZWUkGv22od935YF4s8M7V"])

KEYS = st.sampled_from([Speaker(seed).multikey for seed in (1, 2, 3)])


class LedgerMachine(RuleBasedStateMachine):
    """Reviews by level; each is named by later entries that the rules allow, or refuse."""

    reviews, unconfirmed, texts, responses = (Bundle(name) for name in ("reviews", "unconfirmed", "texts", "responses"))
    new_url: Any

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="staylog-"))
        self.running = Running(self.folder / "data", self.new_url(self.folder))
        self.writer = Writer()
        self.acknowledged: dict[int, bytes] = {}
        self.trusted: dict[str, frozenset[str]] = {}
        self.compromised: frozenset[str] = frozenset()

    def teardown(self) -> None:
        assert self.running.fsck().findings == []
        self.running.ledger.close()
        shutil.rmtree(self.folder)

    @rule(target=texts, hosts=st.lists(HOSTS, min_size=1, max_size=4))
    def review(self, hosts: list[str]) -> Integrated:
        return self.add(*(self.writer.review(host) for host in hosts))[-1]

    @rule(target=unconfirmed, host=HOSTS)
    def doubtful_review(self, host: str) -> Integrated:
        return self.add(self.writer.review(host, "unconfirmed", text=None))[0]

    @rule(target=responses, review=consumes(texts))
    def respond(self, review: Integrated) -> Integrated:
        self.add(self.writer.response(review), self.writer.check(review.entry.members["host_did"]))
        self.refused(self.writer.response(review), "response_repeated")
        return review

    @rule(review=consumes(responses), part=st.sampled_from(["text", "response"]))
    def redact(self, review: Integrated, part: str) -> None:
        self.add(self.writer.redaction(review, part))
        self.refused(self.writer.redaction(review, part), "redaction_repeated")

    @rule(review=consumes(unconfirmed))
    def upgrade_and_respond(self, review: Integrated) -> None:
        self.add(self.writer.upgrade(review), self.writer.response(review))
        self.refused(self.writer.upgrade(review), "upgrade_not_unconfirmed")
        self.refused(self.writer.redaction(review, "text"), "redaction_of_nothing")
        self.add(self.writer.redaction(review, "response"))

    @rule(review=texts)
    def repeat(self, review: Integrated) -> None:
        members = {name: value for name, value in review.entry.members.items() if name not in ("type", "v", "at")}
        self.refused(self.writer.review(**members), "review_id_reused")

    @rule(role=st.sampled_from(["guest", "host"]), key=KEYS)
    def trust(self, role: str, key: str) -> None:
        """A key more; none that was in other hands."""
        registry, known = self.running.ledger.issuers(), self.trusted.get(role, frozenset())
        if key in self.compromised:
            with pytest.raises(Misconfigured):
                trust(registry, role, IDV, [key], None)
            return
        draft = trust(registry, role, IDV, [key], None)
        self.trusted[role] = (known - self.compromised) | {key}
        assert (draft is None) == (self.trusted[role] == known)
        if draft is not None:
            self.add(draft)

    @rule(role=st.sampled_from(["guest", "host"]), since=st.none() | st.just("2026-05-01T00:00:00Z"))
    def distrust(self, role: str, since: str | None) -> None:
        known = self.trusted.pop(role, None)
        if known is not None:
            self.add(distrust(self.running.ledger.issuers(), role, IDV, since))
            self.compromised |= known if since else frozenset()

    @invariant()
    def only_trusted_keys_count(self) -> None:
        registry = self.running.ledger.issuers()
        for role in ("guest", "host"):
            expected = self.trusted.get(role, frozenset()) - self.compromised
            try:
                found = {multikey.encode(key) for key in registry.keys(role, IDV)}
            except NotAccepted:
                found = set()
            assert found == expected

    @rule(seconds=st.integers(-100, 100_000))
    def time_passes(self, seconds: int) -> None:
        self.running.clock.forward(seconds=seconds)

    @rule()
    def restart(self) -> None:
        self.running.reopen()

    @invariant()
    def answers_verify(self) -> None:
        for host in (HOST, OTHER):
            self.running.answer(host, text="all")

    @invariant()
    def nothing_is_lost(self) -> None:
        stored = self.running.ledger.reader.entries(0, 10_000)
        assert all(stored[index] == data for index, data in self.acknowledged.items())

    def add(self, *drafts: Any) -> list[Integrated]:
        done = self.running.add(*drafts)
        self.acknowledged |= {each.index: each.entry.data for each in done}
        return done

    def refused(self, draft: Any, code: str) -> None:
        before = self.running.ledger.reader.published
        with pytest.raises(SomeRefused) as refused:
            self.running.add(draft)
        assert [error.code for error in refused.value.refusals.values()] == [code]
        assert self.running.ledger.reader.refresh() == before


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_whatever_happens(engine: str, request: pytest.FixtureRequest) -> None:
    class Machine(LedgerMachine):
        @staticmethod
        def new_url(folder: Path) -> str:
            if engine == "sqlite":
                return f"sqlite:///{folder}/ledger.db"
            server: PostgresServer = request.getfixturevalue("postgres")
            return server.url("machine")

    run_state_machine_as_test(Machine, settings=settings(max_examples=12, stateful_step_count=20))
