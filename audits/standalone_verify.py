"""Check a Staylog reputation answer offline. One file, standard library and PyNaCl: read it, then trust it.

    python audits/standalone_verify.py ANSWER.json --key VKEY --host DID [--max-age HOURS] [--policy TLOG_POLICY]

ANSWER.json is the response to GET /v1/hosts/{did}/reputation?proof=full (or aggregate; of proof=page name all pages).
VKEY is the log's public key, from a source you trust. Exits with 0 and what was proved, or 1 and what is wrong first.
How: the key signs a checkpoint, size and root of a Merkle tree over ALL entries. The last is a map head, the root of a
map from every host to its record: counts, sums, a root over its own entries. So one signature fixes which entries a
host has, and every average. Witnesses cosign what extends all they have seen: everybody is shown one log.
"""

import argparse
import base64
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from unicodedata import category

from nacl import bindings, exceptions, signing

try:
    from cryptography.hazmat.primitives.asymmetric import mldsa
except ImportError:
    mldsa = None  # ML-DSA-44 cosignatures are named, and do not count
def members(forms):
    """The pattern of a JSON object in its one spelling (RFC 8785): of exactly these members, by name."""
    return "{" + ",".join(f'"{name}":({forms[name]})' for name in sorted(forms)) + "}"
CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "value", "location")
LEVELS, OUTCOMES = "guest_verified host_attested unconfirmed".split(), "conflict contradicted denied unanswered".split()
LATER, SHOWN = dict.fromkeys(range(0x13439, 0x13440)), "\t\n\u200c\u200d"  # of Cf since Unicode 15; shown of Cc and Cf
DATE, TIME = '"[0-9]{4}-[0-9]{2}-[0-9]{2}"', '"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}Z"'
N, HASH = "(0|[1-9][0-9]{0,15})", '"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="'  # whole numbers; base64 of 32 bytes
RATINGS = '{"accuracy":R,"cleanliness":R,"communication":R,("location":R,)?"overall":R,"value":R}'
BOOKING = "stay_receipt|booking_notice|booking_claim|callback|attestation|none"
NO_PORT = "443(?!#)|6553[6-9]|655[4-9]#|65[6-9]##|6[6-9]###|[7-9]####".replace("#", "[0-9]")
DID = ("(?=[!#-~]{1,256}(?![!#-~]))did:(key:z[1-9A-HJ-NP-Za-km-z]+|jwk:[A-Za-z0-9_-]+|web:"  # at most 256 bytes
       f"[a-z0-9](([a-z0-9-]|[.](?![.]))*[a-z0-9])?(%3A(?!{NO_PORT})[1-9][0-9]{{0,4}})?"  # in one spelling: lower case,
       "(:([A-Za-z0-9._-]|%(?!2D|2E|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9A])[0-9A-F]{2})+)*)")
HTTPS = r"https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?([/?#][A-Za-z0-9._~:/?#[\]@!$&'()*+,;=%-]{0,1800})?"
EVIDENCE = members({"booking": f'"({BOOKING})"', "commitment": HASH, "issuer": f'null|"({DID}|{HTTPS})"',
                    "idv_level": 'null|"(email|identity|payment)_verified"'})
OF_HOST, HEAD = {"at": TIME, "host_did": f'"{DID}"'}, {"at": TIME, "root": HASH}
OF_REVIEW = {**OF_HOST, "review": N, "review_id": '"rev-[a-z2-7]{25}[aeimquy4]"'}
FORMS = {  # of entries
    "review": {**OF_HOST, "review_id": OF_REVIEW["review_id"], "listing_id": '"[A-Za-z0-9._~-]{1,128}"',
               "check_in": DATE, "check_out": DATE, "evidence": EVIDENCE, "level": f'"({"|".join(LEVELS)})"',
               "ratings": RATINGS.replace("R", "([1-4]([.]5)?|5)"), "repeat": "true|false", "text": f"null|{HASH}"},
    "response": {**OF_REVIEW, "text": HASH, "statement": HASH}, "index_head": {**HEAD, "seq": N, "count": N},
    "upgrade": {**OF_REVIEW, "level": '"guest_verified"', "evidence": EVIDENCE.replace(BOOKING, "stay_receipt")},
    "booking_check": {**OF_HOST, "outcome": f'"({"|".join(OUTCOMES)})"', "booking": HASH},
    "redaction": {**OF_REVIEW, "part": '"(text|response)"', "decision": HASH,
                  "basis": '"(gdpr_17|court_order|illegal_content|third_party_data)"'}, "map_head": {**HEAD, "size": N}}
