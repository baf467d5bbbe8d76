"""Questions that an audit draws, asked of a service: whether it answers otherwise than by the fixed questions."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from heapq import nsmallest
from typing import Any
from urllib.parse import quote

from audits import counts, replies
from audits.answer import Answer
from audits.basis import AS_OF, Basis, brief, lacking, readable
from audits.drawn_questions import MOST_LIMIT, following, questions, some_day
from audits.draws import Draw
from audits.evidence import Audited, Fraud
from audits.face import Part
from audits.findings import Findings
from audits.newer_trees import NewerTrees
from audits.questions import CURSOR, Question, is_cursor, judge
from audits.replayer import Replayer
from audits.source import Source
from audits.state import State
from ledger.canon import base64, strict_json
from ledger.errors import Malformed, NotFetched, NotFound, NotProved, StaylogError, Unavailable
from ledger.log.face import Event
from ledger.log.note import Verifier

# Issuers whose counts are asked for, and pages of a list that are followed by their cursors.
ISSUERS, PAGES = 5, 3
# Of several processes one may lag behind: so often it is asked, so many seconds apart.
PATIENCE = 3
# Who was not to be reached so often is asked nothing more: each time takes minutes.
SILENT = 3
# Seconds for which an answer may be kept by a cache (`api.caching.REVALIDATE`), and a moment.
CACHED = 31

# Texts that an answer left out, and the proof that it did.
Hidden = tuple[Fraud, set[Part]]


class Sampler:
    """Draws by the root of one checkpoint, and compares what comes. A copy has no answers but those that were copied:
    there only the members beside the record are looked at."""

    def __init__(
        self,
        source: Source,
        log: Verifier,
        state: State,
        replayer: Replayer,
        findings: Findings,
        clock: Callable[[], datetime],
        pause: float,
    ) -> None:
        self._source = source
        self._log = log
        self._state = state
        self._replayer = replayer
        self._findings = findings
        self._newer = NewerTrees(source, log, state, findings, clock)
        self._pause = pause
        self._began = time.monotonic()
        self._silent = 0

    def basis(self, host: str, answers: Sequence[Answer], audited: Audited) -> Basis:
        """What must be said about the host, by its proved answer and the replayed entries."""
        events = [event for each in answers for event in each.events]
        known = self._replayer.rules.trust.issuers
        statuses = {name: each["status"] for name, each in known.items() if each["status"] is not None}
        as_of = self.tree_after(events[-1].index, audited) if events else None
        return Basis.of(host, answers, audited.checkpoint, statuses, as_of)

    def tree_after(self, index: int, audited: Audited) -> dict[str, object] | None:
        """The first tree that ends in a map head and has the entry."""
        size = self._state.head_after(index)
        if size is None or size > audited.size:
            return None
        return {"size": size, "root": base64.encode(audited.root(size)), "at": self._state.head_at(size)}

    def beside(self, documents: Sequence[bytes], said: bytes, basis: Basis, audited: Audited, *, is_copy: bool) -> None:
        """The members of a fixed answer that follow from other entries than the host's."""
        with readable():
            missing = lacking(strict_json.loads(said))
        if missing and not is_copy:
            self._findings.miss(f"{', '.join(missing)} of {basis.host}: the answer does not have them")
        question = Question("beside", "all", MOST_LIMIT)
        try:
            wrong: StaylogError | None = self._wrong(question, said, basis, audited, set())
        except StaylogError as error:
            wrong = error
        if isinstance(wrong, NotProved):
            claim = f"the answer about {basis.host}: {wrong}"
            self._accuse(claim, partial(self.prove, wrong, documents, question, said, basis, audited))
        elif wrong is not None:
            self._findings.miss(f"the answer about {basis.host}: {wrong}")

    def bare(self, said: bytes, basis: Basis, *, is_copy: bool) -> None:
        """Raises NotProved where the members of a bare answer that were not compared yet are not as they follow."""
        with readable():
            face = strict_json.loads(said)
            if (missing := lacking(face)) and not is_copy:
                self._findings.miss(f"{', '.join(missing)} of {basis.host}: the bare answer does not have them")
            basis.require_beside(face)
            if not is_copy:
                _require_cursor(face, basis.events)

    def at_moment(
        self, basis: Basis, before: Mapping[str, str]
    ) -> Callable[[Mapping[str, Any], Sequence[Event]], bool]:
        """Whether these members are as they follow from some of the host's events, with the status that its issuers had
        before, or have now."""

        def fits(face: Mapping[str, Any], events: Sequence[Event]) -> bool:
            size = self._state.head_after(events[-1].index) if events else None
            as_of = None
            if size is not None:
                root = self._state.root_at(size) or b""
                as_of = {"size": size, "root": base64.encode(root), "at": self._state.head_at(size)}
            try:
                with readable():
                    said = {each.get("issuer"): each.get("status") for each in face.get("issuers", ())}
                    earlier = {name: said[name] for name in said if said[name] == before.get(name)}
                    statuses = {**basis.statuses, **earlier}
                    replace(basis, events=events, statuses=statuses, as_of=as_of).require_beside(face)
                    _require_cursor(face, events)
            except (Malformed, NotProved):
                return False
            return True

        return fits

    def about(self, host: str, documents: Sequence[bytes], basis: Basis, audited: Audited) -> list[Hidden]:
        """Ask the questions that are drawn for the host; texts that are left out may have been redacted since. Where
        the signed map has not all of its events there is no one right answer, and a finding already."""
        fold, hidden = self._replayer.rules.replay.hosts.get(host), list[Hidden]()
        if len(basis.events) != (fold.members()["events"] if fold is not None else 0):
            return hidden
        for question in questions(basis, Draw(audited.checkpoint.root, host)):
            if question.kind == "days" and self._times_fall:
                continue
            cursor: str | None = None
            asked: Question | None = question
            for _ in range(PAGES):
                if asked is None or self._is_silent():
                    break
                said = self._ask(asked, host, documents, basis, audited, cursor, hidden)
                asked, cursor = following(asked, said)
        return hidden

    def _is_silent(self) -> bool:
        if self._silent >= SILENT:
            self._findings.miss("the other questions that were drawn: the service was not to be reached")
        return self._silent >= SILENT

    def _ask(
        self,
        question: Question,
        host: str,
        documents: Sequence[bytes],
        basis: Basis,
        audited: Audited,
        cursor: str | None,
        hidden: list[Hidden],
    ) -> bytes | None:
        """The answer, once it was compared and is right. One without a size is wrong only if the log has not grown
        meanwhile; where it has, the same is asked of the audited size."""
        path = question.path(host, audited.size, cursor)
        of_newest = not question.sized or question.kind in ("days", "review")
        trouble: StaylogError | None = None
        for _ in self._tries(of_newest=of_newest):
            try:
                said, parts = self._source.get(path), set[Part]()
                self._newer.hold(said, audited)
                trouble = self._wrong(question, said, basis, audited, parts)
                if trouble is None:
                    self._findings.sampled[question.kind] += 1
                    if parts:
                        hidden.append((self._prove_hidden(documents, question, said, basis, audited), parts))
                    return said
                if question.sized and isinstance(trouble, NotProved):
                    break
                if not question.sized and self._newer.has_grown(audited):
                    return self._ask(replace(question, sized=True), host, documents, basis, audited, cursor, hidden)
            except (Malformed, NotFetched, NotFound) as error:
                trouble = error
            except Unavailable as error:
                self._silent, trouble = self._silent + 1, error
                break
        if isinstance(trouble, NotProved):
            prove = partial(self.prove, trouble, documents, question, said, basis, audited)
            self._accuse(f"{path}: {trouble}", prove)
        else:
            self._findings.miss(f"{path}: {trouble}")
        return None

    def _tries(self, *, of_newest: bool) -> Iterator[None]:
        """One more for each time that it is worth asking again. What is asked without a size may come from a cache: the
        last time it is of the audited checkpoint, or newer, for certain."""
        for number in range(PATIENCE):
            if number:
                time.sleep(self._pause)
            if of_newest and number == PATIENCE - 1:
                self.outwait_caches()
            yield

    def outwait_caches(self) -> None:
        """From then on what a cache answers is of the audited checkpoint, or newer."""
        time.sleep(max(self._began + CACHED * self._pause - time.monotonic(), 0))

    def _wrong(
        self, question: Question, said: bytes, basis: Basis, audited: Audited, parts: set[Part]
    ) -> Malformed | NotProved | None:
        """What is wrong with an answer, but for texts that are left out."""
        try:
            judge(question, said, basis, self._log, parts)
            if question.kind == "days":
                self._newer.require_listed(strict_json.loads(said), basis)
            elif question.kind in ("list", "full", "aggregate", "page"):
                _require_all(strict_json.loads(said))
        except Malformed as error:
            return error
        except NotProved as error:
            is_next = error.code == AS_OF and self._is_next_listed(strict_json.loads(said)["as_of"], basis, audited)
            return None if is_next else error
        return None

    def prove(
        self,
        error: NotProved,
        documents: Sequence[bytes],
        question: Question,
        said: bytes,
        basis: Basis,
        audited: Audited,
    ) -> Fraud:
        claim = f"the answer about {basis.host} ({question.kind}): {error}"
        known, names = self._replayer.rules.trust.issuers, [each["issuer"] for each in basis.issuers()]
        issuers = [known[name]["index"] for name in names if known.get(name, {}).get("index") is not None]
        return replies.prove(error.code, claim, documents, question, said, basis, audited, issuers)

    def _prove_hidden(
        self, documents: Sequence[bytes], question: Question, said: bytes, basis: Basis, audited: Audited
    ) -> Fraud:
        try:
            judge(question, said, basis, self._log)
        except NotProved as error:
            return self.prove(error, documents, question, said, basis, audited)
        raise AssertionError("nothing is left out")

    def _is_next_listed(self, said: Any, basis: Basis, audited: Audited) -> bool:
        """Whether it is a later tree with a map head, and the log lists no checkpoint between: not every map head has
        one for certain, though this service signs them all."""
        try:
            first, size = basis.as_of["size"] if basis.as_of else 0, int(said["size"])
            if not first < size <= audited.size or said != self.tree_after(size - 1, audited):
                return False
            value = strict_json.loads(self._source.get(f"v1/log/checkpoints?before={size}&count=1"))
            return bool(first) and all(each["size"] < first for each in value["checkpoints"])
        except (ArithmeticError, KeyError, Malformed, TypeError, ValueError):
            return False

    @property
    def _times_fall(self) -> bool:
        """Whether the log itself is wrong about when its entries came: then nothing follows for a day."""
        return any(code == "time_falls" for code, *_ in self._replayer.breaks)

    def issuers(self, audited: Audited) -> None:
        """Ask how much rests on some of the issuers."""
        if self._times_fall:
            return
        known, root = self._replayer.rules.trust.issuers, audited.checkpoint.root
        at = str(self._state.head_at(audited.size))
        for issuer in nsmallest(ISSUERS, known, key=lambda name: sha256(root + name.encode()).digest()):
            before = some_day(known[issuer]["days"], at, Draw(root, issuer))
            path = f"v1/issuers/{quote(issuer, safe='')}/activity" + (f"?before={before}" if before else "")
            if self._is_silent():
                return
            trouble: StaylogError | None = None
            for _ in self._tries(of_newest=True):
                try:
                    said = self._source.get(path)
                    with readable():
                        face, tree = strict_json.loads(said), replies.Tree(audited.checkpoint, at)
                        counts.require(face, known[issuer]["days"], tree, before)
                        self._newer.require_listed(face, tree)
                    self._findings.sampled["activity"] += 1
                    trouble = None
                    break
                except NotProved as error:
                    claim = f"the counts by day of {issuer}: {error}"
                    self._accuse(claim, partial(replies.prove_activity, claim, issuer, before, said, audited))
                    trouble = None
                    break
                except (Malformed, NotFetched, NotFound) as error:
                    trouble = error
                except Unavailable as error:
                    self._silent, trouble = self._silent + 1, error
                    break
            if trouble is not None:
                self._findings.miss(f"{path}: {trouble}")

    def _accuse(self, claim: str, prove: Callable[[], Fraud]) -> None:
        """What shows it may be too large for a file, or not to be had any more."""
        try:
            self._findings.add(prove())
        except StaylogError as error:
            self._findings.miss(f"{claim}: this could not be shown: {error}")


def _require_all(face: Mapping[str, Any]) -> None:
    """Members that follow from other entries are there. Raises Malformed."""
    if missing := lacking(face):
        raise Malformed("answer_malformed", f"it does not have {', '.join(missing)}")


def _require_cursor(face: Mapping[str, Any], events: Sequence[Event]) -> None:
    """There is one if the host has more reviews than are listed."""
    reviews, cursor = sum(event.entry.type == "review" for event in events), face.get("next_cursor")
    if not is_cursor(cursor, more=reviews > len(face["review_history"])):
        raise NotProved(CURSOR, f"next_cursor is {brief(cursor)}, and the host has {reviews} reviews")
