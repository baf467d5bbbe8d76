"""Public vectors beside the checkout: JCS by the scheme's author, and the originals of our golden vectors."""

from pathlib import Path

import pytest

from ledger.canon import jcs, strict_json
from tests.interop.vectors import GOLDEN, public_folder


@pytest.fixture(scope="module")
def jcs_folder() -> Path:
    return public_folder("jcs") / "testdata"


def test_jcs(jcs_folder: Path) -> None:
    cases = sorted((jcs_folder / "input").glob("*.json"))
    assert len(cases) == 6
    for case in cases:
        canonical = jcs.dumps(strict_json.loads(case.read_bytes()))
        assert canonical == (jcs_folder / "output" / case.name).read_bytes().strip(), case.name
        digits = (jcs_folder / "outhex" / case.with_suffix(".txt").name).read_text().split()
        assert canonical.hex() == "".join(digits).lower(), case.name


def test_the_golden_vectors_are_the_published_ones() -> None:
    originals = public_folder("log")
    assert {path.name for path in originals.iterdir()} == {path.name for path in GOLDEN.iterdir()}
    for path in GOLDEN.iterdir():
        assert path.read_bytes() == (originals / path.name).read_bytes(), path.name
