"""The drawn tree is the real one, and every code in the code is documented by a class that can carry it."""

import ast
import re
from pathlib import Path

import audits
import ledger
from ledger import errors
from ledger.errors import StaylogError

SOURCES = [path for package in (ledger, audits) for path in Path(str(package.__file__)).parent.rglob("*.py")]


def test_the_drawing_shows_every_class_below_its_base() -> None:
    assert errors.__doc__ is not None
    drawn = {match[2]: len(match[1]) for match in re.finditer(r"^([ │├└─]*)([A-Z]\w+)  ", errors.__doc__, re.MULTILINE)}
    classes: list[type[StaylogError]] = [StaylogError]
    for cls in classes:
        classes += cls.__subclasses__()
        if cls is not StaylogError:
            assert drawn[cls.__name__] == drawn[cls.__bases__[0].__name__] + 4
    assert drawn.keys() == {cls.__name__ for cls in classes}


def test_the_drawing_names_every_code() -> None:
    """A code is the first of two arguments of a refusal, or of the call that makes one."""
    codes = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) == 2 and isinstance(node.args[0], ast.Constant):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if hasattr(errors, name) or name == "__init__":
                    codes.add(node.args[0].value)
    assert errors.__doc__ is not None
    assert codes == set(re.findall(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b", errors.__doc__))
