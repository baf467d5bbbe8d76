"""The page and Python's verifier agree about signed notes, the keys that may sign them, and the signatures."""

import json
from hashlib import sha256, sha512
from random import Random

import pytest

from ledger.canon import base64
from ledger.log.hostmap import KEY_BITS
from ledger.log.note import ED25519, Note, Verifier
from tests.browser.browser import Browser
from tests.browser.verifying import ANSWERS, RECEIPTS, Case, agree, answer_case, refusal, reports
from tests.interop.test_speccheck import cases as speccheck
from tests.interop.vectors import KEY, golden

pytestmark = pytest.mark.usefixtures("verify_page")


def test_notes(browser: Browser) -> None:
    base, key = ANSWERS["golden aggregate"]
    notes = golden("checkpoint.json")["accept"] + golden("checkpoint.json")["reject"]
    more = {
        "fifty": "— x.example AAAAAAA=\n" * 50,
        "sixty-four": "— x.example AAAAAAA=\n" * 64,
        "no signature": "— x.example AAAA\n",
    }
    more |= {
        "plus": "— x+y AAAAAAA=\n",
        "blank": "— x\u2003y AAAAAAA=\n",
        "next line": "— x\x85y AAAAAAA=\n",
        "letters": "— ünï.example AAAAAAA=\n",
    }
    more |= {
        "byte order mark": "— x\ufeffy AAAAAAA=\n",
        "no name": "—  AAAAAAA=\n",
        "base64": "— x AAAAAAB=\n",
        "three": "— x y AAAAAAA=\n",
        "tab": "— x\tAAAAAAA=\n",
    }
    note = base["answer"]["proof"]["checkpoint"]
    cases = [(case["case"], case["note"]) for case in notes] + [(name, note + lines) for name, lines in more.items()]
    cases += [
        ("long", note + "— " + "x" * 65536 + " AAAAAAA=\n"),
        ("empty", ""),
        ("blank lines", "\n\n\n"),
        ("text", note.replace("\n\n", "\n\n\n")),
    ]
    made = [answer_case(name, {**base["answer"], "proof": {**base["answer"]["proof"], "checkpoint": text}}, key, base["did"])
            for name, text in cases]  # fmt: skip
    assert {"note_malformed", "signature_invalid", "origin_mismatch", None} <= set(agree(browser, made))


def test_checkpoints_and_proofs_alone(browser: Browser) -> None:
    vectors = golden("checkpoint.json")
    alone = [Case(case["case"], (case["note"],), vectors["vkey"]) for case in vectors["accept"] + vectors["reject"]]
    found = [report.verdict for report in reports(browser, alone)]
    assert found == ["proved"] * len(vectors["accept"]) + ["wrong"] * len(vectors["reject"])
    proof = RECEIPTS["own"]["receipt"]["tlog_proof"]
    [good, bad] = reports(
        browser, [Case("", (text,), RECEIPTS["own"]["vkey"]) for text in (proof, proof.replace("\n35\n", "\n36\n"))]
    )
    assert (good.verdict, good.states["inclusion"]) == ("proved", "unchecked")
    assert bad.verdict == "wrong" or "\n35\n" not in proof


def test_keys_that_bind_nobody(browser: Browser) -> None:
    """Keys of small and of mixed order, and such that are no point or another spelling of one."""
    base, log = ANSWERS["golden aggregate"]
    keys = {key for key, _, _ in speccheck()} | {bytes(31) + b"\x80", b"\x01" + bytes(31), b"\xff" * 32, bytes(32)}
    keys |= {(2**255 - 19 + low).to_bytes(32, "little") for low in range(19)} | {
        Random(1).randbytes(32) for _ in range(20)
    }
    name, cases = Verifier.parse(log).name, []
    for key in keys:
        key_id = sha256(name.encode() + b"\n\x01" + key).hexdigest()[:8]
        vkey = f"{name}+{key_id}+{base64.encode(bytes([ED25519]) + key)}"
        code = refusal(Verifier.parse, vkey) or "signer_unknown"
        cases.append(Case(key.hex(), (json.dumps(base["answer"]),), vkey, base["did"], code=code))
    assert set(agree(browser, cases)) == {"vkey_malformed", "signer_unknown"}


ORDER = 2**252 + 27742317777372353535851937790883648493
SMALL = {"the identity": b"\x01" + bytes(31), "the identity, another spelling": (2**255 - 18).to_bytes(32, "little")}


def small_signature(message: bytes, point: bytes) -> bytes:
    """A signature of small order by the golden log's key: its R is chosen, not drawn."""
    scalar = int.from_bytes(sha512(bytes(KEY)).digest()[:32], "little") & ~(7 | 1 << KEY_BITS - 1) | 1 << 254
    challenge = int.from_bytes(sha512(point + bytes(KEY.verify_key) + message).digest(), "little")
    return point + (challenge * scalar % ORDER).to_bytes(32, "little")


def test_signatures_that_webcrypto_takes_and_libsodium_does_not(browser: Browser) -> None:
    base, key = ANSWERS["golden aggregate"]
    log, note = Verifier.parse(key), Note.parse(base["answer"]["proof"]["checkpoint"])
    signatures = {name: small_signature(note.text.encode(), point) for name, point in SMALL.items()}
    good = note.signatures[0].value
    signatures["S above the order"] = good[:32] + (int.from_bytes(good[32:], "little") + ORDER).to_bytes(32, "little")
    signatures["short"], signatures["long"] = good[:63], good + b"\0"
    cases = []
    for name, value in signatures.items():
        line = f"— {log.name} {base64.encode(log.key_id + value)}\n"
        proof = {**base["answer"]["proof"], "checkpoint": f"{note.text}\n{line}"}
        cases.append(answer_case(name, {**base["answer"], "proof": proof}, key, base["did"]))
    assert set(agree(browser, cases)) == {"signature_invalid"}
    taken = browser.evaluate(
        """crypto.subtle.importKey("raw", new Uint8Array(arguments[0]), "Ed25519", false, ["verify"]).then(key =>
        crypto.subtle.verify("Ed25519", key, new Uint8Array(arguments[1]), new Uint8Array(arguments[2])))""",
        *(list(part) for part in (log.public_key, signatures["the identity"], note.text.encode())),
    )
    assert taken, "were WebCrypto this strict, the page could leave it to it"
