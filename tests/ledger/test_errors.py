"""The drawn tree is the real one, and each code stands at the classes that carry it."""

import ast
import re
from pathlib import Path

import api
import audits
import ledger
from ledger import errors
from ledger.errors import StaylogError
from ledger.identity import forms, statements

SOURCES = [path for package in (api, audits, ledger) for path in Path(str(package.__file__)).parent.rglob("*.py")]


def test_the_drawing_shows_every_class_below_its_base() -> None:
    assert errors.__doc__ is not None
    drawn = {match[2]: len(match[1]) for match in re.finditer(r"^([ │├└─]*)([A-Z]\w+)  ", errors.__doc__, re.MULTILINE)}
    classes: list[type[StaylogError]] = [StaylogError]
    for cls in classes:
        classes += [below for below in cls.__subclasses__() if below.__module__ == errors.__name__]
        if cls is not StaylogError:
            assert drawn[cls.__name__] == drawn[cls.__bases__[0].__name__] + 4
    assert drawn.keys() == {cls.__name__ for cls in classes}


def constants(tree: ast.Module) -> dict[str, str]:
    """Texts that a module gives names in capital letters, one by one or several in a line."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            [target], value = node.targets, node.value
            names, texts = (each.elts if isinstance(each, ast.Tuple) else [each] for each in (target, value))
            for name, text in zip(names, texts, strict=False):
                if isinstance(name, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found[name.id] = text.value
    return found


def test_the_drawing_names_every_code_at_its_class() -> None:
    """A code is the first of two arguments of a refusal; classes with one code name it in their constructor."""
    used = {
        ("BadDID", "did_not_canonical"),
        ("BadKey", "key_not_acceptable"),
        ("BadTilePath", "tile_path_invalid"),
        ("NotStored", "not_stored"),
        ("BadRequest", "parameter_invalid"),
        # By the limits themselves.
        ("TooMany", "rate_limited"),
        ("TooMany", "quota_exceeded"),
    }
    mismatches = (kind.mismatch for kind in statements.KINDS.values())
    used |= {("NotAccepted", code) for code in [*forms.PROOF_CODES.values(), *mismatches]}
    for path in SOURCES:
        tree = ast.parse(path.read_text("utf-8"))
        named = constants(tree)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(errors, node.func.id)):
                continue
            if len(node.args) == 2 and isinstance(node.args[0], ast.Constant):
                used.add((node.func.id, str(node.args[0].value)))
            elif len(node.args) == 2 and isinstance(node.args[0], ast.Name) and node.args[0].id in named:
                used.add((node.func.id, named[node.args[0].id]))
    assert errors.__doc__ is not None
    drawn, name = set(), ""
    for line in errors.__doc__.splitlines()[1:]:
        found = re.match(r"[ │├└─]*([A-Z]\w+)  ", line)
        name = found[1] if found else name
        drawn |= {(name, code) for code in re.findall(r"\b(?:busy|expired|[a-z0-9]+(?:_[a-z0-9]+)+)\b", line)}
    assert used == drawn
