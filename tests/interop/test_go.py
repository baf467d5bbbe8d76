"""Go's own golang.org/x/mod/sumdb/note and tlog accept what this project makes, and refuse the forgeries it refuses."""

import json
import os
import shutil
import subprocess
from base64 import b32encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from threading import Thread
from typing import IO, Any, NoReturn

import pytest
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.errors import BadTilePath, NotProved, StaylogError
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.cosignature import Cosignature, cosign, cosignatures
from ledger.log.entries import Entry, make_entry
from ledger.log.memory import MemoryLog
from ledger.log.note import COSIGNATURE, ED25519, MAX_CHARACTERS, MAX_SIGNATURES, Note, Signature, Verifier, sign
from ledger.log.tiles import (
    HEIGHT,
    Appender,
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
from ledger.log.tree import leaf_hash, root_of, verify_consistency, verify_inclusion

SOURCE = Path(__file__).with_name("go") / "main.go"
PACKAGES = ("golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog")
# Where Debian's golang-golang-x-mod-dev puts x/mod; a GOPATH of one's own is searched before it.
DEBIAN_GOPATH = "/usr/share/gocode"

ORIGIN = "reputation.example/log"
LOG_KEY = SigningKey(bytes(range(32)))
LOG = Verifier(ORIGIN, ED25519, bytes(LOG_KEY.verify_key))
WITNESS_KEY = SigningKey(bytes([7]) * 32)
WITNESS = Verifier("witness.example/w1", COSIGNATURE, bytes(WITNESS_KEY.verify_key))

RECORDS = [b"review-%d" % number for number in range(65_537)]
SAMPLED_SIZES = (255, 256, 257, 511, 512, 513, 1000, 65_535, 65_536, 65_537)
SAMPLED_INDICES = (0, 1, 2, 127, 128, 254, 255, 256, 257, 510, 511, 512, 32_767, 32_768, 65_279, 65_280, 65_535, 65_536)

Request = dict[str, Any]
Verdict = dict[str, Any]


class Go:
    """The program in go/main.go: a batch of requests goes in, their verdicts come out in the same order."""

    def __init__(self, requests: IO[str], verdicts: IO[str]) -> None:
        self._requests = requests
        self._verdicts = verdicts

    def ask(self, requests: Iterable[Request]) -> list[Verdict]:
        lines = [json.dumps(request) + "\n" for request in requests]
        # Both pipes are shorter than a batch: writing goes on while verdicts are read.
        writer = Thread(target=self._write, args=(lines,))
        writer.start()
        answers = [self._verdicts.readline() for _ in lines]
        writer.join()
        assert all(answers), "the Go program ended early: see its standard error"
        return [json.loads(answer) for answer in answers]

    def results(self, requests: Iterable[Request]) -> list[Any]:
        """What Go answers to requests that it must not refuse."""
        verdicts = self.ask(requests)
        assert [verdict["error"] for verdict in verdicts if verdict["error"]] == []
        return [verdict["result"] for verdict in verdicts]

    def accepts(self, requests: Iterable[Request]) -> list[bool]:
        return [not verdict["error"] for verdict in self.ask(requests)]

    def _write(self, lines: list[str]) -> None:
        # When the program has ended, the reader says so.
        with suppress(BrokenPipeError):
            self._requests.writelines(lines)
            self._requests.flush()


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Go]:
    program = build(tmp_path_factory.mktemp("go"))
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdin
        assert process.stdout
        yield Go(process.stdin, process.stdout)
    assert process.returncode == 0


def build(folder: Path) -> Path:
    """Compile the program. It takes half a second: each worker of a parallel run has its own."""
    command = shutil.which("go") or absent("the Go compiler (Debian: golang-go)")
    environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": str(folder / "cache")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, check=False)

    own = run("env", "GOPATH").stdout.strip()
    environment["GOPATH"] = os.pathsep.join(filter(None, [own, DEBIAN_GOPATH]))
    if run("list", *PACKAGES).returncode:
        absent("golang.org/x/mod below a GOPATH (Debian: golang-golang-x-mod-dev)")
    built = run("build", "-o", str(folder / "program"), str(SOURCE))
    assert built.returncode == 0, built.stderr
    return folder / "program"


