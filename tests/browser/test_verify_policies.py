"""The page and Python's verifier agree about policies of witnesses: which can be read, and which a note meets."""

import pytest

from ledger.log.note import COSIGNATURE, ED25519, Signature, Verifier
from tests.browser.browser import Browser
from tests.browser.cosigning import (
    BOTH,
    BY_SECOND_LOG,
    ELSEWHERE,
    FIRST,
    SECOND,
    SECOND_LOG,
    STRANGER,
    TEXT,
    W1,
    W2,
    L,
    cosigned,
)
from tests.browser.verifying import RECEIPTS, agree, receipt_case, reports
from tests.ledger.log import mldsa_witness
from tests.ledger.log.test_witnessing import OTHER_LOG, spaced
from tests.ledger.log.worked_example import LOG, WITNESS

pytestmark = pytest.mark.usefixtures("verify_page")
POLICIES = {
    "all": BOTH + "group g all w1 w2\nquorum g\n",
    "any": BOTH + "group g any w1 w2\nquorum g\n",
    "one": BOTH + "group g 1 w1 w2\nquorum g",
    "two": BOTH + "group g 2 w1 w2\nquorum g",
    "the first": BOTH + "quorum w1",
    "the second": BOTH + "quorum w2",
    "none": BOTH + "quorum none",
    "groups of groups": BOTH + "group a all w2\ngroup b any a w1\ngroup c 1 b\nquorum c",
    "member of two groups": BOTH + "group a any w1\ngroup b any w1 w2\nquorum b",
    "group in two groups": BOTH + "group a any w1\ngroup b any a\ngroup c any a w2\nquorum c",
    "deep": BOTH + "group a0 any w1\n" + "".join(f"group a{n} any a{n - 1}\n" for n in range(1, 999)) + "quorum a998",
    "blanks in words": f"{L} a\xa0b\nwitness w\u20031 {WITNESS}\twww\u3000\n#\x85\u2028\ufeff\nquorum w\u20031",
    "next line as a blank": f"{L}\nwitness\x85w1 {WITNESS}\nquorum w1",
    "wide blank": f"{L}\n{W1}\nquorum\u2003w1",
    "no-break space at the end": f"{L}\n{W1}\nquorum w1\xa0",
    "line of a no-break space": f"{L}\n{W1}\n\xa0\nquorum w1",
    "blank in a key": f"{L}\n{W1}\n{spaced(chr(0x2003))}\nquorum w1",
    **{f"control {n:02x}": f"{L}\n{W1}\n# {chr(n)}\nquorum w1" for n in [*range(0x20), 0x7F, 0x80, 0x9F] if n != 10},
    "form feed as a blank": f"{L}\n{W1}\nquorum\fw1",
    "carriage returns": f"{L}\r\n{W1}\r\nquorum w1\r\n",
    "comments and blanks": f"# a policy\n\n  \t{L}  https://log.example\n{W1}\thttps://w1.example\n#\nquorum w1\n",
    "another key of the log": f"log {SECOND_LOG}\n{W1}\nquorum w1",
    "both keys of the log": f"log {SECOND_LOG}\n{L}\n{W1}\nquorum w1",
    "log twice, renamed": f"{L}\nlog {Verifier('other.example/log', ED25519, LOG.public_key)}\n{W1}\nquorum w1",
    "log with the key of a witness": f"{L}\nlog {OTHER_LOG}\n{W1}\n{W2}\nquorum w1",
    "another log": f"log {Verifier('other.example/log', ED25519, LOG.public_key)}\n{W1}\nquorum w1",
    "no quorum line": BOTH,
    "two quorum lines": BOTH + "quorum w1\nquorum w1",
    "unknown quorum": BOTH + "quorum w3",
    "unknown member": BOTH + "group g all w1 w3\nquorum g",
    "member twice": BOTH + "group g 2 w1 w1\nquorum g",
    "group of itself": BOTH + "group g any g\nquorum g",
    "group below": BOTH + "quorum g\ngroup g any w1",
    "threshold 0": BOTH + "group g 0 w1 w2\nquorum g",
    "threshold 3": BOTH + "group g 3 w1 w2\nquorum g",
    "threshold 01": BOTH + "group g 01 w1 w2\nquorum g",
    "threshold toString": BOTH + "group g toString w1 w2\nquorum g",
    "empty group": BOTH + "group g any\nquorum g",
    "name taken": BOTH + f"witness w1 {Verifier('third.example', COSIGNATURE, LOG.public_key)}\nquorum w1",
    "key twice": f"{L}\n{W1}\nwitness w3 {Verifier('third.example', COSIGNATURE, WITNESS.public_key)}\nquorum w1",
    "the name none": f"{L}\nwitness none {WITNESS}\nquorum none",
    "log twice": f"{L}\n{L}\n{W1}\nquorum w1",
    "witness as log": f"log {WITNESS}\nquorum none",
    "log as witness": f"{L}\nwitness w1 {LOG}\nquorum w1",
    "bad key": f"{L}\nwitness w1 {str(WITNESS)[:-4]}\nquorum w1",
    "unknown word": BOTH + "constructor x\nquorum w1",
    "too many words": BOTH + "quorum w1 w2",
    "too few words": f"log\n{W1}\nquorum w1",
    "long": "#" * 131073 + f"\n{BOTH}quorum w1",
}


