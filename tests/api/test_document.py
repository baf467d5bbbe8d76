"""Schemathesis takes the OpenAPI document at its word: no 5xx, and nothing that is not documented."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.conftest import Service

# It holds that whatever fits each parameter's schema is taken. What must fit together (first and second, index or
# review_id, from with proof=page, a cursor that was given out) cannot be said in a schema.
UNSAYABLE = "positive_data_acceptance"


# What is sent in is signed, so whatever is made up is refused soon: a few of it will do, and not every combination.
WAYS = {"GET": ("examples,coverage,fuzzing", "30"), "POST": ("examples,fuzzing", "10")}
TESTED = {"GET": 25, "POST": 6}


@pytest.mark.parametrize("method", WAYS)
def test_the_document_is_true(service: Service, tmp_path: Path, method: str) -> None:
    document = f"http://127.0.0.1:{service.port}/schema/openapi.json"
    program = str(Path(sys.executable).with_name("schemathesis"))
    phases, most = WAYS[method]
    what = ["--checks", "all", "--exclude-checks", UNSAYABLE, "--phases", phases, "--include-method", method]
    how = ["--max-examples", most, "--seed", "1", "--generation-database", "none", "--no-color"]
    done = subprocess.run(
        [program, "run", document, *what, *how], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert f"Tested: {TESTED[method]}" in done.stdout