def absent(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and under CI these tests must run")
    pytest.skip(f"{what} is missing")


def flip(data: bytes, bit: int = 0) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# Signed notes and checkpoints


def opening(note: str, *vkeys: str) -> Request:
    return {"op": "open_note", "note": note, "vkeys": vkeys or [str(LOG)]}


def we_open(note: str, vkey: str = str(LOG)) -> bool:
    try:
        Note.parse(note).require(Verifier.parse(vkey))
    except StaylogError:
        return False
    return True


def checkpoint(size: int = 5) -> Checkpoint:
    return Checkpoint(ORIGIN, size, sha256(b"%d" % size).digest())


def grease(number: int) -> Signature:
    """A signature nobody can check; 66 bytes need no padding in base64."""
    return Signature(f"grease.example/{number}", number.to_bytes(4), bytes([number]) * 62)


def test_keys_have_the_same_texts(go: Go) -> None:
    names = [ORIGIN, "x", "bücher.example/登録", "a.example/-_.~!$&'()*,;=:@"]
    pairs = list(product(names, [bytes(range(32)), bytes(32), b"\xff" * 32]))
    keys = go.results({"op": "make_key", "name": name, "seed": base64.encode(seed)} for name, seed in pairs)
    for (name, seed), key in zip(pairs, keys, strict=True):
        verifier = Verifier(name, ED25519, bytes(SigningKey(seed).verify_key))
        assert key["vkey"] == str(verifier)
        assert key["skey"] == f"PRIVATE+KEY+{name}+{verifier.key_id.hex()}+{base64.encode(bytes([ED25519]) + seed)}"
        assert Verifier.parse(key["vkey"]) == verifier


def test_keys_are_refused_alike(go: Go) -> None:
    def vkey(name: str, key: bytes) -> str:
        return f"{name}+{sha256(name.encode() + bytes([10]) + key).hexdigest()[:8]}+{base64.encode(key)}"

    key = bytes([ED25519]) + LOG.public_key
    good = vkey(ORIGIN, key)
    assert good == str(LOG)
    bad = [
        vkey(ORIGIN, b""),
        vkey(ORIGIN, key[:-1]),
        vkey(ORIGIN, key + bytes(1)),
        vkey(ORIGIN, bytes([2]) + LOG.public_key),
        *(
            vkey(name, key)
            for name in ("", "a b", "a+b", "a\tb", "a\nb", "a\u00a0b", "a\u0085b", "a\u2028b", "a\u3000b")
        ),
        good.replace("+61e60577+", "+61e60578+"),
        good.replace("+61e60577+", "+61e6057+"),
        good.replace("+61e60577+", "+061e60577+"),
        good.replace("+61e60577+", "++"),
        good.replace("+61e60577", ""),
        good.replace("/zz", "_zz"),
        good + "=",
        good[:-1],
        ORIGIN,
        "",
    ]
    note = sign_checkpoint(checkpoint(), LOG_KEY)
    assert not any(go.accepts(opening(note, text) for text in bad))
    assert not any(we_open(note, text) for text in bad)


def test_go_opens_our_checkpoints(go: Go) -> None:
    checkpoints = [checkpoint(size) for size in (0, 1, 2, 255, 256, 65_537, 2**53 - 1)]
    opened = go.results(opening(sign_checkpoint(each, LOG_KEY)) for each in checkpoints)
    assert opened == [{"text": str(each), "signers": [ORIGIN], "unverified": []} for each in checkpoints]


def test_we_open_what_go_signs(go: Go) -> None:
    seed = base64.encode(bytes(LOG_KEY))
    [key] = go.results([{"op": "make_key", "name": ORIGIN, "seed": seed}])
    checkpoints = [checkpoint(size) for size in (0, 1, 5, 2**53 - 1)]
    notes = go.results({"op": "sign_note", "skey": key["skey"], "text": str(each)} for each in checkpoints)
    assert [open_checkpoint(note, Verifier.parse(key["vkey"])) for note in notes] == checkpoints
    # Ed25519 signatures are deterministic: Go's note is ours to the byte.
    assert notes == [sign_checkpoint(each, LOG_KEY) for each in checkpoints]


def test_signatures_of_others_are_no_obstacle(go: Go) -> None:
    ours = sign(str(checkpoint()), ORIGIN, LOG_KEY)
    [signature] = ours.signatures
    cosignature = cosign(ours.text, WITNESS.name, WITNESS_KEY, 1_771_147_800)
    other_key = replace(signature, key_id=flip(signature.key_id))
    other_name = replace(signature, name="other.example/log")
    variants = [
        (signature, cosignature),
        (grease(1), signature),
        (grease(1), other_key, grease(2), signature, other_name, cosignature, grease(3)),
        (*map(grease, range(1, MAX_SIGNATURES)), signature),
    ]
    notes = [str(replace(ours, signatures=variant)) for variant in variants]
    assert go.results(map(opening, notes)) == [
        {"text": ours.text, "signers": [ORIGIN], "unverified": [each.name for each in variant if each is not signature]}
        for variant in variants
    ]
    assert [open_checkpoint(note, LOG) for note in notes] == [checkpoint()] * len(notes)
    # Alone they are not enough.
    strangers = [str(replace(ours, signatures=(each,))) for each in (cosignature, grease(1), other_key, other_name)]
    assert not any(go.accepts(map(opening, strangers)))
    assert not any(map(we_open, strangers))
    # Go knows no keys of type 04: to it a cosignature is a stranger's for ever.
    assert go.ask([opening(notes[0], str(WITNESS))]) == [{"result": None, "error": "unknown verifier algorithm"}]


def test_go_verifies_the_message_a_witness_signs(go: Go) -> None:
    """Seen as a note of its own, signed by the same key under type 01."""
    text, time = str(checkpoint()), 1_771_147_800
    cosignature = cosign(text, WITNESS.name, WITNESS_KEY, time)
    assert cosignature.value[:8] == time.to_bytes(8)
    plain = replace(WITNESS, algorithm=ED25519)
    signature = Signature(plain.name, plain.key_id, cosignature.value[8:])
    messages = [f"cosignature/v1\ntime {time + late}\n{text}" for late in (0, 1)]
    assert go.accepts(opening(str(Note(message, (signature,))), str(plain)) for message in messages) == [True, False]


def test_changed_checkpoints_are_refused(go: Go) -> None:
    good = sign(str(checkpoint()), ORIGIN, LOG_KEY)
    [signature] = good.signatures
    changed = [
        replace(good, text=str(replace(checkpoint(), size=6))),
        replace(good, text=str(replace(checkpoint(), size=50))),
        replace(good, text=str(replace(checkpoint(), root=flip(checkpoint().root)))),
        replace(good, text=str(replace(checkpoint(), origin="other.example/log"))),
        replace(good, text=good.text + "extension\n"),
        replace(good, text=good.text + "\n"),
        *(replace(good, signatures=(replace(signature, value=flip(signature.value, bit)),)) for bit in range(512)),
        replace(good, signatures=(replace(signature, value=signature.value[:-1]),)),
        replace(good, signatures=(replace(signature, value=signature.value + bytes(1)),)),
        replace(good, signatures=(replace(signature, value=flip(signature.value)), signature)),
    ]
    verdicts = go.ask(opening(str(note)) for note in [good, *changed])
    refusals = [f"invalid signature for key {ORIGIN}+61e60577"] * len(changed)
    assert [verdict["error"] for verdict in verdicts] == ["", *refusals]
    for note in changed:
        with pytest.raises(NotProved) as refusal:
            open_checkpoint(str(note), LOG)
        assert refusal.value.code == "signature_invalid"


def test_notes_are_parsed_alike(go: Go) -> None:
    note = sign_checkpoint(checkpoint(), LOG_KEY)
    text, line = note.split("\n\n")
    blank_lines = str(sign("one\n\n\ntwo\n\n— three\n\n", ORIGIN, LOG_KEY))
    accepted = [
        note,
        blank_lines,
        note + grease(1).line(),
        str(sign("bücher 登録 \x7f\u0085\u2028\n", ORIGIN, LOG_KEY)),
        note + f"— grease.example/1 {base64.encode(bytes(5))}\n",
    ]
    refused = [
        "",
        "\n",
        "\n\n",
        text,
        f"{text}\n",
        f"{text}\n\n",
        f"{text}\n{line}",
        f"\n{line}",
        line,
        note[:-1],
        note + "\n",
        note + "\n" + line,
        note + "x\n",
        note.replace("—", "-"),
        note.replace("—", "–"),
        note.replace("— ", "—"),
        note.replace("— ", "—  "),
        note.replace("— ", " — "),
        note.replace(" YeYF", "  YeYF"),
        note.replace(" YeYF", "\u00a0YeYF"),
        note.replace("=\n", "= \n"),
        note.replace("=\n", "\n"),
        note.replace("\n", "\r\n"),
        *(
            f"{note}— {name} {base64.encode(bytes(5))}\n"
            for name in ("", "a b", "a+b", "a\u0085b", "a\u2028b", "a\u3000b")
        ),
        *(
            f"{note}— grease.example/1 {value}\n"
            for value in ("", "A", "====", "AAAA", "A_-A", base64.encode(bytes(4)))
        ),
        *(str(sign(f"a{control}b\n", ORIGIN, LOG_KEY)) for control in map(chr, range(32)) if control != "\n"),
    ]
    assert [each for each, yes in zip(accepted, go.accepts(map(opening, accepted)), strict=True) if not yes] == []
    assert [each for each, yes in zip(refused, go.accepts(map(opening, refused)), strict=True) if yes] == []
    assert [each for each in accepted if not we_open(each)] == []
    assert [each for each in refused if we_open(each)] == []


def test_every_small_change_of_a_note_is_judged_alike(go: Go) -> None:
    ours = sign_checkpoint(checkpoint(), LOG_KEY)
    note = ours + grease(1).line()
    others = ["", *"Ab+/=— \n\té"]
    changed = [note[:at] + other + note[at + 1 :] for at in range(len(note)) for other in (*others, note[at] * 2)]
    verdicts = go.accepts(map(opening, changed))
    assert verdicts == [we_open(each) for each in changed]
    # The stranger's signature may become another one; everything before it stands.
    assert sum(verdicts) > 400
    assert all(each.startswith(ours) for each, yes in zip(changed, verdicts, strict=True) if yes)


def test_where_we_are_stricter_than_go(go: Go) -> None:
    note = sign(str(checkpoint()), ORIGIN, LOG_KEY)
    [signature] = note.signatures
    vkey, text = str(LOG), str(note)
    assert text.endswith("c=\n")
    forged = replace(signature, value=flip(signature.value))
    cases = {
        "base64 with unused bits set": (text.replace("c=\n", "d=\n"), vkey, "note_malformed"),
        "a key ID in capitals": (text, vkey.replace("61e60577", "61E60577"), "vkey_malformed"),
        "a bad signature after a good one": (text + forged.line(), vkey, "signature_invalid"),
        "more signatures": (text + grease(1).line() * MAX_SIGNATURES, vkey, "note_malformed"),
        "an empty line as the whole text": (str(sign("\n", ORIGIN, LOG_KEY)), vkey, "note_malformed"),
        "a very long text": (str(sign("a" * MAX_CHARACTERS + "\n", ORIGIN, LOG_KEY)), vkey, "note_malformed"),
    }
    assert all(go.accepts(opening(note_text, vkey_text) for note_text, vkey_text, _ in cases.values()))
    for what, (note_text, vkey_text, code) in cases.items():
        with pytest.raises(StaylogError) as refusal:
            Note.parse(note_text).require(Verifier.parse(vkey_text))
        assert (what, refusal.value.code) == (what, code)


# Trees and proofs


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


def store(leaves: Iterable[bytes]) -> MemoryTiles:
    tiles = MemoryTiles()
    appender = Appender(tiles)
    for leaf in leaves:
        appender.append(leaf)
    tiles.update(appender.take_rows())
    return tiles


@pytest.fixture(scope="module")
def tiles() -> MemoryTiles:
    return store(map(leaf_hash, RECORDS))


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


def review(number: int, at: str) -> Entry:
    commitment = base64.encode(sha256(b"%d" % number).digest())
    return make_entry(
        "review",
        review_id="rev-" + b32encode(number.to_bytes(16)).decode().rstrip("=").lower(),
        host_did=f"did:web:host-{number % 7}.example",
        listing_id="cabin",
        check_in="2026-05-01",
        check_out="2026-05-04",
        ratings={"overall": 4.5, "accuracy": 5, "cleanliness": 4, "communication": 5, "value": 3.5},
        level="guest_verified",
        evidence={"booking": "stay_receipt", "commitment": commitment, "idv_level": None, "issuer": None},
        repeat=False,
        text=None,
        at=at,
    )


def test_a_ledger_is_accepted(go: Go) -> None:
    log = MemoryLog(ORIGIN, LOG_KEY, sha256(b"policy").digest(), "2026-06-01T00:00:00Z")
    for batch in (1, 99, 143, 9):
        at = f"2026-06-01T00:00:0{len(log.published)}Z"
        log.append_batch([review(len(log.entries) + number, at) for number in range(batch)], at)
    records = [entry.data for entry in log.entries]
    sizes = [state.size for state in log.published]
    assert sizes == [2, 4, 104, 248, 258]

    opened = go.results(opening(state.note) for state in log.published)
    checkpoints = [Checkpoint.parse(each["text"]) for each in opened]
    [_, *roots] = go.results([loading(records), *({"op": "tree_hash", "size": size} for size in sizes)])
    assert [str(each) for each in checkpoints] == [
        f"{ORIGIN}\n{size}\n{root}\n" for size, root in zip(sizes, roots, strict=True)
    ]

    claims: list[Claim] = []
    for new in checkpoints:
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


# Worked examples: fixed bytes, from which neither side may drift

EXAMPLE_LOG = "reputation.example/log+61e60577+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
EXAMPLE_WITNESS = "witness.example/w1+aa4a09d1+BOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"
EXAMPLE_LEAVES = [
    "19c3dcba673bded1e803755bee4ab527b085bfce4c09b78c1ba9d75ca4fe5d48",
    "4f4f95a2775a1e02969a32201a3a81d2943b56f23fe0e461b3374dcc32e45fd9",
    "f4e93a17c66f47803f6b7dd4b48141295864956238c13ad04ca930eb7f557a18",
    "e10ec7916c486ec532def2bab43b328462c9a2f82d5c4ecc1059ff392b4c7327",
    "e86b1e90ed27bfc3f2dbc2db49e12cefc503aaa52fb799b2ba1e26868180baf5",
]
EXAMPLE_ROOTS = {
    2: "c70ea5af22c3565a3b0618ab2abfa3b7eeb145b792783c0766ac995bcd3b72b8",
    3: "93ce9ddcfda4977e1cadf299accd1ab145b6ee1e497db4dc8a75eb8acc9a5e0a",
    4: "e774ed35ca3b2396d0a0fabf7330b0ec64bd2bd44df21ca13aedb82dc4250245",
    5: "4d5b57f4c249cd36d673df9e8afed8003cfc64473a63ee6b9c2272cf67ecc949",
}
EXAMPLE_PROOF = """\
c2sp.org/tlog-proof@v1
extra cmV2aWV3LWlkPTI=
index 2
4Q7HkWxIbsUy3vK6tDsyhGLJovgtXE7MEFn/OStMcyc=
xw6lryLDVlo7BhirKr+jt+6xRbeSeDwHZqyZW807crg=
6GsekO0nv8Py28LbSeEs78UDqqUvt5myuh4mhoGAuvU=

reputation.example/log
5
TVtX9MJJzTbWc9+eiv7YADz8ZEc6Y+5rnCJyz2fsyUk=

— reputation.example/log YeYFd7P1WL7j+462EsHy4ElvGNH3eYlwiIs3VQEv5P1WhRs6PTG4BAfDYiyn70xSANoMEHkl3kihtybjCJ7moQx44AY=
— witness.example/w1 \
qkoJ0QAAAABpkZIY2z3Gyg4aXfwbylPKaQy35CfLi0zhb8vL8U5h9POru9FCqI2mYLq9Fuj0YUnwLtxDcHt4Ch9zC/07BpSLuo9oDA==
"""
EXAMPLE_TIME = 1_771_147_800


def test_we_reproduce_the_worked_example(tree: TileTree) -> None:
    assert [str(LOG), str(WITNESS)] == [EXAMPLE_LOG, EXAMPLE_WITNESS]
    assert [leaf_hash(record).hex() for record in RECORDS[:5]] == EXAMPLE_LEAVES
    assert {size: tree.root(size).hex() for size in EXAMPLE_ROOTS} == EXAMPLE_ROOTS
    assert encode_bundle(RECORDS[:2]).hex() == "00087265766965772d3000087265766965772d31"
    note = sign(str(Checkpoint(ORIGIN, 5, tree.root(5))), ORIGIN, LOG_KEY)
    cosignature = cosign(note.text, WITNESS.name, WITNESS_KEY, EXAMPLE_TIME)
    note = replace(note, signatures=(*note.signatures, cosignature))
    assert str(TlogProof(2, tuple(tree.inclusion(2, 5)), str(note), b"review-id=2")) == EXAMPLE_PROOF
    leaves, roots = list(map(bytes.fromhex, EXAMPLE_LEAVES)), {size: tree.root(size) for size in EXAMPLE_ROOTS}
    assert tree.consistency(3, 5) == [leaves[2], leaves[3], roots[2], leaves[4]]


def test_go_accepts_the_worked_example(go: Go) -> None:
    proof = TlogProof.parse(EXAMPLE_PROOF)
    leaves = list(map(bytes.fromhex, EXAMPLE_LEAVES))
    roots = {size: bytes.fromhex(root) for size, root in EXAMPLE_ROOTS.items()}
    text = f"{ORIGIN}\n5\n{base64.encode(roots[5])}\n"
    assert go.results([opening(proof.checkpoint, EXAMPLE_LOG)]) == [
        {"text": text, "signers": [ORIGIN], "unverified": [WITNESS.name]}
    ]
    claims: list[Claim] = [
        Inclusion(leaves[2], 2, 5, proof.path, roots[5]),
        Consistency(3, 5, roots[3], roots[5], (leaves[2], leaves[3], roots[2], leaves[4])),
        Consistency(2, 4, roots[2], roots[4], (root_of(leaves[2:4]),)),
    ]
    go.results(claim.request() for claim in claims)
    assert proof.verify(leaves[2], LOG) == Checkpoint(ORIGIN, 5, roots[5])
    assert cosignatures(Note.parse(proof.checkpoint), [WITNESS]) == [Cosignature(WITNESS, EXAMPLE_TIME)]


def test_both_accept_the_example_of_signed_note(go: Go) -> None:
    vkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
    value = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
    note = f"This is an example message.\n\n— example.com/foo {value}\n"
    assert go.accepts([opening(note, vkey), opening(note.replace("an", "no"), vkey)]) == [True, False]
    assert we_open(note, vkey)
