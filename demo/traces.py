"""What somebody leaves behind: in entries, which everybody may read, and in the files, which the operator has."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.canon import strict_json


def in_common(one: str, other: str) -> dict[str, Any]:
    """The members that two entries share, but for the second in which both may have come."""
    here, there = (dict(_members(strict_json.loads(entry))) for entry in (one, other))
    return {name: value for name, value in here.items() if name != "at" and there.get(name) == value}


def files_with(folder: Path, *traces: str | bytes) -> list[str]:
    """The names of the files in which any of these occurs."""
    sought = [trace.encode() if isinstance(trace, str) else trace for trace in traces]
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return [name for name, data in files.items() if any(trace in data for trace in sought)]


def _members(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value by its name, as evidence.issuer."""
    if not isinstance(value, dict):
        yield name, value
        return
    for inner, each in value.items():
        yield from _members(each, f"{name}.{inner}".lstrip("."))
