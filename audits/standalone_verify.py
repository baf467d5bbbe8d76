"""Check a Staylog reputation answer offline. One file, standard library and PyNaCl: read it, then trust it.

    python audits/standalone_verify.py ANSWER.json --key VKEY --host DID [--max-age HOURS]

ANSWER.json is the response to GET /v1/hosts/{did}/reputation?proof=full (or aggregate; of proof=page name all pages).
VKEY is the log's public key, from a source you trust. Exits with 0 and what was proved, or 1 and what is wrong first.

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

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

# The form of an entry: exactly the members of its type, each matching its pattern when written as JSON.
LEVELS = ("guest_verified", "host_attested", "unconfirmed")
CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "value", "location")
OUTCOMES = ("conflict", "contradicted", "denied", "unanswered")
N = "(0|[1-9][0-9]{0,15})"
DATE = '"[0-9]{4}-[0-9]{2}-[0-9]{2}"'
TIME = '"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"'
HASH = '"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="'  # base64 of exactly 32 bytes
RATINGS = '{"accuracy":R,"cleanliness":R,"communication":R,("location":R,)?"overall":R,"value":R}'
BOOKING = "stay_receipt|booking_notice|booking_claim|callback|attestation|none"
# A DID has one spelling: lower-case host, no default port, no needless escapes.
DID = ("did:(key:z[1-9A-HJ-NP-Za-km-z]+|jwk:[A-Za-z0-9_-]+|web:[a-z0-9](([a-z0-9-]|[.](?![.]))*[a-z0-9])?"
       "(%3A(?!443(?![0-9]))[1-9][0-9]{0,4})?"
       "(:([A-Za-z0-9._-]|%(?!2D|2E|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9A])[0-9A-F]{2})+)*)")
HTTPS = r"https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?([/?#][A-Za-z0-9._~:/?#[\]@!$&'()*+,;=%-]{0,1800})?"
EVIDENCE = (f'{{"booking":"({BOOKING})","commitment":{HASH},"idv_level":(null|"(email|identity|payment)_verified")'
            f',"issuer":(null|"({DID}|{HTTPS})")}}')
OF_HOST = {"at": TIME, "host_did": '".+"'}
OF_REVIEW = {**OF_HOST, "review_id": '"rev-[a-z2-7]{25}[aeimquy4]"', "review": N}
FORMS = {
    "review": {**OF_HOST, "review_id": OF_REVIEW["review_id"], "listing_id": '"[A-Za-z0-9._~-]{1,128}"',
               "check_in": DATE, "check_out": DATE, "ratings": RATINGS.replace("R", "([1-4]([.]5)?|5)"),
               "evidence": EVIDENCE, "level": f'"({"|".join(LEVELS)})"',
               "repeat": "true|false", "text": f"null|{HASH}"},
    "response": {**OF_REVIEW, "text": HASH, "statement": HASH},
    "upgrade": {**OF_REVIEW, "level": '"guest_verified"', "evidence": EVIDENCE.replace(BOOKING, "stay_receipt")},
    "booking_check": {**OF_HOST, "outcome": f'"({"|".join(OUTCOMES)})"', "booking": HASH},
    "redaction": {**OF_REVIEW, "part": '"(text|response)"', "decision": HASH,
                  "basis": '"(gdpr_17|court_order|illegal_content|third_party_data)"'},
    "map_head": {"at": TIME, "size": N, "root": HASH},
}

class Wrong(Exception):
    """The first thing that is wrong."""

def need(condition, message):
    if not condition:
        raise Wrong(message)

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def unbase64(text, *sizes):
    """Bytes of a known length, strictly: a border moved by one byte would let one hash open to many values."""
    data = base64.b64decode(text, validate=True)
    need(len(data) in sizes and base64.b64encode(data).decode() == text, f"{text!r} is not base64 of {sizes} bytes")
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
    need((kind := entry.get("type")) in FORMS and written(entry) == text and len(text) < 65536, f"no entry {text[:80]}")
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
    key = unbase64(key, 33)
    need(key[:1] == b"\x01" and sha(name.encode(), b"\n", key)[:4].hex() == key_id, "--key is not the vkey of a log")
    text, _, lines = note.rpartition("\n\n")
    need(re.fullmatch("(— [^\\s+]+ [A-Za-z0-9+/]+=*\n)+", lines), "the checkpoint does not end in signature lines")
    signed = [(signer, unbase64(value, *range(5, 8192))) for signer, value in re.findall("— (.+) (.+)", lines)]
    signatures = [value[4:] for signer, value in signed if (signer, value[:4].hex()) == (name, key_id)]
    need(signatures and len(signed) <= 64, f"no signature by {name}+{key_id}, or too many by others")
    for signature in signatures:
        VerifyKey(key[1:]).verify(f"{text}\n".encode(), signature)
    origin, size, root = text.split("\n")
    need(origin == name and re.fullmatch(N, size) and 1 < int(size) < 2**53, f"the checkpoint is not one of {name}")
    return int(size), unbase64(root, 32)

def merkle_root(leaves, size, proof):
    """The root of an RFC 9162 tree from some leaves {index: hash} and, left to right, the subtrees without any."""
    hashes = iter(proof)
    def root(lo, hi, indices):
        if not indices:
            return unbase64(next(hashes, ""), 32)
        if hi - lo == 1:
            return leaves[lo]
        k = lo + (1 << (hi - lo - 1).bit_length() - 1)
        left = root(lo, k, [i for i in indices if i < k])
        return sha(b"\x01", left, root(k, hi, [i for i in indices if i >= k]))
    need(leaves and min(leaves) >= 0 and max(leaves) < size, "an index is outside the tree")
    found = root(0, size, sorted(leaves))
    need(not list(hashes), "a proof has hashes left over")
    return found

def map_root(host, record, other, path):
    """The root to which a host's path through the map leads, from its record, another host's leaf, or nothing."""
    key, node = sha(host.encode()), bytes(32)
    need(0 < len(path) <= 256, "the map path has an impossible length")
    bits = f"{int.from_bytes(key):0256b}"[: len(path)]
    if record is not None:
        need(other is None, "a record and map_other exclude each other")
        node = sha(b"\x02", key, sha(b"\x04", record.encode()))
    elif other is not None:
        other_key = unbase64(other["key"], 32)
        on_path = f"{int.from_bytes(other_key):0256b}".startswith(bits) and other_key != key
        need(on_path and len(other) == 2, "map_other is not another leaf on this host's path")
        node = sha(b"\x02", other_key, unbase64(other["value"], 32))
    for bit, text in zip(reversed(bits), path, strict=True):
        sibling = bytes(32) if text == "" else unbase64(text, 32)
        need(text == "" or any(sibling), "zeros in a map path are the empty string")
        node = sha(b"\x03", sibling, node) if bit == "1" else sha(b"\x03", node, sibling)
    return node

def read_event(event, host):
    """An event with its text, its leaf in the log, and its leaf in the host's own tree, which covers its index."""
    index, entry, opening, text = event["index"], read_entry(event["entry"]), event["opening"], None
    need(len(event) == 3 and type(index) is int, "an event is index, entry and opening")
    need(entry.get("host_did") == host, f"event {index} does not name {host}")
    if opening is not None:
        opened = sha(b"\x05", unbase64(opening["salt"], 32), opening["text"].encode())
        fits = entry["type"] in ("review", "response") and entry["text"] == base64.b64encode(opened).decode()
        need(fits and len(opening) == 2 and opening["text"], f"the text of event {index} is not the committed one")
        text = "".join(c for c in opening["text"] if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf"))
    leaf = sha(b"\x00", event["entry"].encode())
    return {"index": index, "entry": entry, "text": text, "leaf": leaf, "own": sha(b"\x00", index.to_bytes(8), leaf)}

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
        need(same, f"{name} of {what}: {written(given.get(name))[:200]}, but the log gives {written(value)[:200]}")

def check(answer, vkey, host):
    """All that one answer shows by itself: signature, inclusion, the map's word for the host, its page, its summary."""
    proof, common = answer["proof"], {"checkpoint", "map_head", "log_proof", "map_proof", "record", "map_other"}
    kind = "page" if "from" in proof else "full" if "events" in proof else "aggregate"
    more = {"aggregate": set(), "full": {"events"}, "page": {"events", "from", "sub_proof"}}[kind]
    typed = {type((answer | proof).get(n, [])) for n in "log_proof map_proof sub_proof events review_history".split()}
    need(typed == {list} and type(proof.get("from", 0)) is int and proof.keys() == common | more, f"no {kind} proof")
    size, root = open_checkpoint(proof["checkpoint"], vkey)
    head, leaf = read_entry(proof["map_head"]), sha(b"\x00", proof["map_head"].encode())
    need(head["type"] == "map_head" and head["size"] == size - 1, "the last entry is not a map head with its own index")
    events = [read_event(event, host) for event in proof.get("events", [])]
    found = merkle_root({e["index"]: e["leaf"] for e in events} | {size - 1: leaf}, size, proof["log_proof"])
    need(found == root, "the entries shown are not in the tree that was signed")
    found = map_root(host, proof["record"], proof["map_other"], proof["map_proof"])
    need(found == unbase64(head["root"], 32), "the host's map path does not lead to the map root")
    record = None if proof["record"] is None else parse(proof["record"])
    mine = record is None or written(record) == proof["record"] and record["host"] == host and record["events"] > 0
    need(mine and (record or not events and kind != "page"), "the record is missing or not this host's")
    if kind == "page":
        own = {place: event["own"] for place, event in enumerate(events, proof["from"])}
        need(merkle_root(own, record["events"], proof["sub_proof"]) == unbase64(record["root"], 32), "not this page")
    sums, counts = (record["ratings"], record["reviews"]) if record else ({"guest_verified": {}}, {"guest_verified": 0})
    means = {level: dict.fromkeys(CATEGORIES) for level in sums}
    for level, c, n, s in ((name, c, *pair) for name in sums for c, pair in sums[name].items()):
        need(0 < n <= counts[level] and 2 * n <= s <= 10 * n and c in CATEGORIES, "an impossible record")
        means[level][c] = parse(written((10 * s + n) // (2 * n) / 10))
    face = {"host_did": host, "host_since": record and record["first_stay"], "total_reviews": sum(counts.values())}
    face |= {"verified_reviews": counts["guest_verified"], "average_ratings": means["guest_verified"]}
    compare(answer, face, "the answer")
    compare((record or {}) | {"average_ratings": means}, answer.get("statistics") or {}, "the statistics")
    need((kind == "full") == ("review_history" in answer), "a full proof, and no other, comes with a review_history")
    return proof.get("from", 0), kind, (size, root), head["at"], record, events, answer.get("review_history", [])

def verify(texts, vkey, host, max_age=None):
    """What one answer, or pages together, prove: lines to print. Raises at the first thing that is wrong."""
    need(re.fullmatch(DID, host) and len(host) <= 256, f"--host is not a DID in canonical form: {host}")
    pages = sorted((check(parse(text), vkey, host) for text in texts), key=lambda page: page[0])
    (_, kind, tree, at, record, _, listed), events = pages[0], []
    for page in pages:
        need(len(pages) == 1 or page[:5] == (len(events), "page", tree, at, record), "a page is missing or foreign")
        events += page[5]
    entries = [event["entry"] for event in events]
    order, times = [e["index"] for e in events] + [tree[0] - 1], [entry["at"] for entry in entries] + [at]
    need(order == sorted(set(order)) and times == sorted(times) and (order[0] > 1 or not events), "events out of order")
    age = (datetime.now(UTC) - datetime.fromisoformat(at[:-1] + "+00:00")) / timedelta(hours=1)
    need(max_age is None or -1 / 12 <= age <= max_age <= 1e6, f"not fresh: the map dates from {at}")
    redacted = {(entry["review"], entry["part"]) for entry in entries if entry["type"] == "redaction"}
    count, total = (record["events"], sum(record["reviews"].values())) if record else (0, 0)
    lines = [f"proved      the log signed {tree[0]} entries and, as of {at}, a map with {count} events of this host"]
    if complete := kind == "full" or len(pages) > 1:
        reviews, folded = fold(host, events) if events else ({}, {})
        compare(record or {}, folded, "the record")
        need(folded.keys() == (record or {}).keys(), "the record has members that no events give")
        order = sorted((index for index in reviews if listed and index <= listed[0]["index"]), reverse=True)
        need(len(listed) <= len(order), "more reviews are listed than there are")
        for given, index in zip(listed, order, strict=False):
            if (index, "response") in redacted and given["host_response"] is None:
                reviews[index]["host_response"] = None  # a redacted response may be listed as none
            compare(given, reviews[index], reviews[index]["review_id"])
        lines.append(f"proved      these {len(events)} events are all, and every count and average follows from them")
        lines.append(f"proved      {len(listed)} of {total} reviews are listed, each as its events give it")
    else:
        lines.append("not proved  that the sums are right: only all events together show that")
    hidden = {event["index"] for event in events if event["entry"].get("level") == "unconfirmed"}
    hidden -= {entry["review"] for entry in entries if entry["type"] == "upgrade"}
    missing = "withheld " if complete else "missing  "  # a later page may hold its redaction
    for event, entry in zip(events, entries, strict=True):
        if entry["type"] in ("review", "response") and entry["text"] and event["text"] is None:
            review, part = entry.get("review", event["index"]), "text" if entry["type"] == "review" else "response"
            state = "redacted " if (review, part) in redacted else "not asked" if review in hidden else missing
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
        reason = str(error) if isinstance(error, Wrong | BadSignatureError) else f"not a readable answer: {error!r}"
        raise SystemExit("Wrong: " + reason.encode("ascii", "backslashreplace").decode()) from None

if __name__ == "__main__":
    main()
