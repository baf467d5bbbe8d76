"""The witness's folder: its key, the logs that it trusts, and one process at a time."""

from pathlib import Path

import pytest

from audits.witness.folder import KEY, LOGS, init, read_key, trust
from audits.witness.judge import NotCosigned, Witness
from audits.witness.memory import log_id
from ledger.canon import base64
from ledger.errors import BadNote, Misconfigured, StaylogError
from ledger.log.note import COSIGNATURE, ED25519, Verifier
from tests.audits.witness.judging import FORKED, LOG, STRANGER, UNKNOWN, cosigned, refused
from tests.audits.witnessing import NAME


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


def test_one_process_for_a_folder(witness: Witness, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="another process"):
        Witness(tmp_path / "witness")
    witness.close()
    Witness(tmp_path / "witness").close()
