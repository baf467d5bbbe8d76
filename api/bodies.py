"""The bodies that operations take, in the OpenAPI document: the published JSON Schemas, which are what is enforced."""

from typing import Any

import schemas

# By operation, the definition of its body in statements.v1.json.
BODIES = {"submit_review": "ReviewSubmission", "submit_response": "HostResponse"}
SCHEMA = "statements.v1.json"


def add_bodies(document: dict[str, Any]) -> None:
    """Into the document, with every definition that they name as one of its components."""
    components = document["components"]["schemas"]
    for item in document["paths"].values():
        for operation in item.values():
            definition = BODIES.get(operation.get("operationId", ""))
            if definition is not None:
                schema = {"$ref": _component(SCHEMA, definition, components)}
                content = {"application/json": {"schema": schema}}
                operation["requestBody"] = {
                    "description": f"A signed {definition}, as /schemas/{SCHEMA} has it.",
                    "required": True,
                    "content": content,
                }


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
