"""ML-DSA-44 cosignatures: they count where they can be checked, and are named and do not count elsewhere."""

from hashlib import sha256

import pytest

from audits.receipts import verify_checkpoint
from audits.report import Report
from ledger.canon import base64, mldsa
from ledger.errors import BadNote, NotProved
from ledger.log.cosignature import MAX_TIMESTAMP, cosignatures
from ledger.log.note import ML_DSA_44, Note, Signature, Verifier
from ledger.log.policy import Policy
from tests.bits import flip
from tests.ledger.log.mldsa_witness import NAME, WITNESS, cosign
from tests.ledger.log.worked_example import BY_WITNESS, LOG, TEXT, TIMESTAMP, cosigned
from tests.ledger.log.worked_example import WITNESS as ED25519_WITNESS

PQ = cosign(TEXT, TIMESTAMP)
POLICY = f"log {LOG}\nwitness ed {ED25519_WITNESS}\nwitness pq {WITNESS}\ngroup both all ed pq\n"


def verified(quorum: str, *signatures: Signature) -> Report:
    return verify_checkpoint(cosigned(*signatures), LOG, policy=Policy.parse(f"{POLICY}quorum {quorum}\n"))


def test_the_key_is_spelled_as_the_specification_says() -> None:
    typed = b"\x06" + WITNESS.public_key
    key_id = sha256(NAME.encode() + b"\n" + typed).digest()[:4]
    assert str(WITNESS) == f"{NAME}+{key_id.hex()}+{base64.encode(typed)}"
    assert Verifier.parse(str(WITNESS)) == WITNESS


@pytest.mark.parametrize("size", [0, 32, 1311, 1313])
def test_rejects_keys_of_other_lengths(size: int) -> None:
    with pytest.raises(BadNote) as refusal:
        Verifier(NAME, ML_DSA_44, bytes(size))
    assert refusal.value.code == "vkey_malformed"


def test_rejects_it_as_the_key_of_a_log() -> None:
    with pytest.raises(BadNote, match="a key of type 01"):
        Policy.parse(f"log {WITNESS}\nquorum none\n")


def test_counts_beside_ed25519() -> None:
    report = verified("both", PQ, BY_WITNESS)
    assert report.witnesses == (2, 2)
    assert f"{NAME} cosigned this checkpoint at 2026-02-15T09:30:00Z" in report.proved
    for signatures in ((PQ,), (BY_WITNESS,)):
        with pytest.raises(NotProved) as refusal:
            verified("both", *signatures)
        assert refusal.value.code == "quorum_missing"


@pytest.mark.parametrize(
    "bad",
    [
        Signature(NAME, WITNESS.key_id, flip(PQ.value, 70)),
        Signature(NAME, WITNESS.key_id, PQ.value[:-1]),
        Signature(NAME, WITNESS.key_id, PQ.value + b"\0"),
        Signature(NAME, WITNESS.key_id, (TIMESTAMP + 1).to_bytes(8) + PQ.value[8:]),
        cosign(TEXT.replace("\n5\n", "\n6\n"), TIMESTAMP),
        cosign(TEXT.replace("reputation", "elsewhere"), TIMESTAMP),
        cosign(TEXT, TIMESTAMP, name="witness.example/other"),
        cosign(TEXT, MAX_TIMESTAMP + 1),
    ],
)
def test_rejects_the_note_for_a_cosignature_that_does_not_hold(bad: Signature) -> None:
    with pytest.raises(NotProved) as refusal:
        verified("none", bad)
    assert refusal.value.code == "cosignature_invalid"


def test_rejects_a_cosignature_of_what_is_no_checkpoint() -> None:
    note = Note("one line\n", (PQ,))
    with pytest.raises(NotProved) as refusal:
        cosignatures(note, [WITNESS])
    assert refusal.value.code == "cosignature_invalid"


class TestWithoutTheExtraPq:
    @pytest.fixture(autouse=True)
    def without(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mldsa, "CAN_VERIFY", False)

    def test_names_it_and_does_not_count_it(self) -> None:
        report = verified("ed", PQ, BY_WITNESS)
        assert report.witnesses == (1, 2)
        assert any("not checked" in line and NAME in line for line in report.not_proved)

    def test_says_why_a_quorum_is_missing(self) -> None:
        with pytest.raises(NotProved, match=f"not checked.*{NAME}") as refusal:
            verified("both", PQ, BY_WITNESS)
        assert refusal.value.code == "quorum_missing"

    def test_still_looks_at_its_form(self) -> None:
        with pytest.raises(NotProved) as refusal:
            verified("none", Signature(NAME, WITNESS.key_id, bytes(72)))
        assert refusal.value.code == "cosignature_invalid"
