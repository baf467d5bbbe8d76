"""The golden vectors, made from protocol.md by another implementation: reproduced, and refused for its reason."""

import hashlib
from typing import Any

import pytest
from nacl.signing import SigningKey

from audits.receipts import verify_receipt
from ledger.canon import base64, did, jcs
from ledger.errors import BadDID, Malformed, StaylogError
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.entries import half_stars, parse_entry
from ledger.log.hostmap import (
    HostMap,
    MapLeaf,
    map_key,
    map_leaf,
    map_node,
    map_value,
    parse_siblings,
    verify_map,
)
from ledger.log.note import ED25519, Verifier
from ledger.log.openings import Opening, commitment
from ledger.log.pages import MemoryPages, PagedMap
from ledger.log.proofs import multiproof_root, verify_consistency, verify_inclusion
from ledger.log.record import HostFold, mean_tenths, sublog_leaf
from ledger.log.record_form import read_record
from ledger.log.replay import Replay
from ledger.log.tiles import (
    MemoryTiles,
    TileTree,
    decode_bundle,
    encode_bundle,
    parse_tile_path,
    tile_id,
    tile_name,
    tile_resources,
)
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import EMPTY_ROOT, leaf_hash, node_hash, root_of
from tests.interop.vectors import golden, rebuilt
from tests.ledger.log.test_tree import stored

HASHING = golden("hashing.json")
CHECKPOINT = golden("checkpoint.json")
LOG_5 = golden("log-5.json")
LOG_32 = golden("log-32.json")
MAP = golden("map.json")
RECORD = golden("record.json")
AVERAGES = golden("averages.json")
COMMITMENTS = golden("commitments.json")
RECEIPT = golden("receipt.json")
TILES = golden("tiles.json")

LOG = Verifier.parse(CHECKPOINT["vkey"])
KEY = SigningKey(bytes.fromhex(CHECKPOINT["seed"]))


def h(text: str) -> bytes:
    return bytes.fromhex(text)


def refusal(call: Any, *arguments: Any) -> str:
    """The code with which `call` refuses."""
    with pytest.raises(StaylogError) as caught:
        call(*arguments)
    return caught.value.code


def tree_of(leaves: list[bytes]) -> tuple[MemoryTiles, TileTree]:
    tiles = stored(leaves)
    return tiles, TileTree(tiles)


class TestHashing:
    def test_log_hashes(self) -> None:
        for case in HASHING["log_leaf"]:
            assert leaf_hash(case["entry"].encode()) == h(case["hash"])
        for case in HASHING["log_node"]:
            assert node_hash(h(case["left"]), h(case["right"])) == h(case["hash"])
        assert h(HASHING["log_root_of_nothing"]) == EMPTY_ROOT

    def test_map_hashes(self) -> None:
        for case in HASHING["map_key"]:
            assert map_key(case["did"]) == h(case["key"])
            assert f"{int(case['key'], 16):0256b}".startswith(case["first_bits"])
        for case in HASHING["map_value"]:
            assert map_value(case["record"].encode()) == h(case["hash"])
        for case in HASHING["map_leaf"]:
            assert map_leaf(h(case["key"]), h(case["value"])) == h(case["hash"])
        for case in HASHING["map_node"]:
            assert map_node(h(case["left"]), h(case["right"])) == h(case["hash"])

    def test_sublog_hashes(self) -> None:
        for case in HASHING["sublog_leaf"]:
            assert sublog_leaf(case["index"], h(case["log_leaf"])) == h(case["hash"])
        for case in HASHING["sublog_root"]:
            leaves = [sublog_leaf(index, h(leaf)) for index, leaf in case["leaves"]]
            assert root_of(leaves) == h(case["root"])

    def test_commitments(self) -> None:
        for case in HASHING["commitment"]:
            data = case["text"].encode() if "text" in case else jcs.dumps(case["json"])
            assert "jcs" not in case or data.decode() == case["jcs"]
            assert base64.decode(commitment(h(case["salt"]), data)) == h(case["hash"])

    def test_ratings(self) -> None:
        for case in HASHING["jcs_of_ratings"]:
            assert jcs.dumps(float(case["rating"])).decode() == case["jcs"]
            assert half_stars(float(case["rating"])) == case["half_stars"]

    @pytest.mark.parametrize("canonical", HASHING["dids_canonical"])
    def test_canonical_dids(self, canonical: str) -> None:
        assert did.check(canonical) == canonical

    @pytest.mark.parametrize("case", HASHING["dids_refused"], ids=lambda case: case["reason"])
    def test_refused_dids(self, case: dict[str, str]) -> None:
        with pytest.raises(BadDID):
            did.check(case["did"])


