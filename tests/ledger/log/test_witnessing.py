"""Cosignatures, tlog-proofs and witness policies; first of all the worked example of the specification notes."""

from hashlib import sha256

import pytest
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.errors import BadNote, NotProved, StaylogError
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.cosignature import cosign, cosignatures
from ledger.log.note import ED25519, Note, Signature, Verifier
from ledger.log.policy import Policy
from ledger.log.tiles import encode_bundle
from ledger.log.tlog_proof import TlogProof
from tests.ledger.log.worked_example import (
    BY_OTHER,
    BY_WITNESS,
    ENTRIES,
    EXAMPLE,
    LEAVES,
    LOG,
    LOG_KEY,
    OTHER,
    TEXT,
    TIMESTAMP,
    TREE,
    WITNESS,
    WITNESS_KEY,
    cosigned,
)


def test_the_worked_example() -> None:
    assert str(LOG) == "reputation.example/log+61e60577+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
    assert str(WITNESS) == "witness.example/w1+aa4a09d1+BOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"
    assert LEAVES[2].hex() == "f4e93a17c66f47803f6b7dd4b48141295864956238c13ad04ca930eb7f557a18"
    assert TREE.root(3).hex() == "93ce9ddcfda4977e1cadf299accd1ab145b6ee1e497db4dc8a75eb8acc9a5e0a"
    assert encode_bundle(ENTRIES[:2]).hex() == "00087265766965772d3000087265766965772d31"
    assert len(encode_bundle(ENTRIES)) == 50
    proof = TlogProof(2, tuple(TREE.inclusion(2, 5)), cosigned(BY_WITNESS), extra=b"review-id=2")
    assert str(proof) == EXAMPLE
    assert TlogProof.parse(EXAMPLE) == proof
    assert proof.verify(LEAVES[2], LOG).size == 5
    assert [base64.encode(node)[:8] for node in TREE.consistency(3, 5)] == [
        "9Ok6F8Zv",
        "4Q7HkWxI",
        "xw6lryLD",
        "6GsekO0n",
    ]
    (seen,) = cosignatures(Note.parse(proof.checkpoint), [WITNESS])
    assert (seen.witness, seen.timestamp) == (WITNESS, TIMESTAMP)


def test_the_proof_does_not_bring_its_leaf() -> None:
    with pytest.raises(NotProved) as refusal:
        TlogProof.parse(EXAMPLE).verify(LEAVES[3], LOG)
    assert refusal.value.code == "root_mismatch"


@pytest.mark.parametrize(
    ("old", "new"),
    [("proof@v1", "proof@v2"), ("index 2", "index 02"), ("index 2", "index two"), ("index 2\n", ""), ("extra cm", "extra !m"),
     ("4Q7H", "4Q7"), ("index 2", "index 9007199254740992"), ("\n\nreputation", "\nreputation"), ("extra cmV2aWV3LWlkPTI=", "extra cmV2aWV3LWlkPTJ=")],
)  # fmt: skip
def test_malformed_proofs(old: str, new: str) -> None:
    text = EXAMPLE.replace(old, new) if old != "\n\nreputation" else "c2sp.org/tlog-proof@v1\nindex 2\n"
    with pytest.raises(BadNote) as refusal:
        TlogProof.parse(text)
    assert refusal.value.code == "tlog_proof_malformed"


@pytest.mark.parametrize(
    "value",
    [BY_WITNESS.value[:-1], BY_WITNESS.value + b"\0", b"\xff" * 8 + BY_WITNESS.value[8:], bytes(8) + BY_WITNESS.value[8:], b"x"],
)  # fmt: skip
def test_a_bad_cosignature_of_a_known_witness_rejects_the_note(value: bytes) -> None:
    note = Note.parse(cosigned(Signature(WITNESS.name, WITNESS.key_id, value)))
    with pytest.raises(NotProved) as refusal:
        cosignatures(note, [WITNESS])
    assert refusal.value.code == "cosignature_invalid"
    assert cosignatures(note, [OTHER]) == []


def test_a_cosignature_has_a_possible_time() -> None:
    for timestamp in (-1, 2**63):
        with pytest.raises(ValueError, match="between 0 and"):
            cosign(TEXT, WITNESS.name, WITNESS_KEY, timestamp)


