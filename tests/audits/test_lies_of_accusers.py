"""Whoever accuses an honest log: nothing that it signed can be put together so that it convicts."""

import json
from itertools import combinations
from typing import Any

import pytest

from audits import broken_rules, clocks, forks, resources, served, transition
from audits.contradictions import ALONE, PAIRS, Log, Placed, contradict
from audits.evidence import SIGNED, Audited, Fraud, write_entries
from audits.fraud import check_fraud
from ledger.canon import base64
from ledger.errors import StaylogError
from ledger.log.checkpoint import open_checkpoint
from ledger.log.cosignature import Cosignature
from ledger.log.record import Reviews
from ledger.log.replay import MAX_BATCH
from ledger.log.tiles import TileTree
from tests.audits.convicting import audit
from tests.audits.forger import Forger
from tests.ledger.log.worked_example import WITNESS, WITNESS_KEY
from tests.running import HOST, OTHER, Writer
from tests.world import LOG


def honest(writer: Writer) -> Forger:
    """A log in which all that may happen has happened, to two hosts."""
    forger = Forger.begun(writer)
    for host in (HOST, OTHER):
        first, second = forger.add(writer.review(host)), forger.add(writer.review(host, "unconfirmed"))
        nobody = {**writer.evidence("attestation"), "issuer": None, "idv_level": None}
        attested = forger.add(writer.review(host, "host_attested", text=None, evidence=nobody))
        forger.head()
        forger.clock.forward(days=30)
        forger.add(writer.response(first))
        forger.add(writer.check(host))
        forger.add(writer.policy())
        forger.head()
        forger.add(writer.upgrade(second))
        forger.add(writer.redaction(first))
        forger.add(writer.redaction(first, "response"))
        forger.add(writer.response(attested))
        forger.head()
    return forger


def audited(forger: Forger) -> Audited:
    note = forger.notes[forger.size]
    tree = TileTree(forger.tiles)
    return Audited(note, open_checkpoint(note, LOG), tree, lambda start, stop: forger.data[start:stop])


def refused(fraud: Fraud | dict[str, Any]) -> str:
    told = fraud.as_json(LOG) if isinstance(fraud, Fraud) else fraud
    with pytest.raises(StaylogError) as refusal:
        check_fraud(json.dumps(told).encode(), LOG)
    return refusal.value.code


def test_it_is_honest(writer: Writer) -> None:
    assert audit(honest(writer)).verdict == "clean"


def test_no_entries_show_that_a_rule_is_broken(writer: Writer) -> None:
    forger = honest(writer)
    log = Log(LOG.name, forger.size)
    placed = [Placed.read(index, data) for index, data in enumerate(forger.data)]
    for code in {*PAIRS, *ALONE, "batch_too_long"}:
        assert not any(contradict(code, [each], log) for each in placed), code
        assert not any(contradict(code, pair, log) for pair in combinations(placed, 2)), code


@pytest.mark.parametrize("code", sorted({*PAIRS, *ALONE, "issuer_untrusted", "map_root_mismatch"}))
def test_no_place_of_it_is_where_a_rule_is_broken(code: str, writer: Writer) -> None:
    forger = honest(writer)
    log = audited(forger)
    for index in range(forger.size):
        assert refused(broken_rules.prove(log, code, index, "")) == "fraud_unproved"


def test_a_batch_is_not_too_long_because_its_end_is_left_out(writer: Writer) -> None:
    """As many entries as are too many, with the map head among them, or without it and so not in a row."""
    forger = Forger.begun(writer)
    for _ in range(2):
        for _ in range(MAX_BATCH):
            forger.add(writer.policy())
        forger.head()
    log, end = audited(forger), forger.size - MAX_BATCH - 2
    for left_out in (None, end):
        shown = [each for each in log.placed(*range(end - 3, forger.size - 1)) if each.index != left_out][
            : MAX_BATCH + 1
        ]
        proof = {"entries": write_entries(shown), "log_proof": log.multiproof(shown)}
        evidence = {"checkpoint": log.note, **proof}
        assert refused(Fraud("entries", "batch_too_long", "", SIGNED, evidence)) == "fraud_unproved"


