"""The bodies that operations take, in the OpenAPI document: the published JSON Schemas, which are what is enforced."""

from typing import Any

import schemas

# By operation, the definitions of which its body is one in statements.v1.json.
BODIES = {
    "submit_review": ["ReviewSubmission"],
    "submit_response": ["HostResponse"],
    "submit_evidence": ["EvidenceSupplement"],
    "submit_booking": ["BookingNotice", "BookingClaim"],
    "collect_feedback": ["FeedbackRequest"],
}
# The one that has a document beside the statement.
IN_PARTS = {"submit_cross_platform": ["CrossPlatformReview"]}
SCHEMA = "statements.v1.json"


def add_bodies(document: dict[str, Any]) -> None:
    """Into the document, with every definition that they name as one of its components."""
    components = document["components"]["schemas"]
    for item in document["paths"].values():
        for operation in item.values():
            name = operation.get("operationId", "")
            kinds = (BODIES | IN_PARTS).get(name)
            if kinds is not None:
                references = [{"$ref": _component(SCHEMA, kind, components)} for kind in kinds]
                schema = references[0] if len(references) == 1 else {"oneOf": references}
                beside = " and a document" if name in IN_PARTS else ""
                operation["requestBody"] = {
                    "description": f"A signed {' or '.join(kinds)}{beside}, as /schemas/{SCHEMA} has it.",
                    "required": True,
                    "content": _in_parts(schema) if name in IN_PARTS else {"application/json": {"schema": schema}},
                }


def _in_parts(schema: dict[str, Any]) -> dict[str, Any]:
    parts = {"attestation": schema, "document": {"type": "string", "format": "binary"}}
    whole = {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}
    return {"multipart/form-data": {"schema": whole, "encoding": {"attestation": {"contentType": "application/json"}}}}


def _component(file: str, definition: str, components: dict[str, Any]) -> str:
    name = f"{file.partition('.')[0]}.{definition}"
    if name not in components:
        components[name] = {}
        components[name] |= _embedded(schemas.load(file)["$defs"][definition], file, components)
    return f"#/components/schemas/{name}"


def _embedded(value: Any, file: str, components: dict[str, Any]) -> Any:
    """A part of the schema in `file`, whose references lead to components."""
    if isinstance(value, list):
        return [_embedded(item, file, components) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _embedded(inner, file, components) for name, inner in value.items()}
    if isinstance(value.get("$ref"), str):
        other, _, definition = value["$ref"].partition("#/$defs/")
        changed["$ref"] = _component(other or file, definition, components)
    return changed
