"""A service that takes reviews, on a socket: real keys, real signatures, and a clock that tests set."""

import json
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from nacl.signing import SigningKey
from prometheus_client.parser import text_string_to_metric_families

from api.app import create_app
from api.codes import CODES
from api.server import Server, config
from ledger.canon import base58, multikey
from ledger.folder import Ledger
from ledger.identity.issuers import trust
from ledger.log.drafts import Draft
from ledger.log.sequencer import Integrated
from tests.identities import IDV, ISSUER, Speaker
from tests.network import Neighbourhood
from tests.reviewing import DOMAIN, encoded, response, review
from tests.running import Running
from tests.waiting import until

JSON = "application/json"


class Person(Speaker):
    """A did:key by a name: there are more people in these tests than small numbers."""

    def __init__(self, name: str) -> None:
        self.key = SigningKey(sha256(name.encode()).digest())
        self.public = bytes(self.key.verify_key)
        self.multikey = multikey.encode(self.public)
        self.did = f"did:key:{self.multikey}"
        self.method = f"{self.did}#{self.multikey}"


class Site:
    """A running service at `DOMAIN`, which trusts the issuer of `tests.identities`; `outside` is whom it can ask."""

    def __init__(self, running: Running, client: httpx.Client, port: int, outside: Neighbourhood) -> None:
        self.running = running
        self.outside = outside
        self.client = client
        self.port = port

    @property
    def ledger(self) -> Ledger:
        return self.running.ledger

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def post(self, path: str, body: Any, media_type: str | None = JSON, **headers: str) -> httpx.Response:
        """A body as it is, or what it is as JSON."""
        data = body if isinstance(body, bytes) else encoded(body)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            path, content=data, headers=given | ({"content-type": media_type} if media_type else {})
        )

    def submit(self, body: Any, **options: Any) -> httpx.Response:
        return self.post("/v1/reviews", body, **options)

    def respond(self, body: Any, **options: Any) -> httpx.Response:
        return self.post(f"/v1/reviews/{body['review_id']}/response", body, **options)

    def review(self, *about: Any, **changes: Any) -> dict[str, Any]:
        """The receipt of a review that is made now, and accepted."""
        answer = self.submit(review(*about, **{"now": self.running.clock(), **changes}))
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def response(self, review_id: str, *about: Any, **changes: Any) -> dict[str, Any]:
        answer = self.respond(response(review_id, *about, **{"now": self.running.clock(), **changes}))
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def add(self, draft: Draft) -> Integrated:
        """An entry that comes in by another way than the network."""
        return self.ledger.sequencer.submit(draft).result(timeout=10)

    def reputation(self, host: Speaker, query: str = "") -> Any:
        answer = self.get(f"/v1/hosts/{host.did}/reputation{'?' if query else ''}{query}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def size(self) -> int:
        return int(self.get("/v1/log/checkpoint").json()["size"])

    def refusals(self) -> dict[str, float]:
        """How often each code was given, as /metrics has it."""
        families = {family.name: family for family in text_string_to_metric_families(self.get("/metrics").text)}
        samples = families["staylog_refusals"].samples if "staylog_refusals" in families else []
        return {sample.labels["code"]: sample.value for sample in samples if sample.name.endswith("_total")}

    def statements_key(self) -> tuple[str, bytes]:
        """The name and the public key by which the service makes statements, from its DID document."""
        document = self.get("/.well-known/did.json").json()
        [name] = document["assertionMethod"]
        [method] = [each for each in document["verificationMethod"] if each["id"] == name]
        decoded = base58.decode(method["publicKeyMultibase"].removeprefix("z"))
        assert decoded[:2] == b"\xed\x01"
        return name, decoded[2:]


@contextmanager
def serving(
    folder: Path,
    database_url: str | None = None,
    prepare: Callable[[Running], object] = lambda _: None,
    ledger_url: str | None = None,
    **options: Any,
) -> Iterator[Site]:
    """Without limits by address, unless told: all tests come from one. `prepare` is done to its ledger before;
    one with a `ledger_url` is no ledger of this machine alone."""
    outside = Neighbourhood(folder)
    url = database_url or f"sqlite:///{folder}/ledger.db"
    running = Running(folder / "data", url, outside.development, ledger_url)
    draft = trust(running.ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
    assert draft is not None
    running.add(draft)
    prepare(running)
    app = create_app(running.ledger, DOMAIN, **{"limits": False, **options})
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(config(app, "127.0.0.1", 0))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started, 20)
    port = listener.getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            yield Site(running, client, port, outside)
    finally:
        server.should_exit = True
        thread.join()
        outside.close()


def problem(answer: httpx.Response, code: str) -> dict[str, Any]:
    """The body of a refusal (RFC 9457), once it has the form of one and this code."""
    body: dict[str, Any] = answer.json()
    assert body["code"] == code, body
    assert answer.status_code == body["status"] == CODES[code].status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert body.keys() - {"refusal"} == {"type", "title", "status", "detail", "code", "errors"}
    assert body["type"] == f"{DOMAIN}/problems/{code}"
    assert body["title"] == CODES[code].title
    assert body["detail"]
    for error in body["errors"]:
        assert error.keys() == {"field", "message"}
        assert error["message"]
    return body


def verify_signed(document: dict[str, Any], method: str, key: bytes) -> dict[str, Any]:
    """What a Data Integrity proof (eddsa-jcs-2022) by this key says, with nothing of Staylog's own verification."""
    said = {name: value for name, value in document.items() if name != "proof"}
    options = {name: value for name, value in document["proof"].items() if name != "proofValue"}
    assert (options["type"], options["cryptosuite"]) == ("DataIntegrityProof", "eddsa-jcs-2022")
    assert (options["proofPurpose"], options["verificationMethod"]) == ("assertionMethod", method)
    signature = base58.decode(document["proof"]["proofValue"].removeprefix("z"))
    hashes = sha256(rfc8785.dumps(options)).digest() + sha256(rfc8785.dumps(said)).digest()
    Ed25519PublicKey.from_public_bytes(key).verify(signature, hashes)
    return said


def submission_sha256(body: bytes | dict[str, Any]) -> str:
    parsed = json.loads(body) if isinstance(body, bytes) else body
    return sha256(rfc8785.dumps(parsed)).hexdigest()


def published(get: Callable[[str], httpx.Response], hosts: Iterable[str], reviews: Iterable[str]) -> dict[str, bytes]:
    """Everything that the service shows to anybody, by its address: answers, entries, tiles, keys, counters."""
    size = get("/v1/log/checkpoint").json()["size"]
    paths = ["/", "/health", "/metrics", "/v1/issuers", "/v1/policy", "/.well-known/did.json", "/v1/log/key"]
    paths += ["/log/checkpoint", "/v1/log/checkpoint", "/v1/log/checkpoints?count=100", "/v1/log/entries?count=1000"]
    paths += [f"/v1/log/consistency?first=2&second={size}", f"/v1/log/inclusion?index={size - 1}"]
    paths += [f"/v1/log/openings/{number}" for number in range((size + 255) // 256)]
    for host in hosts:
        about = f"/v1/hosts/{host.replace('%', '%25')}/reputation"
        paths += [f"{about}{query}" for query in ("", "?limit=100&text=all")]
        paths += [f"{about}?proof={proof}&text=all" for proof in ("full", "aggregate", "page")]
    for review_id in reviews:
        paths += [f"/v1/reviews/{review_id}?text=all", f"/v1/log/inclusion?review_id={review_id}"]
    levels: list[tuple[str, int]] = [("entries", size)]
    while size:
        levels.append((str(len(levels) - 1), size))
        size >>= 8
    for level, width in levels:
        whole, rest = divmod(width, 256)
        paths += [f"/log/tile/{level}/{number:03}" for number in range(whole)]
        paths += [f"/log/tile/{level}/{whole:03}.p/{rest}"] if rest else []
    answers = {path: get(path) for path in paths}
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code != 200} == {}
    return {path: answer.content for path, answer in answers.items()}
