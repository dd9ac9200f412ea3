"""Agents: many runs at once on one event loop, searching and reading through the other parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from vrag_ray.agent.chat import Picture, PictureRequest, QuestionPicture
from vrag_ray.agent.ports import EvidenceSource, Pages
from vrag_ray.client.schemas import Feedback, RatedRun, RunRequest, RunsPage, RunSummary, collection_names
from vrag_ray.config import Settings
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.serving.contract import AgentState, FetchedRun, LoggedEvent, SearchScope, ServedAgents
from vrag_ray.serving.joined_searches import JoinedSearches
from vrag_ray.serving.parts.loop_lag import LoopLag
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.runs.feedback import FeedbackStore
from vrag_ray.serving.runs.service import RunService
from vrag_ray.serving.runs.store import RunStore
from vrag_ray.types import HYBRID, InvalidError, Locator, PageText, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter
from vrag_ray.types.redaction import public_uri, scrub

if TYPE_CHECKING:
    from vrag_ray.agent.chat import Delta
    from vrag_ray.agent.driver import Run
    from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest
    from vrag_ray.types import Completion

T = TypeVar("T")
Check: TypeAlias = Callable[[Sequence[str], SearchFilter | None], Awaitable[None]]


class ServedRetriever:
    """``Retriever`` over the searches of a service. What it returns may be shown: paths are cut off."""

    def __init__(self, searches: JoinedSearches, collections: Sequence[str] = ()) -> None:
        """``collections`` are those that are searched, by name; none stands for the main one."""
        self._searches = searches
        self._collections = tuple(collections)

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        scope = SearchScope(top_k, mode, filter, self._collections)
        try:
            reply = await self._searches.search(queries, scope)
        except VragError as error:
            raise VragError(scrub(str(error))) from error
        answer: SearchAnswer = reply.answer
        results = tuple(tuple(replace(hit, uri=public_uri(hit.uri)) for hit in hits) for hits in answer.results)
        return replace(answer, results=results)


class ServedPages:
    """``Pages`` of the library, here or behind a handle. Its errors may be shown: paths are cut off."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return _scrubbed(await self._pages.page_texts(pages))

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return _scrubbed(await self._pages.pictures(requests))


def _scrubbed(results: Sequence[T | VragError]) -> Sequence[T | VragError]:
    return [VragError(scrub(str(result))) if isinstance(result, VragError) else result for result in results]


class Agents:
    """``RunPart`` and ``ModelPart``. A run lives in one process; each process finds those of the others in the
    folder that they share."""

    def __init__(
        self, settings: Settings, searches: JoinedSearches, pages: Pages, check: Check, model: ChatModel | None
    ) -> None:
        """``check`` raises what a search of collections with a filter would raise. Made on an event loop."""
        from vrag_ray.policies.registry import starting_agent

        self._lag = LoopLag()
        self._settings = settings
        self._searches = searches
        self._pages = pages
        self._check = check
        self._model = model
        runs_dir = ServingPaths.of(settings).runs
        with storage_faults(str(runs_dir), "opening it (serving.runs_dir) for writing", is_collection=False):
            store = RunStore(runs_dir, settings.serving.kept_runs)
        self._runs = RunService(
            store,
            self._make_run,
            max_concurrent=settings.serving.max_concurrent_runs,
            default_deadline_s=settings.agent.deadline_s,
            default_agent=starting_agent(settings),
        )
        self._feedback = FeedbackStore(runs_dir / "feedback")

    async def end_runs(self) -> None:
        """Runs that are under way are cancelled, and stored as such; their readers get the last event."""
        await self._runs.cancel_all()

    async def aclose(self) -> None:
        """Ends the runs that are under way."""
        self._lag.stop()
        await self.end_runs()
        self._runs.close()

    async def start(self, request: RunRequest, picture: QuestionPicture | None = None) -> str:
        """Raises what a search of these collections with this filter would raise, and what ``make_run`` raises."""
        names = collection_names(request.collection)
        if names or (request.filter is not None and request.filter.doc_ids):
            # Now, and not as a failed search of every step.
            await self._check(names, request.filter)
        return self._runs.start(request, picture)

    async def events(self, run_id: str, after: int) -> AsyncIterator[LoggedEvent]:
        async for events in self._runs.read(run_id, after):
            for event in events:
                yield event

    async def event_batches(self, run_id: str, after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """The same with all events that are there at a time, for a hop that costs as much for many as for one."""
        async for events in self._runs.read(run_id, after):
            yield events

    async def summary(self, run_id: str) -> RunSummary:
        return self._runs.summary(run_id)

    async def fetch(self, run_id: str) -> FetchedRun:
        return self._runs.fetch(run_id)

    async def list_runs(self, limit: int) -> RunsPage:
        return self._runs.list(limit)

    async def cancel(self, run_id: str) -> FetchedRun:
        return await self._runs.cancel(run_id)

    async def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        """Raises NotFoundError for a run that is not here, ConflictError for one that goes on."""
        return self._feedback.put(self._runs.finished(run_id), feedback)

    async def rating(self, run_id: str) -> RatedRun:
        return self._feedback.get(self._runs.summary(run_id).run_id)

    async def rated(self) -> list[RatedRun]:
        return await asyncio.to_thread(self._feedback.all)

    async def state(self) -> AgentState:
        return replace(self._runs.state(), loop_lag_p99_s=self._lag.p99_s())

    async def agents(self) -> ServedAgents:
        """The agents that requests may name here."""
        from vrag_ray.policies.registry import offered, starting_agent

        names = offered(self._settings, has_model=self._model is not None)
        return ServedAgents(tuple(names), starting_agent(self._settings))

    async def ready(self) -> bool:
        """Whether there is a language model."""
        return self._model is not None

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        """The bare model, without any agent. Raises InvalidError where there is none."""
        if self._model is None:
            raise InvalidError("model: no language model is configured here", param="model")
        async with aclosing(self._model.chat(request)) as pieces:
            async for piece in pieces:
                yield piece

    def _make_run(self, run_id: str, request: RunRequest, picture: QuestionPicture | None) -> Run:
        from vrag_ray.serving.runs.factory import make_run

        retriever = ServedRetriever(self._searches, collection_names(request.collection))
        source = EvidenceSource(retriever, ServedPages(self._pages))
        return make_run(run_id, request, self._settings, source, self._model, picture)
