"""What is kept in memory, and what is fetched once for all who want it at the same time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizedLRU(Generic[K, V]):
    """The values used last, at most ``room`` by the sum of their ``size`` (by default, so many values).

    A value larger than all the room is not kept, unless ``keep_newest``: then the value put last always is. Not
    thread-safe.
    """

    def __init__(self, room: int, size: Callable[[V], int] = lambda _: 1, *, keep_newest: bool = False) -> None:
        self._room = room
        self._size = size
        self._least = 1 if keep_newest else 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._used = 0

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        if key in self._values:
            self._used -= self._size(self._values.pop(key))
        if self._size(value) > self._room and not self._least:
            return
        self._values[key] = value
        self._used += self._size(value)
        while self._used > self._room and len(self._values) > self._least:
            self._used -= self._size(self._values.popitem(last=False)[1])

    def clear(self) -> None:
        self._values.clear()
        self._used = 0


class SingleFlight(Generic[K, V]):
    """Calls under way, by what they are for. Belongs to one event loop. Nothing is kept once a call has ended."""

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def result(self, key: K, call: Callable[[], Coroutine[None, None, V]]) -> V:
        """What the call under way for ``key`` gives or raises; ``call`` is made if there is none."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(call())
            task.add_done_callback(lambda _: self._under_way.pop(key))
        # One who goes away must not take it from the others.
        return await asyncio.shield(task)

    async def cancel(self) -> None:
        """End what is under way, and wait until it has."""
        left = tuple(self._under_way.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
