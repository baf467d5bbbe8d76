"""The log itself: checkpoints, tiles and bundles as c2sp.org/tlog-tiles names them, and proofs as JSON for the rest."""

import gzip
from base64 import urlsafe_b64encode
from typing import Annotated
from urllib.parse import unquote_to_bytes

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from api.caching import IMMUTABLE, MINUTES, SECOND, accepts_gzip
from api.openapi import responses
from api.parameters import REVIEW_ID, FieldError, InvalidParameters, Size, whole_number
from api.shapes import (
    Checkpoints,
    Consistency,
    Entries,
    EntryOpening,
    Inclusion,
    Jwk,
    LatestCheckpoint,
    ListedCheckpoint,
    LogKey,
    Openings,
)
from ledger.canon import base64
from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadTilePath, NotFound, NotProved, NotStored
from ledger.folder import Ledger
from ledger.log.proofs import verify_inclusion
from ledger.log.reader import Reader
from ledger.log.tiles import WIDTH, parse_tile_path
from ledger.log.tree import leaf_hash
from ledger.store.rows import Published

MAX_CHECKPOINTS = 100
MAX_ENTRIES = 1000
# A SubjectPublicKeyInfo of an Ed25519 key is these bytes and the key (RFC 8410).
_SPKI = bytes.fromhex("302a300506032b6570032100")
_TILE_PATH = r"^(entries|[0-9]|[1-5][0-9]|6[0-3])/(x[0-9]{3}/)*[0-9]{3}(\.p/[1-9][0-9]{0,2})?$"

TilePath = Annotated[
    str,
    PathParameter(
        schema_extra={"pattern": _TILE_PATH},
        description="`<level>/<index>[.p/<width>]`, or `entries/<index>[.p/<width>]` for a bundle of entries.",
    ),
]
BundleNumber = Annotated[
    str,
    PathParameter(
        schema_extra={"type": "integer", "minimum": 0, "maximum": MAX_INTEGER},
        description="Which bundle: 0 has the first 256 entries, 1 the next 256.",
    ),
]
Number = Annotated[
    int | None,
    # Litestar leaves a minimum of 0 out of the document.
    QueryParameter(ge=0, le=MAX_INTEGER, schema_extra={"minimum": 0}, description="The entry's index, from 0."),
]
Named = Annotated[
    str | None,
    QueryParameter(pattern=REVIEW_ID, description="The id of a review, in place of its index."),
]
Before = Annotated[
    int | None,
    QueryParameter(ge=1, le=MAX_INTEGER, description="List checkpoints smaller than this; by default the newest."),
]
TreeSize = Annotated[int, QueryParameter(ge=1, le=MAX_INTEGER, description="A number of entries, up to the newest.")]


@get(
    "/log/checkpoint",
    media_type="text/plain",
    response_headers={"Cache-Control": SECOND},
    responses=responses(),
    sync_to_thread=False,
    tags=["log"],
)
def checkpoint_note(ledger: NamedDependency[Ledger]) -> str:
    """The newest checkpoint, a signed note."""
    return ledger.reader.published.note


@get(
    "/log/tile/{path:path}",
    media_type="application/octet-stream",
    response_headers={"Cache-Control": IMMUTABLE},
    responses=responses("tile_path_invalid", "not_found", body=bytes, media_type="application/octet-stream"),
    sync_to_thread=True,
    tags=["log"],
)
def tile(
    request: Request[None, None, State],
    ledger: NamedDependency[Ledger],
    path: TilePath,  # noqa: ARG001
) -> Response[bytes]:
    """A tile of hashes or a bundle of entries. A bundle is compressed for those who accept gzip."""
    # The router would forgive doubled slashes; a second name for an immutable resource helps nobody.
    raw = request.scope["raw_path"].partition(b"?")[0]
    try:
        name = unquote_to_bytes(raw).decode("ascii").removeprefix("/log/")
    except UnicodeDecodeError:
        raise BadTilePath("a tile path is ASCII") from None
    level, index, width = parse_tile_path(name)
    if level is not None:
        return Response(ledger.reader.tile(level, index, width))
    bundle, headers = ledger.reader.bundle(index, width), {"Vary": "Accept-Encoding"}
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        # Without a time in it, so that the same bundle always has the same bytes.
        return Response(gzip.compress(bundle, mtime=0), headers={**headers, "Content-Encoding": "gzip"})
    return Response(bundle, headers=headers)


@get(
    "/v1/log/checkpoint",
    response_headers={"Cache-Control": SECOND},
    responses=responses(),
    sync_to_thread=False,
    tags=["log"],
)
def latest_checkpoint(ledger: NamedDependency[Ledger]) -> LatestCheckpoint:
    """The newest checkpoint with its members spelled out."""
    newest = ledger.reader.published
    return LatestCheckpoint(ledger.origin, newest.size, base64.encode(newest.root), newest.at, newest.note)


