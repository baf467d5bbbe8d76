"""What is answered about hosts, and what has become of texts that are not served."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from audits import beside
from audits.evidence import Audited
from audits.face import Part
from audits.findings import Findings
from audits.replayer import Progress, Replayer
from audits.sampling import Sampler
from audits.source import Source
from audits.state import State
from ledger.log.note import Verifier

# So often the hosts of texts that have vanished meanwhile are asked about as well.
ROUNDS = 3


class Asking:
    """Asks about hosts. `follow` gives the log as it is once it must have published what it had written before."""

    def __init__(
        self,
        source: Source,
        log: Verifier,
        state: State,
        replayer: Replayer,
        findings: Findings,
        progress: Progress,
        follow: Callable[[Audited], Audited],
        clock: Callable[[], datetime],
        pause: float,
    ) -> None:
        self._source = source
        self._log = log
        self._state = state
        self._replayer = replayer
        self._findings = findings
        self._progress = progress
        self._follow = follow
        self._asked_about_issuers = False
        self._sampler = Sampler(source, log, state, replayer, findings, clock, pause)
        self._asked: dict[str, beside.Asked | None] = {}

    def about(self, hosts: Iterable[str], audited: Audited) -> Audited:
        """Answers about these hosts, and about those whose texts are missing. The log is followed meanwhile: what is
        missing may have been redacted, and it says so in entries that come now."""
        wanted, asked = dict.fromkeys(hosts), self._asked
        for _ in range(ROUNDS):
            missing = self._last_missing()
            wanted |= dict.fromkeys(missing)
            for host in wanted:
                if self._is_open(host, missing):
                    self._progress("answers", len(asked), len(wanted))
                    asked[host] = self._ask(host, audited)
                    self._ask_about_issuers(audited)
            if not missing and not any(each is not None and each.is_unclear for each in asked.values()):
                break
            audited = self._follow(audited)
            if self._replayer.size < audited.size:
                # What follows could not be read, and nothing is known any more.
                self._miss_texts()
                return audited
            missing = self._last_missing()
            if not any(self._is_open(host, missing) for host in {*wanted, *missing}):
                break
        self._report()
        return audited

    def _ask(self, host: str, audited: Audited) -> beside.Asked | None:
        fold, earlier = self._replayer.rules.replay.hosts.get(host), self._asked.get(host)
        return beside.ask(self._source, host, fold, self._log, audited, self._findings, self._sampler, earlier)

    def _ask_about_issuers(self, audited: Audited) -> None:
        """Once it is known that a service answers, and not a copy."""
        if not self._asked_about_issuers and any(
            each is not None and not each.is_copy for each in self._asked.values()
        ):
            self._asked_about_issuers = True
            self._sampler.issuers(audited)

    def _is_open(self, host: str, missing: Mapping[str, int]) -> bool:
        """Whether it is still to be asked about: for the first time, or since what is missing came later, or the answer
        was of another moment."""
        if host not in self._asked:
            return True
        answer = self._asked[host]
        return answer is not None and (answer.bare is not None or missing.get(host, -1) >= answer.size)

    def _last_missing(self) -> dict[str, int]:
        """By host, the last entry whose text is missing."""
        last: dict[str, int] = {}
        for part, host in self._hosts_of_missing().items():
            last[host] = max(self._replayer.missing[part], last.get(host, -1))
        return last

    def _miss_texts(self) -> None:
        for each in self._asked.values():
            if each is not None and each.is_unclear:
                self._findings.miss(f"texts of {each.host} that are left out: whether the log has redacted them since")

    def _report(self) -> None:
        for index in sorted(self._replayer.mismatched):
            self._findings.miss(f"the text of entry {index}: its bundle opens it otherwise than was committed to")
        for each in self._asked.values():
            if each is None:
                continue
            beside.report_texts(each, self._is_redacted, self._findings)
            if each.bare is not None:
                self._findings.miss(f"the answer without a proof about {each.host}: it changed each time")
        self._account_for_missing(self._asked)

    def _is_redacted(self, part: Part) -> bool:
        review = self._state.reviews.get(part[0])
        return review is not None and part[1] in review.redacted

    def _hosts_of_missing(self) -> dict[Part, str]:
        reviews = {part: self._state.reviews.get(part[0]) for part in self._replayer.missing}
        return {part: review.host for part, review in reviews.items() if review is not None}

    def _account_for_missing(self, asked: Mapping[str, beside.Asked | None]) -> None:
        """Texts that the bundles left out: the answer about their host opens them, or tells that they are withheld."""
        unclear: Counter[str] = Counter()
        for part, host in self._hosts_of_missing().items():
            answer = asked.get(host)
            if answer is None or self._replayer.missing[part] >= answer.size:
                unclear[host] += 1
            elif part not in answer.withheld:
                del self._replayer.missing[part]
        for host, count in unclear.items():
            self._findings.miss(f"{count} texts of {host}: they are not served, and no answer tells more")
