"""What is served beside the entries of a log, held against the replayed tree: checkpoints, tiles, texts, answers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest
from itertools import pairwise

from audits import broken_rules, clocks, served
from audits.answer import parse_answer
from audits.basis import AS_OF, ISSUERS
from audits.evidence import Audited
from audits.face import Part, is_of_some_moment, of_unconfirmed, verify_plain
from audits.findings import Findings
from audits.forks import prove_fork
from audits.questions import CURSOR, Question
from audits.reading import Reading, read_answer, read_bare, read_checkpoints
from audits.replayer import Progress
from audits.resources import prove_resource
from audits.sampling import Hidden, Sampler
from audits.source import Source, ahead
from ledger.errors import Malformed, NotProved, StaylogError, Unavailable
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.face import Event
from ledger.log.hostmap import map_key
from ledger.log.note import Note, Verifier
from ledger.log.policy import Policy
from ledger.log.record import HostFold
from ledger.log.tiles import HEIGHT, parse_tile_path, tile_id, tile_resources

# Where texts are missing: by review and part, the index of the entry that commits to them.
Missing = dict[Part, int]
NOT_LAST = "the last leaf of the checkpoint of {} entries is not a map head"
# How many reviews are listed for who asks for nothing in particular.
BARE = 20
# Members of an answer that are proved by other entries than the host's.
BESIDE = (ISSUERS, AS_OF, CURSOR)
# So often such an answer may be of no moment that the log had.
DOUBTS = 2


def hold_against(note: str, log: Verifier, audited: Audited, findings: Findings) -> None:
    """A checkpoint that the log signed, whoever saw it: it is of this tree, or the log has signed two."""
    _compare(open_checkpoint(note, log), note, log, audited, findings)


def compare_beyond(seen: Iterable[tuple[int, str]], log: Verifier, audited: Audited, findings: Findings) -> None:
    """`seen` are checkpoints in the order of their sizes. Two of one size beyond the end of the tree are two histories,
    which is shown without the tree."""
    for (smaller, one), (larger, other) in pairwise(seen):
        if audited.size < smaller == larger:
            findings.add(prove_fork(one, other, log, audited.tree))


def _compare(checkpoint: Checkpoint, note: str, log: Verifier, audited: Audited, findings: Findings) -> None:
    if checkpoint.size > audited.size:
        # From a log that goes on, or of which this is an older copy; or it was taken back.
        findings.miss(f"what the log signed beyond {audited.size} entries: a checkpoint of {checkpoint.size} is known")
    elif checkpoint.size and audited.root(checkpoint.size) != checkpoint.root:
        findings.add(prove_fork(note, audited.note, log, audited.tree))
    elif checkpoint.size and not audited.is_whole(checkpoint.size):
        smaller, last = Audited(note, checkpoint, audited.tree, audited.entries), checkpoint.size - 1
        findings.add(broken_rules.prove(smaller, "map_head_not_last", last, NOT_LAST.format(checkpoint.size)), last)


def listed(
    source: Source, above: int, seen: Iterable[int], log: Verifier, audited: Audited, findings: Findings
) -> Iterator[str]:
    """Hold all checkpoints that the log lists against its tree, those up to `above` excepted, and give them back. Those
    of the sizes `seen` must be among them: every checkpoint that was signed is to be kept."""
    lacking = {size for size in seen if above < size <= audited.size}
    try:
        for note in read_checkpoints(source, above, audited.size):
            checkpoint = open_checkpoint(note, log)
            _compare(checkpoint, note, log, audited, findings)
            findings.figures["checkpoints"] += 1
            lacking.discard(checkpoint.size)
            yield note
    except StaylogError as error:
        findings.miss(f"the list of signed checkpoints: {error}")
        return
    if lacking:
        findings.miss(f"the list of signed checkpoints: it lacks that of {min(lacking)} entries, which was seen")


def times(
    notes: Iterable[str], policy: Policy, head_at: Callable[[int], str | None], audited: Audited, findings: Findings
) -> dict[str, list[int]]:
    """Hold the times of entries against those at which witnesses of the policy saw these checkpoints: the last entry of
    a tree is its youngest. By the name of the witness, how many it cosigned, and the largest."""
    seen: dict[str, list[int]] = {name: [0, 0] for name in policy.witnesses}
    names = {str(witness.verifier): name for name, witness in policy.witnesses.items()}
    for text in notes:
        note = Note.parse(text)
        size = int(note.text.split("\n")[1])
        try:
            found = policy.agreement(note).found
        except NotProved as error:
            findings.miss(f"the cosignatures of the checkpoint of {size} entries: {error}")
            continue
        for each in found:
            tally = seen[names[str(each.witness)]]
            tally[0], tally[1] = tally[0] + 1, max(tally[1], size)
            findings.figures["cosignatures"] += 1
            at = head_at(size)
            if at is not None and clocks.is_postdated(size, each.timestamp, size - 1, at):
                findings.add(clocks.prove(audited, size - 1, text, each), size - 1)
    return seen


def tiles(
    reading: Reading, above: int, audited: Audited, own: Callable[[int], bytes], findings: Findings, progress: Progress
) -> None:
    """Compare all tiles that have changed since the tree had `above` entries with those that the entries give."""
    paths = {parse_tile_path(path)[:2]: path for path in tile_resources(reading.size)}
    wanted = [
        (level, index) for level, index in paths if level is not None and (index + 1) << HEIGHT * (level + 1) > above
    ]

    def get(place: tuple[int, int]) -> bytes | StaylogError:
        try:
            return reading.tile(*place)
        except StaylogError as error:
            return error

    for done, (place, data) in enumerate(ahead(reading.source, get, wanted)):
        progress("tiles", done, len(wanted))
        path = paths[place]
        if isinstance(data, StaylogError):
            findings.miss(f"{path}: {data}")
            # Who does not answer now will not answer for the next thousand.
            if isinstance(data, Unavailable):
                return
            continue
        findings.figures["tiles"] += 1
        right = own(tile_id(*place))
        if data != right and (data := get(place)) != right:
            # Twice: once may be an accident on the way.
            if isinstance(data, StaylogError):
                findings.miss(f"{path}: {data}")
                continue
            fraud = prove_resource(audited.note, audited.checkpoint, audited.tree, path, data)
            if fraud is not None:
                findings.add(fraud)
            else:
                findings.miss(f"{path}: what is served is longer than it may be")


def sample(hosts: Iterable[str], root: bytes, count: int) -> list[str]:
    """Which hosts are asked about: drawn by the root, so that all auditors of one checkpoint ask the same."""
    return nsmallest(count, hosts, key=lambda host: sha256(root + map_key(host)).digest())


@dataclass(frozen=True, slots=True)
class Asked:
    """What was answered about a host when the log had `size` entries, with a proof and without, and the texts that one
    of these leaves out. `bare` came without asking for anything in particular, and is not of that size: it may be of a
    later one. `since` is how many events the host had when it was asked about for the first time, and `doubts` how
    often what had come was of no moment since."""

    host: str
    size: int
    documents: list[bytes]
    withheld: Missing
    # Texts that another answer leaves out, and what shows that it does.
    hidden: list[Hidden]
    bare: bytes | None
    since: int
    doubts: int
    # What the status of issuers was then.
    statuses: Mapping[str, str]
    # Of the hidden texts those of questions that were drawn, which are asked once.
    drawn: list[Hidden]
    is_copy: bool

    @property
    def is_unclear(self) -> bool:
        return bool(self.withheld or self.hidden or self.bare is not None)


def ask(
    source: Source,
    host: str,
    fold: HostFold | None,
    log: Verifier,
    audited: Audited,
    findings: Findings,
    sampler: Sampler,
    earlier: Asked | None = None,
) -> Asked | None:
    """Hold what is served about a host against the log; None if it cannot be read or is wrong. Whether a text may be
    left out, and of which moment an answer is, is only known later, when it is asked again."""
    events = fold.members()["events"] if fold is not None else 0
    try:
        documents, faces, is_copy = read_answer(source, host, audited.size, events)
        bare = read_bare(source, host)
        answers = [parse_answer(document) for document in documents]
        checkpoint = open_checkpoint(answers[0].checkpoint, log)
    except StaylogError as error:
        findings.miss(f"the answer about {host}: {error}")
        return None
    hold_against(answers[0].checkpoint, log, audited, findings)
    if checkpoint.size != audited.size:
        findings.miss(f"the answer about {host}: it is of {checkpoint.size} entries, not of {audited.size}")
        return None
    findings.figures["answers"] += earlier is None
    wrong, hidden = None, list[Hidden]()
    try:
        report = served.verify_served(documents, log, host)
        for wrong in faces:
            parts = set[Part]()
            verify_plain(wrong, answers, parts)
            claim = f"an answer about {host} leaves out {len(parts)} texts that another one shows"
            hidden.append((served.prove("history_mismatch", claim, host, documents, wrong), parts))
    except (NotProved, Malformed) as error:
        what = "the answer about" if wrong is None else "the answer without a proof about"
        findings.add(served.prove(error.code, f"{what} {host}: {error}", host, documents, wrong))
        return None
    basis = sampler.basis(host, answers, audited)
    for said in [*documents, *faces[-1:]]:
        sampler.beside(documents, said, basis, audited, is_copy=is_copy)
    since, doubts = (events, 0) if earlier is None else (earlier.since, earlier.doubts)
    unsettled: bytes | None = None
    try:
        parts = set[Part]()
        verify_plain(bare, answers, parts, BARE)
        claim = f"the answer to who asks for nothing in particular about {host} leaves out {len(parts)} texts"
        fraud = served.prove("history_mismatch", claim, host, documents, bare)
        hidden.append((fraud, parts - of_unconfirmed(answers)))
        sampler.bare(bare, basis, is_copy=is_copy)
    except (NotProved, Malformed) as error:
        if earlier is None or earlier.bare is None:
            unsettled = bare
        elif not is_of_some_moment(earlier.bare, answers, since, BARE, sampler.at_moment(basis, earlier.statuses)):
            # Once it may have come from a process that lags behind, or a cache, and is of a moment before.
            if not doubts:
                sampler.outwait_caches()
                with suppress(StaylogError):
                    bare = read_bare(source, host)
            unsettled, doubts = bare, doubts + 1
        if doubts == DOUBTS:
            what = f"the answer to who asks for nothing in particular about {host}"
            if isinstance(error, NotProved) and error.code in BESIDE:
                findings.add(sampler.prove(error, documents, Question("bare"), bare, basis, audited))
            else:
                findings.add(served.prove(error.code, f"{what}: {error}", host, documents, bare))
            return None
    if earlier is not None:
        hidden += earlier.drawn
    drawn = sampler.about(host, documents, basis, audited) if earlier is None and not is_copy else []
    hidden += drawn
    shown = [event for answer in answers for event in answer.events]
    left = [each for each in hidden if each[1]]
    found = (_withheld(report.texts, shown), left, unsettled, since, doubts, basis.statuses)
    return Asked(host, audited.size, documents, *found, drawn if earlier is None else earlier.drawn, is_copy)


def withheld(documents: Sequence[bytes], host: str, log: Verifier) -> Missing:
    """The texts that an answer which is right otherwise leaves out, though the log had no redaction of them by then."""
    events = [event for document in documents for event in parse_answer(document).events]
    return _withheld(served.verify_served(documents, log, host).texts, events)


def _withheld(texts: Mapping[int, str], events: Iterable[Event]) -> Missing:
    """The texts that are left out though the events have no redaction of them."""
    missing: Missing = {}
    for event in events:
        if texts.get(event.index) == "withheld":
            is_review = event.entry.type == "review"
            review = event.index if is_review else event.entry.members["review"]
            missing[review, "text" if is_review else "response"] = event.index
    return missing


def report_texts(asked: Asked, is_redacted: Callable[[Part], bool], findings: Findings) -> None:
    """What an answer left out, and the log has not redacted since."""
    host, still = asked.host, {part: at for part, at in asked.withheld.items() if not is_redacted(part)}
    if still:
        claim = f"{len(still)} texts of {host} are not shown, and the log has no redaction of them"
        findings.add(served.prove(served.WITHHELD, claim, host, asked.documents), min(still.values()), len(still))
        return
    for fraud, parts in asked.hidden:
        if hidden := [part for part in parts if not is_redacted(part)]:
            findings.add(fraud, min(hidden)[0], len(hidden))
            return
