"""Tampering with a full answer: its events, its signature, the map, the texts, and what people read."""

import json
from hashlib import sha256

from nacl.signing import SigningKey

from ledger.canon import base64, jcs
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.hostmap import map_key, map_value
from ledger.log.record import fold
from schemas.vectors.patch import add, remove, replace
from schemas.vectors.story import LOG, SEED
from schemas.vectors.variants import Variants
from schemas.vectors.world import ABSENT_OTHER, HARBOUR

STRANGER = SigningKey(sha256(b"staylog vectors: a stranger's key").digest())


def tamper(v: Variants) -> None:
    _full_events(v)
    _full_signature(v)
    _full_map(v)
    _full_texts(v)
    _full_face(v)


def _full_events(v: Variants) -> None:
    events = v.proof["events"]
    shorter = [*events[:1], *events[2:]]
    folded = fold(v.answer["host_did"], ((e["index"], parse_entry(e["entry"].encode())) for e in shorter[:1]))
    v.add("event-omitted", "proof_length", "an event is left out", remove("/proof/events/4"))
    v.add("event-omitted-repaired", "sub_root_mismatch", "as before, with a new multiproof", *v.events(events[:-1]))
    v.add(
        "event-omitted-refolded",
        "map_root_mismatch",
        "only the first event is shown, with a new multiproof and a record that fits it",
        *v.events(events[:1]),
        replace("/proof/record", folded.decode()),
    )
    v.add("review-omitted", "sub_root_mismatch", "a response is left without its review", *v.events(shorter))
    v.add("event-repeated", "index_order", "an event is shown twice", add("/proof/events/1", events[0]))
    v.add(
        "events-out-of-order",
        "index_order",
        "events are in log order",
        replace("/proof/events/0", events[1]),
        replace("/proof/events/1", events[0]),
    )
    foreign = next(i for i, entry in enumerate(v.world.log.entries) if entry.host == HARBOUR)
    event = {"index": foreign, "entry": v.world.log.entries[foreign].data.decode(), "opening": None}
    added = sorted([*events, event], key=lambda each: int(each["index"]))
    v.add("event-of-another-host", "foreign_event", "a genuine event of another host", *v.events(added))
    v.add("event-elsewhere", "root_mismatch", "an event at another index", replace("/proof/events/0/index", 4))
    v.add("event-beyond-the-tree", "index_out_of_range", "there is no such index", replace("/proof/events/7/index", 99))
    ratings = json.loads(events[0]["entry"])["ratings"] | {"overall": 1}
    v.add("rating-changed", "root_mismatch", "a rating was changed in an entry", *v.entry(0, ratings=ratings))
    v.add("level-raised", "root_mismatch", "host_attested became guest_verified", *v.entry(6, level="guest_verified"))
    v.add(
        "log-proof-too-long", "proof_length", "a hash is left over", add("/proof/log_proof/-", v.proof["log_proof"][0])
    )
    v.add("log-proof-too-short", "proof_length", "a hash is missing", remove("/proof/log_proof/0"))
    v.add(
        "log-proof-reversed",
        "root_mismatch",
        "a multiproof runs from left to right",
        replace("/proof/log_proof", v.proof["log_proof"][::-1]),
    )
    v.add("proof-with-more", "answer_malformed", "a proof has no other members", add("/proof/trust", "me"))
    spaced = events[0]["entry"].replace(",", ", ", 1)
    v.add("entry-respelled", "entry_not_canonical", "a blank too many", replace("/proof/events/0/entry", spaced))


def _full_signature(v: Variants) -> None:
    state = open_checkpoint(v.proof["checkpoint"], LOG)
    note, older = v.proof["checkpoint"], v.world.log.published[-2]
    larger = note.replace(f"\n{state.size}\n", f"\n{state.size + 1}\n", 1)
    v.add("checkpoint-size-changed", "signature_invalid", "the size is signed", replace("/proof/checkpoint", larger))
    v.add(
        "checkpoint-by-a-stranger",
        "signer_unknown",
        "signed with another key under the log's name",
        replace("/proof/checkpoint", sign_checkpoint(state, STRANGER)),
    )
    elsewhere = Checkpoint("elsewhere.example/log", state.size, state.root)
    v.add(
        "checkpoint-of-another-log",
        "signer_unknown",
        "signed by another log",
        replace("/proof/checkpoint", sign_checkpoint(elsewhere, SigningKey(SEED))),
    )
    v.add(
        "checkpoint-older",
        "map_head_not_last",
        "a genuine older checkpoint under newer proofs",
        replace("/proof/checkpoint", older.note),
    )
    v.add(
        "map-head-older",
        "map_head_not_last",
        "a genuine older map head",
        replace("/proof/map_head", v.world.log.entries[older.size - 1].data.decode()),
    )
    fresh = json.loads(v.proof["map_head"]) | {"at": "2026-06-01T00:00:00Z"}
    v.add(
        "map-head-fresher",
        "root_mismatch",
        "the time of the map head is under the signature too",
        replace("/proof/map_head", jcs.dumps(fresh).decode()),
    )


