"""Check a Staylog reputation answer offline. One file, standard library and PyNaCl: read it, then trust it.

    python audits/standalone_verify.py ANSWER.json --key VKEY --host DID [--max-age HOURS] [--policy TLOG_POLICY]

ANSWER.json is the response to GET /v1/hosts/{did}/reputation?proof=full (or aggregate; of proof=page name all pages).
VKEY is the log's public key, from a source you trust. Exits with 0 and what was proved, or 1 and what is wrong first.
How: the key signs a checkpoint, size and root of a Merkle tree over ALL entries of the log. The last one is a map head,
the root of a map from every host to its record: counts, sums, a root over its own entries. So one signature fixes which
entries a host has, and every average. Witnesses cosign what extends all they have seen: everybody is shown one log.
"""

import argparse
import base64
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unicodedata import category

from nacl import bindings, exceptions, signing

try:
    from cryptography.hazmat.primitives.asymmetric import mldsa
except ImportError:
    mldsa = None  # ML-DSA-44 cosignatures are named, and do not count

CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "value", "location")
LEVELS, OUTCOMES = "guest_verified host_attested unconfirmed".split(), "conflict contradicted denied unanswered".split()
LATER = dict.fromkeys(range(0x13439, 0x13440))  # of Unicode category Cf since version 15, whatever this Python knows
SHOWN = "\t\n\u200c\u200d"  # of the categories Cc and Cf: layout, and letters of Persian words and emoji sequences
DATE, TIME = '"[0-9]{4}-[0-9]{2}-[0-9]{2}"', '"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"'
N, HASH = "(0|[1-9][0-9]{0,15})", '"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="'  # whole numbers; base64 of 32 bytes
RATINGS = '{"accuracy":R,"cleanliness":R,"communication":R,("location":R,)?"overall":R,"value":R}'
BOOKING = "stay_receipt|booking_notice|booking_claim|callback|attestation|none"
DID = ("did:(key:z[1-9A-HJ-NP-Za-km-z]+|jwk:[A-Za-z0-9_-]+|web:[a-z0-9](([a-z0-9-]|[.](?![.]))*[a-z0-9])?"
       "(%3A(?!443(?![0-9]))[1-9][0-9]{0,4})?"  # one spelling: lower-case host, no default port, no needless escapes
       "(:([A-Za-z0-9._-]|%(?!2D|2E|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9A])[0-9A-F]{2})+)*)")
HTTPS = r"https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?([/?#][A-Za-z0-9._~:/?#[\]@!$&'()*+,;=%-]{0,1800})?"
EVIDENCE = (f'{{"booking":"({BOOKING})","commitment":{HASH},"idv_level":(null|"(email|identity|payment)_verified")'
            f',"issuer":(null|"({DID}|{HTTPS})")}}')
OF_HOST = {"at": TIME, "host_did": '".+"'}
OF_REVIEW = {**OF_HOST, "review": N, "review_id": '"rev-[a-z2-7]{25}[aeimquy4]"'}
FORMS = {  # of entries: exactly the members of each type, each matching its pattern when written as JSON
    "review": {**OF_HOST, "review_id": OF_REVIEW["review_id"], "listing_id": '"[A-Za-z0-9._~-]{1,128}"',
               "check_in": DATE, "check_out": DATE, "evidence": EVIDENCE, "level": f'"({"|".join(LEVELS)})"',
               "ratings": RATINGS.replace("R", "([1-4]([.]5)?|5)"), "repeat": "true|false", "text": f"null|{HASH}"},
    "response": {**OF_REVIEW, "text": HASH, "statement": HASH}, "map_head": {"at": TIME, "size": N, "root": HASH},
    "index_head": {"at": TIME, "seq": N, "count": N, "root": HASH},
    "upgrade": {**OF_REVIEW, "level": '"guest_verified"', "evidence": EVIDENCE.replace(BOOKING, "stay_receipt")},
    "booking_check": {**OF_HOST, "outcome": f'"({"|".join(OUTCOMES)})"', "booking": HASH},
    "redaction": {**OF_REVIEW, "part": '"(text|response)"', "decision": HASH,
                  "basis": '"(gdpr_17|court_order|illegal_content|third_party_data)"'}}
