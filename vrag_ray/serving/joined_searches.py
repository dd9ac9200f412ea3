"""Searches that arrive while others are under way travel together, as one call: each hop costs as much for many
queries as for a single query. A search that arrives alone waits for nothing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from vrag_ray.serving.contract import ProfiledAnswer, Queries, SearchScope
from vrag_ray.serving.errors import NotReadyError, OverloadedError, ReplicaLostError
from vrag_ray.types import Query

CALLS_AT_ONCE = 4
"""Of one scope. More calls at once would be smaller calls."""
MOST_TOGETHER = 64
"""Searches in one call: none is answered before all are."""


Search = Callable[[Sequence[Queries], SearchScope], Awaitable[Sequence[ProfiledAnswer]]]


@dataclass
class _Waiting:
    queries: Queries
    answer: asyncio.Future[ProfiledAnswer]


@dataclass
class _Line:
    """The calls of one scope that are under way, and the searches that wait for the next call."""

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
            # Megabytes, and seconds to embed: no other search should wait for them.
            return await self._alone(queries, scope)
        line = self._lines.setdefault(scope.key, _Line(scope))
        waiting = _Waiting(queries, asyncio.get_running_loop().create_future())
        line.waiting.append(waiting)
        self._begin(line)
        return await waiting.answer

    def _begin(self, line: _Line) -> None:
        while line.waiting and line.calls < CALLS_AT_ONCE:
            together = [line.waiting.popleft() for _ in range(min(MOST_TOGETHER, len(line.waiting)))]
            # A caller that has gone away meanwhile needs no answer.
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
            answers = await self._search([waiting.queries for waiting in together], scope)
        except Exception as error:  # noqa: BLE001  (the callers get it)
            common = isinstance(error, NotReadyError | OverloadedError | ReplicaLostError)
            if common or len(together) == 1:
                for waiting in together:
                    _fail(waiting, error)
            else:
                # A single search may be at fault: the others must not fail with it.
                await asyncio.gather(*(self._answer(scope, [waiting]) for waiting in together))
            return
        for waiting, answer in zip(together, answers, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(answer)

    async def _alone(self, queries: Queries, scope: SearchScope) -> ProfiledAnswer:
        [answer] = await self._search([queries], scope)
        return answer


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
