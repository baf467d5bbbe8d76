"""Check a Staylog reputation answer offline. One file, standard library and PyNaCl: read it, then trust it.

    python audits/standalone_verify.py ANSWER.json --key VKEY --host DID [--max-age HOURS]

ANSWER.json is what GET /v1/hosts/{did}/reputation?proof=full (or aggregate, or page) returned; name all pages of a
host to check them together. VKEY is the log's public key: get it from somewhere you trust, everything is checked
against it. Exit 0 and the list of what was proved, or 1 and the first thing that is wrong.

How it hangs together: the key signs a checkpoint, the size and root of a Merkle tree over ALL entries of the log. The
last entry is a map head, the root of a map from every host to its record: counts, sums, and a root over the host's
own entries. So one signature fixes how many entries a host has, which ones they are, and every average.
"""

import argparse
import base64
import hashlib
import json
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from nacl.signing import VerifyKey

# The form of an entry: exactly the members of its type, each matching its pattern when written as JSON.
LEVELS = ("guest_verified", "host_attested", "unconfirmed")
CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "value", "location")
OUTCOMES = ("conflict", "contradicted", "denied", "unanswered")
N = "(0|[1-9][0-9]{0,15})"
DATE = '"[0-9]{4}-[0-9]{2}-[0-9]{2}"'
TIME = '"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"'
HASH = '"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="'  # base64 of exactly 32 bytes
RATINGS = '{"accuracy":R,"cleanliness":R,"communication":R,("location":R,)?"overall":R,"value":R}'.replace(
    "R", "([1-4]([.]5)?|5)")
BOOKING = "stay_receipt|booking_notice|booking_claim|callback|attestation|none"
EVIDENCE = (f'{{"booking":"({BOOKING})","commitment":{HASH},"idv_level":(null|"(email|identity|payment)_verified")'
            ',"issuer":(null|"did:[^" ]+"|"https://[A-Za-z0-9.-]+(:[0-9]+)?([/?#][^" ]*)?")}')
OF_HOST = {"at": TIME, "host_did": '".+"'}
OF_REVIEW = {**OF_HOST, "review_id": '"rev-[a-z2-7]{25}[aeimquy4]"', "review": N}
FORMS = {
    "review": {**OF_HOST, "review_id": OF_REVIEW["review_id"], "listing_id": '"[A-Za-z0-9._~-]{1,128}"',
               "check_in": DATE, "check_out": DATE, "ratings": RATINGS, "evidence": EVIDENCE,
               "level": f'"({"|".join(LEVELS)})"', "repeat": "true|false", "text": f"null|{HASH}"},
    "response": {**OF_REVIEW, "text": HASH, "statement": HASH},
    "upgrade": {**OF_REVIEW, "level": '"guest_verified"', "evidence": EVIDENCE.replace(BOOKING, "stay_receipt")},
    "booking_check": {**OF_HOST, "outcome": f'"({"|".join(OUTCOMES)})"', "booking": HASH},
    "redaction": {**OF_REVIEW, "part": '"(text|response)"', "decision": HASH,
                  "basis": '"(gdpr_17|court_order|illegal_content|third_party_data)"'},
    "map_head": {"at": TIME, "size": N, "root": HASH},
}
# A DID has one spelling: lower-case host, no default port, no needless escapes.
DID = ("(?=.{8,256}$)did:(key:z[1-9A-HJ-NP-Za-km-z]+|jwk:[A-Za-z0-9_-]+|web:[a-z0-9](([a-z0-9-]|[.](?![.]))*[a-z0-9])?"
       "(%3A(?!443(:|$))[1-9][0-9]{0,4})?"
       "(:([A-Za-z0-9._-]|%(?!2D|2E|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9A])[0-9A-F]{2})+)*)")

class Wrong(Exception):
    """The first thing that is wrong."""