LOG, WITNESS, ML_DSA, NAME = 1, 4, 6, "[^\\s+\0-\x1f\ud800-\udfff]+"  # types of keys
SIZES = {LOG: (32, 64), WITNESS: (32, 72), ML_DSA: (1312, 2428)}  # of keys and of signatures, with their time
POLICY = "[^\0-\x08\x0b-\x1f\x7f]{,131072}"

class Wrong(Exception): ...  # with the first thing that is wrong
def need(condition, message):
    if not condition:
        raise Wrong(message)
def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def unbase64(text, size=None):
    """Bytes of a known length, strictly: a border moved by one byte would let one hash open to many values."""
    data = base64.b64decode(text, validate=True)
    need(size in (None, len(data)) and base64.b64encode(data).decode() == text, f"not {size} bytes of base64: {text}")
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
            datetime.fromisoformat(entry[name])
    if kind == "review":
        booking = {"unconfirmed": "none", "host_attested": "attestation"}.get(entry["level"], "(?!none).*")
        need(re.fullmatch(booking, entry["evidence"]["booking"]), f"{entry['level']} does not rest on such a booking")
        need(entry["check_in"] < entry["check_out"], "a stay ends before it began")
    return entry

def signatures(note, vkey, *kinds):
    """How often a key signed a C2SP signed note. Unknown signers are ignored, a bad signature of this key is fatal.
    None for an ML-DSA-44 cosignature that cannot be checked here, because the package `cryptography` is missing."""
    need(re.match(f"{NAME}[+].+[+]", vkey), f"not a key: {vkey}")
    (name, key_id, key), (text, _, lines) = vkey.split("+", 2), note.rpartition("\n\n")
    kind = (key := unbase64(key))[0] if key else 0
    genuine = kind in kinds and len(key) == 1 + SIZES[kind][0] and sha(name.encode(), b"\n", key)[:4].hex() == key_id
    genuine = genuine and (kind == ML_DSA or bindings.crypto_core_ed25519_is_valid_point(key[1:]))
    need(genuine, f"not a key of type {kinds}: {vkey}")
    need(re.fullmatch(f"(— {NAME} [A-Za-z0-9+/]{{7,}}=*\n){{1,64}}", lines) and len(note) <= 131072, "no signed note")
    signed = [(signer, unbase64(value)) for signer, value in re.findall("— (.+) (.+)", lines)]
    found = [value[4:] for signer, value in signed if (signer, value[:4].hex()) == (name, key_id)]
    for value in found:  # a witness signs 8 bytes of time as well
        time = f"cosignature/v1\ntime {int.from_bytes(value[:8])}\n" if kind == WITNESS else ""
        need(len(value) == SIZES[kind][1] and (kind == LOG or value[0] < 128), f"a malformed signature by {name}")
        if kind != ML_DSA:
            signing.VerifyKey(key[1:]).verify(f"{time}{text}\n".encode(), value[-64:])
        elif mldsa:  # over names and numbers, and not over the text
            origin, size, root = text.split("\n")
            names = [bytes([len(part.encode())]) + part.encode() for part in (name, origin)]
            tree = bytes(8) + int(size).to_bytes(8) + unbase64(root, 32)
            said = b"".join([b"subtree/v1\n\0", names[0], value[:8], names[1], tree])
            mldsa.MLDSA44PublicKey.from_public_bytes(key[1:]).verify(value[8:], said)
    return None if found and kind == ML_DSA and not mldsa else len(found)

def open_checkpoint(note, vkey):
    need(signatures(note, vkey, LOG), f"no signature by {vkey}")
    origin, size, root = note.rpartition("\n\n")[0].split("\n")
    need(origin == vkey.split("+")[0] and re.fullmatch(N, size) and 1 < int(size) < 2**53, f"no checkpoint of {vkey}")
    return int(size), unbase64(root, 32)

