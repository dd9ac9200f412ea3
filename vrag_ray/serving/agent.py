"""The agent deployment: many runs at once on one event loop, searching and reading through the other parts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from vrag_ray.api import RunRequest, RunsPage, RunSummary
from vrag_ray.config import AgentConfig, Settings
from vrag_ray.filters import SearchFilter
from vrag_ray.serving.backend import AgentState, FetchedRun
from vrag_ray.serving.errors import InvalidError, public_uri, scrub
from vrag_ray.serving.handles import call
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.run_service import RunService
from vrag_ray.serving.runs import RunStore
from vrag_ray.serving.sse import LoggedEvent
from vrag_ray.types import Locator, PageText, SearchAnswer, SearchMode, VragError

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

    from vrag_ray.agent.driver import Policy, Run


class HandleEvidence:
    """``EvidenceSource`` over the retriever and the library. What it returns may be shown: paths are cut off."""

    def __init__(self, retriever: DeploymentHandle, library: DeploymentHandle) -> None:
        self._retriever = retriever
        self._library = library

    async def search(self, query: str, *, top_k: int, filter: SearchFilter | None) -> SearchAnswer:
        from dataclasses import replace

        try:
            found = await call(self._retriever.search.remote([query], top_k, SearchMode.HYBRID, filter), "retriever")
        except VragError as error:
            raise VragError(scrub(str(error))) from error
        answer: SearchAnswer = found.answer
        results = tuple(tuple(replace(hit, uri=public_uri(hit.uri)) for hit in hits) for hits in answer.results)
        return replace(answer, results=results)

    async def page_text(self, doc_id: str, locator: Locator) -> PageText:
        try:
            return await call(self._library.page_text.remote(doc_id, locator), "library")
        except VragError as error:
            raise VragError(scrub(str(error))) from error


class AgentService:
    """Runs by name of their agent. A run lives in one replica; finished ones are on disk."""

    def __init__(self, settings: Settings, retriever: DeploymentHandle, library: DeploymentHandle) -> None:
        self._settings = settings
        self._source = HandleEvidence(retriever, library)
        self._runs = RunService(
            RunStore(ServingPaths.of(settings).runs, settings.serving.kept_runs),
            self._make_run,
            max_concurrent=settings.serving.max_concurrent_runs,
            default_deadline_s=settings.agent.deadline_s,
        )

    async def start(self, request: RunRequest) -> str:
        return self._runs.start(request)

    async def events(self, run_id: str, after: int) -> AsyncIterator[LoggedEvent]:
        async for event in self._runs.read(run_id, after):
            yield event

    async def summary(self, run_id: str) -> RunSummary:
        return self._runs.summary(run_id)

    async def fetch(self, run_id: str) -> FetchedRun:
        return self._runs.fetch(run_id)

    async def list_runs(self, limit: int) -> RunsPage:
        return self._runs.list(limit)

    async def cancel(self, run_id: str) -> FetchedRun:
        return await self._runs.cancel(run_id)

    async def state(self) -> AgentState:
        return self._runs.state()

    def _make_run(self, run_id: str, request: RunRequest) -> Run:
        from vrag_ray.agent.driver import Run

        wanted = {"max_steps": request.max_steps, "deadline_s": request.deadline_s}
        config = self._settings.agent.model_copy(update={k: v for k, v in wanted.items() if v is not None})
        return Run(
            run_id,
            request.question,
            policy=make_policy(request.agent, config),
            source=self._source,
            config=config,
            clock=time.monotonic,
            agent=request.agent,
            filter=request.filter,
        )


AGENTS = ("extractive",)
"""Every agent this server offers, by the name that a request gives."""


def make_policy(agent: str, config: AgentConfig) -> Policy:
    """What decides in a run of ``agent``. Raises InvalidError for a name that is not in ``AGENTS``."""
    from vrag_ray.policies.extractive import ExtractivePolicy

    if agent not in AGENTS:
        raise InvalidError(f"agent: {agent} is not one of {', '.join(AGENTS)}", param="agent")
    return ExtractivePolicy(config)
