"""The witness's judgement: every code in the order of the specification, and the time that a cosignature tells."""

from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from audits.witness.folder import CHECKPOINTS
from audits.witness.judge import FRESH, SKEW, NotCosigned, Witness
from audits.witness.memory import log_id
from ledger.canon import base64
from ledger.log.add_checkpoint import MAX_PROOF, AddCheckpoint
from ledger.log.note import ED25519, MAX_CHARACTERS, MAX_SIGNATURES, Note, Signature, Verifier
from ledger.log.tree import EMPTY_ROOT
from tests.audits.witness.judging import FORKED, LOG, STRANGER, UNKNOWN, cosigned, opened, refused
from tests.audits.witnessing import NAME, NOW, make_witness
from tests.bits import flip

# In the order of the specification.
FAULTS = {"unreadable": 400, "unknown": 404, "unsigned": 403, "beyond": 400, "conflict": 409, "unproved": 422}


def faulty(faults: set[str]) -> str:
    """A request with these faults and no others, to a witness that cosigned size 5 last."""
    log = UNKNOWN if "unknown" in faults else LOG
    size = 3 if "beyond" in faults else 8
    old = 4 if "conflict" in faults else 5
    proof = log.proof(old, size)
    if "unproved" in faults:
        proof = (*(proof or [bytes(32)])[:-1], bytes(32))
    text = str(log.checkpoint(size))
    note = Note(text, (log.signature("other\n" if "unsigned" in faults else text),))
    request = str(AddCheckpoint(old, proof, str(note)))
    return request.replace("old ", "old 0") if "unreadable" in faults else request


@pytest.mark.parametrize("number", range(1, len(FAULTS) + 1))
def test_the_first_fault_in_the_order_of_the_specification_is_told(at_five: Witness, number: int) -> None:
    """Alone, in pairs, and all the others."""
    for faults in combinations(FAULTS, number):
        status, _ = refused(at_five, faulty(set(faults)))
        assert (faults, status) == (faults, FAULTS[faults[0]])
    cosigned(at_five, faulty(set()))


def test_a_conflict_tells_the_size_that_was_cosigned_last(at_five: Witness) -> None:
    for old in (0, 1, 4, 6, 8):
        with pytest.raises(NotCosigned) as refusal:
            at_five.add_checkpoint(LOG.request(old, 8).encode())
        assert (refusal.value.status, refusal.value.code, refusal.value.size) == (409, "old_size_mismatch", 5)


def test_what_cannot_be_read_is_refused_first(at_five: Witness) -> None:
    request = LOG.request(5, 8)
    proof, note = request.split("\n\n", 1)
    lines = note.split("\n")
    unreadable: list[str | bytes] = [
        "",
        "\n",
        b"\xff" + request.encode(),
        request.encode("utf-16"),
        *(request.replace("old 5", f"old{size}") for size in ("", " ", "5", " -5", " +5", " 5 ", " 05", " 0x5", " ٥")),
        request.replace("old 5", f"old {1 << 63}"),
        request.replace("\n", "\r\n"),
        request.replace("old", "new"),
        f" {request}",
        note,
        proof,
        f"{proof}\n{note}",
        f"{proof}\n\n",
        f"{proof}\n\n\n{note}",
        *(f"old 5\n{bad}\n\n{note}" for bad in ("x", "AAAA", base64.encode(bytes(31)), base64.encode(bytes(33)))),
        f"old 5\n{base64.encode(bytes(32))[:-2]}B=\n\n{note}",
        f"old 5\n{(base64.encode(bytes(32)) + chr(10)) * (MAX_PROOF + 1)}\n{note}",
        request[:-1],
        request + "x\n",
        request.replace("— ", "- "),
        request + UNKNOWN.signature("x").line() * MAX_SIGNATURES,
        *(
            f"{proof}\n\n{LOG.sign(text)}"
            for text in (
                "\n8\n" + lines[2] + "\n",
                f"{LOG.origin}\n8\n",
                f"{LOG.origin}\n08\n{lines[2]}\n",
                f"{LOG.origin}\n-8\n{lines[2]}\n",
                f"{LOG.origin}\n{1 << 63}\n{lines[2]}\n",
                f"{LOG.origin}\n8\n{base64.encode(bytes(31))}\n",
                f"{LOG.origin}\n8\n{lines[2]} \n",
                f"{LOG.origin}\n8\n{lines[2]}\n\nextension\n",
            )
        ),
    ]
    codes = {refused(at_five, each) for each in unreadable}
    assert codes == {(400, "request_malformed"), (400, "note_malformed"), (400, "checkpoint_malformed")}
    cosigned(at_five, request)


