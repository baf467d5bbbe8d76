"""New events of the hosts that somebody watches, in words."""

from collections.abc import Sequence
from typing import Any

from audits.monitor.alerts import Teller
from audits.monitor.memory import Memory
from audits.reading import Reading
from audits.source import Source
from audits.state import State
from ledger.errors import BadEntry
from ledger.log.entries import Entry, parse_entry

LEVELS = {
    "guest_verified": "by a verified guest",
    "host_attested": "attested by the host alone",
    "unconfirmed": "of a stay that nobody confirmed",
}
OUTCOMES = {
    "denied": "the host denied the booking",
    "unanswered": "the host did not answer whether it was booked",
    "contradicted": "a receipt of the host contradicts its denial",
    "conflict": "two guests reviewed one booking",
}


def tell_events(source: Source, state: State, hosts: Sequence[str], memory: Memory, size: int, teller: Teller) -> None:
    """Tell the events among the entries of a tree that was replayed, from the first that was not looked at before. What
    is served now must be what was replayed."""
    start = memory.told or 0
    reading = Reading(source, size, lambda number: state.read_tiles([number]).get(number, b""))
    for index, data in enumerate(reading.entries(start, size), start):
        memory.told = index + 1
        try:
            entry = parse_entry(data)
        except BadEntry:
            # What is wrong with it is a finding.
            continue
        if entry.host in hosts:
            message, members = describe(index, entry)
            teller.tell("event", message, event=members)
            # At once: whoever is stopped in between does not tell it again.
            memory.save()


def describe(index: int, entry: Entry) -> tuple[str, dict[str, Any]]:
    """An event in one sentence, and its members as far as they are worth telling."""
    members = entry.members
    kept = ("review_id", "review", "listing_id", "ratings", "level", "outcome", "part", "basis", "at")
    told = {name: members[name] for name in kept if name in members}
    about = f"{entry.type.replace('_', ' ')} of {entry.host}, entry {index}"
    return f"{about}: {_words(entry)}", {"type": entry.type, "host": entry.host, "index": index, **told}


def _words(entry: Entry) -> str:
    members = entry.members
    of = f"of review {members.get('review_id')} (entry {members.get('review')})"
    match entry.type:
        case "review":
            rest = ", ".join(f"{name} {rated:g}" for name, rated in members["ratings"].items() if name != "overall")
            rated = f"{members['ratings']['overall']:g} of 5 ({rest})"
            again = ", who has reviewed this host before" if members["repeat"] else ""
            return f"{rated}, {LEVELS[members['level']]}{again}; {members['review_id']}"
        case "response":
            return f"the host answered {of.removeprefix('of ')}"
        case "upgrade":
            return f"the stay {of} is confirmed now: {LEVELS[members['level']]}"
        case "redaction":
            return f"the {members['part']} {of} was taken out: {members['basis']}"
        case _:
            return OUTCOMES[members["outcome"]]