@get(
    "/v1/log/checkpoints",
    response_headers={"Cache-Control": SECOND},
    responses=responses(),
    sync_to_thread=True,
    tags=["log"],
)
def list_checkpoints(
    ledger: NamedDependency[Ledger],
    before: Before = None,
    count: Annotated[int, QueryParameter(ge=1, le=MAX_CHECKPOINTS, description="How many.")] = 20,
) -> Checkpoints:
    """Every checkpoint that was ever signed, the largest first."""
    found = ledger.reader.checkpoints(before, count + 1)
    listed = [ListedCheckpoint(published.size, published.note) for published in found[:count]]
    return Checkpoints(listed, listed[-1].size if len(found) > count else None)


@get(
    "/v1/log/inclusion",
    response_headers={"Cache-Control": SECOND},
    responses=responses("unknown_size", "index_out_of_range", "review_not_found"),
    sync_to_thread=True,
    tags=["log"],
)
def prove_inclusion(
    ledger: NamedDependency[Ledger], index: Number = None, review_id: Named = None, size: Size = None
) -> Inclusion:
    """Proof that an entry is in the tree of a checkpoint. Name it by exactly one of `index` and `review_id`."""
    state = ledger.reader.published_at(size)
    if index is not None and review_id is None:
        if index >= state.size:
            raise NotFound("index_out_of_range", f"a tree of {state.size} entries has none with the index {index}")
    elif index is None and review_id is not None:
        index = ledger.reader.review(review_id, state.size)[0].index
    else:
        raise InvalidParameters(FieldError("index", "give exactly one of index and review_id"))
    leaf = leaf_hash(ledger.reader.entries(index, index + 1)[0])
    path = inclusion_path(ledger.reader, leaf, index, state)
    return Inclusion(index, state.size, base64.encode(leaf), [base64.encode(node) for node in path], state.note)


def inclusion_path(reader: Reader, leaf: bytes, index: int, state: Published) -> list[bytes]:
    """The path from `leaf` to the signed root, tried out before it is handed on: damage is ours to find."""
    path = reader.tree.inclusion(index, state.size)
    try:
        verify_inclusion(leaf, index, state.size, path, state.root)
    except NotProved as error:
        raise NotStored(f"entry {index} or its path is not what checkpoint {state.size} signs: {error}") from error
    return path


@get(
    "/v1/log/consistency",
    response_headers={"Cache-Control": IMMUTABLE},
    responses=responses("unknown_size"),
    sync_to_thread=True,
    tags=["log"],
)
def prove_consistency(ledger: NamedDependency[Ledger], first: TreeSize, second: TreeSize) -> Consistency:
    """Proof that the tree of `second` entries extends the one of `first`: nothing was changed or removed."""
    if first > second:
        raise InvalidParameters(FieldError("first", "must not be greater than second"))
    if second > (newest := ledger.reader.published.size):
        raise NotFound("unknown_size", f"the newest published tree has {newest} entries, not {second}")
    proof = [base64.encode(node) for node in ledger.reader.tree.consistency(first, second)]
    return Consistency(first, second, proof)


@get(
    "/v1/log/entries",
    response_headers={"Cache-Control": SECOND},
    responses=responses(),
    sync_to_thread=True,
    tags=["log"],
)
def list_entries(
    ledger: NamedDependency[Ledger],
    start: Annotated[int, QueryParameter(ge=0, le=MAX_INTEGER, description="The first index.")] = 0,
    count: Annotated[int, QueryParameter(ge=1, le=MAX_ENTRIES, description="How many at most.")] = 100,
) -> Entries:
    """Published entries from `start`. A follower that is ahead gets an empty list and asks again later."""
    return Entries(start, [entry.decode() for entry in ledger.reader.entries(start, start + count)])


@get(
    "/v1/log/openings/{number:str}",
    response_headers={"Cache-Control": SECOND},
    responses=responses("not_found"),
    sync_to_thread=True,
    tags=["log"],
)
def list_openings(ledger: NamedDependency[Ledger], number: BundleNumber) -> Openings:
    """The texts of a bundle's entries as of now, with the salts by which they open the commitments in the entries: for
    auditors and mirrors, who have the entries from `/log/tile/entries/`. All texts are here, those of unconfirmed
    reviews too, but for those that were redacted. All are untrusted input."""
    start = whole_number("number", number) * WIDTH
    if start >= ledger.reader.published.size:
        raise NotFound("not_found", f"the log has no entries of bundle {number} yet")
    found = ledger.reader.openings(start, start + WIDTH)
    return Openings(
        start, [EntryOpening(index, opening.text, base64.encode(opening.salt)) for index, opening in found.items()]
    )


@get(
    "/v1/log/key",
    response_headers={"Cache-Control": MINUTES},
    responses=responses(),
    sync_to_thread=False,
    tags=["log"],
)
def log_key(ledger: NamedDependency[Ledger]) -> LogKey:
    """The public key that signs checkpoints."""
    key = ledger.verifier.public_key
    x = urlsafe_b64encode(key).rstrip(b"=").decode()
    pem = f"-----BEGIN PUBLIC KEY-----\n{base64.encode(_SPKI + key)}\n-----END PUBLIC KEY-----\n"
    return LogKey(ledger.origin, str(ledger.verifier), Jwk("OKP", "Ed25519", x), pem)


HANDLERS = [
    checkpoint_note,
    tile,
    latest_checkpoint,
    list_checkpoints,
    prove_inclusion,
    prove_consistency,
    list_entries,
    list_openings,
    log_key,
]
