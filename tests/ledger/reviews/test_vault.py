"""What is sealed opens in its own place, for who has the secret, and nowhere else."""

from random import Random
from typing import Any

import pytest

from ledger.errors import NotStored
from ledger.reviews.vault import SIZES, Vault

SECRET = bytes(range(32))
OVERHEAD = 24 + 16


def vault(secret: bytes = SECRET, seed: int = 1) -> Vault:
    return Vault(secret, Random(seed).randbytes)


@pytest.mark.parametrize("value", [None, "", "a" * 5000, {"b": [1, {"c": "\u65e5"}], "a": True}, " padded "])
def test_what_is_sealed_opens(value: Any) -> None:
    sealed = vault().seal("booking", value, b"stay", b"speaker")
    assert vault(seed=2).open("booking", sealed, b"stay", b"speaker") == value
    assert vault().open("booking", memoryview(sealed).tobytes(), b"stay", b"speaker") == value


@pytest.mark.parametrize(
    ("purpose", "bound"),
    [
        ("submission", (b"stay", b"speaker")),
        ("booking", (b"stay", b"another")),
        ("booking", (b"speaker", b"stay")),
        ("booking", (b"stay",)),
        ("booking", (b"staysp", b"eaker")),
        ("booking", (b"stay", b"speaker", b"")),
        ("booking", ()),
    ],
)
def test_it_opens_nowhere_else(purpose: str, bound: tuple[bytes, ...]) -> None:
    sealed = vault().seal("booking", {"a": 1}, b"stay", b"speaker")
    with pytest.raises(NotStored, match=f"a sealed {purpose} does not open"):
        vault().open(purpose, sealed, *bound)


def test_it_opens_for_nobody_else_and_not_when_it_was_changed() -> None:
    sealed = vault().seal("booking", {"a": 1}, b"stay")
    with pytest.raises(NotStored):
        vault(bytes(32)).open("booking", sealed, b"stay")
    for changed in (b"", sealed[:-1], sealed + b"\0", bytes([sealed[0] ^ 1]) + sealed[1:], sealed[:-1] + b"\0"):
        with pytest.raises(NotStored):
            vault().open("booking", changed, b"stay")


def test_the_same_twice_looks_different() -> None:
    one = vault()
    assert one.seal("booking", "a", b"stay") != one.seal("booking", "a", b"stay")


def test_lengths_tell_little() -> None:
    """The length of a credential would go with its guest from host to host."""
    lengths = {len(vault().seal("booking", "a" * length)) - OVERHEAD for length in range(0, 9000, 7)}
    assert lengths == {*SIZES, 2 * SIZES[-1], 3 * SIZES[-1]}


def test_the_secret_is_not_shown() -> None:
    assert "secret" not in repr(vault())
    assert str(SECRET) not in repr(vault())


def test_what_is_nested_too_deeply_to_be_read_is_refused_as_damaged() -> None:
    inner: Any = 1
    for _ in range(17):
        inner = [inner]
    with pytest.raises(NotStored):
        vault().open("booking", vault().seal("booking", inner))