RECORD = {**dict.fromkeys("events repeats responses redactions".split(), N), "v": "1", "root": HASH, "last_event": TIME,
          "host": f'"{DID}"', "first_stay": f"null|{DATE}", "histogram": rf"\[{N}(,{N}){{8}}\]",
          "checks": members(dict.fromkeys(OUTCOMES, N)), "reviews": members(dict.fromkeys(LEVELS, N)),
          "ratings": members(dict.fromkeys(LEVELS, "{}|" + RATINGS.replace("R", rf"\[[1-9][0-9]{{0,15}},{N}\]")))}
LOG, WITNESS, ML_DSA, SIZES = 1, 4, 6, {1: (32, 64), 4: (32, 72), 6: (1312, 2428)}  # of keys, of signatures with a time
NAME, POLICY = "[^\\s+\0-\x1f\ud800-\udfff]+", "[^\0-\x08\x0b-\x1f\x7f]{,131072}"

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
    """JSON that all read alike: no member twice, no huge number, no half a character, nothing deep; 4.0 is no index."""
    def number(digits):
        size, whole = abs(float(digits)), not {*digits} & {*".eE"}
        need(size < 2**53 or not whole and 1e21 <= size < float("inf"), f"readers differ about {digits[:24]}")
        return int(digits) if whole else float(digits)
    value = json.loads(text, parse_constant=int, parse_float=number, parse_int=number, object_pairs_hook=lambda pairs:
                       need(len(dict(pairs)) == len(pairs), f"a member is repeated: {pairs}") or dict(pairs))
    brackets = re.sub(r'"([^"\\]|\\.)*"|[^][{}]', "", text)
    need(max(accumulate(((c in "[{") * 2 - 1 for c in brackets), initial=0)) <= 16, "nested deeper than 16 levels")
    written(value).encode()  # fails for half of a character
    return value
def written(value):
    """Canonical JSON for the ASCII names, whole numbers and halves that occur here. To people 4.0 is 4."""
    plain = json.loads(json.dumps(value), parse_float=lambda n: int(float(n)) if float(n) % 1 == 0 else float(n))
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
def read(text, forms, what):
    """An object of these members in its one spelling; and the days that it names exist."""
    need(re.fullmatch(members(forms), text), f"not a {what} of version 1: {text[:300]}")
    for name in {"at", "check_in", "check_out", "first_stay", "last_event"} & (value := parse(text)).keys():
        datetime.fromisoformat(value[name] or "1970-01-01")
    return value
def read_entry(text):
    kind = (re.findall('"type":"([a-z_]+)","v":1}$', text) or [text[:80]])[0]
    need(kind in FORMS, f"no entry of a known type: {kind}")
    entry = read(text, {**FORMS[kind], "type": f'"{kind}"', "v": "1"}, kind)
    if kind == "review":
        booking = {"unconfirmed": "none", "host_attested": "attestation"}.get(entry["level"], "(?!none).*")
        need(re.fullmatch(booking, entry["evidence"]["booking"]), f"{entry['level']} does not rest on such a booking")
        need(entry["check_in"] < entry["check_out"], "a stay ends before it began")
    return entry
def signatures(note, vkey, *kinds):
    """How often a key signed a C2SP note; a bad signature of it is fatal. None: only `cryptography` could check it."""
    need(re.match(f"{NAME}[+].+[+]", vkey), f"not a key: {vkey}")
    (name, key_id, key), (text, _, lines) = vkey.split("+", 2), note.rpartition("\n\n")
    kind = (key := unbase64(key))[0] if key else 0
    genuine = kind in kinds and len(key) == 1 + SIZES[kind][0] and sha(name.encode(), b"\n", key)[:4].hex() == key_id
    need(genuine and (kind == ML_DSA or bindings.crypto_core_ed25519_is_valid_point(key[1:])), f"not a key: {vkey}")
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
            own, log = (bytes([len(part)]) + part for part in (name.encode(), origin.encode()))
            said = b"".join([b"subtree/v1\n\0", own, value[:8], log, bytes(8), int(size).to_bytes(8), unbase64(root)])
            mldsa.MLDSA44PublicKey.from_public_bytes(key[1:]).verify(value[8:], said)
    return None if found and kind == ML_DSA and not mldsa else len(found)
def open_checkpoint(note, vkey):
    need(signatures(note, vkey, LOG), f"no signature by {vkey}")
    origin, size, root = note.rpartition("\n\n")[0].split("\n")
    need(origin == vkey.split("+")[0] and re.fullmatch(N, size) and 1 < int(size) < 2**53, f"no checkpoint of {vkey}")
    return int(size), unbase64(root, 32)