POLICY = f"""
# who is trusted
log {LOG} https://reputation.example/log
witness w1 {WITNESS} https://witness.example
witness w2 {OTHER}
"""
# A name is a member once in a policy, so each case has the groups that it needs.
GROUPS = {
    "both": "group both all w1 w2\n",
    "either": "group either any w1 w2\n",
    "nested": "group both all w1 w2\ngroup nested 1 both\n",
    "mixed": "group second any w2\ngroup mixed all second w1\n",
}


def policy_with(quorum: str) -> str:
    return f"{POLICY}{GROUPS.get(quorum, '')}quorum {quorum}\n"


@pytest.mark.parametrize(
    ("quorum", "signatures", "enough"),
    [
        ("none", (), True),
        ("w1", (BY_WITNESS,), True),
        ("w1", (BY_OTHER,), False),
        ("both", (BY_WITNESS,), False),
        ("both", (BY_WITNESS, BY_OTHER), True),
        ("either", (BY_OTHER,), True),
        ("either", (), False),
        ("nested", (BY_WITNESS, BY_OTHER), True),
        ("nested", (BY_WITNESS, BY_WITNESS), False),
        ("mixed", (BY_WITNESS, BY_OTHER), True),
        ("mixed", (BY_OTHER,), False),
    ],
)
def test_quorums(quorum: str, signatures: tuple[Signature, ...], enough: bool) -> None:
    policy = Policy.parse(policy_with(quorum))
    if enough:
        checkpoint, seen = policy.verify(cosigned(*signatures))
        assert (checkpoint.size, seen.agree, seen.asked, seen.quorum) == (5, len(signatures), 2, True)
    else:
        with pytest.raises(NotProved) as refusal:
            policy.verify(cosigned(*signatures))
        assert refusal.value.code == "quorum_missing"
        seen = policy.agreement(Note.parse(cosigned(*signatures)))
        assert (seen.agree, seen.quorum) == (len(set(signatures)), False)


def test_a_log_outside_the_policy_is_refused() -> None:
    policy = Policy.parse(f"log {Verifier('another.example', ED25519, LOG.public_key)}\nquorum none\n")
    with pytest.raises(NotProved) as refusal:
        policy.verify(cosigned())
    assert refusal.value.code == "signer_unknown"


OTHER_LOG = Verifier("other.example/log", ED25519, OTHER.public_key)
# Lines that are allowed at the end of the policy below, though they look like some that are not.
READABLE = [
    f"log {OTHER_LOG}",
    f"log {Verifier('renamed.example', ED25519, WITNESS.public_key)}",
    f"\t log \t {OTHER_LOG} \t",
    "\t \t",
    "\t# tab, \xa0, \u2003, \u2028 and \x85",
    "group g any w1\ngroup h any w2\ngroup i 2 g h",
    "group g\xa0 any w1\ngroup \u2003 any w2 g\xa0",
]


def spaced(blank: str) -> str:
    """A key whose name has a blank in it, which the rules for keys forbid."""
    name, typed = f"third{blank}example", bytes([ED25519]) + OTHER.public_key
    key_id = sha256(name.encode() + b"\n" + typed).hexdigest()[:8]
    return f"log {name}+{key_id}+{base64.encode(typed)}"


