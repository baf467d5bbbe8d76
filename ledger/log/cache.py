"""A small cache for what never changes once read: expanded tiles and map pages. Threads may share it."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Keeps the `most` // 2 values that were used last, and at most `most`.

    Two dictionaries: what is used goes to the young one; when that is full it becomes the old one, which is forgotten.
    Each step is one operation on a dictionary, so threads need no lock: at worst they forget too early.
    """

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: Key, value: Value) -> Value:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = value
        return value

    def drop(self, key: Key) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)
