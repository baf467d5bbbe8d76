"""The layer rules hold, the base install is enough for verification, and the lock names no host."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def pure_modules() -> set[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(set(contract["source_modules"]) for contract in contracts if "do no I/O" in contract["name"])


def test_audits_stands_on_the_pure_parts_only() -> None:
    known = {"cli", "commands", "check_commands", "mirror_command", "terminal"}
    known |= {"standalone_receipts", "standalone_verify"}
    known |= {
        "asking",
        "audit",
        "beside",
        "committed",
        "explaining",
        "findings",
        "given",
        "mirror",
        "newer_trees",
        "reading",
        "replayer",
        "result",
        "sampling",
        "source",
        "state",
        "texts",
    }
    # All of these are programs.
    programs = [*(ROOT / "audits" / "monitor").glob("*.py"), *(ROOT / "audits" / "witness").glob("*.py")]
    for path in [*(ROOT / "audits").glob("[a-z]*.py"), *programs]:
        assert path in programs or f"audits.{path.stem}" in pure_modules() or path.stem in known, path
        for module in re.findall(r"^from (ledger[\w.]*) import", path.read_text("utf-8"), re.MULTILINE):
            pure = module in pure_modules() or module.startswith(("ledger.canon", "ledger.pictures"))
            # Servers of both kinds leave descriptors free for what they write.
            assert pure or (path in programs and module == "ledger.net.descriptors"), (path, module)


def test_a_module_of_the_log_is_pure_or_known_to_do_io() -> None:
    """Whoever adds one decides."""
    known = {
        "batch",
        "census",
        "clock_watch",
        "databases",
        "fsck",
        "history",
        "integrate",
        "issuer_counts",
        "mark_file",
        "mark_comparison",
        "publish",
        "reader",
        "sequencer",
        "shared_mark",
        "sublog",
        "witness_client",
        "witness_policy",
        "witnesses",
    }
    found = {path.stem for path in (ROOT / "ledger" / "log").glob("[a-z]*.py")}
    assert found == known | {name.rpartition(".")[2] for name in pure_modules() if name.startswith("ledger.log.")}


def test_verification_needs_the_base_install_only() -> None:
    """The pure modules, the commands and all of audits and schemas import with nothing but the base dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {re.split(r"[<>=\[]", name)[0] for name in project["dependencies"]}
    assert base == {"click", "pynacl", "rfc8785", "rich"}
    script = f"""
import importlib, pkgutil, sys
allowed = {{"click", "nacl", "_cffi_backend", "cffi", "rfc8785", "rich", "pygments", "markdown_it", "mdurl", "api", "ledger", "audits", "schemas"}}
# An extra: without it, what it checks is named as not checked.
sys.modules["cryptography"] = None
before = set(sys.modules)
for module in {sorted(pure_modules())} + ["ledger.cli", "ledger.settings", "api.commands"]:
    importlib.import_module(module)
for package in ("audits", "schemas", "ledger.canon", "ledger.commands"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        # These need libraries of the server.
        if module.name not in ("ledger.canon.rdf", "schemas.vectors.identity"):
            importlib.import_module(module.name)
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(sorted(name for name in new if name not in sys.stdlib_module_names and name not in allowed and not name.startswith("_")))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_lock_pins_everything_with_hashes_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|^-|^--", lock, re.MULTILINE)
    packages = re.findall(r"^([\w.-]+)==[^\\]+\\$", lock, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^\S", lock, re.MULTILINE)) > 20
    assert lock.count("--hash=sha256:") >= len(packages)
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*asked["dependencies"], *(name for extra in asked["optional-dependencies"].values() for name in extra)]
    normal = {name.lower().replace("_", "-") for name in packages}
    assert {re.split(r"[<>=\[]", name)[0].lower() for name in wanted} <= normal