def witnessed(note, vkey, policy):
    """What a tlog-policy says of a checkpoint. Each of its lines uses only names that lines above it define."""
    logs, keys, met, used, quorum = {}, {}, {"none": True}, {"none"}, None  # which keys signed, which names are met
    unchecked = []
    for line in policy.split("\n"):
        match re.findall("[^ \t]+", line):
            case ["log", key, *url] if key[-44:] not in [log[-44:] for log in logs] and len(url) < 2:
                logs[key] = signatures(note, key, LOG)
            case ["witness", name, key, *url] if name not in met and key[-44:] not in keys and len(url) < 2:
                count = signatures(note, key, WITNESS, ML_DSA)
                met[name] = keys[key[-44:]] = bool(count)  # by key: none counts twice
                unchecked += [key.split("+")[0]] if count is None else []
            case ["group", name, asked, *members] if name not in met and {*members} <= met.keys() - used:
                thresholds = {str(k): k for k in range(1, len(members) + 1)} | {"any": 1, "all": len(members)}
                need(asked in thresholds and 0 < len(members) == len({*members}), f"not a group: {line}")
                met[name], used = sum(met[each] for each in members) >= thresholds[asked], used | {*members}
            case ["quorum", name] if name in met and not quorum:
                quorum = name
            case words:
                need(not words or words[0].startswith("#"), f"a line that a policy cannot have here: {line}")
    need(vkey in logs and quorum and re.fullmatch(POLICY, policy), "the policy lacks this log, a quorum or plain text")
    count = f"{sum(keys.values())} of {len(keys)} witnesses of the policy agree"
    need(met[quorum], f"{count}, which is not enough for it; not checked: {unchecked}")
    return [f"proved      {count}, {'and it asks for none' if quorum == 'none' else 'which is enough for it'}",
            *(f"not checked the ML-DSA-44 cosignature of {name}: install cryptography" for name in unchecked)]

def merkle_root(leaves, size, proof):
    """The root of an RFC 9162 tree from some leaves {index: hash} and, left to right, the subtrees without any."""
    hashes = iter(proof)
    def root(lo, hi, indices):
        if not indices or hi - lo == 1:
            return leaves[lo] if indices else unbase64(next(hashes, ""), 32)
        k = lo + (1 << (hi - lo - 1).bit_length() - 1)
        return sha(b"\x01", root(lo, k, [i for i in indices if i < k]), root(k, hi, [i for i in indices if i >= k]))
    need(leaves and min(leaves) >= 0 and max(leaves) < size, "an index is outside the tree")
    found = root(0, size, sorted(leaves))
    need(not list(hashes), "a proof has hashes left over")
    return found

def map_root(host, proof):
    """The root to which a host's path through the map leads, from its record, another host's leaf, or nothing."""
    key, (record, other, path) = sha(host.encode()), [proof[name] for name in ("record", "map_other", "map_proof")]
    need(0 < len(path) <= 256 and None in (record, other), "an impossible map path, or both a record and map_other")
    bits = f"{int.from_bytes(key):0256b}"[: len(path)]
    leaf = None if record is None else (key, sha(b"\x04", record.encode()))
    if other is not None:
        leaf = unbase64(other["key"], 32), unbase64(other["value"], 32)
        need(f"{int.from_bytes(leaf[0]):0256b}".startswith(bits) and leaf[0] != key and len(other) == 2, "no map_other")
    node = sha(b"\x02", *leaf) if leaf else bytes(32)
    for bit, text in zip(reversed(bits), path, strict=True):
        sibling = bytes(32) if text == "" else unbase64(text, 32)
        need(text == "" or any(sibling), "zeros in a map path are the empty string")
        node = sha(b"\x03", sibling, node) if bit == "1" else sha(b"\x03", node, sibling)
    return node

def read_event(event, host):
    """An entry with its index, the text it opens to, its leaf in the log, and its leaf in the host's own tree."""
    index, entry, opening, text = event["index"], read_entry(event["entry"]), event["opening"], None
    need(len(event) == 3 and type(index) is int and entry.get("host_did") == host, f"event {index} is not of {host}")
    if opening is not None:
        opened = sha(b"\x05", unbase64(opening["salt"], 32), opening["text"].encode())
        fits = entry["type"] in ("review", "response") and entry["text"] == base64.b64encode(opened).decode()
        need(fits and len(opening) == 2 and opening["text"], f"the text of event {index} is not the committed one")
        text = "".join(c for c in opening["text"].translate(LATER) if c in SHOWN or category(c) not in ("Cc", "Cf"))
    leaf = sha(b"\x00", event["entry"].encode())
    return {**entry, "index": index, "opened": text, "leaf": leaf, "own": sha(b"\x00", index.to_bytes(8), leaf)}

