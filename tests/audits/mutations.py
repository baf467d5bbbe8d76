"""Small lies about an answer: each changes what it says or what proves it, and nearly all are well-formed."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from ledger.canon import base64, jcs, strict_json
from ledger.canon.times import format_time, parse_time

Answer = dict[str, Any]
RECORD_MEMBERS = (
    *("events", "repeats", "responses", "redactions", "reviews", "ratings"),
    *("checks", "histogram", "root", "first_stay", "last_event"),
)
# A mutation changes the answer in place, or says False when the answer has nothing for it to change.
Mutation = Callable[[Random, Answer], bool | None]


def mutate(random: Random, answer: Answer) -> Answer:
    """`answer` with one lie in it."""
    while True:
        lie = deepcopy(answer)
        if random.choice(MUTATIONS)(random, lie) is not False and lie != answer:
            return lie


def flipped(random: Random, text: str) -> str:
    data = bytearray(base64.decode(text))
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return base64.encode(bytes(data))


def flip_proof_hash(random: Random, answer: Answer) -> bool | None:
    hashes = answer["proof"].get(random.choice(("log_proof", "map_proof", "sub_proof")))
    places = [place for place, text in enumerate(hashes or ()) if text]
    if not places:
        return False
    place = random.choice(places)
    hashes[place] = flipped(random, hashes[place])
    return None


def cut_or_double_proof_hash(random: Random, answer: Answer) -> bool | None:
    hashes = answer["proof"].get(random.choice(("log_proof", "map_proof", "sub_proof")))
    if not hashes:
        return False
    place = random.randrange(len(hashes))
    hashes[place : place + 1] = random.choice(([], [hashes[place]] * 2))
    return None


def swap_proof_hashes(random: Random, answer: Answer) -> bool | None:
    hashes = answer["proof"].get(random.choice(("log_proof", "map_proof", "sub_proof")))
    if not hashes:
        return False
    random.shuffle(hashes)
    return None


def change_checkpoint(random: Random, answer: Answer) -> None:
    origin, size, root, blank, line, *rest = answer["proof"]["checkpoint"].split("\n")
    dash, name, value = line.split(" ")
    kind = random.randrange(3)
    if kind == 0:
        size = str(max(2, int(size) + random.choice((-2, -1, 1, 2))))
    elif kind == 1:
        root = flipped(random, root)
    else:
        value = flipped(random, value)
    answer["proof"]["checkpoint"] = "\n".join([origin, size, root, blank, f"{dash} {name} {value}", *rest])


def later(random: Random, time: str) -> str:
    moment = parse_time(time)
    return format_time(moment.replace(minute=(moment.minute + random.randrange(1, 60)) % 60))


def change_map_head(random: Random, answer: Answer) -> None:
    head = strict_json.loads(answer["proof"]["map_head"])
    name = random.choice(("size", "root", "at"))
    if name == "size":
        head["size"] += random.choice((-1, 1))
    else:
        head[name] = flipped(random, head["root"]) if name == "root" else later(random, head["at"])
    answer["proof"]["map_head"] = jcs.dumps(head).decode()


def change_record(random: Random, answer: Answer) -> bool | None:
    if answer["proof"]["record"] is None:
        return False
    record = strict_json.loads(answer["proof"]["record"])
    name = random.choice(RECORD_MEMBERS)
    if name in ("reviews", "checks"):
        record[name][random.choice(list(record[name]))] += 1
    elif name == "ratings":
        level = random.choice([level for level in record["ratings"] if record["ratings"][level]] or ["none"])
        if level == "none":
            return False
        record["ratings"][level][random.choice(list(record["ratings"][level]))][random.randrange(2)] += random.choice(
            (-1, 1)
        )
    elif name == "histogram":
        record["histogram"][random.randrange(9)] += 1
    elif name == "root":
        record["root"] = flipped(random, record["root"])
    elif name == "last_event":
        record["last_event"] = later(random, record["last_event"])
    elif name == "first_stay":
        record["first_stay"] = "2020-01-01"
    else:
        record[name] += 1
    answer["proof"]["record"] = jcs.dumps(record).decode()
    return None


def change_entry(random: Random, answer: Answer) -> bool | None:
    """A member of an entry gets another value that its type allows."""
    events = answer["proof"].get("events")
    if not events:
        return False
    event = random.choice(events)
    entry = strict_json.loads(event["entry"])
    name = random.choice([name for name in entry if name not in ("type", "v")])
    value = entry[name]
    if name in ("text", "statement", "booking", "decision") and value is not None:
        entry[name] = flipped(random, value)
    elif name == "at":
        entry["at"] = later(random, value)
    elif name == "ratings":
        category = random.choice(list(value))
        value[category] = random.choice([stars / 2 for stars in range(2, 11) if stars / 2 != value[category]])
    elif name == "evidence":
        value["commitment"] = flipped(random, value["commitment"])
    elif name == "check_in":
        entry["check_in"] = "2025-11-30"
    elif name == "check_out":
        entry["check_out"] = "2026-01-02"
    elif name == "listing_id":
        entry["listing_id"] = value + "-b"
    elif name == "repeat":
        entry["repeat"] = not value
    elif name == "review":
        entry["review"] = value + random.choice((-1, 1))
    elif name == "review_id":
        entry["review_id"] = value[:4] + ("a" if value[4] != "a" else "b") + value[5:]
    elif name == "outcome":
        entry["outcome"] = random.choice(("conflict", "denied"))
    elif name == "host_did":
        entry["host_did"] = "did:web:elsewhere.example"
    else:
        return False
    event["entry"] = jcs.dumps(entry).decode()
    return None


def change_index(random: Random, answer: Answer) -> bool | None:
    events = answer["proof"].get("events")
    if not events:
        return False
    event = random.choice(events)
    event["index"] = abs(event["index"] + random.choice((-2, -1, 1, 2)))
    return None


def change_events(random: Random, answer: Answer) -> bool | None:
    events = answer["proof"].get("events")
    if not events:
        return False
    place = random.randrange(len(events))
    kind = random.randrange(3)
    if kind == 0:
        del events[place]
    elif kind == 1:
        events.insert(place, deepcopy(random.choice(events)))
    else:
        other = random.choice(events)
        events[place]["entry"], other["entry"] = other["entry"], events[place]["entry"]
    return None


def change_opening(random: Random, answer: Answer) -> bool | None:
    opened = [event for event in answer["proof"].get("events", ()) if event["opening"]]
    if not opened:
        return False
    opening = random.choice(opened)["opening"]
    if random.random() < 0.5:
        opening["text"] = random.choice(
            (opening["text"] + "!", opening["text"][1:], "Perfect.", opening["text"] + "\u200b")
        )
    else:
        opening["salt"] = flipped(random, opening["salt"])
    return None


def change_summary(random: Random, answer: Answer) -> bool | None:
    name = random.choice(("host_did", "host_since", "total_reviews", "verified_reviews", "average_ratings"))
    if name == "average_ratings":
        category = random.choice(list(answer[name]))
        answer[name][category] = random.choice((None, 1, 4.9, 5))
    else:
        other = {"host_did": "did:web:elsewhere.example", "host_since": "2020-01-01"}
        answer[name] = other[name] if name in other else answer[name] + random.choice((-1, 1, 10))
    return None


def change_listed_review(random: Random, answer: Answer) -> bool | None:
    if not answer.get("review_history"):
        return False
    review = random.choice(answer["review_history"])
    # What the log says of an issuer does not follow from the host's own events.
    name = random.choice([name for name in review if name not in ("host_response", "issuer_status")])
    value = review[name]
    if name == "ratings":
        value[random.choice(list(value))] = random.choice((1, 2.5, 5))
    elif name == "evidence":
        value["booking"] = random.choice(("stay_receipt", "callback", "none"))
    elif name == "index":
        review[name] = value + random.choice((-1, 1))
    elif name == "repeat":
        review[name] = not value
    elif name == "verification_level":
        review[name] = random.choice(("guest_verified", "host_attested", "unconfirmed"))
    elif name in ("review_text", "guest_credential_issuer"):
        review[name] = random.choice((None, "Perfect."))
    elif name in ("check_in", "check_out"):
        review[name] = "2025-06-01"
    else:
        review[name] = value + "x"
    return None


def change_listed_response(random: Random, answer: Answer) -> bool | None:
    reviews = [review for review in answer.get("review_history", ()) if review["host_response"] is None]
    if not reviews:
        return False
    random.choice(reviews)["host_response"] = {"response_text": "Thank you.", "submitted_at": "2026-01-05T00:00:00Z"}
    return None


def hide_response(random: Random, answer: Answer) -> bool | None:
    shown = [
        review for review in answer.get("review_history", ()) if (review["host_response"] or {}).get("response_text")
    ]
    if not shown:
        return False
    random.choice(shown)["host_response"] = random.choice(
        (None, {"response_text": None, "submitted_at": "2026-01-05T00:00:00Z"})
    )
    return None


def change_order_of_history(random: Random, answer: Answer) -> bool | None:
    history = answer.get("review_history")
    if not history or len(history) < 3:
        return False
    if random.random() < 0.5:
        del history[random.randrange(1, len(history) - 1)]
    else:
        random.shuffle(history)
    return None


def change_absence(random: Random, answer: Answer) -> bool | None:
    proof = answer["proof"]
    if proof["map_other"]:
        part = random.choice(("key", "value"))
        proof["map_other"][part] = flipped(random, proof["map_other"][part])
    elif proof["record"] is not None:
        proof["record"] = None
    else:
        proof["map_other"] = {part: base64.encode(random.randbytes(32)) for part in ("key", "value")}
    return None


def change_statistics(random: Random, answer: Answer) -> bool | None:
    """A count, a sum or a mean of the statistics; or statistics out of nothing."""
    statistics = answer.get("statistics")
    if not statistics:
        answer["statistics"] = {"events": random.randrange(10**6, 10**7)}
        return None
    place: Any = statistics
    while isinstance(place, dict | list) and place:
        parent, key = place, random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        place = place[key]
    if isinstance(place, dict):
        return False
    parent[key] = 3.3 if place is None else place + 1 if isinstance(place, int) else round(place - 0.1, 1)
    return None


def change_page(random: Random, answer: Answer) -> bool | None:
    if "from" not in answer["proof"]:
        return False
    answer["proof"]["from"] = abs(answer["proof"]["from"] + random.choice((-1, 1, 2)))
    return None


def break_the_form(random: Random, answer: Answer) -> None:
    """The few that a parser finds."""
    proof = answer["proof"]
    name = random.choice(list(proof))
    if random.random() < 0.5:
        del proof[name]
    else:
        proof[name] = random.choice((True, 7, "", {}, [[]]))


MUTATIONS: list[Mutation] = [
    *(flip_proof_hash, cut_or_double_proof_hash, swap_proof_hashes, change_checkpoint, change_map_head, change_record),
    *(change_entry, change_entry, change_entry, change_index, change_events, change_opening, change_summary),
    *(
        change_listed_review,
        change_listed_review,
        change_listed_response,
        hide_response,
        change_order_of_history,
        change_absence,
    ),
    *(change_page, change_page, change_absence, change_summary, change_map_head, change_record, break_the_form),
    *(change_statistics, change_statistics),
]
