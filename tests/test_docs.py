"""What the documents say can be done is done here."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("schemas/*.md")]
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    text = (ROOT / document).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / document).parent.joinpath(target).exists(), target


def test_the_readmes_check_of_an_answer_works() -> None:
    """Its three lines, with the set-up that is already there."""
    text = (ROOT / "README.md").read_text("utf-8")
    key = re.search(r"^    (KEY='.*')$", text, re.MULTILINE)
    command = re.search(r"^    (\.venv/bin/python audits/standalone_verify\.py .*)$", text, re.MULTILINE)
    assert key
    assert command
    script = command[1].replace(".venv/bin/python", shlex.quote(sys.executable))
    done = subprocess.run(["bash", "-c", f"{key[1]}; {script}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "every count and average follows" in done.stdout


def test_make_lists_its_targets() -> None:
    done = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in ("setup", "demo", "serve", "test", "bench", "lint"):
        assert f"make {target}" in done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_modules_and_functions_that_documents_name_exist(document: Path) -> None:
    """`module.name` in a document is a name in a module of that name."""
    sources = [*ROOT.glob("ledger/**/*.py"), *ROOT.glob("audits/*.py"), *ROOT.glob("tests/*.py")]
    for module, name in re.findall(r"`(\w+)\.(\w+)(?:\.\w+)?`", (ROOT / document).read_text("utf-8")):
        code = "".join(path.read_text("utf-8") for path in sources if path.stem == module)
        if code and name != "py":
            assert re.search(rf"^(?:def |class )?{name}\b", code, re.MULTILINE), (module, name)
