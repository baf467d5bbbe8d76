"""The log over HTTP: what C2SP clients fetch, and the proofs as JSON."""

from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.canon import base64
from ledger.log.checkpoint import open_checkpoint
from ledger.log.note import Verifier
from ledger.log.openings import Opening
from ledger.log.proofs import verify_consistency, verify_inclusion
from ledger.log.replay import Replay
from ledger.log.tiles import Appender, MemoryTiles, decode_bundle, parse_tile_path, tile_id, tile_resources
from ledger.log.tree import leaf_hash
from tests.api.conftest import Service, run_service

IMMUTABLE = "public, max-age=31536000, immutable"


@pytest.fixture
def one_bundle(tmp_path: Path, database_url: str) -> Iterator[Service]:
    """A log of exactly 256 entries."""
    yield from run_service(tmp_path, database_url, lambda service: service.grow(*([service.world.review] * 253)))


def openings(service: Service, number: int) -> dict[int, Opening]:
    """By index, as a bundle's answer has them."""
    response = service.get(f"/v1/log/openings/{number}")
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "public, max-age=1"
    answer = response.json()
    assert (answer.keys(), answer["start"]) == ({"start", "openings"}, number * 256)
    indices = [each["index"] for each in answer["openings"]]
    assert indices == sorted(set(indices))
    return {each.pop("index"): Opening.parse(each) for each in answer["openings"]}


def test_the_checkpoint_is_a_signed_note(service: Service) -> None:
    response = service.get("/log/checkpoint")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["cache-control"] == "public, max-age=1"
    checkpoint = open_checkpoint(response.text, service.ledger.verifier)
    latest = service.get("/v1/log/checkpoint").json()
    assert latest == {
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": base64.encode(checkpoint.root),
        "at": service.ledger.reader.published.at,
        "checkpoint": response.text,
    }


