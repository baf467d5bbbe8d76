"""The page and Python's verifier read alike: texts of JSON, the members of entries, and DIDs."""

import json
from typing import Any

import pytest

from ledger.canon import base64, jcs
from tests.browser.browser import Browser
from tests.browser.verifying import (
    ANSWERS,
    AT,
    FORGED,
    RECEIPTS,
    Case,
    agree,
    answer_case,
    forged,
    receipt_case,
    reports,
)
from tests.interop.vectors import golden

HUGE = 2**53 - 1
pytestmark = pytest.mark.usefixtures("verify_page")


def test_spellings(browser: Browser) -> None:
    """Texts that readers of JSON read in different ways."""
    base, key = ANSWERS["own full"]
    text = json.dumps(base["answer"])
    deep = text[:-1] + ', "deep": ' + "[" * 15 + "]" * 15 + "}"
    index = base["answer"]["proof"]["events"][0]["index"]
    spelled = {
        "twice": text[:-1] + f', "host_did": "{base["did"]}"}}',
        "twice by an escape": text[:-1] + f', "host\\u005fdid": "{base["did"]}"}}',
        "proto": text[:-1] + ', "__proto__": 1}',
        "proto twice": text[:-1] + ', "__proto__": 1, "__proto__": {}}',
        "constructor": text[:-1] + ', "constructor": 1, "toString": 2, "hasOwnProperty": 3}',
        "sixteen levels": deep,
        "seventeen levels": deep.replace("[[", "[[[").replace("]]", "]]]"),
        "byte order mark": "\ufeff" + text,
        "half a pair": text[:-1] + ', "x": "\\ud800"}',
        "half a pair as a name": text[:-1] + ', "\\udc00": 1}',
        "a pair": text[:-1] + ', "x": "\\ud83c\\udf39"}',
        "twice, and no JSON": text[:-1] + ', "x": {"y": 1, "y": 1},}',
        "large integer, and no JSON": text[:-1] + ', "x": 9007199254740992,}',
        "large integer": text[:-1] + ', "x": 9007199254740992}',
        "largest integer": text[:-1]
        + ', "x": [9007199254740991, -9007199254740991, 1e21, -0, -0.0, 1E400]}'.replace(", 1E400", ""),
        "infinite": text[:-1] + ', "x": 1E400}',
        "large float": text[:-1] + ', "x": 9007199254740992.0}',
        "not a number": text[:-1] + ', "x": NaN}',
        "comment": text[:-1] + "/**/}",
        "trailing comma": text[:-1] + ",}",
        "leading zero": text[:-1] + ', "x": 01}',
        "control character": text[:-1] + ', "x": "\t"}',
        "blanks around": f"\r\n\t {text} \n",
        "no-break space": f"\u00a0{text}",
        "two values": text + text,
        "nothing": "",
        "index as a fraction": text.replace(f'"index": {index}, "opening"', f'"index": {index}.0, "opening"'),
        "index with an exponent": text.replace(f'"index": {index}, "opening"', f'"index": {index}e0, "opening"'),
        "index as text": text.replace(f'"index": {index}, "opening"', f'"index": "{index}", "opening"'),
        "listed index as a fraction": text.replace(
            f'"index": {index}, "listing_id"', f'"index": {index}.0, "listing_id"'
        ),
        "total as a fraction": text.replace('"total_reviews": 5', '"total_reviews": 5.0'),
        "total with an exponent": text.replace('"total_reviews": 5', '"total_reviews": 0.5E1'),
        "verified is true": text.replace('"verified_reviews": 4', '"verified_reviews": true'),
        "ascii": json.dumps(base["answer"], ensure_ascii=True),
        "letters": json.dumps(base["answer"], ensure_ascii=False),
        "list": f"[{text}]",
        "text": json.dumps(text),
        "proof is null": json.dumps({**base["answer"], "proof": None}),
    }
    cases = [answer_case(name, spelling, key, base["did"]) for name, spelling in spelled.items() if name != "list"]
    codes = dict(zip((case.name for case in cases), agree(browser, cases), strict=True))
    accepted = {name for name, code in codes.items() if code is None}
    assert accepted == {
        *("proto", "constructor", "sixteen levels", "a pair", "largest integer", "blanks around", "ascii", "letters"),
        *("listed index as a fraction", "total as a fraction", "total with an exponent"),
    }
    # Not even a list of one full answer is a set of pages.
    [report] = reports(browser, [Case("list", (spelled["list"],), key, base["did"])])
    assert report.code == "wrong_kind"