class TestCheckpoint:
    def test_key_and_signature(self) -> None:
        verifier = Verifier(CHECKPOINT["key_name"], ED25519, bytes(KEY.verify_key))
        assert verifier.public_key == h(CHECKPOINT["public_key"])
        assert (
            verifier.key_id == hashlib.sha256(h(CHECKPOINT["key_id_preimage"])).digest()[:4] == h(CHECKPOINT["key_id"])
        )
        assert str(verifier) == CHECKPOINT["vkey"]
        checkpoint = Checkpoint(CHECKPOINT["key_name"], CHECKPOINT["size"], h(CHECKPOINT["root"]))
        assert str(checkpoint) == CHECKPOINT["body"]
        assert str(checkpoint).encode() == h(CHECKPOINT["body_hex"])
        assert sign_checkpoint(checkpoint, KEY) == CHECKPOINT["note"]

    @pytest.mark.parametrize("case", CHECKPOINT["accept"], ids=lambda case: case["case"])
    def test_accepted(self, case: dict[str, str]) -> None:
        checkpoint = open_checkpoint(case["note"], LOG)
        assert (checkpoint.size, checkpoint.root) == (CHECKPOINT["size"], h(CHECKPOINT["root"]))

    REASONS = {
        "no signature of the log": "signer_unknown",
        "bad signature of the known key": "signature_invalid",
        "good signature and bad signature of the known key": "signature_invalid",
        "size with leading zero": "checkpoint_malformed",
        "size with sign": "checkpoint_malformed",
        "size in other digits": "checkpoint_malformed",
        "root of 31 bytes": "checkpoint_malformed",
        "origin is not the key name": "origin_mismatch",
        "extension line": "checkpoint_malformed",
        "no final newline": "note_malformed",
        "hyphen instead of em dash": "note_malformed",
        "carriage returns": "note_malformed",
        "no blank line": "note_malformed",
    }

    @pytest.mark.parametrize("case", CHECKPOINT["reject"], ids=lambda case: case["case"])
    def test_rejected(self, case: dict[str, str]) -> None:
        assert refusal(open_checkpoint, case["note"], LOG) == self.REASONS[case["case"]]


@pytest.mark.parametrize("log", [LOG_5, LOG_32], ids=["log-5", "log-32"])
class TestTree:
    def test_leaves_and_roots(self, log: dict[str, Any]) -> None:
        leaves = [leaf_hash(entry.encode()) for entry in log["entries"]]
        assert [leaf.hex() for leaf in leaves] == log["leaf_hashes"]
        for size, root in log["roots"].items():
            assert tree_of(leaves)[1].root(int(size)).hex() == root

    def test_proofs(self, log: dict[str, Any]) -> None:
        leaves = [leaf_hash(entry.encode()) for entry in log["entries"]]
        tree = tree_of(leaves)[1]
        for case in log["inclusion"]:
            proof = tree.inclusion(case["index"], case["size"])
            assert [base64.encode(node) for node in proof] == case["proof"]
            verify_inclusion(leaves[case["index"]], case["index"], case["size"], proof, tree.root(case["size"]))
        for case in log["consistency"]:
            first, second = case["first"], case["second"]
            proof = tree.consistency(first, second)
            assert [base64.encode(node) for node in proof] == case["proof"]
            verify_consistency(first, second, tree.root(first), tree.root(second), proof)
        for case in log["multiproof"]:
            proof = tree.multiproof(case["indices"], case["size"])
            assert [base64.encode(node) for node in proof] == case["proof"]
            shown = [(index, leaves[index]) for index in case["indices"]]
            assert multiproof_root(shown, case["size"], proof) == tree.root(case["size"])