def test_names_ml_dsa_cosignatures_and_does_not_count_them(browser: Browser) -> None:
    """No browser can check them: Python without the extra pq says the same."""
    log = RECEIPTS["golden"]["vkey"]
    note = cosigned(FIRST, mldsa_witness.cosign(TEXT, 1_771_147_800).line())
    policy = f"{L}\n{W1}\nwitness pq {mldsa_witness.WITNESS}\ngroup both all w1 pq\nquorum "
    cases = [receipt_case(quorum, note, log, policy + quorum) for quorum in ("w1", "pq", "both")]
    counted, alone, both = reports(browser, cases)
    assert [each.verdict for each in (counted, alone, both)] == ["proved", "wrong", "wrong"]
    for each in (counted, alone, both):
        assert "Not checked, as this browser does not know ML-DSA-44: the cosignatures of pq" in str(each)
    short = cosigned(FIRST, Signature(mldsa_witness.NAME, mldsa_witness.WITNESS.key_id, bytes(72)).line())
    [bad] = reports(browser, [receipt_case("short", short, log, policy + "w1")])
    assert bad.verdict == "wrong"


def test_policies(browser: Browser) -> None:
    notes = {
        "none": (),
        "first": (FIRST,),
        "both": (SECOND, FIRST),
        "strangers": (STRANGER, FIRST),
        "twice": (FIRST, FIRST),
        "second key": (BY_SECOND_LOG, FIRST),
    }
    notes |= {"of another tree": (ELSEWHERE,), "one of another tree": (FIRST, ELSEWHERE), "cut": (FIRST[:-6] + "=\n",)}
    log = RECEIPTS["golden"]["vkey"]
    cases = [receipt_case(f"{name}, {by}", cosigned(*lines), log, policy)
             for name, policy in POLICIES.items() for by, lines in notes.items()]  # fmt: skip
    codes = agree(browser, cases)
    assert {"policy_malformed", "quorum_missing", "cosignature_invalid", "signer_unknown", None} <= set(codes)
    found = {case.name: code for case, code in zip(cases, codes, strict=True)}
    accepted = {name for name in POLICIES if found[f"{name}, second key"] is None}
    assert accepted >= {
        "blanks in words",
        "deep",
        "both keys of the log",
        "log with the key of a witness",
        "control 09",
    }
    assert {name for name in accepted if name.startswith("control")} == {"control 09", "control 80", "control 9f"}
    assert found["another key of the log, second key"] == "signer_unknown"
    for name in ("member of two groups", "group in two groups", "log twice, renamed", "wide blank", "carriage returns"):
        assert found[f"{name}, second key"] == "policy_malformed"
