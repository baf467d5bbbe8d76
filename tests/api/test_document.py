"""Schemathesis takes the OpenAPI document at its word: no 5xx, and nothing that is not documented."""

import subprocess
import sys
from pathlib import Path

from tests.api.conftest import Service

# It holds that whatever fits each parameter's schema is taken. What must fit together (first and second, index or
# review_id, from with proof=page, a cursor that was given out) cannot be said in a schema.
UNSAYABLE = "positive_data_acceptance"


def test_the_document_is_true(service: Service, tmp_path: Path) -> None:
    document = f"http://127.0.0.1:{service.port}/schema/openapi.json"
    program = str(Path(sys.executable).with_name("schemathesis"))
    what = ["--checks", "all", "--exclude-checks", UNSAYABLE, "--phases", "examples,coverage,fuzzing"]
    how = ["--max-examples", "30", "--seed", "1", "--generation-database", "none", "--no-color"]
    done = subprocess.run(
        [program, "run", document, *what, *how], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "Tested: 26" in done.stdout
