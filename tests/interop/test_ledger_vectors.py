"""The golden vectors of ledgers, maps, records, commitments and receipts: reproduced, or refused for their reasons."""

import hashlib
from functools import partial
from typing import Any

import pytest

from audits.receipts import verify_receipt
from ledger.canon import base64, jcs
from ledger.errors import Malformed
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.hostmap import (
    HostMap,
    MapLeaf,
    map_key,
    map_leaf,
    map_value,
    parse_siblings,
    verify_map,
)
from ledger.log.openings import Opening, commitment
from ledger.log.pages import MemoryPages, PagedMap
from ledger.log.record import HostFold, mean_tenths, sublog_leaf
from ledger.log.record_form import read_record
from ledger.log.replay import Replay
from ledger.log.tlog_proof import TlogProof
from tests.interop.vectors import KEY, LOG, golden, h, rebuilt, refusal, tree_of

LOG_32 = golden("log-32.json")
MAP = golden("map.json")
RECORD = golden("record.json")
AVERAGES = golden("averages.json")
COMMITMENTS = golden("commitments.json")
RECEIPT = golden("receipt.json")


class TestLedger:
    def test_the_whole_log_is_reproduced(self) -> None:
        """From its entries alone: map heads, checkpoints, signatures."""
        log = rebuilt(LOG_32["entries"], KEY)
        assert [entry.host for entry in log.entries] == LOG_32["names_host"]
        assert [entry.data.decode() for entry in log.entries] == LOG_32["entries"]
        assert [state.note for state in log.published] == [case["checkpoint"] for case in LOG_32["checkpoints"]]
        for state, case in zip(log.published, LOG_32["checkpoints"], strict=True):
            assert open_checkpoint(state.note, LOG).size == case["size"]
            assert base64.encode(log.map.root(state.map_top)) == case["map_root"]

    ENTRIES = {
        "previous is missing": "entry_invalid",
        "the old member created_at": "entry_invalid",
        "a policy hash has 32 bytes": "entry_invalid",
        "unknown action": "entry_invalid",
        "since is a time or null": "entry_invalid",
        "max_idv_level is missing": "entry_invalid",
        "a map head has a time": "entry_invalid",
        "size is an integer": "entry_invalid",
        "size is not negative": "entry_invalid",
        "a root has 32 bytes": "entry_invalid",
        "unknown role": "entry_invalid",
        "an array": "entry_malformed",
        "nothing": "entry_malformed",
        "trailing line feed": "entry_not_canonical",
        "hex in upper case": "entry_malformed",
        "70 characters": "entry_malformed",
        "a line feed after the artifact": "entry_malformed",
    }

    @pytest.mark.parametrize("case", LOG_32["entries_reject"], ids=lambda case: case["reason"])
    def test_entries_to_reject(self, case: dict[str, str]) -> None:
        assert refusal(parse_entry, case["entry"].encode()) == self.ENTRIES[case["reason"]]

    LOGS = {
        "genesis is index 0": "genesis_missing",
        "the first batch is genesis and its map head": "genesis_batch",
        "genesis stands only at index 0": "genesis_repeated",
        "times do not fall": "time_falls",
        "a map head carries its own index": "map_head_size",
        "a review_id is used once in the whole log, also by another host": "review_id_reused",
        "the map root does not follow from the entries: the host is left out": "map_root_mismatch",
        "the last leaf of a checkpoint is a map head": "map_head_not_last",
    }

    @pytest.mark.parametrize("case", LOG_32["logs_reject"], ids=lambda case: case["reason"])
    def test_logs_to_reject(self, case: dict[str, Any]) -> None:
        def replay() -> None:
            log = Replay()
            for text in case["entries"]:
                log.add(text.encode())
            log.require_head()

        assert refusal(replay) == self.LOGS[case["reason"]]


