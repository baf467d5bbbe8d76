"""What is served beside the entries of a log, held against the replayed tree: checkpoints, tiles, texts, answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest

from audits import clocks, served
from audits.answer import parse_answer
from audits.evidence import Audited
from audits.face import Part, same_json, verify_plain
from audits.findings import Findings
from audits.forks import prove_fork
from audits.reading import Reading, read_answer, read_bare, read_checkpoints
from audits.replayer import Progress
from audits.resources import prove_resource
from audits.source import Source, ahead
from ledger.canon import strict_json
from ledger.errors import Malformed, NotProved, StaylogError, Unavailable
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.cosignature import cosignatures
from ledger.log.face import Event
from ledger.log.hostmap import map_key
from ledger.log.note import Note, Verifier
from ledger.log.policy import Policy
from ledger.log.record import HostFold
from ledger.log.tiles import HEIGHT, parse_tile_path, tile_id, tile_resources

# Where texts are missing: by review and part, the index of the entry that commits to them.
Missing = dict[Part, int]


def hold_against(note: str, log: Verifier, audited: Audited, findings: Findings) -> None:
    """A checkpoint that the log signed, whoever saw it: it is of this tree, or the log has signed two."""
    _compare(open_checkpoint(note, log), note, log, audited, findings)


def _compare(checkpoint: Checkpoint, note: str, log: Verifier, audited: Audited, findings: Findings) -> None:
    if checkpoint.size > audited.size:
        # From a log that goes on, or of which this is an older copy; or it was taken back.
        findings.miss(f"what the log signed beyond {audited.size} entries: a checkpoint of {checkpoint.size} is known")
    elif checkpoint.size and audited.root(checkpoint.size) != checkpoint.root:
        findings.add(prove_fork(note, audited.note, log, audited.tree))


def listed(
    source: Source, above: int, seen: Iterable[int], log: Verifier, audited: Audited, findings: Findings
) -> list[str]:
    """Hold all checkpoints that the log lists against its tree, those up to `above` excepted, and give them back. Those
    of the sizes `seen` must be among them: every checkpoint that was signed is to be kept."""
    notes, lacking = [], {size for size in seen if above < size <= audited.size}
    try:
        for note in read_checkpoints(source, above):
            checkpoint = open_checkpoint(note, log)
            # The log may have gone on since.
            if checkpoint.size <= audited.size:
                _compare(checkpoint, note, log, audited, findings)
                findings.figures["checkpoints"] += 1
                lacking.discard(checkpoint.size)
                notes.append(note)
    except StaylogError as error:
        findings.miss(f"the list of signed checkpoints: {error}")
        return notes
    if lacking:
        findings.miss(f"the list of signed checkpoints: it lacks that of {min(lacking)} entries, which was seen")
    return notes


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
            found = cosignatures(note, [witness.verifier for witness in policy.witnesses.values()])
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
    """What was answered about a host, with a proof and without, and the texts that one of these leaves out."""

    host: str
    documents: list[bytes]
    withheld: Missing
    # An answer without a proof, and the texts that it leaves out.
    hidden: list[tuple[bytes, set[Part]]]


def ask(
    source: Source, host: str, fold: HostFold | None, log: Verifier, audited: Audited, findings: Findings
) -> Asked | None:
    """Hold what is served about a host against the log; None if it cannot be read or is wrong. Whether a text may be
    left out is only known later: it may have been redacted just now."""
    events = fold.members()["events"] if fold is not None else 0
    try:
        documents, faces = read_answer(source, host, audited.size, events)
        bare = read_bare(source, host)
        answers = [parse_answer(document) for document in documents]
        checkpoint = open_checkpoint(answers[0].checkpoint, log)
        of_now = strict_json.loads(bare)
    except StaylogError as error:
        findings.miss(f"the answer about {host}: {error}")
        return None
    hold_against(answers[0].checkpoint, log, audited, findings)
    if checkpoint.size != audited.size:
        findings.miss(f"the answer about {host}: it is of {checkpoint.size} entries, not of {audited.size}")
        return None
    findings.figures["answers"] += 1
    # Whoever asks for nothing in particular is told of now, which is the same while the host has no new events.
    same = isinstance(of_now, dict) and same_json((of_now.get("statistics") or {}).get("events", 0), events)
    plains = [(face, 100) for face in faces] + ([(bare, 20)] if same else [])
    wrong, hidden = None, list[tuple[bytes, set[Part]]]()
    try:
        report = served.verify_served(documents, log, host)
        for wrong, least in plains:
            parts = set[Part]()
            verify_plain(wrong, answers, parts, least)
            # By default no texts of unconfirmed reviews are shown: nothing follows from those that are not there.
            if wrong is not bare:
                hidden.append((wrong, parts))
    except (NotProved, Malformed) as error:
        what = "the answer about" if wrong is None else "the answer without a proof about"
        findings.add(served.prove(error.code, f"{what} {host}: {error}", host, documents, wrong))
        return None
    events_shown = [event for answer in answers for event in answer.events]
    return Asked(host, documents, _withheld(report.texts, events_shown), [each for each in hidden if each[1]])


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
    for plain, parts in asked.hidden:
        if hidden := [part for part in parts if not is_redacted(part)]:
            claim = f"the answer without a proof about {host} leaves out {len(hidden)} texts that the other one shows"
            fraud = served.prove("history_mismatch", claim, host, asked.documents, plain)
            findings.add(fraud, min(hidden)[0], len(hidden))
            return
