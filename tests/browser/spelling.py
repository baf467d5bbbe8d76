"""JSON as others may spell it: numbers, names and texts that one reader takes, and another might read otherwise."""

import json
from copy import deepcopy
from random import Random
from typing import Any


class Raw(str):
    """JSON that is written as it stands."""

    __slots__ = ()


class Pairs(list[tuple[Any, Any]]):
    """An object whose members may repeat."""


# A place in a document: what holds it, and where in that.
Place = tuple[Any, Any]

# Texts in JSON: halves of characters, what is not seen, and other spellings of what they replace.
TEXTS = (
    *(r'"\ud800"', r'"\udc00x"', r'"a\udbff"', r'"\ud83c\udf39"', r'"\u0000"', r'"\u202e"', r'"\u200d"', r'"\u200c\t"'),
    *('"\\u000b"', '"\u2028"', '"\ufeff"', '"\U000e0041"', '" "', '"\u0085"', '"é"', '"e\u0301"', '"constructor"'),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 20, 2**53 - 1, "", "0", "x", Raw("1e400"), Raw("9007199254740992")),
    *(Raw("9007199254740991.0"), Raw("1e21"), Raw("-0"), Raw("-0.0"), Raw("1E-7"), [], {}, [[]], {"a": 1}, [None]),
)


def any_value(random: Random, *more: Any) -> Any:
    return deepcopy(random.choice((*_VALUES, *more)))


def written(value: Any, *, ascii_only: bool = False) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict | Pairs):
        pairs = value.items() if isinstance(value, dict) else value
        members = (f"{_name(name, ascii_only)}: {written(each, ascii_only=ascii_only)}" for name, each in pairs)
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(each, ascii_only=ascii_only) for each in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def _name(name: Any, ascii_only: bool) -> str:
    return str(name) if isinstance(name, Raw) else json.dumps(name, ensure_ascii=ascii_only)


def places(value: Any) -> list[Place]:
    """Every place in a document, the outer ones first."""
    found: list[Place] = []
    rest = [value]
    for each in rest:
        keys = list(each) if isinstance(each, dict) else list(range(len(each))) if isinstance(each, list) else []
        found += [(each, key) for key in keys]
        rest += [each[key] for key in keys]
    return found


def number(random: Random, value: float) -> Raw:
    """The same number in another spelling, or nearly the same one."""
    forms = [f"{value}.0", f"{value}e0", f"{value}E+0", f"{value}.0000000000000001", f"{value}.00000000000000000001"]
    forms += [f"-{value}", f"{value}.5", f"{value}e1", f"{value}0e-1", f"0{value}", f"+{value}", f'"{value}"']
    if not isinstance(value, int):
        forms = [f"{value}0", f"{value}e0", f"{value}0000000000000001", f"-{value}", str(value).replace(".", "")]
    return Raw(random.choice(forms[:10] if random.random() < 0.9 else forms))


def respell_number(random: Random, document: Any) -> bool:
    """Whether there was a number to spell in another way."""
    numbers = [place for place in places(document) if type(place[0][place[1]]) in (int, float)]
    if not numbers:
        return False
    holder, key = random.choice(numbers)
    holder[key] = number(random, holder[key])
    return True


def respell_text(random: Random, document: Any) -> bool:
    """A text, or the name of a member, becomes another, or is spelled with an escape."""
    texts = [place for place in places(document) if isinstance(place[0][place[1]], str)]
    holder, key = random.choice(texts)
    kind, text = random.randrange(4), holder[key]
    if kind == 0:
        holder[key] = Raw(random.choice(TEXTS))
    elif kind == 1 and text:
        at = random.randrange(len(text))
        escape = json.dumps(f"\\u{ord(text[at]):04x}")[2:-1] if ord(text[at]) < 0x10000 else text[at]
        holder[key] = Raw(json.dumps(text[:at])[:-1] + escape.replace("\\\\", "\\") + json.dumps(text[at + 1 :])[1:])
    elif kind == 2:
        at = random.randrange(len(text) + 1)
        holder[key] = Raw(json.dumps(text[:at])[:-1] + random.choice(TEXTS)[1:-1] + json.dumps(text[at:])[1:])
    elif isinstance(holder, dict):
        holder[Raw(random.choice(TEXTS))] = any_value(random)
    return True


def restructure(random: Random, document: Any) -> bool:
    """A member or an item is left out, put in, repeated, wrapped, or becomes something else."""
    holder, key = random.choice(places(document))
    kind, value = random.randrange(6), holder[key]
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = any_value(random)
    elif kind == 2:
        holder[key] = random.choice(([value], {"value": value}, [value, value], str(value)))
    elif kind == 3 and isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), value if random.random() < 0.5 else any_value(random))
    elif kind == 3:
        holder[random.choice(("more", "__proto__", "constructor", "é", "v", "events", "from"))] = any_value(random)
    elif kind == 4:
        deep: Any = any_value(random)
        for _ in range(random.randrange(11, 17)):
            deep = [deep]
        document["more"] = deep
    elif isinstance(value, dict) and value:
        name = random.choice(list(value))
        holder[key] = Pairs([*value.items(), (name, random.choice((value[name], any_value(random))))])
    return True
