"""The golden vectors of hashes, checkpoints, trees and tiles: reproduced, and refused for their reasons."""

import hashlib
from typing import Any

import pytest

from ledger.canon import base64, did, jcs
from ledger.errors import BadDID
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.entries import half_stars
from ledger.log.hostmap import (
    map_key,
    map_leaf,
    map_node,
    map_value,
)
from ledger.log.note import ED25519, Verifier
from ledger.log.openings import commitment
from ledger.log.proofs import multiproof_root, verify_consistency, verify_inclusion
from ledger.log.record import sublog_leaf
from ledger.log.tiles import (
    decode_bundle,
    encode_bundle,
    parse_tile_path,
    tile_id,
    tile_name,
    tile_resources,
)
from ledger.log.tree import EMPTY_ROOT, leaf_hash, node_hash, root_of
from tests.interop.vectors import KEY, LOG, golden, h, refusal, tree_of

HASHING = golden("hashing.json")
CHECKPOINT = golden("checkpoint.json")
LOG_5 = golden("log-5.json")
LOG_32 = golden("log-32.json")
TILES = golden("tiles.json")


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
