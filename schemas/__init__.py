"""The JSON Schemas (draft 2020-12) that Staylog publishes under /schemas/, as package data.

They describe the form of entries, records, answers and receipts for people and for other implementations. This
project's own readers are stricter; each schema says in its description what it leaves to them. References between
the files are relative, so they resolve wherever the files are served side by side.
"""

import json
from importlib.resources import files
from typing import Any

NAMES = ("answer.v1.json", "common.v1.json", "entry.v1.json", "receipt.v1.json", "record.v1.json")


def load(name: str) -> dict[str, Any]:
    """The schema `name`, one of NAMES."""
    if name not in NAMES:
        raise KeyError(f"no schema {name!r}; there are {', '.join(NAMES)}")
    return dict(json.loads(files(__name__).joinpath(name).read_text(encoding="utf-8")))