@pytest.mark.parametrize(
    "line",
    ["log", f"log {WITNESS}", f"log {LOG} u x", f"log {LOG}", f"witness w3 {LOG}", f"witness w1 {OTHER}", f"witness w3 {WITNESS}",
     f"witness none {OTHER}", "witness w3", "group g all", "group g 0 w1", "group g 3 w1 w2", "group g 01 w1", "group g ² w1", "group g all w1 w1",
     "group g all unknown", "group w1 all w2", "quorum unknown", "quorum", "quorum w1 w2", "quorum none", "frobnicate", "witness w3 nonsense",
     "group g any w1\ngroup h any w1", "group g all w1 w2\ngroup h 2 g w2", "group g any w1\ngroup h any g\ngroup i any g", "group g any w1\ngroup h all w2 w1",
     f"log {Verifier('renamed.example', ED25519, LOG.public_key)}", "# \x00", "# \x07", "# \x08", "# \x0b", "# \x0c", "# \r", "\r", "# \x1b[2J", "# \x1f", "# \x7f",
     "group\x0cg any w1", "group g any w1\x0b", "\x1cgroup g any w1", "group g\x7f any w1", "group\xa0g any w1", "group g any\u2003w1", "group g any w1\u2028",
     "\u3000group g any w1", "group g any w1\x85", "\u2003", "\xa0# a comment", f"log {OTHER_LOG} https://a\xa0b c", f"log{chr(0x2003)}{OTHER_LOG}", spaced("\xa0"), spaced("\u2003")],
)  # fmt: skip
def test_malformed_policies(line: str) -> None:
    text = f"log {LOG}\nwitness w1 {WITNESS}\nwitness w2 {OTHER}\nquorum none\n{line}\n"
    with pytest.raises(BadNote) as refusal:
        Policy.parse(text)
    assert refusal.value.code == "policy_malformed"


@pytest.mark.parametrize("line", READABLE)
def test_what_a_policy_may_have(line: str) -> None:
    text = f"log {LOG}\nwitness w1 {WITNESS}\nwitness w2 {OTHER}\nquorum none\n{line}\n"
    assert Policy.parse(text).verify(cosigned(BY_WITNESS))[1].agree == 1


def test_no_blank_but_space_and_tab_separates() -> None:
    policy = Policy.parse(f"log {LOG} a\xa0b\nwitness w\u20031\t{WITNESS} \thttps://w\xa0.example\nquorum w\u20031\n")
    assert policy.quorum == "w\u20031"
    assert policy.witnesses["w\u20031"].url == "https://w\xa0.example"


def test_a_policy_needs_its_quorum_line() -> None:
    with pytest.raises(BadNote, match="exactly one quorum"):
        Policy.parse(f"log {LOG}\n")


def test_every_known_log_that_signed_must_have_signed_well() -> None:
    """The checkpoint is of the log that its origin names, whatever order the policy has."""
    other_key = SigningKey(b"\x09" * 32)
    other = Verifier("other.example", ED25519, bytes(other_key.verify_key))
    good = Signature(other.name, other.key_id, other_key.sign(TEXT.encode()).signature)
    bad = Signature(other.name, other.key_id, bytes(64))
    for logs in (f"log {LOG}\nlog {other}\n", f"log {other}\nlog {LOG}\n"):
        policy = Policy.parse(logs + "quorum none\n")
        assert policy.verify(cosigned(good))[0].origin == LOG.name
        with pytest.raises(NotProved) as refusal:
            policy.verify(cosigned(bad))
        assert refusal.value.code == "signature_invalid"


def test_a_deep_policy_is_judged_at_once() -> None:
    lines = [f"log {LOG}", f"witness w {WITNESS}", "group a0 any w"]
    lines += [f"group a{depth} any a{depth - 1}" for depth in range(1, 2500)]
    policy = Policy.parse("\n".join([*lines, "quorum a2499"]))
    assert policy.verify(cosigned(BY_WITNESS))[1].quorum
    with pytest.raises(BadNote):
        Policy.parse("# " + "x" * 70_000)


def test_a_time_beyond_2_to_the_63_is_no_time() -> None:
    time = 2**63
    message = f"cosignature/v1\ntime {time}\n{TEXT}".encode()
    value = time.to_bytes(8) + WITNESS_KEY.sign(message).signature
    with pytest.raises(NotProved) as refusal:
        cosignatures(Note.parse(cosigned(Signature(WITNESS.name, WITNESS.key_id, value))), [WITNESS])
    assert refusal.value.code == "cosignature_invalid"


@pytest.mark.parametrize(
    "checkpoint", [Checkpoint("a b", 1, bytes(32)), Checkpoint("a", -5, bytes(32)), Checkpoint("a", 1, b"x")]
)
def test_nothing_is_signed_that_no_reader_takes(checkpoint: Checkpoint) -> None:
    with pytest.raises(StaylogError):
        sign_checkpoint(checkpoint, LOG_KEY)