def witnessed(note, vkey, policy):
    """What a tlog-policy says of a checkpoint. Each of its lines uses only names that lines above it define."""
    logs, keys, met, used, quorum, unchecked = {}, {}, {"none": True}, {"none"}, None, []  # keys that signed, names met
    for line in policy.split("\n"):
        match re.findall("[^ \t]+", line):
            case ["log", key, *url] if key[-44:] not in [log[-44:] for log in logs] and len(url) < 2:
                logs[key] = signatures(note, key, LOG)
            case ["witness", name, key, *url] if name not in met and key.split("+", 2)[-1] not in keys and len(url) < 2:
                count = signatures(note, key, WITNESS, ML_DSA)
                met[name] = keys[key.split("+", 2)[-1]] = bool(count)  # by key: none counts twice
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
    leaf, part = sha(b"\x00", event["entry"].encode()), "text" if entry["type"] == "review" else "response"
    return {**entry, "index": index, "of": (entry.get("review", index), entry.get("part", part)), "opened": text,
            "leaf": leaf, "own": sha(b"\x00", index.to_bytes(8), leaf)}
def fold(host, events):
    """The reviews that all events of a host give, and the record they add up to; or the rule that the events break."""
    reviews, texts = {}, set()
    for event in events:
        index, kind, part, review = event["index"], event["type"], event["of"], reviews.get(event.get("review"), {})
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
        texts ^= {part} if event.get("text") or kind == "redaction" else set()
    need(len({review["review_id"] for review in reviews.values()}) == len(reviews), "a review_id is used twice")
    for review, issuer in [(review, review["evidence"]["issuer"]) for review in reviews.values()]:
        review["guest_credential_issuer"] = issuer and re.sub("https://([^:/?#]+).*", lambda m: m[1].lower(), issuer)
    at = {level: [review for review in reviews.values() if review["verification_level"] == level] for level in LEVELS}
    kinds = [event.get("outcome", event["type"]) for event in events]
    return reviews, {
        "v": 1, "host": host, "events": len(events), "last_event": events[-1]["at"],
        "root": base64.b64encode(merkle_root(dict(enumerate(e["own"] for e in events)), len(events), [])).decode(),
        "first_stay": min((each["check_in"] for each in at["guest_verified"]), default=None),
        "reviews": {level: len(at[level]) for level in LEVELS}, "responses": kinds.count("response"),
        "ratings": {level: {c: [len(n), sum(n)] for c in CATEGORIES if (
                    n := [int(2 * e["ratings"][c]) for e in at[level] if c in e["ratings"]])} for level in LEVELS},
        "histogram": [sum(2 * each["ratings"]["overall"] == n for each in at["guest_verified"]) for n in range(2, 11)],
        "checks": {outcome: kinds.count(outcome) for outcome in OUTCOMES}, "redactions": kinds.count("redaction"),
        "repeats": sum(each["repeat"] for each in at["guest_verified"])}
def read_record(text, host):
    """A host's record, once its own arithmetic shows that some events could add up to it."""
    record = read(text, RECORD, "record")
    counts, sums, stars, first_stay = (record[name] for name in ("reviews", "ratings", "histogram", "first_stay"))
    total, verified, responses = sum(counts.values()), counts["guest_verified"], record["responses"]
    rated = [(c, counts[level], *sums[level].get(c, (0, 0))) for level in LEVELS for c in CATEGORIES]
    fits = all((n == of or c == "location" and n < of) and 2 * n <= given <= 10 * n for c, of, n, given in rated)
    fits = fits and sum(k * n for k, n in enumerate(stars, 2)) == sums["guest_verified"].get("overall", (0, 0))[1]
    fits = fits and sum(stars) == verified and (first_stay is None) == (verified == 0)
    upgrades = record["events"] - total - responses - record["redactions"] - sum(record["checks"].values())
    fits = fits and record["repeats"] <= verified and responses <= total and record["redactions"] <= total + responses
    fits = fits and 0 <= upgrades <= verified and record["events"] > 0 and record["host"] == host
    need(fits, f"no events of {host} add up to {text[:300]}")
    return record
def compare(given, expected, what):
    for name, value in expected.items():
        same = name in given and written(given[name]) == written(value)
        need(same, f"{name} of {what}: {written(given.get(name))[:200]}, but the log gives {written(value)[:200]}")
