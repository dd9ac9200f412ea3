"""What was used last, as much of it as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The values used last: at least one, and at most ``room`` by the sum of their ``size``. Not thread-safe."""

    def __init__(self, room: int, size: Callable[[V], int]) -> None:
        self._room = room
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._taken = 0

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """``key`` must not be kept yet."""
        self._values[key] = value
        self._taken += self._size(value)
        while self._taken > self._room and len(self._values) > 1:
            self._taken -= self._size(self._values.popitem(last=False)[1])

    def forget(self) -> None:
        self._values.clear()
        self._taken = 0
