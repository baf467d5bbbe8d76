"""The page and Python's verifier agree about what chance makes: honest worlds, and lies about them."""

import json
from random import Random
from typing import Any

import pytest

from ledger.canon import base64
from ledger.log.tlog_proof import TlogProof
from tests.audits.mutations import flipped, mutate
from tests.browser.browser import Browser
from tests.browser.verifying import ANSWERS, RECEIPTS, agree, answer_case, check_report, receipt_case, reports
from tests.world import HOSTS, World
from tests.world import LOG as WORLD_LOG

LIES = 600
pytestmark = pytest.mark.usefixtures("verify_page")


@pytest.mark.parametrize("seed", range(3))
def test_honest_worlds_turn_green_with_the_same_values(browser: Browser, seed: int) -> None:
    world = World(seed).grow(12, 12)
    answers = [world.log.answer(host, kind, count=5) for host in HOSTS for kind in ("full", "aggregate", "page")]
    hosts = [host for host in HOSTS for _ in range(3)]
    cases = [answer_case(host, answer, str(WORLD_LOG), host) for host, answer in zip(hosts, answers, strict=True)]
    for case, answer, report in zip(cases, answers, reports(browser, cases), strict=True):
        check_report(case, report, None, None)
        assert report.summary == {name: answer[name] for name in report.summary or ()}
        if "review_history" in answer:
            assert report.reviews[::-1] == answer["review_history"]
            record = answer["proof"]["record"]
            assert (report.statistics or {}).get("checks") == (json.loads(record)["checks"] if record else None)


def test_lies_at_random(browser: Browser) -> None:
    random, cases = Random(46), []
    for number in range(LIES):
        name = random.choice(sorted(ANSWERS))
        base, key = ANSWERS[name]
        lie = mutate(random, base["answer"])
        cases.append(answer_case(f"{number}: {name}", lie, key, base["did"], base["kind"]))
    codes = agree(browser, cases)
    # Most get past parsing, and some are none: a list may be shorter.
    assert len(set(codes)) > 15
    assert sum(code is not None for code in codes) > 0.9 * LIES


def test_letters_at_random(browser: Browser) -> None:
    """Anywhere in the text of an answer or receipt: also where no member of it is."""
    random, cases = Random(7), []
    for number in range(120):
        name = random.choice([*sorted(ANSWERS), "golden receipt", "own receipt"])
        is_receipt = name.endswith("receipt")
        given: Any = RECEIPTS[name.split()[0]] if is_receipt else ANSWERS[name][0]
        text = json.dumps(given["receipt" if is_receipt else "answer"], ensure_ascii=random.random() < 0.5)
        at = random.randrange(len(text))
        letters = random.choice(
            ['"', "\\", "0", "1", "a", "A", ",", "}", " ", "\u200b", "\n", "=", "-", ".5", "e1", ""]
        )
        text = text[:at] + letters + text[at + random.randrange(2) :]
        if is_receipt:
            cases.append(receipt_case(f"{number}: {name}", text, given["vkey"]))
        else:
            cases.append(answer_case(f"{number}: {name}", text, ANSWERS[name][1], given["did"], given["kind"]))
    for case, report in zip(cases, reports(browser, cases), strict=True):
        # A text with two faults may be refused for either.
        assert (report.code is None) == (case.code is None), (case.name, case.code, report.code, report.says)


def test_flipped_receipts(browser: Browser) -> None:
    random, cases = Random(3), []
    vectors = RECEIPTS["own"]
    for number in range(60):
        proof = TlogProof.parse(vectors["receipt"]["tlog_proof"])
        path = list(proof.path)
        at = random.randrange(len(path))
        kind, index = random.randrange(4), proof.index
        if kind == 0:
            path[at] = base64.decode(flipped(random, base64.encode(path[at])))
        elif kind == 1:
            path[at : at + 1] = random.choice(([], [path[at]] * 2))
        elif kind == 2:
            index = random.randrange(60)
        else:
            random.shuffle(path)
        changed = TlogProof(index, tuple(path), proof.checkpoint)
        receipt = {**vectors["receipt"], "index": index, "tlog_proof": str(changed)}
        cases.append(receipt_case(f"{number}: {kind}", receipt, vectors["vkey"]))
    assert {"root_mismatch", "proof_length", "index_out_of_range"} <= set(agree(browser, cases))
