"""One call for all who want the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCalls(Generic[K, V]):
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