def fold(host, events):
    """The reviews that all events of a host give, and the record they add up to; or the rule that the events break."""
    reviews, texts = {}, set()
    for event in events:
        index, kind, review = event["index"], event["type"], reviews.get(event.get("review"), {})
        part = event.get("review", index), event.get("part", "text" if kind == "review" else "response")
        need("review" not in event or review.get("review_id") == event["review_id"], f"entry {index} names no review")
        if kind == "review":
            same = "index review_id listing_id check_in check_out ratings repeat evidence".split()
            reviews[index] = {name: event[name] for name in same} | {"submitted_at": event["at"], "host_response": None,
                              "verification_level": event["level"], "review_text": event["opened"]}
        elif kind == "response":
            gap = datetime.fromisoformat(event["at"]) - datetime.fromisoformat(review["submitted_at"])
            need(gap <= timedelta(days=30) and not review["host_response"], f"response {index} is late or the second")
            review["host_response"] = {"response_text": event["opened"], "submitted_at": event["at"]}
        elif kind == "upgrade":
            need(review["verification_level"] == "unconfirmed", f"entry {index} upgrades what is not unconfirmed")
            review |= {"verification_level": event["level"], "evidence": event["evidence"]}
        elif kind == "redaction":
            need(part in texts, f"entry {index} redacts what is not there")
            texts.remove(part)
        texts |= {part} if event.get("text") else set()
    need(len({review["review_id"] for review in reviews.values()}) == len(reviews), "a review_id is used twice")
    stars = {level: {category: [] for category in CATEGORIES} for level in LEVELS}
    for review, issuer in [(review, review["evidence"]["issuer"]) for review in reviews.values()]:
        review["guest_credential_issuer"] = issuer and re.sub("https://([^:/?#]+).*", lambda m: m[1].lower(), issuer)
        for rated, stars_given in review["ratings"].items():
            stars[review["verification_level"]][rated].append(int(2 * stars_given))
    verified = [review for review in reviews.values() if review["verification_level"] == "guest_verified"]
    kinds = [event.get("outcome", event["type"]) for event in events]
    own_root = merkle_root({place: event["own"] for place, event in enumerate(events)}, len(events), [])
    return reviews, {
        "v": 1, "host": host, "events": len(events), "root": base64.b64encode(own_root).decode(),
        "last_event": events[-1]["at"], "first_stay": min((review["check_in"] for review in verified), default=None),
        "reviews": {level: len(stars[level]["overall"]) for level in LEVELS},
        "ratings": {level: {c: [len(n), sum(n)] for c, n in stars[level].items() if n} for level in LEVELS},
        "histogram": [stars["guest_verified"]["overall"].count(half_stars) for half_stars in range(2, 11)],
        "checks": {outcome: kinds.count(outcome) for outcome in OUTCOMES}, "responses": kinds.count("response"),
        "redactions": kinds.count("redaction"), "repeats": sum(review["repeat"] for review in verified)}

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
    (size, root), head = open_checkpoint(note := proof["checkpoint"], vkey), read_entry(proof["map_head"])
    need(head["type"] == "map_head" and head["size"] == size - 1, "the last entry is not a map head with its own index")
    events = [read_event(event, host) for event in proof.get("events", [])]
    leaves = {e["index"]: e["leaf"] for e in events} | {size - 1: sha(b"\x00", proof["map_head"].encode())}
    need(merkle_root(leaves, size, proof["log_proof"]) == root, "the entries shown are not in the tree that was signed")
    need(map_root(host, proof) == unbase64(head["root"], 32), "the host's map path does not lead to the map root")
    record = {} if proof["record"] is None else parse(proof["record"])
    absent = proof["record"] is None and not events and kind != "page"
    need(absent or written(record) == proof["record"] and record["host"] == host and record["events"] > 0, "no record")
    if kind == "page":
        own = {place: event["own"] for place, event in enumerate(events, proof["from"])}
        need(merkle_root(own, record["events"], proof["sub_proof"]) == unbase64(record["root"], 32), "not this page")
    sums, counts = (record["ratings"], record["reviews"]) if record else ({"guest_verified": {}}, {"guest_verified": 0})
    means = {level: dict.fromkeys(CATEGORIES) for level in sums}
    for level, c, n, s in ((name, c, *pair) for name in sums for c, pair in sums[name].items()):
        need(0 < n <= counts[level] and 2 * n <= s <= 10 * n and c in CATEGORIES, "an impossible record")
        means[level][c] = parse(written((10 * s + n) // (2 * n) / 10))
    compare(answer, {"host_did": host, "host_since": record["first_stay"] if record else None,
                     "total_reviews": sum(counts.values()), "verified_reviews": counts["guest_verified"],
                     "average_ratings": means["guest_verified"]}, "the answer")
    compare(record | {"average_ratings": means}, answer.get("statistics") or {}, "the statistics")
    need((kind == "full") == ("review_history" in answer), "a full proof, and no other, comes with a review_history")
    return proof.get("from", 0), kind, size, root, head["at"], record, events, answer.get("review_history", []), note

def verify(texts, vkey, host, max_age=None, policy=None):
    """What one answer, or pages together, prove: lines to print. Raises at the first thing that is wrong."""
    need(re.fullmatch(DID, host) and len(host) <= 256, f"--host is not a DID in canonical form: {host}")
    pages = sorted((check(parse(text), vkey, host) for text in texts), key=lambda page: page[0])
    (_, kind, size, root, at, record, _, listed, note), events = pages[0], []
    for page in pages:
        need(len(pages) == 1 or page[:6] == (len(events), "page", size, root, at, record), "a page is missing")
        events += page[6]
    order, times = [event["index"] for event in events] + [size - 1], [event["at"] for event in events] + [at]
    need(order == sorted(set(order)) and times == sorted(times) and (order[0] > 1 or not events), "events out of order")
    age = (datetime.now(UTC) - datetime.fromisoformat(at)) / timedelta(hours=1)
    need(max_age is None or -1 / 12 <= age <= max_age <= 1e6, f"not fresh: the map dates from {at}")
    lines = [f"proved      the log signed {size} entries, {record.get('events', 0)} of this host by its map as of {at}"]
    lines += [] if policy is None else witnessed(note, vkey, policy)
    redacted = {(event["review"], event["part"]) for event in events if event["type"] == "redaction"}
    if complete := kind == "full" or len(pages) > 1:
        reviews, folded = fold(host, events) if events else ({}, {})
        compare(record, folded, "the record")
        need(folded.keys() == record.keys(), "the record has members that no events give")
        to_list = [review for review in reversed(reviews.values()) if listed and review["index"] <= listed[0]["index"]]
        need(len(listed) <= len(to_list), "more reviews are listed than there are")
        for given, review in zip(listed, to_list, strict=False):  # a redacted response may be listed as none
            gone = (review["index"], "response") in redacted and given["host_response"] is None
            compare(given, review | {"host_response": None} if gone else review, review["review_id"])
        lines += [f"proved      these {len(events)} events are all, and every count and average follows from them",
                  f"proved      {len(listed)} of {len(reviews)} reviews are listed, each as its events give it"]
    else:
        lines.append("not proved  that the sums are right: only all events together show that")
    levels = {event.get("review", event["index"]): event["level"] for event in events if "level" in event}  # the newest
    missing = "withheld " if complete else "missing  "  # a later page may hold its redaction
    for event in (event for event in events if event.get("text") and event["opened"] is None):
        part = event.get("review", event["index"]), "text" if event["type"] == "review" else "response"
        state = "redacted " if part in redacted else "not asked" if levels.get(part[0]) == "unconfirmed" else missing
        lines.append(f"{state}   the {part[1]} of {event['review_id']}")
    lines.append("not proved  that the map was made honestly (an audit replays it), that guests and stays are real")
    return lines if policy else [*lines, "not proved  that everybody sees this same log: only its own key says so"]

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answer", nargs="+", type=Path, help="the answer, or all pages of one host")
    parser.add_argument("--key", required=True, help="the log's vkey: name+id+base64")
    parser.add_argument("--host", required=True, help="the DID you asked about")
    parser.add_argument("--max-age", type=float, metavar="HOURS", help="refuse a map head older than this")
    parser.add_argument("--policy", type=Path, help="a tlog-policy: demand its quorum of witnesses")
    given = parser.parse_args()
    try:
        *texts, policy = [path and path.read_bytes().decode() for path in (*given.answer, given.policy)]
        print("\n".join(verify(texts, given.key, given.host, given.max_age, policy)))
    except Exception as e:  # whatever cannot be read is not proved
        reason = str(e) if isinstance(e, Wrong | exceptions.BadSignatureError) else f"not a readable answer: {e!r}"
        raise SystemExit("Wrong: " + reason.encode("unicode_escape").decode()) from None

if __name__ == "__main__":
    main()
