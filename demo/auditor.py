"""The last chapter: somebody who trusts nobody replays the log, keeps a copy, and is shown a lie."""

from pathlib import Path

from demo.service import Service
from demo.stage import Stage, expect
from ledger.log.tiles import decode_bundle, encode_bundle

COPY = "copy"


def an_auditor(stage: Stage, service: Service, log_key: str) -> None:
    stage.chapter(
        "Somebody checks all of it",
        "An auditor needs the address and the key. Every entry is replayed, every host's record and every map head is "
        "derived again, and what is served is held against it. A copy outlives the operator.",
    )
    for words in (
        ("audit", service.url, "--key", log_key, "--state", "audit"),
        ("mirror", service.url, COPY, "--key", log_key),
        ("audit", COPY, "--key", log_key),
    ):
        stage.command("staylog", *words)
        says = "has the log" if words[0] == "mirror" else ": clean"
        said = stage.run("staylog", *words, says=says)
    stage.report("\n".join(line for line in said.splitlines() if line.startswith("  checked")))
    stage.say("Now one rating in the copy is raised by half a star.")
    _raise_a_rating(stage.folder / COPY)
    command = ("audit", COPY, "--key", log_key, "--out", "findings")
    stage.command("staylog", *command)
    stage.run("staylog", *command, says="bundle_mismatch", status=1)
    check = ("audit", "check-fraud", "findings/bundle_mismatch.json", "--key", log_key)
    stage.command("staylog", *check)
    said = stage.run("staylog", *check, says="belongs to")
    stage.report("\n".join(line for line in said.splitlines() if line.startswith("  ")))


def _raise_a_rating(copy: Path) -> None:
    """In the first bundle that has one."""
    for file in sorted((copy / "log" / "tile" / "entries").rglob("*.p/*")):
        entries = decode_bundle(file.read_bytes())
        changed = [data.replace(b'"overall":4,', b'"overall":4.5,') for data in entries]
        expect("that some review has four stars", True, changed != entries)
        file.write_bytes(encode_bundle(changed))