def test_every_map_head_follows_whatever_is_left_out_of_the_evidence(writer: Writer) -> None:
    forger = honest(writer)
    log = audited(forger)
    heads = [each.index for each in log.placed(*range(forger.size)) if each.is_type("map_head")]
    for head in heads:
        told = transition.prove(log, head, "", Reviews()).as_json(LOG)
        assert refused(told) == "fraud_unproved"
        entries = told["evidence"]["entries"]
        for place in range(len(entries)):
            shown = [each for number, each in enumerate(entries) if number != place]
            proof = log.multiproof(log.placed(*(each["index"] for each in shown)))
            assert refused({**told, "evidence": {**told["evidence"], "entries": shown, "log_proof": proof}})
        for hosts in (told["evidence"]["hosts"][:-1], told["evidence"]["hosts"][::-1]):
            if hosts != told["evidence"]["hosts"]:
                assert refused({**told, "evidence": {**told["evidence"], "hosts": hosts}})
        for first in range(forger.size):
            if first != told["evidence"]["first"]:
                assert refused({**told, "evidence": {**told["evidence"], "first": first}})


def test_checkpoints_of_one_tree_are_no_fork_and_growth_is_no_rollback(writer: Writer) -> None:
    forger = honest(writer)
    tree = TileTree(forger.tiles)
    sizes = sorted(forger.notes)
    for older, newer in combinations(sizes, 2):
        fork = forks.prove_fork(forger.notes[older], forger.notes[newer], LOG, tree)
        assert refused(fork) == "fraud_unproved"
        # The tree of the smaller one is not that of the larger one.
        turned = {"older": forger.notes[newer], "newer": forger.notes[older], "proof": fork.evidence["proof"]}
        assert refused(Fraud("fork", "log_forked", "", SIGNED, turned)) == "fraud_unproved"
        assert refused(forks.prove_rollback(forger.notes[older], forger.notes[newer], LOG)) == "fraud_unproved"
    same = forger.notes[sizes[-1]]
    assert refused(forks.prove_fork(same, same, LOG, tree)) == "fraud_unproved"
    assert refused(forks.prove_rollback(same, same, LOG)) == "fraud_unproved"


def test_what_is_served_as_it_must_be_shows_nothing(writer: Writer) -> None:
    forger = honest(writer)
    log, path = audited(forger), f"tile/entries/000.p/{forger.size}"
    bundle = forger.get(f"log/{path}") or b""
    assert resources.prove_resource(log.note, log.checkpoint, log.tree, path, bundle) is None
    wrong = resources.prove_resource(log.note, log.checkpoint, log.tree, path, b"")
    assert wrong is not None
    for place in range(forger.size):
        right = {**wrong.evidence, "served": base64.encode(bundle), "place": place}
        assert refused({**wrong.as_json(LOG), "evidence": right})
    assert refused(resources.prove_unshown(log)) == "fraud_unproved"
    about = forger.get(f"v1/hosts/{HOST}/reputation?proof=full") or b""
    plain = forger.get(f"v1/hosts/{HOST}/reputation")
    for code in ("face_mismatch", "history_mismatch", "record_mismatch"):
        assert refused(served.prove(code, "", HOST, [about], plain)) == "fraud_unproved"
    for index in [each.index for each in log.placed(*range(forger.size)) if each.is_type("redaction")]:
        forger.openings.pop(log.placed(index)[0].get("review"), None)
    # What is redacted is not withheld.
    without = forger.get(f"v1/hosts/{HOST}/reputation?proof=full") or b""
    assert without != about
    assert refused(served.prove("text_withheld", "", HOST, [without])) == "fraud_unproved"


def test_a_witness_that_saw_it_in_time_shows_nothing(writer: Writer) -> None:
    forger = honest(writer)
    forger.cosign(forger.size, WITNESS, WITNESS_KEY, forger.clock())
    log = audited(forger)
    seen = Cosignature(WITNESS, int(forger.clock().timestamp()))
    for index in range(forger.size):
        assert refused(clocks.prove(log, index, log.note, seen)) == "fraud_unproved"