def _full_map(v: Variants) -> None:
    record, host = json.loads(v.proof["record"]), v.answer["host_did"]
    key, value = map_key(host), map_value(v.proof["record"].encode())
    gone = [*v.events([]), replace("/proof/record", None), replace("/review_history", [])]
    other = v.world.log.answer(ABSENT_OTHER)["proof"]["map_other"]
    v.add("record-changed", "map_root_mismatch", "a count in the record", *v.record(redactions=0))
    v.add(
        "record-of-another-host",
        "map_root_mismatch",
        "a genuine record of another host",
        replace("/proof/record", v.world.log.answer(HARBOUR)["proof"]["record"]),
    )
    v.add(
        "record-respelled",
        "map_root_mismatch",
        "the same record with blanks",
        replace("/proof/record", json.dumps(record, sort_keys=True)),
    )
    v.add("host-claimed-absent", "map_root_mismatch", "the host is said to have no record", *gone)
    v.add(
        "host-claimed-absent-by-its-own-leaf",
        "map_other_elsewhere",
        "the leaf at the end of the path is the host's own",
        *gone,
        replace("/proof/map_other", {"key": base64.encode(key), "value": base64.encode(value)}),
    )
    v.add(
        "host-claimed-absent-by-a-moved-border",
        "hash_length",
        "the host's own leaf, cut after 31 bytes: the hash is the same",
        *gone,
        replace("/proof/map_other", {"key": base64.encode(key[:31]), "value": base64.encode(key[31:] + value)}),
    )
    v.add(
        "record-and-other-leaf", "map_other_unexpected", "they exclude each other", replace("/proof/map_other", other)
    )
    v.add("map-proof-too-short", "map_root_mismatch", "a sibling is missing", remove("/proof/map_proof/0"))
    v.add("map-proof-too-long", "map_root_mismatch", "a sibling too many", add("/proof/map_proof/-", ""))
    place = v.proof["map_proof"].index("")
    v.add(
        "map-proof-zeros-spelled-out",
        "map_zeros_spelled_out",
        "an empty place is the empty string",
        replace(f"/proof/map_proof/{place}", base64.encode(bytes(32))),
    )


def _full_texts(v: Variants) -> None:
    opening = v.proof["events"][0]["opening"]
    salt, text = base64.decode_hash(opening["salt"]), opening["text"]
    v.add(
        "text-changed",
        "opening_mismatch",
        "another text than the one submitted, in the opening and in the list",
        replace("/proof/events/0/opening/text", text.replace("not one", "every one")),
        replace("/review_history/4/review_text", text.replace("not one", "every one")),
    )
    moved = {"text": text[1:], "salt": base64.encode(salt + text[:1].encode())}
    v.add(
        "text-border-moved",
        "hash_length",
        "the first letter moved into the salt: the hash is the same",
        replace("/proof/events/0/opening", moved),
    )
    v.add(
        "text-of-an-upgrade",
        "opening_unexpected",
        "an upgrade commits to no text",
        replace("/proof/events/3/opening", opening),
    )


def _full_face(v: Variants) -> None:
    listed = v.answer["review_history"]
    v.add("average-raised", "face_mismatch", "a better average", replace("/average_ratings/overall", 4.9))
    v.add("average-missing", "face_mismatch", "all categories are there", remove("/average_ratings/location"))
    v.add("total-raised", "face_mismatch", "more reviews than there are", replace("/total_reviews", 50))
    v.add("verified-raised", "face_mismatch", "host_attested is not verified", replace("/verified_reviews", 5))
    v.add("host-since-earlier", "face_mismatch", "an older host", replace("/host_since", "2019-01-01"))
    v.add("host-renamed", "face_mismatch", "another host's name", replace("/host_did", HARBOUR))
    v.add("listed-rating-raised", "history_mismatch", "another rating", replace("/review_history/3/ratings/overall", 5))
    v.add(
        "listed-level-raised",
        "history_mismatch",
        "host_attested listed as guest_verified",
        replace("/review_history/1/verification_level", "guest_verified"),
    )
    v.add(
        "listed-text-cut", "history_mismatch", "half a text", replace("/review_history/3/review_text", "Lovely garden.")
    )
    v.add("listed-repeat-hidden", "history_mismatch", "a second visit", replace("/review_history/0/repeat", False))
    v.add("listed-response-hidden", "history_mismatch", "a response", replace("/review_history/3/host_response", None))
    v.add(
        "listed-response-invented",
        "history_mismatch",
        "a response nobody gave",
        replace("/review_history/0/host_response", listed[3]["host_response"]),
    )
    v.add("listed-review-skipped", "history_mismatch", "a gap in the list", remove("/review_history/3"))
    v.add("listed-review-twice", "history_mismatch", "a good review twice", add("/review_history/0", listed[0]))
    v.add("listed-oldest-first", "history_mismatch", "the newest is first", replace("/review_history", listed[::-1]))
    v.add("list-taken-away", "history_mismatch", "a full answer lists reviews", remove("/review_history"))
    v.add(
        "full-made-aggregate",
        "wrong_kind",
        "the events are taken away: sums without what shows that they are right",
        *v.events([])[1:],
        remove("/proof/events"),
        remove("/review_history"),
    )
