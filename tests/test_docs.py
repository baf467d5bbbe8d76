"""What the documents say can be done is done here."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port

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
    command = re.search(r"^    (\.venv/bin/python audits/standalone_verify\.py schemas.*)$", text, re.MULTILINE)
    assert key
    assert command
    script = command[1].replace(".venv/bin/python", shlex.quote(sys.executable))
    done = subprocess.run(["bash", "-c", f"{key[1]}; {script}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "every count and average follows" in done.stdout


def commands_of(document: str, heading: str) -> list[str]:
    """The indented lines of a section, in order."""
    section = (ROOT / document).read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^    (\S.*)$", section, re.MULTILINE)


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """`staylog serve` as a process of its own, until it is told to stop."""
    port = free_port()
    staylog = str(Path(sys.executable).with_name("staylog"))
    command = [staylog, "serve", "--data", str(folder), "--port", str(port), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if "listens on" in line:
                break
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            rest = server.stdout.read()
        # It finishes, then ends as whoever sent the signal expects.
        assert server.wait(30) == -signal.SIGTERM, rest
        assert "Traceback" not in rest


@pytest.mark.parametrize(("document", "heading"), [("README.md", "Try it"), ("docs/guides/operator.md", "Start")])
def test_what_the_guides_let_one_try_works(document: str, heading: str, tmp_path: Path) -> None:
    """Every command, against a service that runs."""
    commands = [
        line for line in commands_of(document, heading) if not line.startswith(("staylog init", "staylog serve"))
    ]
    assert len(commands) == 4
    with serving(tmp_path / "data") as url:
        # What is added is seen within a second.
        commands.insert(1, "sleep 1")
        script = "\n".join(commands).replace("http://127.0.0.1:8080", url)
        script = script.replace("answer.json", f"{tmp_path}/answer.json")
        script = script.replace(".venv/bin/", f"{Path(sys.executable).parent}/").replace("--data ./data", "")
        environment = {
            **os.environ,
            "STAYLOG_DATA": str(tmp_path / "data"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
        )
    assert done.returncode == 0, done.stderr
    assert "5 entries added, 2 to 6; signed at size 8" in done.stdout
    assert "every count and average follows" in done.stdout


def test_the_issuers_guide_works(tmp_path: Path) -> None:
    """Four commands: a key, a credential, its verdict, and the refusal after one character was changed."""
    *commands, refusal = commands_of("docs/guides/issuer.md", "Try it")
    assert len(commands) == 4
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = [
        subprocess.run(["bash", "-uc", line], cwd=tmp_path, capture_output=True, text=True, env=environment)
        for line in commands
    ]
    assert [each.returncode for each in done] == [0, 0, 0, 1], [each.stderr for each in done]
    assert (tmp_path / "issuer.key").stat().st_mode & 0o777 == 0o600
    assert "valid credential of a guest" in done[2].stdout
    assert "identity_verified" in done[2].stdout
    assert done[3].stderr.strip() == refusal


def test_the_guide_inits_as_it_says(tmp_path: Path) -> None:
    [init] = [line for line in commands_of("docs/guides/operator.md", "Start") if line.startswith("staylog init")]
    command = shlex.split(init.replace("./data", str(tmp_path / "data")))
    command[0] = str(Path(sys.executable).with_name("staylog"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "127.0.0.1:8080/log+" in done.stdout


def test_make_lists_its_targets() -> None:
    done = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in ("setup", "demo", "serve", "test", "bench", "hammer", "lint"):
        assert f"make {target}" in done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_modules_and_functions_that_documents_name_exist(document: Path) -> None:
    """`module.name` in a document is a name in a module of that name."""
    sources = [
        path for folder in ("api", "audits", "demo", "ledger", "tests") for path in ROOT.glob(f"{folder}/**/*.py")
    ]
    for module, name in re.findall(r"`(\w+)\.(\w+)(?:\.\w+)?`", (ROOT / document).read_text("utf-8")):
        code = "".join(path.read_text("utf-8") for path in sources if path.stem == module)
        if code and name not in ("json", "key", "py"):
            assert re.search(rf"^(?:async def |def |class )?{name}\b", code, re.MULTILINE), (module, name)