def test_sizes_beyond_what_json_can_say_are_answered_as_the_specification_says(at_five: Witness) -> None:
    """In the order of tlog-witness: larger than the checkpoint 400, another old size 409, no such growth 422."""
    request = LOG.request(5, 8)
    lines = request.split("\n\n", 1)[1].split("\n")
    huge = LOG.sign(f"{LOG.origin}\n{1 << 53}\n{lines[2]}\n")
    assert refused(at_five, request.replace("old 5", f"old {1 << 53}")) == (400, "old_too_large")
    assert refused(at_five, f"old {1 << 53}\n\n{huge}") == (409, "old_size_mismatch")
    assert refused(at_five, f"old 5\n\n{huge}") == (422, "size_too_large")
    cosigned(at_five, request)


def test_takes_a_note_with_sixteen_long_signatures(at_five: Witness) -> None:
    long = "".join(Signature(f"pq{n}.example", b"abcd", bytes(4_990)).line() for n in range(15))
    cosigned(at_five, LOG.request(5, 8) + long)


def test_only_trusted_logs_are_known(at_five: Witness, tmp_path: Path) -> None:
    assert refused(at_five, UNKNOWN.request(0, 3)) == (404, "log_unknown")
    # An origin is any text; that of a log with a key is a name.
    odd = Note("go.sum database tree\n3\n" + base64.encode(bytes(32)) + "\n", (LOG.signature("x"),))
    assert refused(at_five, str(AddCheckpoint(0, (), str(odd)))) == (404, "log_unknown")


def test_a_trusted_key_must_have_signed(at_five: Witness) -> None:
    text = str(LOG.checkpoint(8))
    good = LOG.signature(text)
    forged = replace(good, value=flip(good.value))
    stranger = Verifier(LOG.origin, ED25519, bytes(STRANGER.verify_key))
    by_stranger = Signature(LOG.origin, stranger.key_id, STRANGER.sign(text.encode()).signature)
    renamed = replace(good, name="log.example/b")
    own = Signature(NAME, at_five.verifier.key_id, bytes(72))

    def signed_by(*signatures: Signature) -> str:
        return str(AddCheckpoint(5, LOG.proof(5, 8), str(Note(text, signatures))))

    for strangers in ([by_stranger], [renamed], [own], [by_stranger, renamed, own]):
        assert refused(at_five, signed_by(*strangers)) == (403, "signer_unknown")
    for bad in ([forged], [forged, good], [good, forged], [replace(good, value=good.value[:-1])]):
        assert refused(at_five, signed_by(*bad)) == (403, "signature_invalid")
    # Strangers do no harm, and nothing of theirs is kept.
    cosigned(at_five, signed_by(by_stranger, renamed, own, good, good))
    kept = Note.parse(at_five.checkpoint(log_id(LOG.origin)) or "")
    assert kept.signatures[0] == good
    assert [each.name for each in kept.signatures] == [LOG.origin, NAME]


def test_growth_must_be_proved(at_five: Witness) -> None:
    right = LOG.proof(5, 8)
    note = LOG.note(8)
    wrong = [
        (),
        right[:-1],
        (*right, bytes(32)),
        right[::-1],
        FORKED.proof(5, 8),
        *((*right[:at], flip(right[at], 7), *right[at + 1 :]) for at in range(len(right))),
    ]
    assert {refused(at_five, str(AddCheckpoint(5, proof, note))) for proof in wrong} == {
        (422, "proof_length"),
        (422, "root_mismatch"),
    }
    assert refused(at_five, FORKED.request(5, 8)) == (422, "root_mismatch")
    # The same size with another root is a fork; the same root needs no proof, and takes none.
    assert refused(at_five, FORKED.request(5, 5)) == (422, "root_mismatch")
    assert refused(at_five, str(AddCheckpoint(5, right, LOG.note(5)))) == (422, "proof_length")
    cosigned(at_five, LOG.request(5, 5))
    cosigned(at_five, LOG.request(5, 8))


def test_an_empty_tree_has_one_root(witness: Witness) -> None:
    empty = f"{LOG.origin}\n0\n{base64.encode(bytes(32))}\n"
    assert refused(witness, str(AddCheckpoint(0, (), LOG.sign(empty)))) == (422, "root_mismatch")
    assert refused(witness, str(AddCheckpoint(0, (bytes(32),), LOG.note(0)))) == (422, "proof_length")
    assert refused(witness, str(AddCheckpoint(0, (bytes(32),), LOG.note(3)))) == (422, "proof_length")
    assert LOG.checkpoint(0).root == EMPTY_ROOT
    for _ in range(2):
        cosigned(witness, LOG.request(0, 0))
        assert refused(witness, str(AddCheckpoint(0, (), LOG.sign(empty)))) == (422, "root_mismatch")
    assert refused(witness, str(AddCheckpoint(0, (bytes(32),), LOG.note(3)))) == (422, "proof_length")
    cosigned(witness, LOG.request(0, 3))