class TestMap:
    @pytest.mark.parametrize("case", MAP["cases"], ids=lambda case: f"{case['hosts']} hosts")
    def test_roots_and_proofs(self, case: dict[str, Any]) -> None:
        leaves = {}
        for host in MAP["hosts"][: case["hosts"]]:
            key, value = map_key(host["did"]), map_value(host["record"].encode())
            assert (key, value, map_leaf(key, value)) == (h(host["key"]), h(host["value"]), h(host["leaf"]))
            leaves[key] = value
        memory, paged = HostMap(leaves.items()), PagedMap(MemoryPages())
        top, root = paged.update(None, leaves)
        assert memory.root() == root == h(case["root"]) == base64.decode(case["root_base64"])
        records = {host["did"]: host["record"].encode() for host in MAP["hosts"][: case["hosts"]]}
        for given in case["proofs"]:
            key = map_key(given["did"])
            proof = memory.prove(key)
            assert proof == paged.prove(top, key)
            assert (proof.as_json(), len(proof.siblings)) == (given["map_proof"], given["depth"])
            ends = "zeros" if proof.leaf is None else "leaf" if proof.leaf.key == key else "other"
            assert ends == given["ends_in"]
            other = MapLeaf.parse(given["map_other"]) if given["map_other"] else None
            assert other == (proof.leaf if ends == "other" else None)
            verify_map(given["did"], records.get(given["did"]), other, parse_siblings(given["map_proof"]), root)


class TestRecord:
    def test_the_record_after_each_entry(self) -> None:
        fold = HostFold(RECORD["host"])
        for step in RECORD["steps"]:
            entry = parse_entry(step["entry"].encode())
            fold.add(step["index"], entry)
            assert sublog_leaf(step["index"], entry.leaf_hash) == h(step["sublog_leaf"])
            assert fold.record().decode() == step["record"]
            assert map_value(fold.record()) == h(step["map_value"])
            assert jcs.dumps(read_record(step["record"], RECORD["host"])).decode() == step["record"]

    # The first break a rule of the fold, the others the form of an entry.
    RULES = {
        "duplicate-review-id": "review_id_reused",
        "upgrade-of-verified": "upgrade_not_unconfirmed",
        "upgrade-twice": "upgrade_not_unconfirmed",
        "upgrade-of-attested": "upgrade_not_unconfirmed",
        "second-response": "response_repeated",
        "response-to-nothing": "review_unknown",
        "response-before-review": "review_unknown",
        "response-wrong-index": "review_unknown",
        "response-names-a-response": "review_unknown",
        "response-late": "response_late",
        "redaction-of-no-text": "redaction_of_nothing",
        "redaction-of-no-response": "redaction_of_nothing",
        "redaction-before-response": "redaction_of_nothing",
        "redaction-twice": "redaction_repeated",
        "time-falls": "time_falls",
        "other-host": "foreign_event",
        "names-no-host": "foreign_event",
        "rating-not-canonical": "entry_invalid",
        "entry-not-canonical": "entry_not_canonical",
        "two-hosts-by-duplicate-member": "entry_malformed",
        "version-2": "entry_unknown_type",
        "version-true": "entry_unknown_type",
        "unknown-type": "entry_unknown_type",
        "level-lowered": "entry_invalid",
        "upgrade-without-evidence": "entry_invalid",
        "redaction-basis": "entry_invalid",
        "check-outcome": "entry_invalid",
        "time-fraction": "entry_invalid",
        "time-offset": "entry_invalid",
        "time-unreal": "entry_invalid",
        "date-unreal": "entry_invalid",
        "stay-backwards": "entry_invalid",
        "unconfirmed-with-receipt": "entry_invalid",
        "verified-without-booking": "entry_invalid",
        "attested-with-callback": "entry_invalid",
        "booking-unknown": "entry_invalid",
        "rating-between-steps": "entry_invalid",
        "rating-too-small": "entry_invalid",
        "rating-too-large": "entry_invalid",
        "rating-true": "entry_invalid",
        "rating-missing": "entry_invalid",
        "rating-unknown": "entry_invalid",
        "unknown-member": "entry_invalid",
        "missing-repeat": "entry_invalid",
        "repeat-not-bool": "entry_invalid",
        "listing-id": "entry_invalid",
        "review-id": "entry_invalid",
        "review-id-loose-bits": "entry_invalid",
        "commitment-31-bytes": "entry_invalid",
        "text-empty": "entry_invalid",
    }

    @pytest.mark.parametrize("case", RECORD["no_record"], ids=lambda case: case["name"])
    def test_sequences_without_a_record(self, case: dict[str, Any]) -> None:
        def fold() -> None:
            state = HostFold(RECORD["host"])
            for index, text in enumerate(case["entries"], 2):
                state.add(index, parse_entry(text.encode()))

        assert refusal(fold) == self.RULES[case["name"]]

    @pytest.mark.parametrize("case", AVERAGES["cases"], ids=lambda c: f"{c['half_stars']}/{c['count']}")
    def test_averages(self, case: dict[str, Any]) -> None:
        tenths = mean_tenths(case["half_stars"], case["count"])
        assert (tenths, f"{tenths / 10:.1f}") == (case["tenths"], case["average"])


