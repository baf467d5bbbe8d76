"""The file that names the witnesses of a log: of use, or refused with what to do."""

from pathlib import Path

import pytest
from nacl.signing import SigningKey

from ledger.errors import Misconfigured
from ledger.log.note import Verifier
from ledger.log.witness_policy import read_policy
from ledger.store.rows import MAX_WITNESSES
from tests.ledger.log.crooked import CROOK
from tests.ledger.log.mldsa_witness import WITNESS as PQ
from tests.running import Running


def test_a_policy_of_no_use_is_refused(running: Running, tmp_path: Path) -> None:
    log, path = running.ledger.verifier, tmp_path / "tlog-policy"
    assert read_policy(path, log) is None
    many = [
        f"witness w{n} {Verifier(f'w{n}.example', 4, key)} http://127.0.0.1:{n + 1}"
        for n, key in enumerate(_keys(MAX_WITNESSES + 1))
    ]
    for text, part in (
        ("quorum none\n", f"add the line: log {log}"),
        (f"log {log}\n", "exactly one quorum line"),
        (f"log {log}\nwitness w {CROOK}\nquorum w\n", "too few witnesses have an address"),
        (f"log {log}\nwitness w {CROOK} ftp://a\nquorum none\n", "no http"),
        ("\n".join([f"log {log}", *many, "quorum none"]), f"more than {MAX_WITNESSES}"),
    ):
        path.write_text(text)
        with pytest.raises(Misconfigured, match=r"the file|quorum in") as refused:
            read_policy(path, log)
        assert part in refused.value.message
        assert refused.value.code == "settings_invalid"
    path.write_text("\n".join([f"log {log}", *many[1:], "quorum w1"]))
    read = read_policy(path, log)
    assert read is not None
    assert (read.text, len(read.meaning.witnesses)) == (path.read_text(), MAX_WITNESSES)
    # A reader that makes a line feed of it would read another quorum than others do.
    path.write_bytes(f"log {log}\n# note\rquorum none\n".encode())
    with pytest.raises(Misconfigured, match="control characters"):
        read_policy(path, log)
    path.write_bytes(b"\xff")
    with pytest.raises(Misconfigured):
        read_policy(path, log)


def test_a_witness_with_an_ml_dsa_key_may_be_named(running: Running, tmp_path: Path) -> None:
    log, path = running.ledger.verifier, tmp_path / "tlog-policy"
    path.write_text(f"log {log}\nwitness pq {PQ} http://127.0.0.1:1\nquorum pq\n")
    read = read_policy(path, log)
    assert read is not None
    assert read.meaning.witnesses["pq"].verifier == PQ


def _keys(count: int) -> list[bytes]:
    return [bytes(SigningKey(bytes([n + 1]) * 32).verify_key) for n in range(count)]
