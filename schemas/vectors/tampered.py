"""Tampered answers and receipts: what a dishonest operator, proxy or guest could try, and the code that refuses it.

Most variants repair as much as they can (a new multiproof, a record folded anew), so that the refusal comes from the
check they are about. None of them has the log's signature on a new state: that would be another ledger.
"""

import json
from typing import Any

from ledger.canon import base64, jcs
from ledger.log.hostmap import map_key, map_value
from schemas.vectors import tampered_full
from schemas.vectors.patch import Patch, add, replace
from schemas.vectors.story import Story
from schemas.vectors.variants import Variants
from schemas.vectors.world import COTTAGE


def answers(world: Story, bases: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    made = []
    for base, tamper in _TAMPER.items():
        variants = Variants(base, bases[base], world)
        tamper(variants)
        made += variants.made
    return made


def _aggregate(v: Variants) -> None:
    v.add("aggregate-average-raised", "face_mismatch", "a better average", replace("/average_ratings/value", 5))
    v.add("aggregate-list-added", "history_unproved", "an aggregate cannot show a list", add("/review_history", []))
    v.add("aggregate-record-changed", "map_root_mismatch", "a count in the record", *v.record(repeats=0))


def _page(v: Variants) -> None:
    events = v.proof["events"]
    v.add("page-shifted", "sub_root_mismatch", "the page stands elsewhere", replace("/proof/from", 2))
    v.add("page-beyond-the-end", "index_out_of_range", "there are fewer events", replace("/proof/from", 5))
    v.add("page-event-omitted", "proof_length", "an event is left out", *v.events([events[0], events[2]]))
    v.add("page-empty", "index_out_of_range", "a page has events", *v.events([]))
    v.add(
        "page-sub-proof-reversed",
        "sub_root_mismatch",
        "a multiproof runs from left to right",
        replace("/proof/sub_proof", v.proof["sub_proof"][::-1]),
    )


def _absent(v: Variants) -> None:
    host = next(entry for entry in v.world.log.entries if entry.host == COTTAGE)
    event = {"index": v.world.log.entries.index(host), "entry": host.data.decode(), "opening": None}
    v.add("absent-with-an-event", "foreign_event", "an event of another host", *v.events([event]))
    v.add("absent-with-reviews", "face_mismatch", "reviews out of nothing", replace("/total_reviews", 3))


def _absent_other(v: Variants) -> None:
    cottage = v.world.log.answer(COTTAGE)
    leaf = {"key": map_key(COTTAGE), "value": map_value(cottage["proof"]["record"].encode())}
    v.add(
        "absent-by-a-leaf-elsewhere",
        "map_other_elsewhere",
        "a genuine leaf that is not on the host's path",
        replace("/proof/map_other", {name: base64.encode(part) for name, part in leaf.items()}),
    )
    v.add("absent-by-nothing", "map_root_mismatch", "the other leaf is left out", replace("/proof/map_other", None))


_TAMPER = {
    "full": tampered_full.tamper,
    "aggregate": _aggregate,
    "page-3": _page,
    "absent-zeros": _absent,
    "absent-other": _absent_other,
}


def receipts(receipt: dict[str, Any]) -> list[dict[str, Any]]:
    members = json.loads(receipt["entry"])
    worse = jcs.dumps(members | {"ratings": members["ratings"] | {"overall": 1}}).decode()
    proof = receipt["tlog_proof"]
    cases: list[tuple[str, str, str, Patch]] = [
        ("entry-changed", "root_mismatch", "a rating was changed", [replace("/entry", worse)]),
        ("id-changed", "receipt_mismatch", "another review", [replace("/review_id", "rev-" + "a" * 26)]),
        (
            "level-changed",
            "receipt_mismatch",
            "another level than the entry's",
            [replace("/verification_level", "unconfirmed")],
        ),
        ("index-changed", "receipt_mismatch", "another index than the proof's", [replace("/index", 4)]),
        ("not-accepted", "receipt_mismatch", "no receipt at all", [replace("/status", "pending")]),
        (
            "extra-line",
            "tlog_proof_extra",
            "something unauthenticated travels along",
            [replace("/tlog_proof", proof.replace("\nindex", "\nextra aGVsbG8=\nindex", 1))],
        ),
        (
            "index-changed-in-both",
            "root_mismatch",
            "the entry stands elsewhere",
            [replace("/index", 4), replace("/tlog_proof", proof.replace("\nindex 5\n", "\nindex 4\n", 1))],
        ),
        (
            "text-changed",
            "opening_mismatch",
            "another text than the one submitted",
            [replace("/openings/text/text", "Dreadful.")],
        ),
        (
            "evidence-salt-short",
            "receipt_malformed",
            "a salt has 32 bytes",
            [replace("/openings/evidence/salt", base64.encode(bytes(31)))],
        ),
        (
            "evidence-salt-changed",
            "opening_mismatch",
            "the salt does not open the evidence with the submission",
            [replace("/openings/evidence/salt", base64.encode(bytes(32)))],
        ),
    ]
    return [{"name": name, "code": code, "reason": reason, "patch": patch} for name, code, reason, patch in cases]