class TestProofsToReject:
    LEAF = h(LOG_5["leaf_hashes"][2])
    INCLUSION = {
        "index is not below size": "index_out_of_range",
        "one hash too many": "proof_length",
        "one hash too few": "proof_length",
        "another index": "root_mismatch",
        "another size": "proof_length",
        "another order": "root_mismatch",
    }
    CONSISTENCY = {
        "one hash too few": "proof_length",
        "one hash too many": "proof_length",
        "another first size": "proof_length",
        "equal sizes take an empty proof": "proof_length",
        "empty proof for different sizes": "proof_length",
        "size 0 is the caller's case, not the verifier's": "index_out_of_range",
    }

    @pytest.mark.parametrize("case", LOG_5["inclusion_reject"], ids=lambda case: case["reason"])
    def test_inclusion(self, case: dict[str, Any]) -> None:
        proof = [base64.decode_hash(text) for text in case["proof"]]
        code = refusal(verify_inclusion, self.LEAF, case["index"], case["size"], proof, h(LOG_5["roots"]["5"]))
        assert code == self.INCLUSION[case["reason"]]

    @pytest.mark.parametrize("case", LOG_5["consistency_reject"], ids=lambda case: case["reason"])
    def test_consistency(self, case: dict[str, Any]) -> None:
        proof = [base64.decode_hash(text) for text in case["proof"]]
        first, second = (h(LOG_5["roots"][str(case[name])]) for name in ("first", "second"))
        code = refusal(verify_consistency, case["first"], case["second"], first, second, proof)
        assert code == self.CONSISTENCY[case["reason"]]

    def test_an_inclusion_proof_does_not_bind_the_size(self) -> None:
        case = LOG_5["size_not_bound"]
        proof = [base64.decode_hash(text) for text in case["proof"]]
        verify_inclusion(self.LEAF, case["index"], case["size"], proof, h(case["root"]))


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

    def test_it_verifies(self) -> None:
        report = verify_receipt(jcs.dumps(RECEIPT["receipt"]), LOG, submission=jcs.dumps(RECEIPT["submission"]))
        assert "the review rests on exactly this signed submission" in report.proved

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


class TestTiles:
    @pytest.mark.parametrize("case", TILES["sizes"], ids=lambda case: f"size {case['size']}")
    def test_all_resources(self, case: dict[str, Any]) -> None:
        entries = [b"review-%d" % i for i in range(case["size"])]
        tiles, tree = tree_of([leaf_hash(entry) for entry in entries])
        assert tree.root(case["size"]).hex() == case["root"]
        assert set(tile_resources(case["size"])) == set(case["resources"])
        for path, expected in case["resources"].items():
            level, index, width = parse_tile_path(path)
            if level is None:
                data = encode_bundle(entries[index * 256 : index * 256 + width])
                assert decode_bundle(data) == entries[index * 256 : index * 256 + width]
            else:
                data = tiles[tile_id(level, index)][: width * 32]
            assert (len(data), hashlib.sha256(data).hexdigest()) == (expected["bytes"], expected["sha256"])

    def test_names(self) -> None:
        for case in TILES["names"]:
            assert tile_name(case["n"]) == case["name"]
            assert parse_tile_path(f"tile/0/{case['name']}") == (0, case["n"], 256)

    def test_the_first_bundle(self) -> None:
        for path, hexadecimal in TILES["first_bundle_hex"].items():
            _, _, width = parse_tile_path(path)
            assert encode_bundle([b"review-%d" % i for i in range(width)]).hex() == hexadecimal
