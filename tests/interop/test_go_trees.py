"""Go's golang.org/x/mod/sumdb/tlog makes the same proofs and tiles as we do, and refuses the forgeries we refuse."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import pytest

from ledger.canon import base64
from ledger.errors import BadTilePath, NotProved
from ledger.log.checkpoint import Checkpoint
from ledger.log.proofs import verify_consistency, verify_inclusion
from ledger.log.tiles import (
    HEIGHT,
    MemoryTiles,
    TileTree,
    decode_bundle,
    encode_bundle,
    parse_tile_path,
    tile_id,
    tile_name,
    tile_resources,
)
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import leaf_hash, root_of
from tests.bits import flip
from tests.interop.golang import Go, Request
from tests.interop.test_go_notes import opening
from tests.ledger.log.test_tree import stored
from tests.ledger.log.worked_example import EXAMPLE, LEAVES
from tests.world import LOG, World

RECORDS = [b"review-%d" % number for number in range(65_537)]
SAMPLED_SIZES = (255, 256, 257, 511, 512, 513, 1000, 65_535, 65_536, 65_537)
SAMPLED_INDICES = (0, 1, 2, 127, 128, 254, 255, 256, 257, 510, 511, 512, 32_767, 32_768, 65_279, 65_280, 65_535, 65_536)


@dataclass(frozen=True)
class Inclusion:
    leaf: bytes
    index: int
    size: int
    proof: tuple[bytes, ...]
    root: bytes

    def request(self) -> Request:
        record = {"leaf": base64.encode(self.leaf), "index": self.index}
        tree = {"size": self.size, "root": base64.encode(self.root)}
        return {"op": "check_record", **record, **tree, "proof": encoded(self.proof)}

    def proof_request(self) -> Request:
        return {"op": "prove_record", "index": self.index, "size": self.size}

    def verify(self) -> None:
        verify_inclusion(self.leaf, self.index, self.size, self.proof, self.root)

    def forgeries(self) -> "Iterator[Inclusion]":
        yield from (replace(self, proof=proof) for proof in forged(self.proof))
        yield replace(self, leaf=flip(self.leaf, 255))
        yield replace(self, root=flip(self.root, 255))
        yield from (replace(self, index=self.index + by) for by in (-1, 1, self.size, -self.size))
        yield from (replace(self, size=size) for size in (-1, 0, self.index))


@dataclass(frozen=True)
class Consistency:
    first: int
    second: int
    first_root: bytes
    second_root: bytes
    proof: tuple[bytes, ...]

    def request(self) -> Request:
        first = {"first": self.first, "first_root": base64.encode(self.first_root)}
        second = {"size": self.second, "root": base64.encode(self.second_root)}
        return {"op": "check_tree", **first, **second, "proof": encoded(self.proof)}

    def proof_request(self) -> Request:
        return {"op": "prove_tree", "first": self.first, "size": self.second}

    def verify(self) -> None:
        verify_consistency(self.first, self.second, self.first_root, self.second_root, self.proof)

    def forgeries(self) -> "Iterator[Consistency]":
        yield from (replace(self, proof=proof) for proof in forged(self.proof))
        yield replace(self, first_root=flip(self.first_root, 255))
        yield replace(self, second_root=flip(self.second_root, 255))
        yield from (replace(self, first=first) for first in (-1, 0, self.second + 1))
        yield from (replace(self, second=second) for second in (-1, 0, self.first - 1))
        if self.first != self.second:
            yield replace(self, first=self.second)
            yield replace(self, second=self.first)
            yield replace(self, first_root=self.second_root, second_root=self.first_root)


Claim = Inclusion | Consistency


def encoded(hashes: Iterable[bytes]) -> list[str]:
    return list(map(base64.encode, hashes))


def forged(proof: tuple[bytes, ...]) -> Iterator[tuple[bytes, ...]]:
    for at, node in enumerate(proof):
        yield (*proof[:at], flip(node, 37 * at % 256), *proof[at + 1 :])
    yield (*proof, bytes(32))
    yield (bytes(32), *proof)
    if proof:
        yield proof[1:]
        yield proof[:-1]
        yield (*proof, proof[-1])
    if len(proof) > 1:
        yield proof[::-1]


def holds(claim: Claim) -> bool:
    try:
        claim.verify()
    except NotProved:
        return False
    return True


def loading(records: Iterable[bytes]) -> Request:
    return {"op": "load", "records": encoded(records)}


@pytest.fixture(scope="module")
def tiles() -> MemoryTiles:
    return stored(map(leaf_hash, RECORDS))


@pytest.fixture(scope="module")
def tree(tiles: MemoryTiles) -> TileTree:
    return TileTree(tiles)


def inclusion(tree: TileTree, index: int, size: int) -> Inclusion:
    return Inclusion(leaf_hash(RECORDS[index]), index, size, tuple(tree.inclusion(index, size)), tree.root(size))


def consistency(tree: TileTree, first: int, second: int) -> Consistency:
    return Consistency(first, second, tree.root(first), tree.root(second), tuple(tree.consistency(first, second)))


def sampled(tree: TileTree) -> list[Claim]:
    """Claims of both kinds around the borders of tiles."""
    pairs = [(at, size) for size in SAMPLED_SIZES for at in {*SAMPLED_INDICES, size - 2, size - 1} if at < size]
    return [
        *(inclusion(tree, index, size) for index, size in pairs),
        *(consistency(tree, first, second) for first, second in pairs if first),
        *(consistency(tree, size, size) for size in SAMPLED_SIZES),
    ]


def require_equal_and_accepted(go: Go, claims: list[Claim]) -> None:
    """Go accepts the claims, and its own proofs are ours to the byte."""
    records = RECORDS[: max(claim.size if isinstance(claim, Inclusion) else claim.second for claim in claims)]
    go.results(claim.request() for claim in claims)
    [_, *proofs] = go.results([loading(records), *(claim.proof_request() for claim in claims)])
    assert proofs == [encoded(claim.proof) for claim in claims]
    for claim in claims:
        claim.verify()


def test_leaf_hashes_are_equal(go: Go) -> None:
    records = [b"", b"\x00", b"\x01" * 64, bytes(range(256)), b"a" * 65_535]
    assert go.results({"op": "leaf_hash", "record": base64.encode(record)} for record in records) == encoded(
        map(leaf_hash, records)
    )


def test_roots_are_equal(go: Go, tree: TileTree) -> None:
    # Size 0 is not compared: its root is SHA-256 of nothing in RFC 6962, but zeros in x/mod 0.7.
    sizes = [*range(1, 600), *SAMPLED_SIZES]
    [_, *roots] = go.results([loading(RECORDS), *({"op": "tree_hash", "size": size} for size in sizes)])
    assert roots == encoded(tree.root(size) for size in sizes)
    assert tree.root(1000) == root_of(map(leaf_hash, RECORDS[:1000]))


def test_all_inclusion_proofs_of_small_trees(go: Go, tree: TileTree) -> None:
    require_equal_and_accepted(go, [inclusion(tree, at, size) for size in range(1, 131) for at in range(size)])


def test_all_consistency_proofs_of_small_trees(go: Go, tree: TileTree) -> None:
    require_equal_and_accepted(go, [consistency(tree, at, size) for size in range(1, 65) for at in range(1, size + 1)])


def test_proofs_around_the_borders_of_tiles(go: Go, tree: TileTree) -> None:
    require_equal_and_accepted(go, sampled(tree))


def test_forged_proofs_are_refused(go: Go, tree: TileTree) -> None:
    claims: list[Claim] = sampled(tree)
    for size in range(1, 20):
        claims += [inclusion(tree, index, size) for index in range(size)]
        claims += [consistency(tree, first, size) for first in range(1, size + 1)]
    forgeries = [forgery for claim in claims for forgery in claim.forgeries()]
    assert len(forgeries) > 10_000
    accepted = go.accepts(forgery.request() for forgery in forgeries)
    assert [forgery for forgery, yes in zip(forgeries, accepted, strict=True) if yes] == []
    assert [forgery for forgery in forgeries if holds(forgery)] == []


def test_proofs_shown_for_other_places_are_judged_alike(go: Go, tree: TileTree) -> None:
    """A proof does not always bind the size it was made for; where it does not, both must say so."""
    claims: list[Claim] = []
    for (at, size), (other_at, other_size) in product(product(range(13), repeat=2), repeat=2):
        if at < size:
            claims.append(replace(inclusion(tree, at, size), index=other_at, size=other_size))
        if 0 < at <= size:
            claims.append(replace(consistency(tree, at, size), first=other_at, second=other_size))
    verdicts = go.accepts(claim.request() for claim in claims)
    assert verdicts == [holds(claim) for claim in claims]
    assert 0 < sum(verdicts) < len(verdicts) / 20


# Tiles


def served(tiles: MemoryTiles, size: int) -> dict[str, bytes]:
    """The hash tiles of a log of that size, by path."""
    paths = [path for path in tile_resources(size) if not path.startswith("tile/entries/")]
    return {path: tile_bytes(tiles, path) for path in paths}


def tile_bytes(tiles: MemoryTiles, path: str) -> bytes:
    level, index, width = parse_tile_path(path)
    assert level is not None
    return tiles[tile_id(level, index)][: width * 32]


def reading(tiles: dict[str, bytes], size: int, root: bytes) -> Request:
    data = {path: base64.encode(row) for path, row in tiles.items()}
    return {"op": "read_leaves", "size": size, "root": base64.encode(root), "tiles": data}


def test_tile_paths_are_equal(go: Go) -> None:
    def path(kind: int | str, index: int, width: int) -> str:
        return f"tile/{kind}/{tile_name(index)}" + (f".p/{width}" if width < 256 else "")

    indices = (0, 1, 255, 999, 1000, 1001, 999_999, 1_000_000, 1_234_067, 2**40, 2**48 - 1)
    tiles = list(product((0, 1, 5, 63), indices, (1, 2, 255, 256)))
    parsed = go.results({"op": "parse_tile", "path": path(*tile)} for tile in tiles)
    assert parsed == [{"H": HEIGHT, "L": level, "N": index, "W": width} for level, index, width in tiles]
    assert [parse_tile_path(path(*tile)) for tile in tiles] == tiles
    # What tlog-tiles calls entries has the level -1 and the name data in Go.
    parsed = go.results({"op": "parse_tile", "path": path("data", index, 7)} for index in indices)
    assert parsed == [{"H": HEIGHT, "L": -1, "N": index, "W": 7} for index in indices]
    assert [parse_tile_path(path("entries", index, 7)) for index in indices] == [(None, index, 7) for index in indices]


def test_other_tile_paths_are_refused(go: Go) -> None:
    names = ["", "0", "00", "0000", "1000", "-01", "٠٠٠", "000 ", "000\n", "000/", "/000"]
    names += ["x000/001", "x001", "001/002", "X001/002", "x001/x002", "000.p", "000.p/", "000.q/1"]
    names += [f"000.p/{width}" for width in ("0", "00", "01", "+1", "-1", "256", "1000", "1/2", "x", "١")]
    kinds = ["", "00", "01", "+1", "-1", "x", "0x0", "٠"]
    paths = ["", "tile", "tile/", "tile/0", "/tile/0/000", "Tile/0/000", "0/000"]
    paths += [*(f"tile/0/{name}" for name in names), *(f"tile/{kind}/000" for kind in kinds)]
    accepted = go.accepts({"op": "parse_tile", "path": path} for path in paths)
    assert [path for path, yes in zip(paths, accepted, strict=True) if yes] == []
    for path in paths:
        with pytest.raises(BadTilePath):
            parse_tile_path(path)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 65_535, 65_536, 65_537])
def test_tiles_are_equal(go: Go, tiles: MemoryTiles, size: int) -> None:
    """Go lists the tiles of every size on the way; of these the last of each place remain."""
    [made] = go.results([{"op": "tile_paths", "size": size}])
    ours = served(tiles, size)
    assert set({path.partition(".p/")[0]: path for path in made}.values()) == set(ours)
    requests = [{"op": "read_tile", "path": path} for path in made]
    [_, *data] = go.results([loading(RECORDS[:size]), *requests])
    assert data == encoded(tile_bytes(tiles, path) for path in made)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 300, 512, 1000, 65_535, 65_536, 65_537])
def test_go_reads_our_tiles(go: Go, tiles: MemoryTiles, tree: TileTree, size: int) -> None:
    leaves = [leaf_hash(record) for record in RECORDS[:size]]
    assert go.results([reading(served(tiles, size), size, tree.root(size))]) == [encoded(leaves)]


# Sizes whose perfect subtrees lie in a tile each: in others x/mod below 0.40 overlooks a changed tile (CVE-2026-56865).
@pytest.mark.parametrize("size", [1, 256, 257, 512])
def test_go_refuses_our_tiles_when_changed(go: Go, tiles: MemoryTiles, tree: TileTree, size: int) -> None:
    good, root = served(tiles, size), tree.root(size)
    for path, row in good.items():
        changed = [row[:-1], row + bytes(1), *(flip(row, bit) for bit in (0, len(row) * 8 - 1))]
        assert not any(go.accepts(reading({**good, path: data}, size, root) for data in changed))
    assert go.accepts([reading(good, size, flip(root)), reading(good, size, root)]) == [False, True]


# A whole ledger


def test_a_ledger_is_accepted(go: Go) -> None:
    log = World(1).grow(90).log
    records = [entry.data for entry in log.entries]
    sizes = [state.size for state in log.published]
    assert 256 < sizes[-1] < 512

    opened = go.results(opening(state.note, str(LOG)) for state in log.published)
    checkpoints = [Checkpoint.parse(each["text"]) for each in opened]
    [_, *roots] = go.results([loading(records), *({"op": "tree_hash", "size": size} for size in sizes)])
    assert [str(each) for each in checkpoints] == [
        f"{LOG.name}\n{size}\n{root}\n" for size, root in zip(sizes, roots, strict=True)
    ]

    claims: list[Claim] = []
    for new in checkpoints[::10]:
        for index, record in enumerate(records[: new.size]):
            proof = tuple(log.tree.inclusion(index, new.size))
            claims.append(Inclusion(leaf_hash(record), index, new.size, proof, new.root))
        for old in checkpoints[: checkpoints.index(new) + 1]:
            proof = tuple(log.tree.consistency(old.size, new.size))
            claims.append(Consistency(old.size, new.size, old.root, new.root, proof))
    go.results(claim.request() for claim in claims)
    assert go.results(claim.proof_request() for claim in claims) == [encoded(claim.proof) for claim in claims]

    # A mirror has the bundles and tiles only.
    bundles = [encode_bundle(records[:256]), encode_bundle(records[256:])]
    mirrored = [record for bundle in bundles for record in decode_bundle(bundle)]
    leaves = go.results({"op": "leaf_hash", "record": base64.encode(record)} for record in mirrored)
    for each in checkpoints:
        tiles = served(log.tiles, each.size)
        assert go.results([reading(tiles, each.size, each.root)]) == [leaves[: each.size]]


def test_go_accepts_the_worked_example(go: Go) -> None:
    proof, roots = TlogProof.parse(EXAMPLE), {size: root_of(LEAVES[:size]) for size in (2, 3, 4, 5)}
    claims: list[Claim] = [
        Inclusion(LEAVES[2], 2, 5, proof.path, roots[5]),
        Consistency(3, 5, roots[3], roots[5], (LEAVES[2], LEAVES[3], roots[2], LEAVES[4])),
        Consistency(2, 4, roots[2], roots[4], (root_of(LEAVES[2:4]),)),
    ]
    go.results(claim.request() for claim in claims)
    assert go.results([opening(proof.checkpoint)])[0]["unverified"] == ["witness.example/w1"]