def test_the_first_fault_of_several_is_the_same(browser: Browser) -> None:
    """In a map path, and in a receipt whose openings are malformed too."""
    base, key = ANSWERS["own full"]
    proof, zeros = base["answer"]["proof"], base64.encode(bytes(32))
    path = {**base["answer"], "proof": {**proof, "map_proof": [zeros, "AA=="]}}
    cases = [answer_case("a map path", path, key, base["did"])]
    receipt, key = RECEIPTS["golden"]["receipt"], RECEIPTS["golden"]["vkey"]
    unsigned = receipt["checkpoint"].replace("— ", "— x")
    other = {"checkpoint": unsigned, "tlog_proof": receipt["tlog_proof"].replace(receipt["checkpoint"], unsigned)}
    texts: list[Any] = [None, "", 0, False, [], {}, {"text": "x", "salt": "AA=="}]
    for text in texts:
        openings = {**receipt["openings"], "text": text}
        cases.append(receipt_case(f"a text opened by {text!r}", {**receipt, "openings": openings}, key))
        cases.append(receipt_case(f"{text!r}, and no signature", {**receipt, **other, "openings": openings}, key))
    for salt in (None, "AA==", zeros):
        openings = {"text": {"text": "x", "salt": "AA=="}, "evidence": {"salt": salt}}
        cases.append(receipt_case(f"a salt {salt}", {**receipt, **other, "openings": openings}, key))
    codes = agree(browser, cases)
    assert codes == [
        *("hash_length", None, "signer_unknown", *["opening_malformed"] * 10, *["hash_length"] * 2),
        *("receipt_malformed", "receipt_malformed", "hash_length"),
    ]


def test_what_a_document_is_does_not_depend_on_its_spelling(browser: Browser) -> None:
    """A receipt has the member `tlog_proof` itself; an answer may name another thing so."""
    receipt, key = json.dumps(RECEIPTS["golden"]["receipt"]), RECEIPTS["golden"]["vkey"]
    [found] = reports(browser, [Case("receipt", (receipt.replace('"tlog_proof"', '"tlog\\u005fproof"'),), key)])
    assert (found.verdict, "submission" in found.states) == ("proved", True)
    base, key = ANSWERS["own full"]
    answer = {**base["answer"], "more": {"tlog_proof": 1}}
    agree(browser, [answer_case("answer", answer, key, base["did"])])
    [cut] = reports(browser, [Case("cut", (receipt[:-1],), key)])
    assert (cut.code, "submission" in cut.states) == ("malformed_json", True)


def test_entries_and_dids(browser: Browser) -> None:
    """Each member of each type of entry with values that do not belong there, under a good signature."""
    host, cases = golden("record.json")["host"], []
    whole = {json.loads(text)["type"]: json.loads(text) for text in golden("log-32.json")["entries"] if text[0] == "{"}
    whole["index_head"] = {
        "type": "index_head",
        "v": 1,
        "seq": 0,
        "count": 3,
        "root": whole["map_head"]["root"],
        "at": AT,
    }
    values: list[Any] = [
        None,
        True,
        0,
        -1,
        1.5,
        "",
        "x",
        [],
        {},
        HUGE,
        "did:web:A.example",
        AT,
        "2026-02-30",
        "2026-13-01T00:00:00Z",
    ]
    for entry in whole.values():
        for name in [*entry, "more"]:
            cases += [answer_case(f"{entry['type']}.{name}: {value}", forged(host, "{}", [text]), str(FORGED), host)
                      for value in values if (text := jcs.dumps({**entry, name: value}).decode()).count('"at":"')]  # fmt: skip
    issuers = [
        "https://idv.example",
        "https://IDV.example:8443/a?b#c",
        "http://idv.example",
        "https://a b",
        "did:web:x",
    ]
    for issuer in [*issuers, "https://é.example", "did:web:x#y", "https://", f"https://a/{'b' * 1801}"]:
        changed = {**whole["review"], "evidence": {**whole["review"]["evidence"], "issuer": issuer}}
        cases.append(answer_case(issuer, forged(host, "{}", [jcs.dumps(changed).decode()]), str(FORGED), host))
    dids = [
        "did:web:a.example",
        "did:web:a..b",
        "did:web:a.",
        "did:web:-a",
        "did:web:a%3A443",
        "did:web:a%3A4430",
        "did:web:a%3A65535",
    ]
    dids += [
        "did:web:a%3A65536",
        "did:web:a%3A08",
        "did:web:a:b%20c",
        "did:web:a:b%2ec",
        "did:web:a:b%2Ec",
        "did:web:a:",
        "did:web:a%3A1%3A2",
    ]
    dids += [
        "did:web:a:%41",
        "did:web:a/b",
        "did:web:a?b",
        "did:key:z6Mk",
        "did:key:z0",
        "did:key:z",
        "did:key:x6Mk",
        "did:key:z1",
        "did:jwk:a_-9",
    ]
    dids += [
        "did:jwk:a=",
        "did:plc:abc",
        "DID:web:a",
        "did:web:é",
        "did:web:a" * 40,
        "",
        "did:jwk:",
        "did:web:",
        "did:web:a_b",
        "did:web:a\n",
    ]
    for did in dids:
        cases.append(answer_case(f"did {did}", forged(did, None), str(FORGED), did))
    assert len(set(agree(browser, cases))) >= 6
    assert len(cases) > 400
