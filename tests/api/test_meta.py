"""What the service says about itself, and the document that describes all of it."""

import json
import re
from hashlib import sha256
from typing import Any

import pytest
from nacl.signing import SigningKey
from prometheus_client.parser import text_string_to_metric_families

import schemas
from ledger.canon import base64, did, jcs, multikey
from ledger.errors import Halted
from ledger.identity.issuers import trust
from tests.api.conftest import Service

PAGES = ("/", "/schema", "/problems", "/problems/busy")
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


# What takes a statement.
TAKING = {
    "/v1/reviews": ["application/json"],
    "/v1/reviews/{review_id}/response": ["application/json"],
    "/v1/reviews/{review_id}/evidence": ["application/json"],
    "/v1/reviews/cross-platform": ["multipart/form-data"],
    "/v1/bookings": ["application/json"],
    "/v1/feedback": ["application/json"],
}


def document(service: Service) -> dict[str, Any]:
    response = service.get("/schema/openapi.json")
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = response.json()
    return found


def test_health_tells_size_and_time(service: Service) -> None:
    newest = service.ledger.reader.published
    response = service.get("/health")
    assert response.headers["cache-control"] == "no-store"
    assert response.json() == {
        "status": "ok",
        "size": newest.size,
        "origin": "ledger.example/log",
        "published_at": newest.at,
        "log_time_ahead": 0,
    }


def test_health_tells_why_the_log_does_not_sign(fresh: Service) -> None:
    fresh.ledger.sequencer.halted = Halted("log_behind", "an old backup")
    response = fresh.get("/health")
    assert (response.status_code, response.headers["retry-after"]) == (503, "300")
    assert response.json()["code"] == "log_behind"
    assert fresh.get("/log/checkpoint").status_code == 200


def test_metrics_are_by_route_and_not_by_path(service: Service) -> None:
    for number in range(3):
        service.get(f"/v1/hosts/did:web:h{number}.example/reputation")
        service.get(f"/nope/{number}")
    response = service.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert response.headers["content-type"].count("charset") == 1
    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    routes = {sample.labels["route"] for sample in families["staylog_http_requests"].samples}
    assert {"/v1/hosts/{did}/reputation", "unrouted"} <= routes
    assert not any("h1.example" in route or "nope" in route for route in routes)
    assert {"staylog_refusals", "staylog_http_request_seconds", "staylog_published_size"} <= families.keys()


def test_the_service_is_a_did(service: Service) -> None:
    found = service.get("/.well-known/did.json").json()
    assert found["id"] == did.check("did:web:ledger.example")
    keys = {method["id"]: method for method in found["verificationMethod"]}
    assert keys.keys() == {f"{found['id']}#log", f"{found['id']}#statements"}
    for name, key in (
        ("log", service.ledger.verifier.public_key),
        ("statements", bytes(service.ledger.keys.statements.verify_key)),
    ):
        method = keys[f"{found['id']}#{name}"]
        assert method["publicKeyMultibase"] == multikey.encode(key)
        assert (method["type"], method["controller"]) == ("Multikey", found["id"])
    assert found["assertionMethod"] == [f"{found['id']}#statements"]


def test_the_policy_is_the_one_in_the_log(service: Service) -> None:
    genesis = service.get("/v1/log/entries?start=0&count=1").json()["entries"][0]
    hashed = base64.encode(sha256(service.get("/v1/policy").content).digest())
    assert f'"policy":"{hashed}"' in genesis


def test_the_schemas_are_served_where_their_references_lead(service: Service) -> None:
    assert service.get("/schemas").json() == {
        "schemas": [f"/schemas/{name}" for name in schemas.NAMES],
        "contexts": ["/contexts/openstr.v1.jsonld"],
    }
    for name in schemas.NAMES:
        response = service.get(f"/schemas/{name}")
        assert response.headers["content-type"] == "application/schema+json"
        assert response.json() == schemas.load(name)
        assert response.json()["$id"] == f"/schemas/{name}"


def test_the_context_is_served(service: Service) -> None:
    response = service.get("/contexts/openstr.v1.jsonld")
    assert response.headers["content-type"] == "application/ld+json"
    assert response.json() == schemas.load_context("openstr.v1.jsonld")


def test_issuers_are_listed_with_the_keys_that_their_entries_pin(fresh: Service) -> None:
    assert fresh.get("/v1/issuers").json() == {"issuers": []}
    keys = sorted(multikey.encode(bytes(SigningKey(bytes([seed] * 32)).verify_key)) for seed in (1, 2))
    draft = trust(fresh.ledger.issuers(), "guest", "https://idv.example", reversed(keys), "identity_verified")
    assert draft is not None
    [added] = fresh.ledger.sequencer.append([draft])
    [listed] = fresh.get("/v1/issuers").json()["issuers"]
    assert listed == {
        "role": "guest",
        "issuer": "https://idv.example",
        "status": "trusted",
        "keys": keys,
        "max_idv_level": "identity_verified",
        "since": None,
        "index": added.index,
        "at": added.entry.at,
    }
    entry = json.loads(fresh.get(f"/v1/log/entries?start={added.index}&count=1").json()["entries"][0])
    assert entry["keys"] == base64.encode(sha256(jcs.dumps(listed["keys"])).digest())


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_plain_and_whole(service: Service, path: str) -> None:
    response = service.get(path, accept=BROWSER)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "<script" not in response.text
    assert not re.search(r'(?:src|href)="(?:https?:)?//', response.text)
    for target in set(re.findall(r'href="(/[^"]*)"', response.text)):
        assert service.get(target).status_code == 200, target
    for element in ("main", "h1", "dl", "p", "html", "body"):
        assert response.text.count(f"<{element}") == response.text.count(f"</{element}>") or element == "p"


