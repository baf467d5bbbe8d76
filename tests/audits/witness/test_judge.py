"""The witness's judgement and its memory: every code, in the order of the specification, and never two histories."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from errno import EIO, ENOSPC
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey

from audits.witness.folder import CHECKPOINTS, KEY, LOGS, init, read_key, trust
from audits.witness.judge import FRESH, SKEW, NotCosigned, Witness
from audits.witness.memory import Cosigned, last_cosigned, log_id
from ledger.canon import base64
from ledger.errors import BadNote, Misconfigured, NotStored, StaylogError
from ledger.log.add_checkpoint import MAX_PROOF, AddCheckpoint
from ledger.log.cosignature import cosignatures
from ledger.log.note import COSIGNATURE, ED25519, MAX_CHARACTERS, MAX_SIGNATURES, Note, Signature, Verifier
from ledger.log.tree import EMPTY_ROOT
from tests.audits.witnessing import NAME, NOW, Log, make_witness
from tests.bits import flip

LOG = Log("log.example/a")
# Another history from entry 2 on, signed by the same key.
FORKED = Log("log.example/a", history="other", fork=2)
UNKNOWN = Log("log.example/unknown")
STRANGER = SigningKey(bytes([9]) * 32)
STEPS = ("judged", "cosigned", "written", "renamed", "durable", "kept")

Clock = Callable[[], float]


def opened(folder: Path, clock: Clock = lambda: NOW, on_step: Callable[[str], None] = lambda _: None) -> Witness:
    make_witness(folder, logs=[LOG.verifier])
    return Witness(folder, clock, on_step)


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    with closing(opened(tmp_path / "witness")) as made:
        yield made


@pytest.fixture
def at_five(witness: Witness) -> Witness:
    witness.add_checkpoint(LOG.request(0, 5).encode())
    return witness


def refused(witness: Witness, request: str | bytes) -> tuple[int, str]:
    before = witness.logs()
    with pytest.raises(NotCosigned) as refusal:
        witness.add_checkpoint(request.encode() if isinstance(request, str) else request)
    assert witness.logs() == before
    assert (refusal.value.size is not None) == (refusal.value.status == 409)
    return refusal.value.status, refusal.value.code


def cosigned(witness: Witness, request: str) -> int:
    """The timestamp of the cosignature, which is valid for what was sent and is what is shown from now on."""
    line = witness.add_checkpoint(request.encode())
    sent = Note.parse(AddCheckpoint.parse(request).note)
    [found] = cosignatures(Note.parse(f"{sent.text}\n{line}"), [witness.verifier])
    shown = witness.checkpoint(log_id(LOG.origin))
    assert shown is not None
    assert shown.startswith(sent.text)
    assert shown.endswith(line)
    return found.timestamp


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
        request.replace("old 5", f"old {1 << 53}"),
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
                f"{LOG.origin}\n{1 << 53}\n{lines[2]}\n",
                f"{LOG.origin}\n8\n{base64.encode(bytes(31))}\n",
                f"{LOG.origin}\n8\n{lines[2]} \n",
                f"{LOG.origin}\n8\n{lines[2]}\n\nextension\n",
            )
        ),
    ]
    codes = {refused(at_five, each) for each in unreadable}
    assert codes == {(400, "request_malformed"), (400, "note_malformed"), (400, "checkpoint_malformed")}
    cosigned(at_five, request)


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


def test_trust_counts_at_once_and_what_was_cosigned_stays_known(at_five: Witness, tmp_path: Path) -> None:
    folder = tmp_path / "witness"
    assert trust(folder, UNKNOWN.verifier)
    assert not trust(folder, UNKNOWN.verifier)
    at_five.add_checkpoint(UNKNOWN.request(0, 3).encode())
    with pytest.raises(BadNote):
        trust(folder, at_five.verifier)
    # Distrust is a line less; the rest of the file is the operator's.
    text = (folder / LOGS).read_text()
    (folder / LOGS).write_text("# mine\n" + text.replace(f"log {LOG.verifier}\n", ""))
    assert refused(at_five, LOG.request(5, 8)) == (404, "log_unknown")
    assert [origin for origin, _ in at_five.logs()] == [UNKNOWN.origin]
    assert at_five.checkpoint(log_id(LOG.origin)) is not None
    trust(folder, LOG.verifier)
    assert refused(at_five, FORKED.request(5, 8)) == (422, "root_mismatch")
    cosigned(at_five, LOG.request(5, 8))
    # A file that cannot be read trusts nobody.
    for damage in ("nonsense\n", text.replace("quorum", "log"), "\udcff"):
        (folder / LOGS).write_text(damage, errors="surrogateescape")
        with pytest.raises(NotCosigned) as refusal:
            at_five.add_checkpoint(LOG.request(8, 9).encode())
        assert (refusal.value.status, refusal.value.code) == (503, "policy_malformed")
    (folder / LOGS).unlink()
    with pytest.raises(NotCosigned) as refusal:
        at_five.add_checkpoint(LOG.request(8, 9).encode())
    assert (refusal.value.status, refusal.value.code) == (503, "storage_unavailable")


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    for old, size in ((0, 3), (3, 5), (5, 5), (5, 33)):
        with closing(opened(tmp_path)) as witness:
            cosigned(witness, LOG.request(old, size))
    with closing(opened(tmp_path)) as witness:
        assert refused(witness, FORKED.request(33, 40)) == (422, "root_mismatch")
        assert refused(witness, LOG.request(5, 33)) == (409, "old_size_mismatch")
    verifier, [(origin, latest)] = last_cosigned(tmp_path)
    assert (verifier, origin) == (witness.verifier, LOG.origin)
    assert latest is not None
    assert latest.checkpoint == LOG.checkpoint(33)


def test_one_process_for_a_folder(witness: Witness, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="another process"):
        Witness(tmp_path / "witness")
    witness.close()
    Witness(tmp_path / "witness").close()


@pytest.mark.parametrize("number", [ENOSPC, EIO])
@pytest.mark.parametrize("step", STEPS[2:5])
def test_a_write_that_fails_hands_nothing_out(tmp_path: Path, step: str, number: int) -> None:
    """Failed, though it may have been done: nobody knows until the file is read again."""
    failures: list[OSError] = []

    def fail(reached: str) -> None:
        if reached == step and failures:
            raise failures.pop()

    with closing(opened(tmp_path, on_step=fail)) as witness:
        cosigned(witness, LOG.request(0, 3))
        failures.append(OSError(number, os.strerror(number)))
        code = "storage_full" if number == ENOSPC else "storage_unavailable"
        assert refused(witness, LOG.request(3, 5)) == (503, code)
        done = step != "written"
        if done:
            with pytest.raises(NotCosigned) as refusal:
                witness.add_checkpoint(LOG.request(3, 5).encode())
            assert (refusal.value.status, refusal.value.size) == (409, 5)
        # Another history is refused, though the first one may not have been handed out.
        assert refused(witness, FORKED.request(5 if done else 3, 8)) == (422, "root_mismatch")
        assert witness.logs() == last_cosigned(tmp_path)[1]
        cosigned(witness, LOG.request(5 if done else 3, 8))


def test_a_folder_that_is_taken_away_is_no_fresh_start(at_five: Witness, tmp_path: Path) -> None:
    kept = tmp_path / "witness" / CHECKPOINTS / log_id(LOG.origin)
    away = kept.parent.rename(tmp_path / "away")
    for _ in range(2):
        status, code = refused(at_five, LOG.request(5, 8))
        assert (status, code) in ((503, "storage_unavailable"), (503, "not_stored"))
    # It comes back empty: what it had is still known to be missing.
    kept.parent.mkdir()
    assert refused(at_five, LOG.request(5, 8)) == (503, "not_stored")
    (away / kept.name).rename(kept)
    cosigned(at_five, LOG.request(5, 8))


def test_a_damaged_file_keeps_it_from_starting(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as witness:
        cosigned(witness, LOG.request(0, 5))
        verifier = witness.verifier
    path = tmp_path / CHECKPOINTS / log_id(LOG.origin)
    good = path.read_bytes()
    signature_at = good.index("—".encode())
    harmless, told = 0, set[str]()
    for at in range(len(good)):
        path.write_bytes(flip(good, at * 8 + at % 8))
        try:
            Witness(tmp_path).close()
        except NotStored as error:
            told.add(error.message.partition("Bring back")[2])
        else:
            # Another name or key ID in the log's line: the line of somebody whom nobody knows.
            assert at >= signature_at
            assert Cosigned.open(path.read_text(), verifier).checkpoint == LOG.checkpoint(5)
            harmless += 1
    assert 0 < harmless < 30
    assert len(told) == 1
    assert "Never delete it" in told.pop()
    for damage in (b"", good[:-1], good[: len(good) // 2], good + b"x", bytes(len(good))):
        path.write_bytes(damage)
        with pytest.raises(NotStored):
            Witness(tmp_path)
    path.write_bytes(good)
    # As it is, but of another log, or cosigned by another key.
    other = path.with_name(log_id(UNKNOWN.origin))
    path.rename(other)
    with pytest.raises(NotStored, match="another log"):
        Witness(tmp_path)
    other.rename(path)
    (tmp_path / KEY).unlink()
    with pytest.raises(Misconfigured, match="bring that key back"):
        init(tmp_path, NAME, STRANGER)
    path.rename(tmp_path / "kept")
    init(tmp_path, NAME, STRANGER)
    (tmp_path / "kept").rename(path)
    with pytest.raises(NotStored):
        Witness(tmp_path)


def test_what_lies_beside_is_left_alone(tmp_path: Path) -> None:
    """A write that was broken off, and files of others."""
    make_witness(tmp_path, logs=[LOG.verifier])
    for name in (f"{log_id(LOG.origin)}.new", "README", log_id(LOG.origin).upper()):
        (tmp_path / CHECKPOINTS / name).write_text("torn")
    with closing(opened(tmp_path)) as witness:
        cosigned(witness, LOG.request(0, 3))
    with closing(opened(tmp_path)) as witness:
        cosigned(witness, LOG.request(3, 5))


def test_the_key_file(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "witness"
    made = init(folder, NAME, STRANGER)
    assert made == Verifier(NAME, COSIGNATURE, bytes(STRANGER.verify_key))
    assert read_key(folder) == (made, STRANGER)
    assert (folder.stat().st_mode & 0o777, (folder / KEY).stat().st_mode & 0o777) == (0o700, 0o600)
    text = (folder / KEY).read_text()
    assert text.startswith(f"PRIVATE+KEY+{NAME}+{made.key_id.hex()}+")
    with pytest.raises(Misconfigured) as refusal:
        init(folder, NAME, STRANGER)
    assert refusal.value.code == "already_initialised"
    as_log = base64.encode(bytes([ED25519]) + bytes(STRANGER))
    for damage in ("", text[:-3], text.replace("PRIVATE", "PUBLIC"), text.replace("w1", "w2"), f"{text}\n{text}"):
        (folder / KEY).write_text(damage)
        with pytest.raises(Misconfigured, match="does not hold"):
            read_key(folder)
    (folder / KEY).write_text(f"PRIVATE+KEY+{NAME}+{made.key_id.hex()}+{as_log}\n")
    with pytest.raises(Misconfigured, match="does not hold"):
        read_key(folder)
    (folder / KEY).write_text(text)
    (folder / KEY).chmod(0o640)
    with pytest.raises(Misconfigured, match="chmod 600"):
        Witness(folder)
    with pytest.raises(Misconfigured) as refusal:
        Witness(tmp_path / "nowhere")
    assert refusal.value.code == "not_initialised"
    for name in ("", "a b", "a+b"):
        with pytest.raises(StaylogError):
            init(tmp_path / "other", name, STRANGER)
    assert not (tmp_path / "other").exists()


# What a log may show: its history, or one that differs from some entry on.
HISTORIES = [Log(LOG.origin, 12), *(Log(LOG.origin, 12, f"fork{at}-", at) for at in (0, 1, 4, 9))]
SUBMISSIONS = st.tuples(st.sampled_from(range(len(HISTORIES))), st.none() | st.integers(0, 12), st.integers(0, 12))


@settings(max_examples=150)
@given(st.lists(st.none() | SUBMISSIONS, min_size=4, max_size=14))
def test_all_that_is_cosigned_is_one_history(story: list[tuple[int, int | None, int] | None]) -> None:
    """Against the naive model: the leaves themselves are remembered. None is a restart; without an old size the right one
    is sent."""
    with TemporaryDirectory() as name:
        folder, latest = Path(name), list[bytes]()
        witness = opened(folder)
        for told in story:
            if told is None:
                witness.close()
                witness = opened(folder)
                continue
            history, old, size = HISTORIES[told[0]], len(latest) if told[1] is None else told[1], told[2]
            leaves = list(history.tree.leaves[:size])
            extends = leaves[: len(latest)] == latest
            expected = 400 if old > size else 409 if old != len(latest) else 200 if extends else 422
            try:
                witness.add_checkpoint(history.request(old, size).encode())
                status = 200
            except NotCosigned as refusal:
                status = refusal.status
            assert status == expected
            if status == 200:
                latest = leaves
        witness.close()
        _, [(_, kept)] = last_cosigned(folder)
        assert (kept.checkpoint.size if kept else 0) == len(latest)
