"""RFC 6902 patches, as far as vectors use them: add, remove, replace."""

from copy import deepcopy
from typing import Any


def apply_patch(document: Any, patch: list[dict[str, Any]]) -> Any:
    document = deepcopy(document)
    for operation in patch:
        *way, last = operation["path"].split("/")[1:]
        target = document
        for step in way:
            target = target[int(step) if isinstance(target, list) else step]
        if isinstance(target, list):
            place = len(target) if last == "-" else int(last)
            if operation["op"] == "add":
                target.insert(place, operation["value"])
            elif operation["op"] == "remove":
                del target[place]
            else:
                target[place] = operation["value"]
        elif operation["op"] == "remove":
            del target[last]
        else:
            target[last] = operation["value"]
    return document