def check(answer, vkey, host):
    """All that one answer shows by itself: signature, inclusion, the map's word for the host, its page, its summary."""
    proof, common = answer["proof"], {"checkpoint", "map_head", "log_proof", "map_proof", "record", "map_other"}
    kind = "page" if "from" in proof else "full" if "events" in proof else "aggregate"
    more = {"aggregate": set(), "full": {"events"}, "page": {"events", "from", "sub_proof"}}[kind]
    lists = [proof.get(name, []) for name in ("log_proof", "map_proof", "sub_proof", "events")]
    typed = {type(each) for each in [*lists, answer.get("review_history", [])]}
    need(typed == {list} and type(proof.get("from", 0)) is int and proof.keys() == common | more, f"no {kind} proof")
    (size, root), head = open_checkpoint(note := proof["checkpoint"], vkey), read_entry(proof["map_head"])
    need(head["type"] == "map_head" and head["size"] == size - 1, "the last entry is not a map head with its own index")
    events = [read_event(event, host) for event in proof.get("events", [])]
    leaves = {e["index"]: e["leaf"] for e in events} | {size - 1: sha(b"\x00", proof["map_head"].encode())}
    need(merkle_root(leaves, size, proof["log_proof"]) == root, "the entries shown are not in the tree that was signed")
    need(map_root(host, proof) == unbase64(head["root"], 32), "the host's map path does not lead to the map root")
    record = {} if proof["record"] is None else read_record(proof["record"], host)
    need(record or not events and kind != "page", "events of a host without a record")
    if kind == "page":
        own = dict(enumerate((event["own"] for event in events), proof["from"]))
        need(merkle_root(own, record["events"], proof["sub_proof"]) == unbase64(record["root"], 32), "not this page")
    shown = record or {"ratings": {"guest_verified": {}}, "reviews": {"guest_verified": 0}, "first_stay": None}
    means = {level: dict.fromkeys(CATEGORIES) | {c: (10 * given + n) // (2 * n) / 10 for c, (n, given) in sums.items()}
             for level, sums in shown["ratings"].items()}
    told = {name: record[name] for name in record.keys() - {"v", "host", "root", "first_stay", "last_event"}}
    told = told | {"average_ratings": means} if record else None
    compare({"statistics": told, **answer}, {"statistics": told, "host_did": host, "host_since": shown["first_stay"],
            "total_reviews": sum(shown["reviews"].values()), "average_ratings": means["guest_verified"],
            "verified_reviews": shown["reviews"]["guest_verified"]}, "the answer")
    need((kind == "full") == ("review_history" in answer), "a full proof, and no other, comes with a review_history")
    return proof.get("from", 0), kind, size, root, head["at"], record, events, answer.get("review_history", []), note
def verify(texts, vkey, host, max_age=None, policy=None):
    """What one answer, or pages together, prove: lines to print. Raises at the first thing that is wrong."""
    need(re.fullmatch(DID, host), f"--host is not a DID in canonical form: {host}")
    answers, is_set = [parse(text) for text in texts], len(texts) > 1
    if not is_set and type(answers[0]) is list:  # an array of pages
        answers, is_set = answers[0], True
    pages = sorted((check(answer, vkey, host) for answer in answers), key=lambda page: page[0])
    (_, kind, size, root, at, record, _, listed, note), events = pages[0], []
    for page in pages:
        need(not is_set or page[:6] == (len(events), "page", size, root, at, record), "a page is missing")
        events += page[6]
    order, times = [event["index"] for event in events] + [size - 1], [event["at"] for event in events] + [at]
    need(order == sorted(set(order)) and times == sorted(times) and (order[0] > 1 or not events), "events out of order")
    age = (datetime.now(UTC) - datetime.fromisoformat(at)) / timedelta(hours=1)
    need(max_age is None or -1 / 12 <= age <= max_age <= 1e6, f"not fresh: the map dates from {at}")
    lines = [f"proved      the log signed {size} entries, {record.get('events', 0)} of this host by its map as of {at}"]
    lines += [] if policy is None else witnessed(note, vkey, policy)
    redacted = {event["of"] for event in events if event["type"] == "redaction"}
    if complete := kind == "full" or is_set:
        reviews, folded = fold(host, events) if events else ({}, {})
        compare(record, folded, "the record")
        to_list = [review for review in reversed(reviews.values()) if listed and review["index"] <= listed[0]["index"]]
        need(len(listed) <= len(to_list), "more reviews are listed than there are")
        for given, review in zip(listed, to_list, strict=False):  # a redacted response may be listed as none
            gone = (review["index"], "response") in redacted and given["host_response"] is None
            compare(given, review | {"host_response": None} if gone else review, review["review_id"])
        lines += [f"proved      these {len(events)} events are all, and every count and average follows from them",
                  f"proved      {len(listed)} of {len(reviews)} reviews are listed, each as its events give it"]
    lines += [] if complete else ["not proved  that the sums are right: only all events together show that"]
    levels = {event["of"][0]: event["level"] for event in events if "level" in event}  # the newest
    missing = "withheld " if complete else "missing  "  # a later page may hold its redaction
    for event in (event for event in events if event.get("text") and event["opened"] is None):
        review, part = of = event["of"]
        state = "redacted " if of in redacted else "not asked" if levels.get(review) == "unconfirmed" else missing
        lines.append(f"{state}   the {part} of {event['review_id']}")
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
