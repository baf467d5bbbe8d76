"""JSON-LD as canonical N-Quads (JSON-LD 1.1, RDFC-1.0), by pyld made safe. Needs the `server` extra.

What pyld does by default, and what is done about it here:

* terms that no context defines are dropped and so not signed: refused (`undefined_term`);
* relative ids and types become IRIs below an invented base: the base is a sentinel, and refused where it shows up;
* contexts are fetched: only those given here exist;
* control characters and some numbers are spelled in a way of its own: refused;
* symmetric graphs take exponential time, and a thread cannot be stopped: refused beforehand (`too_complex`);
* its cache of contexts is not safe for threads: one at a time, and a bounded number of others waits.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NoReturn

from pyld import FrozenDocumentLoader
from pyld.canon import URDNA2015
from pyld.jsonld import JsonLdError, JsonLdProcessor

from ledger.errors import BadForm, NotAccepted, StaylogError
from ledger.turns import Turns

MAX_BLANK_NODES = 600
MAX_QUADS = 10_000
# Who comes when this many wait is told to try again; whoever signs with eddsa-jcs-2022 never comes here.
MAX_WAITING = 8

_RELATIVE = "urn:x-relative:/"
# What becomes of "x" and of "//x" below that base.
_RELATIVES = (_RELATIVE, "urn://")
_NOT_IN_AN_IRI = re.compile(r"[\x00-\x20<>\"{}|\\^`]")
_CONTROL = {*map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF))}

Dataset = dict[str, list[dict[str, dict[str, str]]]]


class Canonicaliser:
    """Turns documents over a fixed set of contexts, by URL, into N-Quads."""

    def __init__(self, contexts: Mapping[str, dict[str, Any]], *, waiting: int = MAX_WAITING) -> None:
        self._loader = FrozenDocumentLoader(contexts)
        self._turns = Turns("a JSON-LD signature to be verified", at_once=1, waiting=waiting)
        self._processor = JsonLdProcessor(on_property_dropped=_refuse_term)

    def canonize(self, *documents: dict[str, Any]) -> list[bytes]:
        """The canonical N-Quads of each document, in one turn."""
        for document in documents:
            _check_values(document)
        with self._turns:
            return [self._canonize(document) for document in documents]

    def _canonize(self, document: dict[str, Any]) -> bytes:
        try:
            dataset: Dataset = self._processor.to_rdf(document, {"base": _RELATIVE, "documentLoader": self._loader})
        except StaylogError:
            raise
        except Exception as error:
            # Odd JSON-LD makes pyld stumble in many ways.
            raise _refusal(error) from None
        guard(dataset)
        quads: str = URDNA2015().main(dataset, {"format": "application/n-quads"})
        if any(f"<{base}" in quads for base in _RELATIVES):
            raise NotAccepted("undefined_term", "an id or a type is relative, or not defined by any context")
        return quads.encode()


def guard(dataset: Dataset) -> None:
    """Refuse, in linear time, what canonicalisation might take exponential time for.

    It tries permutations only among blank nodes that look alike (the same quads, but for the names of other blank
    nodes) and reaches others from them. Where no two such nodes touch, each stands for itself.
    """
    looks: dict[str, list[tuple[str, ...]]] = {}
    edges = []
    count = 0
    for graph, triples in dataset.items():
        for triple in triples:
            count += 1
            quad = (*_parts(triple), graph)
            blanks = {part for part in quad if part.startswith("_:")}
            if len(blanks) > 1:
                edges.append(blanks)
            for node in blanks:
                seen = tuple(_seen_from(node, part) for part in quad)
                looks.setdefault(node, []).append(seen)
    if len(looks) > MAX_BLANK_NODES or count > MAX_QUADS:
        raise NotAccepted("too_complex", f"a graph of {len(looks)} blank nodes and {count} quads is too large")
    alike = {node: tuple(sorted(quads)) for node, quads in looks.items()}
    numbers = Counter(alike.values())
    for blanks in edges:
        if sum(numbers[alike[node]] > 1 for node in blanks) > 1:
            raise NotAccepted("too_complex", "objects without an id that look alike contain each other")


def _parts(triple: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for name in ("subject", "predicate", "object"):
        part = triple[name]
        # Marked, so that a text that looks like a blank node is none.
        yield (
            part["value"] if part["type"] == "blank node" else f"{part['type']} {part['value']} {part.get('datatype')}"
        )


def _seen_from(node: str, part: str) -> str:
    return part if not part.startswith("_:") else "_:a" if part == node else "_:z"


def _refuse_term(term: str | None) -> NoReturn:
    raise NotAccepted("undefined_term", f"no context defines {str(term)[:60]!r}, so that no signature covers it")


def _refusal(error: BaseException) -> NotAccepted | BadForm:
    """pyld wraps what went wrong in what it was doing, several times."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NotAccepted):
            return cause
        error, cause = cause, cause.__cause__
    if isinstance(error, JsonLdError) and error.code == "loading document failed":
        return NotAccepted("context_not_allowed", "a context is none of those that are known here")
    return BadForm("schema_invalid", f"not JSON-LD: {str(error).partition(chr(10))[0][:200]}")


def _check_values(value: Any) -> None:
    if isinstance(value, str):
        if not _CONTROL.isdisjoint(value):
            raise BadForm("schema_invalid", "a text has characters that canonicalisers spell differently")
    elif isinstance(value, float):
        # JSON-LD writes 16 digits of a double: 9.7 is 9.699999999999999. Others write the shortest that is the same
        # number, and numbers that need 17 digits have the signatures of others.
        if Decimal(f"{value:.15e}") != Decimal(repr(value)):
            raise BadForm("schema_invalid", f"canonicalisers spell the number {value!r} differently")
    elif isinstance(value, list):
        for item in value:
            _check_values(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("id", "@id") and isinstance(item, str) and _NOT_IN_AN_IRI.search(item):
                raise NotAccepted("undefined_term", "an id has a character that no IRI has, and would not be signed")
            _check_values(item)
