"""Searches that are asked while others are under way travel together, as one call: each hop costs as much for many
queries as for one. Whoever asks alone waits for nobody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from vrag_ray.serving.contract import ProfiledAnswer, Queries, SearchScope
from vrag_ray.serving.errors import NotReadyError, OverloadedError, ReplicaLostError
from vrag_ray.types import Query

CALLS_AT_ONCE = 4
"""Of one scope. More calls would be smaller ones."""
MOST_TOGETHER = 64
"""Who asks, in one call: the answer comes when all of it is there."""


Search = Callable[[Sequence[Queries], SearchScope], Awaitable[Sequence[ProfiledAnswer]]]


@dataclass
class _Waiting:
    queries: Queries
    answer: asyncio.Future[ProfiledAnswer]


@dataclass
class _Line:
    """Of one scope: calls under way, and who waits for the next."""

    scope: SearchScope
    calls: int = 0
    waiting: deque[_Waiting] = field(default_factory=deque)


class JoinedSearches:
    """The ``search`` of a ``SearchPart`` over a ``Search`` for several callers. All on one event loop."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._lines: dict[tuple[object, ...], _Line] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def search(self, queries: Queries, scope: SearchScope) -> ProfiledAnswer:
        """Raises what the search of these queries raises, whatever the others raise."""
        if any(isinstance(query, Query) and query.picture is not None for query in queries):
            # Megabytes, and seconds to embed: nobody else should wait for them.
            return await self._alone(queries, scope)
        line = self._lines.setdefault(scope.key, _Line(scope))
        waiting = _Waiting(queries, asyncio.get_running_loop().create_future())
        line.waiting.append(waiting)
        self._begin(line)
        return await waiting.answer

    def _begin(self, line: _Line) -> None:
        while line.waiting and line.calls < CALLS_AT_ONCE:
            together = [line.waiting.popleft() for _ in range(min(MOST_TOGETHER, len(line.waiting)))]
            # Who has gone away meanwhile is not searched for.
            together = [waiting for waiting in together if not waiting.answer.done()]
            if together:
                line.calls += 1
                task = asyncio.create_task(self._call(line, together))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if not line.calls:
            self._lines.pop(line.scope.key, None)

    async def _call(self, line: _Line, together: Sequence[_Waiting]) -> None:
        try:
            await self._answer(line.scope, together)
        finally:
            line.calls -= 1
            self._begin(line)

    async def _answer(self, scope: SearchScope, together: Sequence[_Waiting]) -> None:
        try:
            found = await self._search([waiting.queries for waiting in together], scope)
        except Exception as error:  # noqa: BLE001  (it is the askers')
            common = isinstance(error, NotReadyError | OverloadedError | ReplicaLostError)
            if common or len(together) == 1:
                for waiting in together:
                    _tell(waiting, error)
            else:
                # What one of them asked may be at fault: the others must not hear of it.
                await asyncio.gather(*(self._answer(scope, [waiting]) for waiting in together))
            return
        for waiting, answer in zip(together, found, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(answer)

    async def _alone(self, queries: Queries, scope: SearchScope) -> ProfiledAnswer:
        [found] = await self._search([queries], scope)
        return found


def _tell(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
