"""The JSON Schemas (draft 2020-12) and JSON-LD contexts that Staylog publishes under /schemas/ and /contexts/.

The schemas describe the form of entries, records, answers, receipts, credentials, status lists and statements for
people and for other implementations. This project's own readers are stricter; each schema says in its description what
it leaves to them. References between the files are relative, so they resolve wherever the files are served side by
side.
"""

import json
from importlib.resources import files
from typing import Any

NAMES = (
    "answer.v1.json",
    "common.v1.json",
    "credentials.v1.json",
    "entry.v1.json",
    "intake.v1.json",
    "receipt.v1.json",
    "record.v1.json",
    "refusal.v1.json",
    "response-receipt.v1.json",
    "statements.v1.json",
    "status-list.v1.json",
    "upgrade-receipt.v1.json",
)
CONTEXTS = ("openstr.v1.jsonld",)


def load(name: str) -> dict[str, Any]:
    """The schema `name`, one of NAMES."""
    if name not in NAMES:
        raise KeyError(f"no schema {name!r}; there are {', '.join(NAMES)}")
    return _read(name)


def load_context(name: str) -> dict[str, Any]:
    """The JSON-LD context `name`, one of CONTEXTS."""
    if name not in CONTEXTS:
        raise KeyError(f"no context {name!r}; there are {', '.join(CONTEXTS)}")
    return _read(f"contexts/{name}")


def _read(name: str) -> dict[str, Any]:
    return dict(json.loads(files(__name__).joinpath(name).read_text(encoding="utf-8")))