def test_other_logs_have_extension_lines_and_several_keys(tmp_path: Path) -> None:
    """All of the text is cosigned; what is compared are size and root."""
    second = Verifier(LOG.origin, ED25519, bytes(STRANGER.verify_key))
    make_witness(tmp_path, logs=[LOG.verifier, second])
    with closing(Witness(tmp_path, lambda: NOW)) as witness:
        cosigned(witness, str(AddCheckpoint(0, (), LOG.note(3, "one", "two words — 三"))))
        text = str(LOG.checkpoint(5)) + "three\n"
        by_second = Signature(LOG.origin, second.key_id, STRANGER.sign(text.encode()).signature)
        cosigned(witness, str(AddCheckpoint(3, LOG.proof(3, 5), str(Note(text, (by_second,))))))
        both = Note(text, (by_second, LOG.signature(text)))
        cosigned(witness, str(AddCheckpoint(5, (), str(both))))
        kept = Note.parse(witness.checkpoint(log_id(LOG.origin)) or "")
        assert kept.signatures[:2] == both.signatures
        # One bad signature of any known key is fatal.
        forged = replace(by_second, value=flip(by_second.value))
        request = str(AddCheckpoint(5, (), str(Note(text, (LOG.signature(text), forged)))))
        assert refused(witness, request) == (403, "signature_invalid")
    with closing(Witness(tmp_path, lambda: NOW)) as witness:
        cosigned(witness, LOG.request(5, 8))


def test_nothing_is_cosigned_that_could_not_be_read_again(witness: Witness, tmp_path: Path) -> None:
    """A note that is nearly too long has no room for a cosignature."""
    room = MAX_CHARACTERS - len(LOG.note(3, ""))
    assert refused(witness, str(AddCheckpoint(0, (), LOG.note(3, "x" * (room + 1))))) == (400, "note_malformed")
    assert refused(witness, str(AddCheckpoint(0, (), LOG.note(3, "x" * room)))) == (400, "note_malformed")
    assert list((tmp_path / "witness" / CHECKPOINTS).iterdir()) == []
    cosigned(witness, str(AddCheckpoint(0, (), LOG.note(3, "x" * (room - 200)))))


def test_time_does_not_go_back(tmp_path: Path) -> None:
    now = [NOW + 0.9]
    with closing(opened(tmp_path, lambda: now[0])) as witness:
        assert cosigned(witness, LOG.request(0, 3)) == NOW
        now[0] = NOW - SKEW
        assert cosigned(witness, LOG.request(3, 5)) == NOW
        now[0] = NOW + FRESH
        assert cosigned(witness, LOG.request(5, 5)) == NOW + FRESH
    # Nor after a start, though what is kept is dated in the future.
    with closing(opened(tmp_path, lambda: NOW - 5)) as witness:
        assert cosigned(witness, LOG.request(5, 8)) == NOW + FRESH


def test_a_clock_that_was_wrong_is_not_followed_for_ever(tmp_path: Path) -> None:
    now = [NOW + SKEW + 1.0]
    with closing(opened(tmp_path, lambda: now[0])) as witness:
        assert cosigned(witness, LOG.request(0, 3)) == NOW + SKEW + 1
        now[0] = NOW
        assert cosigned(witness, LOG.request(3, 5)) == NOW


def test_the_same_again_costs_nothing(tmp_path: Path) -> None:
    now, steps = [float(NOW)], list[str]()
    with closing(opened(tmp_path, lambda: now[0], steps.append)) as witness:
        line = witness.add_checkpoint(LOG.request(0, 5).encode())
        steps.clear()
        now[0] = NOW + FRESH - 0.1
        assert witness.add_checkpoint(LOG.request(5, 5).encode()) == line
        assert steps == ["judged"]
        # Another history of that size is judged as ever, and nothing is given to who asks for it.
        assert refused(witness, str(AddCheckpoint(5, (), FORKED.note(5)))) == (422, "root_mismatch")
        now[0] = NOW + FRESH
        assert cosigned(witness, LOG.request(5, 5)) == NOW + FRESH
        assert "kept" in steps
        # An extension makes it another note.
        assert cosigned(witness, str(AddCheckpoint(5, (), LOG.note(5, "more")))) == NOW + FRESH
        assert steps.count("kept") == 2