class TestCommitments:
    @pytest.mark.parametrize("case", COMMITMENTS["commitments"], ids=lambda c: c["of"])
    def test_commitments(self, case: dict[str, str]) -> None:
        assert commitment(base64.decode(case["salt"]), case["bytes"].encode()) == case["commitment"]

    @pytest.mark.parametrize("case", COMMITMENTS["same_hash_other_boundary"]["rejected"], ids=lambda c: c["reason"])
    def test_a_moved_border_opens_nothing(self, case: dict[str, str]) -> None:
        # Without the check of the length this is the same hash.
        moved = hashlib.sha256(b"\x05" + base64.decode(case["salt"]) + case["bytes"].encode()).digest()
        assert base64.encode(moved) == COMMITMENTS["same_hash_other_boundary"]["commitment"]
        assert refusal(commitment, base64.decode(case["salt"]), case["bytes"].encode()) == "hash_length"
        with pytest.raises(Malformed):
            Opening.parse({"text": case["bytes"], "salt": case["salt"]})

    def test_plain_hashes(self) -> None:
        for case in COMMITMENTS["plain_hashes"]:
            assert base64.encode(hashlib.sha256(case["bytes"].encode()).digest()) == case["hash"]


class TestReceipt:
    def test_the_receipt_is_reproduced(self) -> None:
        receipt = RECEIPT["receipt"]
        entries = [parse_entry(text.encode()) for text in RECEIPT["log_entries"]]
        tree = tree_of([entry.leaf_hash for entry in entries])[1]
        entry = entries[receipt["index"]]
        assert (entry.data.decode(), entry.leaf_hash) == (receipt["entry"], h(RECEIPT["leaf_hash"]))
        note = sign_checkpoint(Checkpoint(LOG.name, len(entries), tree.root(len(entries))), KEY)
        assert note == receipt["checkpoint"]
        proof = TlogProof(receipt["index"], tuple(tree.inclusion(receipt["index"], len(entries))), note)
        assert str(proof) == receipt["tlog_proof"]
        evidence = jcs.dumps({"submission": RECEIPT["submission"], "booking": None})
        assert evidence.decode() == RECEIPT["evidence_bytes"]
        salt = base64.decode(receipt["openings"]["evidence"]["salt"])
        assert commitment(salt, evidence) == RECEIPT["evidence_commitment"] == entry.members["evidence"]["commitment"]
        Opening.parse(receipt["openings"]["text"]).require(RECEIPT["text_commitment"])

    def test_it_verifies_but_for_its_submission_which_has_no_real_signature(self) -> None:
        receipt, submission = jcs.dumps(RECEIPT["receipt"]), jcs.dumps(RECEIPT["submission"])
        assert verify_receipt(receipt, LOG).proved
        check = partial(verify_receipt, receipt, LOG, submission=submission)
        assert refusal(check) == "entry_differs_from_submission"

    PROOFS = {
        "an extra line": "tlog_proof_extra",
        "another index": "receipt_mismatch",
        "a hash is missing": "proof_length",
        "another version": "tlog_proof_malformed",
        "index with leading zero": "tlog_proof_malformed",
    }

    @pytest.mark.parametrize("case", RECEIPT["tlog_proof_reject"], ids=lambda case: case["reason"])
    def test_altered_proofs(self, case: dict[str, str]) -> None:
        altered = {**RECEIPT["receipt"], "tlog_proof": case["tlog_proof"]}
        assert refusal(verify_receipt, jcs.dumps(altered), LOG) == self.PROOFS[case["reason"]]
