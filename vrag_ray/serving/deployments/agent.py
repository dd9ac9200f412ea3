"""The agent deployment: many runs at once on one event loop, searching and reading through the other parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.agent.chat import Picture, PictureRequest, QuestionPicture
from vrag_ray.client.schemas import Feedback, RatedRun, RunRequest, RunsPage, RunSummary, collection_names
from vrag_ray.config import Settings
from vrag_ray.serving.backends import AgentState, FetchedRun, LoggedEvent, ServedAgents
from vrag_ray.serving.deployments.handles import joined_searches
from vrag_ray.serving.deployments.loop_lag import LoopLag
from vrag_ray.serving.errors import InvalidError, NoAnswerError, NotReadyError, ReplicaLostError
from vrag_ray.serving.joined_searches import JoinedSearches, SearchScope
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.ray_faults import call_again
from vrag_ray.serving.runs.feedback import FeedbackStore
from vrag_ray.serving.runs.service import RunService
from vrag_ray.serving.runs.store import RunStore
from vrag_ray.types import HYBRID, Locator, PageText, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter
from vrag_ray.types.redaction import public_uri, scrub

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

    from vrag_ray.agent.chat import Delta
    from vrag_ray.agent.driver import Run
    from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest
    from vrag_ray.types import Completion

T = TypeVar("T")
MODEL_ANSWERS_WITHIN_S = 0.7
"""As long again for the reason where no replica answers; both are less than ``/readyz`` waits."""


class HandleEvidence:
    """``EvidenceSource`` over the retriever and the library. What it returns may be shown: paths are cut off."""

    def __init__(self, searches: JoinedSearches, library: DeploymentHandle, collections: Sequence[str] = ()) -> None:
        """``collections`` are those that are searched, by name; none stands for the main one."""
        self._searches = searches
        self._library = library
        self._collections = tuple(collections)

    async def search(
        self, query: str, *, top_k: int, filter: SearchFilter | None, picture: bytes | None = None
    ) -> SearchAnswer:
        try:
            asked = query if picture is None else Query(query, picture)
            found = await self._searches.search([asked], SearchScope(top_k, HYBRID, filter, self._collections))
        except VragError as error:
            raise VragError(scrub(str(error))) from error
        answer: SearchAnswer = found.answer
        results = tuple(tuple(replace(hit, uri=public_uri(hit.uri)) for hit in hits) for hits in answer.results)
        return replace(answer, results=results)

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return _scrubbed(await call_again(lambda: self._library.page_texts.remote(tuple(pages)), "library"))

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return _scrubbed(await call_again(lambda: self._library.pictures.remote(tuple(requests)), "library"))


def _scrubbed(results: Sequence[T | VragError]) -> Sequence[T | VragError]:
    return [VragError(scrub(str(result))) if isinstance(result, VragError) else result for result in results]


class AgentService:
    """Runs by name of their agent. A run lives in one replica; every replica finds it in the folder that they share."""

    async def __init__(  # type: ignore[misc]
        self,
        settings: Settings,
        retriever: DeploymentHandle,
        library: DeploymentHandle,
        policy: DeploymentHandle | None = None,
    ) -> None:
        from vrag_ray.policies.registry import starting_agent
        from vrag_ray.serving.runs.factory import endpoint_model

        self._lag = LoopLag()
        self._settings = settings
        self._retriever = retriever
        self._searches = joined_searches(retriever)
        self._library = library
        self._model: ChatModel | None = endpoint_model(settings)
        if policy is not None:
            from vrag_ray.serving.deployments.policy import ServedModel

            self._model = ServedModel(policy)
        self._runs = RunService(
            RunStore(ServingPaths.of(settings).runs, settings.serving.kept_runs),
            self._make_run,
            max_concurrent=settings.serving.max_concurrent_runs,
            default_deadline_s=settings.agent.deadline_s,
            default_agent=starting_agent(settings),
        )
        self._feedback = FeedbackStore(ServingPaths.of(settings).runs / "feedback")

    def __del__(self) -> None:
        # Serve calls this when it stops a replica.
        if hasattr(self, "_runs"):
            self._runs.close()

    async def start(self, request: RunRequest, picture: QuestionPicture | None = None) -> str:
        """Raises InvalidError for collections that are not served, or cannot be searched together, NotFoundError for a
        document of the filter that none of them has."""
        names = collection_names(request.collection)
        if names or (request.filter is not None and request.filter.doc_ids):
            # Now, and not as a failed search of every step.
            await call_again(lambda: self._retriever.check.remote(names, request.filter), "retriever")
        return self._runs.start(request, picture)

    async def events(self, run_id: str, after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
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
        """The agents that can be asked here."""
        from vrag_ray.policies.registry import offered, starting_agent

        names = offered(self._settings, has_model=self._model is not None)
        return ServedAgents(tuple(names), starting_agent(self._settings))

    async def model_ready(self) -> bool:
        """Whether there is a language model to ask. Raises NotReadyError where one that is served here does not run: it
        starts, or cannot start, and why."""
        from vrag_ray.serving.deployments.policy import ServedModel, why_not_running

        if isinstance(self._model, ServedModel):
            states = asyncio.ensure_future(self._model.states())
            await asyncio.wait({states}, timeout=MODEL_ANSWERS_WITHIN_S)
            if not states.done():
                states.cancel()
                raise NoAnswerError(f"the language model did not answer within {MODEL_ANSWERS_WITHIN_S:g} s")
            try:
                replicas = states.result()
            except ReplicaLostError:
                replicas = ()
            if not replicas:
                reason = asyncio.ensure_future(asyncio.to_thread(why_not_running, self._settings))
                await asyncio.wait({reason}, timeout=MODEL_ANSWERS_WITHIN_S)
                raise NotReadyError(reason.result() if reason.done() else "no replica of the language model runs")
        return self._model is not None

    async def chat(self, request: ChatRequest) -> AsyncIterator[Delta | Completion]:
        """The bare model, without any agent. Raises InvalidError where there is none."""
        if self._model is None:
            raise InvalidError("model: no language model is configured here", param="model")
        async with aclosing(self._model.chat(request)) as pieces:
            async for piece in pieces:
                yield piece

    def _make_run(self, run_id: str, request: RunRequest, picture: QuestionPicture | None) -> Run:
        from vrag_ray.serving.runs.factory import make_run

        source = HandleEvidence(self._searches, self._library, collection_names(request.collection))
        return make_run(run_id, request, self._settings, source, self._model, picture)
