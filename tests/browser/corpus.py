"""A corpus of mutated documents: the same number and seed always give the same documents.

Its seeds are the vectors and invented ledgers. Half of the documents are signed by an operator who signs anything, so
that nothing but the rules of a verifier can refuse them.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

from ledger.canon import base64
from tests.audits.mutations import mutate
from tests.browser.signed_documents import Made, about_another, signed_events, signed_record
from tests.browser.spelling import any_value, respell_number, respell_text, restructure, written
from tests.browser.verifying import ANSWERS, GOLDEN, OWN, RECEIPTS

SIZE = 2000


@dataclass(frozen=True, slots=True)
class Document:
    """What is given to a verifier: `texts` about `host`, or without one a receipt."""

    name: str
    texts: tuple[str, ...]
    key: str
    host: str = ""

    @property
    def plan(self) -> str:
        return "answer" if self.host else "receipt"


def corpus(seed: int = 1, count: int = SIZE, step: int = 1) -> list[Document]:
    return [_document(seed, place) for place in range(0, count, step)]


def is_json(document: Document) -> bool:
    """Whether a plain parser reads all of it."""
    with suppress(ValueError):
        return all(json.loads(text) is not ... for text in document.texts)
    return False


def _document(seed: int, place: int) -> Document:
    random = Random(f"{seed} {place}")
    make = random.choice(MAKERS)
    texts, key, host = make(random)
    return Document(f"{seed} {place} {make.__name__}", texts, key, host)


def _base(random: Random) -> tuple[Any, str, str]:
    case, key = ANSWERS[random.choice(sorted(ANSWERS))]
    return deepcopy(case["answer"]), key, case["did"]


def _change(random: Random, document: Any) -> str:
    change = random.choice((respell_number, respell_text, restructure))
    change(random, document)
    return written(document, ascii_only=random.random() < 0.5)


def lie(random: Random) -> Made:
    answer, key, host = _base(random)
    return (json.dumps(mutate(random, answer)),), key, host


def changed(random: Random) -> Made:
    answer, key, host = _base(random)
    return (_change(random, answer),), key, host


def letter(random: Random) -> Made:
    """Anywhere in the text."""
    answer, key, host = _base(random)
    text = written(answer)
    at = random.randrange(len(text))
    other = random.choice(('"', "0", "1", "a", " ", "\u200b", "=", ".5", "e1", "\u00a0", "\ufeff", ""))
    return (text[:at] + other + text[at + random.randrange(2) :],), key, host


def note(random: Random) -> Made:
    """A checkpoint as others may write it."""
    answer, key, host = _base(random)
    text = answer["proof"]["checkpoint"]
    signed, lines = text.rsplit("\n\n", 1)
    stranger = "— witness.example/w " + base64.encode(random.randbytes(random.choice((4, 5, 68, 76))))
    name = random.choice(("w\u00a0x", "w+x", "w\x7fx", "w\x1cx", "w\u0085x", "w\ufeffx", "w\tx", ""))
    more = [stranger, lines[:-1], stranger[:-2], stranger + " ", stranger.replace("witness.example/w", name)]
    more += [stranger.replace(" ", "  "), "\n".join([stranger] * random.choice((62, 63, 64))), lines[:-1].lower(), ""]
    order = [random.choice(more), lines[:-1]]
    random.shuffle(order)
    texts = [signed + "\n\n" + "\n".join(order) + random.choice(("\n", "\n", "\n", "")), text.replace("\n", "\r\n")]
    texts += [f"{text}\n", text[:-1], f" {text}", signed + "\nextension\n\n" + lines, signed + "\n\n\n" + lines]
    answer["proof"]["checkpoint"] = texts[0] if random.random() < 0.7 else random.choice(texts)
    return (json.dumps(answer),), key, host


def pages(random: Random) -> Made:
    """Pages that come in many documents, or all in one array, and not always all of them."""
    given = random.choice((GOLDEN, OWN))
    cases = {case["name"]: case for case in given["answers"]}
    names = [*random.choice([each["pages"] for each in given["page_sets"] if "code" not in each])]
    host = cases[names[0]]["did"]
    chosen = [deepcopy(cases[name]["answer"]) for name in names]
    kind = random.randrange(7)
    if kind == 0:
        random.shuffle(chosen)
    elif kind == 1:
        del chosen[random.randrange(len(chosen))]
    elif kind == 2:
        chosen.append(random.choice([*chosen, *(case["answer"] for case in given["answers"] if case["did"] == host)]))
    elif kind == 3:
        chosen = chosen[:1] if random.random() < 0.5 else []
    elif kind == 4:
        chosen[-1] = mutate(random, chosen[-1])
    elif kind == 5:
        chosen.insert(random.randrange(len(chosen) + 1), any_value(random, chosen[:], [chosen]))
    if random.random() < 0.5 or not chosen:
        return (random.choice(("", "\n", "\u00a0")) + written(chosen),), given["vkey"], host
    return tuple(written(page) for page in chosen), given["vkey"], host


def page_changed(random: Random) -> Made:
    given = random.choice((GOLDEN, OWN))
    case = deepcopy(random.choice([case for case in given["answers"] if case["kind"] == "page"]))
    text = _change(random, case["answer"])
    return (f"[{text}]" if random.random() < 0.5 else text,), given["vkey"], case["did"]


def receipt(random: Random) -> Made:
    given = RECEIPTS[random.choice(sorted(RECEIPTS))]
    return (_change(random, deepcopy(given["receipt"])),), given["vkey"], ""


MAKERS: tuple[Callable[[Random], Made], ...] = (
    *(lie, lie, changed, changed, letter, about_another, note, pages, page_changed, receipt),
    *(signed_record, signed_record, signed_record, signed_events, signed_events, signed_events),
)
