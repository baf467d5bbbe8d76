"""What is answered about hosts, and what has become of texts that are not served."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from audits import beside
from audits.evidence import Audited
from audits.face import Part
from audits.findings import Findings
from audits.replayer import Progress, Replayer
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
    ) -> None:
        self._source = source
        self._log = log
        self._state = state
        self._replayer = replayer
        self._findings = findings
        self._progress = progress
        self._follow = follow
        self._asked: dict[str, beside.Asked | None] = {}

    def about(self, hosts: Iterable[str], audited: Audited) -> Audited:
        """Answers about these hosts, and about those whose texts are missing. The log is followed meanwhile: what is
        missing may have been redacted, and it says so in entries that come now."""
        wanted, asked = dict.fromkeys(hosts), self._asked
        for _ in range(ROUNDS):
            wanted |= dict.fromkeys(self._hosts_of_missing().values())
            for host in wanted:
                if host not in asked:
                    self._progress("answers", len(asked), len(wanted))
                    asked[host] = self._ask(host, audited)
            left_out = any(each is not None and (each.withheld or each.hidden) for each in asked.values())
            if not left_out and not self._replayer.missing:
                break
            audited = self._follow(audited)
            if asked.keys() >= set(self._hosts_of_missing().values()):
                break
        self._report()
        return audited

    def _ask(self, host: str, audited: Audited) -> beside.Asked | None:
        fold = self._replayer.rules.replay.hosts.get(host)
        return beside.ask(self._source, host, fold, self._log, audited, self._findings)

    def _report(self) -> None:
        for index in sorted(self._replayer.mismatched):
            self._findings.miss(f"the text of entry {index}: its bundle opens it otherwise than was committed to")
        for each in self._asked.values():
            if each is not None:
                beside.report_texts(each, self._is_redacted, self._findings)
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
            if answer is None:
                unclear[host] += 1
            elif part not in answer.withheld:
                del self._replayer.missing[part]
        for host, count in unclear.items():
            self._findings.miss(f"{count} texts of {host}: they are not served, and no answer tells more")