@pytest.mark.parametrize(
    ("accepts", "compressed"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("*;q=0, gzip", True), ("x-gzip", True),
     ("", False), ("identity", False), ("gzip;q=0", False), ("gzip; q=0.000, *", False), ("br", False)],
)  # fmt: skip
def test_bundles_are_compressed_for_those_who_accept_it(service: Service, accepts: str, compressed: bool) -> None:
    size = service.get("/v1/log/checkpoint").json()["size"]
    path = f"/log/tile/entries/000.p/{size}" if size < 256 else "/log/tile/entries/000"
    plain = service.get(path, **{"Accept-Encoding": "identity"})
    found = service.get(path, **{"Accept-Encoding": accepts})
    assert plain.headers["vary"] == found.headers["vary"] == "Accept-Encoding"
    assert found.headers.get("content-encoding") == ("gzip" if compressed else None)
    assert (int(found.headers["content-length"]) < len(plain.content)) is compressed
    assert found.content == plain.content
    tile = service.get("/log/tile/0/000.p/2", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in tile.headers


def test_tiles_and_bundles_are_those_of_the_signed_tree(service: Service) -> None:
    note = service.get("/log/checkpoint").text
    size = open_checkpoint(note, service.ledger.verifier).size
    resources = {}
    for name in tile_resources(size):
        response = service.get(f"/log/{name}")
        assert response.status_code == 200, name
        assert response.headers["content-type"] == "application/octet-stream"
        assert response.headers["cache-control"] == IMMUTABLE
        resources[name] = response.content
    assert len(resources) > 10
    appender, replay = Appender(MemoryTiles()), Replay()
    for name in (name for name in resources if name.startswith("tile/entries/")):
        appender.extend([replay.add(data).leaf_hash for data in decode_bundle(resources[name])])
    assert appender.root() == open_checkpoint(note, service.ledger.verifier).root
    rows = appender.take_rows()
    for name in (name for name in resources if not name.startswith("tile/entries/")):
        level, index, _ = parse_tile_path(name)
        assert level is not None
        assert resources[name] == rows[tile_id(level, index)]


def test_older_partial_tiles_stay_prefixes(service: Service) -> None:
    full = service.get("/log/tile/0/000").content
    bundle = decode_bundle(service.get("/log/tile/entries/000").content)
    assert (len(full), len(bundle)) == (8192, 256)
    for width in (1, 2, 100, 255):
        assert service.get(f"/log/tile/0/000.p/{width}").content == full[: 32 * width]
        assert decode_bundle(service.get(f"/log/tile/entries/000.p/{width}").content) == bundle[:width]


def test_what_the_log_does_not_have_yet_is_not_found_and_not_cached(service: Service) -> None:
    size = service.ledger.reader.published.size
    last, width = divmod(size, 256)
    for name in (
        f"0/{last:03}",
        f"0/{last:03}.p/{width + 1}",
        f"entries/{last:03}",
        "1/000",
        "2/000.p/1",
        "63/000.p/1",
    ):
        response = service.get(f"/log/tile/{name}")
        assert response.status_code == 404, name
        assert response.headers["cache-control"] == "no-store"
    assert service.get(f"/log/tile/0/{last:03}.p/{width}").status_code == 200


@pytest.mark.parametrize(
    "target",
    [
        "/log/tile/0/0",
        "/log/tile/0/x000/000",
        "/log/tile/00/000",
        "/log/tile/64/000",
        "/log/tile/0/000.p/0",
        "/log/tile/0/000.p/256",
        "/log/tile/0/000.p/",
        "/log/tile/0/000/",
        "/log/tile//0/000",
        "/log//tile/0/000",
        "/log/tile/0/%C3%A9",
        "/log/tile/0/%FF",
        "/log/tile/0/000%00",
        "/log/tile/../tile/0/000",
    ],
)
def test_a_tile_has_one_name(service: Service, target: str) -> None:
    status, headers, body = service.raw(target)
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert b'"code":"tile_path_invalid"' in body


def test_an_escaped_slash_is_a_slash(service: Service) -> None:
    """Clients made from the OpenAPI document escape it: the path is one parameter there."""
    assert service.raw("/log/tile/0%2F000")[2] == service.get("/log/tile/0/000").content


def test_checkpoints_are_listed_page_by_page(service: Service) -> None:
    sizes: list[int] = []
    before: str | None = ""
    while before is not None:
        page = service.get(f"/v1/log/checkpoints?count=5{before}").json()
        for listed in page["checkpoints"]:
            assert open_checkpoint(listed["checkpoint"], service.ledger.verifier).size == listed["size"]
            sizes.append(listed["size"])
        before = None if page["next"] is None else f"&before={page['next']}"
    assert sizes == [state.size for state in reversed(service.world.log.published)]
    assert service.get("/v1/log/checkpoints").json()["checkpoints"][0]["size"] == sizes[0]
    assert service.get("/v1/log/checkpoints?before=2").json() == {"checkpoints": [], "next": None}


def test_inclusion_is_proved_by_index_and_by_review(service: Service) -> None:
    entries = service.world.log.entries
    review = next(index for index, entry in enumerate(entries) if entry.type == "review")
    older = service.world.log.published[3].size
    for query, index in (
        ("index=0", 0),
        (f"index={len(entries) - 1}", len(entries) - 1),
        (f"index={review}&size={older}", review),
        (f"review_id={entries[review].members['review_id']}", review),
    ):
        proof = service.get(f"/v1/log/inclusion?{query}").json()
        checkpoint = open_checkpoint(proof["checkpoint"], service.ledger.verifier)
        assert (proof["index"], proof["size"]) == (index, checkpoint.size)
        leaf = base64.decode(proof["leaf_hash"])
        assert leaf == leaf_hash(service.get(f"/v1/log/entries?start={index}&count=1").json()["entries"][0].encode())
        path = [base64.decode(node) for node in proof["proof"]]
        verify_inclusion(leaf, index, checkpoint.size, path, checkpoint.root)


def test_consistency_is_proved_between_any_sizes(service: Service) -> None:
    tree, size = service.ledger.reader.tree, service.ledger.reader.published.size
    for first, second in ((1, 1), (1, size), (2, 3), (255, 257), (256, 512), (size, size)):
        response = service.get(f"/v1/log/consistency?first={first}&second={second}")
        assert response.headers["cache-control"] == IMMUTABLE
        answer = response.json()
        assert (answer["first"], answer["second"]) == (first, second)
        proof = [base64.decode(node) for node in answer["proof"]]
        verify_consistency(first, second, tree.root(first), tree.root(second), proof)


def test_entries_are_listed_and_a_follower_waits_for_more(service: Service) -> None:
    size = service.ledger.reader.published.size
    listed: list[str] = []
    while part := service.get(f"/v1/log/entries?start={len(listed)}&count=1000").json()["entries"]:
        listed += part
    assert len(listed) == size
    assert [leaf_hash(entry.encode()) for entry in listed[:2]] == [
        leaf_hash(entry) for entry in decode_bundle(service.get("/log/tile/entries/000.p/2").content)
    ]
    assert len(service.get("/v1/log/entries").json()["entries"]) == 100
    assert service.get(f"/v1/log/entries?start={size}").json() == {"start": size, "entries": []}
    assert service.get("/v1/log/entries?start=9007199254740991").json()["entries"] == []


def test_openings_are_all_texts_that_were_not_redacted(service: Service) -> None:
    log = service.world.log
    bundles = range((len(log.entries) + 255) // 256)
    served = {index: opening for number in bundles for index, opening in openings(service, number).items()}
    assert served == log.openings
    for index, opening in served.items():
        opening.require(log.entries[index].members["text"])
    committed = {index for index, entry in enumerate(log.entries) if entry.members.get("text")}
    redacted = {entry.members["review"] for entry in log.entries if entry.members.get("part") == "text"}
    assert redacted
    assert redacted <= committed - served.keys()
    assert {log.entries[index].members.get("level") for index in served} >= {"unconfirmed", "guest_verified", None}


def test_openings_end_where_the_published_log_does(one_bundle: Service) -> None:
    service, world = one_bundle, one_bundle.world
    assert service.ledger.reader.published.size == 256
    assert openings(service, 0) == world.log.openings
    response = service.get("/v1/log/openings/1")
    assert (response.status_code, response.headers["cache-control"]) == (404, "no-store")
    assert (response.json()["code"], response.json()["detail"]) == (
        "not_found",
        "the log has no entries of bundle 1 yet",
    )
    service.grow(lambda: world.review(text=None), lambda: world.review(text=world.commit(world.next_index, "New.")))
    assert openings(service, 1) == {258: world.log.openings[258]}
    assert service.get("/v1/log/openings/2").status_code == 404


def test_a_redaction_withdraws_an_opening(one_bundle: Service) -> None:
    before = openings(one_bundle, 0)
    one_bundle.grow(one_bundle.world.redaction)
    [gone] = before.items() - openings(one_bundle, 0).items()
    assert gone[0] == one_bundle.world.log.entries[256].members["review"]
    answer = one_bundle.get("/v1/log/openings/0").text
    assert base64.encode(gone[1].salt) not in answer


@pytest.mark.parametrize("number", ["6", "35184372088832", "9007199254740991"])
def test_a_bundle_that_the_log_does_not_have_is_not_found(service: Service, number: str) -> None:
    response = service.get(f"/v1/log/openings/{number}")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "number",
    [
        *("00", "01", "000", "x001", "-1", "+1", "-0", "1.0", "1e2", "0x1", "1_0", "null", "0.json"),
        *("9007199254740992", "9999999999999999999", "18446744073709551616", "1" * 5000),
        *("%201", "1%0A", "1%20", "%00", "%FF", "%C2%B2", "%D9%A3"),
    ],
)
def test_a_bundle_has_one_number(service: Service, number: str) -> None:
    status, headers, body = service.raw(f"/v1/log/openings/{number}")
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert b'"code":"parameter_invalid"' in body
    assert b'"field":"number","message":"expected a whole number from 0 to 9007199254740991, ' in body


def test_the_key_is_the_same_in_every_spelling(service: Service) -> None:
    key = service.get("/v1/log/key").json()
    assert key.keys() == {"origin", "vkey", "jwk", "pem"}
    verifier = Verifier.parse(key["vkey"])
    assert key["origin"] == verifier.name == "ledger.example/log"
    assert key["jwk"] == {"kty": "OKP", "crv": "Ed25519", "x": key["jwk"]["x"]}
    assert urlsafe_b64decode(key["jwk"]["x"] + "=") == verifier.public_key
    begin, middle, end, rest = key["pem"].split("\n")
    assert (begin, end, rest) == ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----", "")
    assert base64.decode(middle) == bytes.fromhex("302a300506032b6570032100") + verifier.public_key


def test_a_new_checkpoint_is_served_at_once(fresh: Service) -> None:
    old = fresh.get("/v1/log/checkpoint").json()["size"]
    fresh.grow(fresh.world.review)
    assert fresh.get("/v1/log/checkpoint").json()["size"] == old + 2
    assert f"\n{old + 2}\n" in fresh.get("/log/checkpoint").text