def test_every_operation_is_documented(service: Service) -> None:
    paths = document(service)["paths"]
    assert {
        "/log/checkpoint",
        "/log/tile/{path}",
        "/v1/log/checkpoint",
        "/v1/log/checkpoints",
        "/v1/log/inclusion",
        "/v1/log/consistency",
        "/v1/log/entries",
        "/v1/log/openings/{number}",
        "/v1/log/key",
        "/v1/log/statistics",
        "/v1/log/witnesses",
        "/v1/hosts/{did}/reputation",
        "/v1/hosts/{did}/events",
        "/v1/issuers/{id}/activity",
        "/v1/reviews",
        "/v1/reviews/{review_id}",
        "/v1/reviews/{review_id}/response",
        "/v1/reviews/{review_id}/evidence",
        "/v1/reviews/cross-platform",
        "/v1/bookings",
        "/v1/submissions/{submission_id}",
        "/v1/feedback",
        "/v1/policy",
        "/.well-known/did.json",
        "/health",
        "/schemas",
        "/schemas/{name}",
        "/contexts/{name}",
        "/v1/issuers",
        "/problems",
        "/problems/{name}",
    } == paths.keys()
    for path, item in paths.items():
        [(method, operation)] = item.items()
        taken = path in TAKING
        assert (method, "requestBody" in operation) == (("post", True) if taken else ("get", False)), path
        assert operation["description"]
        if taken:
            assert list(operation["requestBody"]["content"]) == TAKING[path]
        for code in ("busy", "storage_unavailable"):
            assert code in operation["responses"]["503"]["description"], path
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert answer["content"].keys() == {"application/problem+json"}, (path, status)
            elif status == "200":
                assert answer["content"], path


def test_bodies_are_documented_as_what_they_are(service: Service) -> None:
    """The published schemas, each statement by its name; the one that has a document beside it, in two parts."""
    found = document(service)
    bodies = {path: found["paths"][path]["post"]["requestBody"] for path in TAKING}
    assert all(body["required"] for body in bodies.values())
    either = bodies["/v1/bookings"]["content"]["application/json"]["schema"]["oneOf"]
    assert [kind["$ref"].rpartition(".")[2] for kind in either] == ["BookingNotice", "BookingClaim"]
    [parts] = bodies["/v1/reviews/cross-platform"]["content"].values()
    assert parts["schema"]["required"] == ["attestation", "document"]
    assert parts["schema"]["additionalProperties"] is False
    assert parts["schema"]["properties"]["attestation"]["$ref"].endswith(".CrossPlatformReview")
    assert parts["schema"]["properties"]["document"] == {"type": "string", "format": "binary"}
    statements = schemas.load("statements.v1.json")["$defs"]
    for name in ("EvidenceSupplement", "FeedbackRequest", "CrossPlatformReview", "BookingClaim"):
        described = found["components"]["schemas"][f"statements.{name}"]
        assert described["required"] == statements[name]["required"]


def test_what_may_wait_is_documented(service: Service) -> None:
    paths = document(service)["paths"]
    waiting = {path for path, item in paths.items() if "202" in next(iter(item.values()))["responses"]}
    assert waiting == {"/v1/reviews", "/v1/bookings"}
    created = {path for path, item in paths.items() if "201" in next(iter(item.values()))["responses"]}
    assert created == TAKING.keys() - {"/v1/feedback"}


def test_parameters_are_documented_with_their_ranges(service: Service) -> None:
    paths = document(service)["paths"]
    for item in paths.values():
        [operation] = item.values()
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            assert "oneOf" not in schema
            if schema["type"] == "integer":
                assert schema["minimum"] in (0, 1)
                assert schema["maximum"] >= 100
            assert parameter["description"], parameter
    reputation = {
        parameter["name"]: parameter for parameter in paths["/v1/hosts/{did}/reputation"]["get"]["parameters"]
    }
    assert list(reputation) == ["did", "proof", "size", "from", "count", "limit", "cursor", "text"]
    assert reputation["proof"]["schema"]["enum"] == ["none", "full", "aggregate", "page"]


def test_references_in_the_document_resolve(service: Service) -> None:
    text = service.get("/schema/openapi.json").text
    components = document(service)["components"]["schemas"]
    references = set(re.findall(r'"\$ref":"([^"]*)"', text))
    assert references
    assert {reference.removeprefix("#/components/schemas/") for reference in references} <= components.keys()
