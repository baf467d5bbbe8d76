"""Where the public vectors are: beside the checkout, and not part of it."""

import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).parents[3] / "shared" / "vectors"


def load(name: str) -> Any:
    """The JSON file `name` below the vectors, or a skip that says what is missing."""
    path = VECTORS / name
    if not path.exists():
        pytest.skip(f"the public vectors are not beside this checkout (shared/vectors/{name})", allow_module_level=True)
    return json.loads(path.read_text("utf-8"))