def need(condition, message):
    if not condition:
        raise Wrong(message)

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def unbase64(text):
    """32 bytes, strictly: a border moved by one byte would let one hash open to many values."""
    data = base64.b64decode(text, validate=True)
    need(len(data) == 32 and base64.b64encode(data).decode() == text, f"{text!r} is not base64 of 32 bytes")
    return data

def parse(text):
    """JSON in which no member is repeated (two readers must not see two values) and 4.0 is 4."""
    def members(pairs):
        need(len(dict(pairs)) == len(pairs), f"a member is repeated among {[name for name, _ in pairs]}")
        return dict(pairs)
    return json.loads(text, object_pairs_hook=members, parse_constant=int,
                      parse_float=lambda digits: int(float(digits)) if float(digits) % 1 == 0 else float(digits))

def written(value):
    """Canonical JSON (RFC 8785) for the ASCII names, whole numbers and halves that occur here."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

def read_entry(text):
    entry = parse(text)
    kind = entry.get("type")
    need(written(entry) == text and kind in FORMS, f"not the canonical JSON of a host's entry: {text[:80]}")
    need(entry.keys() == {*FORMS[kind], "type", "v"}, f"a {kind} has other members than version 1 has")
    for name, pattern in {**FORMS[kind], "v": "1"}.items():
        need(re.fullmatch(pattern, written(entry[name])), f"a {kind} has a bad {name}: {written(entry[name])[:80]}")
        if pattern in (DATE, TIME):
            datetime.fromisoformat(entry[name].rstrip("Z"))
    if kind == "review":
        booking = {"unconfirmed": "none", "host_attested": "attestation"}.get(entry["level"], "(?!none).*")
        need(re.fullmatch(booking, entry["evidence"]["booking"]), f"{entry['level']} does not rest on such a booking")
        need(entry["check_in"] < entry["check_out"], "a stay ends before it began")
    return entry

def open_checkpoint(note, vkey):
    """Size and root from a C2SP signed note. Unknown signers are ignored; a bad signature of the known key is fatal."""
    name, key_id, key = vkey.split("+", 2)
    key = base64.b64decode(key, validate=True)
    need(key[:1] == b"\x01" and sha(name.encode(), b"\n", key)[:4].hex() == key_id, "--key is not the vkey of a log")
    text, _, lines = note.rpartition("\n\n")
    need(re.fullmatch("(— [^\\s+]+ [A-Za-z0-9+/]+=*\n)+", lines), "the checkpoint does not end in signature lines")
    signatures = [base64.b64decode(value) for signer, value in re.findall("— (.+) (.+)", lines) if signer == name]
    signatures = [signature[4:] for signature in signatures if signature[:4].hex() == key_id]
    need(signatures, f"no signature by {name}+{key_id}")
    for signature in signatures:
        VerifyKey(key[1:]).verify(f"{text}\n".encode(), signature)
    origin, size, root = text.split("\n")
    need(origin == name and re.fullmatch(N, size), f"the checkpoint is not one of {name}")
    return int(size), unbase64(root)

def merkle_root(leaves, size, proof):
    """The root of an RFC 9162 tree from some leaves {index: hash} and, left to right, the subtrees without any."""
    hashes = iter(proof)
    def root(lo, hi, indices):
        if not indices:
            return unbase64(next(hashes, ""))
        if hi - lo == 1:
            return leaves[lo]
        k = lo + (1 << (hi - lo - 1).bit_length() - 1)
        left = root(lo, k, [i for i in indices if i < k])
        return sha(b"\x01", left, root(k, hi, [i for i in indices if i >= k]))
    need(leaves and min(leaves) >= 0 and max(leaves) < size, "an index is outside the tree")
    found = root(0, size, sorted(leaves))
    need(next(hashes, None) is None, "a proof has hashes left over")
    return found

def map_root(host, record, other, path):
    """The root to which a host's path through the map leads, from its record, another host's leaf, or nothing."""
    key, node = sha(host.encode()), bytes(32)
    need(0 < len(path) <= 256, "the map path has an impossible length")
    bits = f"{int.from_bytes(key, 'big'):0256b}"[: len(path)]
    if record is not None:
        need(other is None, "a record and map_other exclude each other")
        node = sha(b"\x02", key, sha(b"\x04", record.encode()))
    elif other is not None:
        other_key = unbase64(other["key"])
        on_path = f"{int.from_bytes(other_key, 'big'):0256b}".startswith(bits)
        need(on_path and other_key != key and len(other) == 2, "map_other is not another leaf on this host's path")
        node = sha(b"\x02", other_key, unbase64(other["value"]))
    for bit, text in zip(reversed(bits), path, strict=True):
        sibling = unbase64(text) if text else bytes(32)
        need(not text or any(sibling), "zeros in a map path are the empty string")
        node = sha(b"\x03", sibling, node) if bit == "1" else sha(b"\x03", node, sibling)
    return node

def read_event(event, host):
    """An event with its text, its leaf in the log, and its leaf in the host's own tree, which covers its index."""
    index, entry, opening, text = event["index"], read_entry(event["entry"]), event["opening"], None
    need(len(event) == 3 and type(index) is int, "an event is index, entry and opening")
    need(entry.get("host_did") == host, f"event {index} does not name {host}")
    if opening is not None:
        opened = sha(b"\x05", unbase64(opening["salt"]), opening["text"].encode())
        fits = entry["type"] in ("review", "response") and entry["text"] == base64.b64encode(opened).decode()
        need(fits and len(opening) == 2 and opening["text"], f"the text of event {index} is not the committed one")
        text = "".join(c for c in opening["text"] if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf"))
    leaf = sha(b"\x00", event["entry"].encode())
    own = sha(b"\x00", index.to_bytes(8, "big"), leaf)
    return {"index": index, "entry": entry, "text": text, "leaf": leaf, "own": own}

def fold(host, events):
    """The reviews that all events of a host give, and the record they add up to; or the rule that the events break."""
    reviews, texts, redacted = {}, set(), set()
    for index, entry, text in ((event["index"], event["entry"], event["text"]) for event in events):
        if entry["type"] == "review":
            same = ("review_id", "listing_id", "check_in", "check_out", "ratings", "repeat", "evidence")
            reviews[index] = {"index": index, **{name: entry[name] for name in same}, "submitted_at": entry["at"],
                              "verification_level": entry["level"], "review_text": text, "host_response": None}
            texts |= {(index, "text")} if entry["text"] else set()
        elif entry["type"] != "booking_check":
            review, part = reviews.get(entry["review"], {}), (entry["review"], entry.get("part", "response"))
            need(review.get("review_id") == entry["review_id"], f"entry {index} names no earlier review of this host")
            if entry["type"] == "response":
                gap = datetime.fromisoformat(entry["at"][:-1]) - datetime.fromisoformat(review["submitted_at"][:-1])
                need(part not in texts and gap <= timedelta(days=30), f"the response at {index} is late or the second")
                review["host_response"] = {"response_text": text, "submitted_at": entry["at"]}
                texts.add(part)
            elif entry["type"] == "upgrade":
                need(review["verification_level"] == "unconfirmed", f"entry {index} upgrades what is not unconfirmed")
                review |= {"verification_level": entry["level"], "evidence": entry["evidence"]}
            else:
                need(part in texts - redacted, f"entry {index} redacts what is not there")
                redacted.add(part)
    need(len({review["review_id"] for review in reviews.values()}) == len(reviews), "a review_id is used twice")
    stars = {level: {category: [] for category in CATEGORIES} for level in LEVELS}
    for review in reviews.values():
        issuer = review["evidence"]["issuer"] or ""
        review["guest_credential_issuer"] = urlsplit(issuer).hostname if issuer.startswith("https:") else issuer or None
        for category, rating in review["ratings"].items():
            stars[review["verification_level"]][category].append(int(2 * rating))
    verified = [review for review in reviews.values() if review["verification_level"] == "guest_verified"]
    kinds = [event["entry"].get("outcome", event["entry"]["type"]) for event in events]
    own_root = merkle_root(dict(enumerate(event["own"] for event in events)), len(events), [])
    return reviews, {
        "v": 1, "host": host, "events": len(events), "root": base64.b64encode(own_root).decode(),
        "reviews": {level: len(stars[level]["overall"]) for level in LEVELS},
        "ratings": {level: {c: [len(n), sum(n)] for c, n in stars[level].items() if n} for level in LEVELS},
        "histogram": [stars["guest_verified"]["overall"].count(half_stars) for half_stars in range(2, 11)],
        "repeats": sum(review["repeat"] for review in verified), "last_event": events[-1]["entry"]["at"],
        "first_stay": min((review["check_in"] for review in verified), default=None),
        "checks": {outcome: kinds.count(outcome) for outcome in OUTCOMES},
        "responses": kinds.count("response"), "redactions": kinds.count("redaction")}

def compare(given, expected, what):
    for name, value in expected.items():
        same = name in given and written(given[name]) == written(parse(written(value)))
        need(same, f"{name} of {what} is {written(given.get(name))[:200]}, the entries give {written(value)[:200]}")

def check(answer, vkey, host):
    """All that one answer shows by itself: signature, inclusion, the map's word for the host, its page, its summary."""
    proof, common = answer["proof"], {"checkpoint", "map_head", "log_proof", "map_proof", "record", "map_other"}
    kind = "page" if "from" in proof else "full" if "events" in proof else "aggregate"
    more = {"aggregate": set(), "full": {"events"}, "page": {"events", "from", "sub_proof"}}[kind]
    lists = all(type(proof.get(name, [])) is list for name in ("log_proof", "map_proof", "sub_proof", "events"))
    need(lists and proof.keys() == common | more, f"the proof does not have the members of a {kind} proof")
    size, root = open_checkpoint(proof["checkpoint"], vkey)
    head, leaf = read_entry(proof["map_head"]), sha(b"\x00", proof["map_head"].encode())
    need(head["type"] == "map_head" and head["size"] == size - 1, "the last entry is not a map head with its own index")
    events = [read_event(event, host) for event in proof.get("events", [])]
    order, times = [e["index"] for e in events] + [size - 1], [e["entry"]["at"] for e in events] + [head["at"]]
    need(order == sorted(set(order)) and times == sorted(times), "the events are not in order of index and time")
    found = merkle_root({e["index"]: e["leaf"] for e in events} | {size - 1: leaf}, size, proof["log_proof"])
    need(found == root, "the entries shown are not in the tree that was signed")
    found = map_root(host, proof["record"], proof["map_other"], proof["map_proof"])
    need(found == unbase64(head["root"]), "the host's map path does not lead to the map root")
    record = None if proof["record"] is None else parse(proof["record"])
    mine = record is None or written(record) == proof["record"] and record["host"] == host
    need(mine and (record or not events and kind != "page"), "the record is missing or not this host's")
    if kind == "page":
        own = dict(enumerate((event["own"] for event in events), proof["from"]))
        found = merkle_root(own, record["events"], proof["sub_proof"])
        need(found == unbase64(record["root"]), "the events are not those of that page")
    sums, counts = (record["ratings"]["guest_verified"], record["reviews"]) if record else ({}, {"guest_verified": 0})
    means = {name: (10 * stars + number) // (2 * number) / 10 for name, (number, stars) in sums.items()}
    face = {"host_did": host, "host_since": record and record["first_stay"], "total_reviews": sum(counts.values())}
    face |= {"verified_reviews": counts["guest_verified"], "average_ratings": {c: means.get(c) for c in CATEGORIES}}
    compare(answer, face, "the answer")
    need(kind == "full" or "review_history" not in answer, "reviews are listed, but their events are not shown")
    return proof.get("from", 0), kind, size, head["at"], record, events

def check_complete(listed, events, host, record):
    """The events add up to the record; the listed reviews are a run of all reviews, newest first."""
    reviews, folded = fold(host, events) if events else ({}, None)
    need(written(folded) == written(record), f"the record is {written(record)}, the events give {written(folded)}")
    order = sorted((index for index in reviews if listed and index <= listed[0]["index"]), reverse=True)
    need(len(listed) <= len(order), "more reviews are listed than there are")
    redacted = {e["entry"]["review"] for e in events if e["entry"].get("part") == "response"}
    for given, index in zip(listed, order, strict=False):
        gone = index in redacted and given["host_response"] is None  # a redacted response may be listed as none
        compare(given, reviews[index] | ({"host_response": None} if gone else {}), given["review_id"])

def verify(texts, vkey, host, max_age=None):
    """What one answer, or pages together, prove: lines to print. Raises at the first thing that is wrong."""
    need(re.fullmatch(DID, host), f"--host is not a DID in canonical form: {host}")
    answers = [parse(text) for text in texts]
    pages = sorted((check(answer, vkey, host) for answer in answers), key=lambda page: page[0])
    (_, kind, size, at, record, _), events = pages[0], []
    for page in pages:
        need(len(pages) == 1 or page[:5] == (len(events), "page", size, at, record), "a page is missing or foreign")
        events += page[5]
    need(len(pages) == 1 or len(events) == record["events"], "the last pages are missing")
    age = datetime.now(UTC) - datetime.fromisoformat(at[:-1] + "+00:00")
    need(max_age is None or timedelta(minutes=-5) <= age <= timedelta(hours=max_age), f"not fresh: the map is of {at}")
    count = f"{record['events']} events of this host, {len(events)} are shown" if record else "no events of this host"
    lines = [f"proved      the log signed a tree of {size} entries whose map, as of {at}, counts {count}"]
    if kind == "full" or len(pages) > 1:
        check_complete(answers[0]["review_history"] if kind == "full" else [], events, host, record)
        lines.append("proved      nothing is left out; every count, average and listed review follows from the events")
    else:
        lines.append("not proved  that the sums are right: only all events together show that")
    entries = [event["entry"] for event in events]
    redacted = {(entry["review"], entry["part"]) for entry in entries if entry["type"] == "redaction"}
    hidden = {event["index"] for event in events if event["entry"].get("level") == "unconfirmed"}
    hidden -= {entry["review"] for entry in entries if entry["type"] == "upgrade"}
    for event, entry in zip(events, entries, strict=True):
        if entry["type"] in ("review", "response") and entry["text"] and event["text"] is None:
            review, part = entry.get("review", event["index"]), "text" if entry["type"] == "review" else "response"
            state = "redacted " if (review, part) in redacted else "not asked" if review in hidden else "withheld "
            lines.append(f"{state}   the {part} of {entry['review_id']}")
    return [*lines, "not proved  that the map was made honestly (an audit replays it), that guests and stays are real"]

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answer", nargs="+", type=Path, help="the answer, or all pages of one host")
    parser.add_argument("--key", required=True, help="the log's vkey: name+id+base64")
    parser.add_argument("--host", required=True, help="the DID you asked about")
    parser.add_argument("--max-age", type=float, metavar="HOURS", help="refuse a map head older than this")
    arguments = parser.parse_args()
    try:
        texts = [path.read_text("utf-8") for path in arguments.answer]
        print("\n".join(verify(texts, arguments.key, arguments.host, arguments.max_age)))
    except Exception as error:  # whatever cannot be read is not proved
        raise SystemExit(f"{type(error).__name__}: {error}") from None

if __name__ == "__main__":
    main()
