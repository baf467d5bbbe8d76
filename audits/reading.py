"""Entries, texts, tiles and checkpoints of a log as a source serves them, in the order of the log."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from audits.source import Source, ahead, get_tile
from ledger.canon import base64, strict_json
from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadEntry, Malformed, NotFetched, NotFound
from ledger.log.openings import Opening
from ledger.log.tiles import WIDTH, decode_bundle, encode_bundle, tile_name
from ledger.log.tree import HASH_SIZE, leaf_hash

LISTED = 100
# Events on a page of a large host, and bundles that are kept by whoever jumps around.
PAGE = 500
KEPT = 64


def resource(index: int, size: int, level: int | None = None) -> str:
    """The path of a tile, or of a bundle without a level, as it is at `size`."""
    width = min((size >> 8 * (level or 0)) - index * WIDTH, WIDTH)
    kind = "entries" if level is None else str(level)
    return f"log/tile/{kind}/{tile_name(index)}" + (f".p/{width}" if width < WIDTH else "")


class Reading:
    """A log at one size. `known` are the leaf hashes of a bundle that were read before, as many as there are: whoever
    serves other entries the second time is not believed."""

    def __init__(self, source: Source, size: int, known: Callable[[int], bytes] = lambda _number: b"") -> None:
        self.source = source
        self.size = size
        self._known = known
        self._kept: dict[int, list[bytes]] = {}

    def bundles(self, start: int) -> Iterator[tuple[int, list[bytes]]]:
        """The entries from `start`, bundle by bundle, each with the index of its first."""
        for number, entries in ahead(self.source, self.bundle, range(start // WIDTH, -(-self.size // WIDTH))):
            skipped = max(start - number * WIDTH, 0)
            yield number * WIDTH + skipped, entries[skipped:]

    def raw(self, number: int) -> tuple[str, bytes]:
        """The path of a bundle below the log, and what is served there."""
        width = min(self.size - number * WIDTH, WIDTH)
        path = resource(number, self.size)

        def cut(data: bytes) -> bytes:
            return encode_bundle(decode_bundle(data)[:width])

        return path.removeprefix("log/"), get_tile(self.source, path, cut)

    def bundle(self, number: int) -> list[bytes]:
        width = min(self.size - number * WIDTH, WIDTH)
        try:
            entries = decode_bundle(self.raw(number)[1])
        except BadEntry:
            entries = []
        if len(entries) != width:
            raise Malformed("bundle_mismatch", f"bundle {number} does not have its {width} entries")
        return entries

    def _require_known(self, number: int, entries: Sequence[bytes]) -> None:
        known = self._known(number)[: len(entries) * HASH_SIZE]
        if b"".join(map(leaf_hash, entries[: len(known) // HASH_SIZE])) != known:
            raise Malformed("bundle_mismatch", f"bundle {number} does not have the entries that it had before")

    def entries(self, start: int, stop: int) -> Iterator[bytes]:
        """Entries [start, stop), for those who jump around."""
        if stop - start > KEPT * WIDTH:
            yield from self._row(start, stop)
            return
        for index in range(start, stop):
            number, place = divmod(index, WIDTH)
            if number not in self._kept:
                if len(self._kept) >= KEPT:
                    self._kept.clear()
                self._kept[number] = self.bundle(number)
                self._require_known(number, self._kept[number])
            yield self._kept[number][place]

    def _row(self, start: int, stop: int) -> Iterator[bytes]:
        for first, entries in self.bundles(start - start % WIDTH):
            self._require_known(first // WIDTH, entries)
            entries = entries[max(start - first, 0) :]
            first = max(first, start)
            yield from entries[: max(stop - first, 0)]
            if first + len(entries) >= stop:
                return

    def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        """As the log serves them: a store for `TileTree`."""
        found = {}
        for tile in ids:
            try:
                found[tile] = self.tile(tile >> 48, tile & (1 << 48) - 1)
            except NotFound:
                continue
        return found

    def tile(self, level: int, index: int) -> bytes:
        width = min((self.size >> 8 * level) - index * WIDTH, WIDTH)
        return get_tile(self.source, resource(index, self.size, level), lambda data: data[: width * HASH_SIZE])


def get_texts(source: Source, number: int) -> bytes:
    return source.get(f"v1/log/openings/{number}")


def read_texts(data: bytes) -> dict[int, Opening]:
    """The openings of a bundle as they are served, by the index of their entries."""
    try:
        # The strict reader would tell nothing new: each opening is held against its commitment.
        value = json.loads(data)
        return {_index(each["index"]): _opening(each["text"], each["salt"]) for each in value["openings"]}
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise Malformed("answer_malformed", f"openings that cannot be read: {error!r}") from None


def _opening(text: Any, salt: Any) -> Opening:
    if type(text) is not str or type(salt) is not str or not text:
        raise TypeError("a text and its salt are strings, and the text is not empty")
    # What is not text has no bytes: ValueError.
    text.encode()
    return Opening(text, base64.decode_hash(salt))


def _index(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("an index is a whole number")
    return value


def read_checkpoints(source: Source, above: int, most: int = MAX_INTEGER - 1) -> Iterator[str]:
    """Every checkpoint that the log lists as signed and that is larger than `above`, but not than `most`, the largest
    first. They get smaller and smaller, so that the list has an end whoever serves it."""
    before = most + 1
    while True:
        value = strict_json.loads(source.get(f"v1/log/checkpoints?count={LISTED}&before={before}"))
        try:
            listed = [(_index(each["size"]), str(each["checkpoint"])) for each in value["checkpoints"]]
            following = None if value["next"] is None else _index(value["next"])
        except (KeyError, TypeError) as error:
            raise Malformed("answer_malformed", f"the list of checkpoints cannot be read: {error!r}") from None
        if any(first <= second for (first, _), (second, _) in pairwise(listed)):
            raise Malformed("answer_malformed", "the list of checkpoints is not in order")
        if any(note.split("\n")[1:2] != [str(size)] for size, note in listed):
            raise Malformed("answer_malformed", "the list of checkpoints has one of another size than it says")
        # A copy has them all in one file, whatever is asked.
        asked = [(size, note) for size, note in listed if size < before]
        yield from (note for size, note in asked if size > above)
        if following is None or not asked or asked[-1][0] <= above:
            return
        if following != asked[-1][0]:
            raise Malformed("answer_malformed", "the list of checkpoints does not go on where it broke off")
        before = following


def host_path(host: str) -> str:
    """A DID is one segment of the path; its own percent signs are escaped."""
    return f"v1/hosts/{quote(host, safe=':')}/reputation"


def read_answer(source: Source, host: str, size: int, count: int) -> tuple[list[bytes], list[bytes], bool]:
    """The answer about a host with `count` events, with all texts: its proved parts, one document or pages; all that
    say the same without needing a proof, each of which must be right; and whether it is a copy, which has one file for
    whatever is asked about a host."""
    query = f"{host_path(host)}?text=all&size={size}"
    try:
        document = source.get(f"{query}&proof=full&limit={LISTED}")
    except NotFetched as error:
        if error.status != 413 or not count:
            raise
        parts = [source.get(f"{query}&proof=page&from={start}&count={PAGE}") for start in range(0, count, PAGE)]
        return parts, [source.get(f"{query}&limit={LISTED}")], False
    asked, plain = source.get(f"{query}&limit={LISTED}"), _member(document, "plain")
    is_copy = asked == document
    # What was answered in several parts lies in members.
    if is_copy and plain is not None:
        asked = json.dumps(plain).encode()
    pages = _member(document, "pages")
    parts = [json.dumps(page).encode() for page in pages] if isinstance(pages, list) and pages else [document]
    return parts, [document, asked], is_copy


def read_bare(source: Source, host: str) -> bytes:
    """The answer about a host as most who ask get it."""
    return source.get(host_path(host))


def _member(document: bytes, name: str) -> Any:
    value = strict_json.loads(document)
    return value.get(name) if isinstance(value, dict) else None
