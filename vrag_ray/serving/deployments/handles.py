"""The gateway's four backends over Serve handles."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TYPE_CHECKING

from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    Feedback,
    IngestJob,
    PageElements,
    RatedRun,
    RunRequest,
    RunsPage,
    RunSummary,
)
from vrag_ray.serving.contract import (
    AgentState,
    FetchedRun,
    LoggedEvent,
    Original,
    Parts,
    ProfiledAnswer,
    Queries,
    RetrieverState,
    SearchScope,
    ServedAgents,
    UploadedFile,
)
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.serving.joined_searches import JoinedSearches
from vrag_ray.serving.ray_faults import call, call_again, stream, while_running
from vrag_ray.types import Box, Meta
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from ray.serve.handle import DeploymentHandle

    from vrag_ray.agent.chat import Delta, QuestionPicture
    from vrag_ray.policies.llm.chat_model import ChatRequest
    from vrag_ray.types import Completion


def handle_parts(retriever: DeploymentHandle, agent: DeploymentHandle, library: DeploymentHandle) -> Parts:
    """The three deployments behind the gateway, as the four things that it asks of them."""
    return Parts(HandleSearch(retriever), HandleRuns(agent), HandleModel(agent), HandleDocuments(library))


class HandleSearch(JoinedSearches):
    """``SearchPart`` over the retriever."""

    def __init__(self, retriever: DeploymentHandle, *, waits: bool = False) -> None:
        """``waits``: where no replica runs, as long as Serve does, as an agent's run can. Without it a search raises
        NotReadyError then."""

        async def searched(groups: Sequence[Queries], scope: SearchScope) -> Sequence[ProfiledAnswer]:
            answers = call_again(lambda: retriever.search_groups.remote(groups, scope), "retriever")
            return await (answers if waits else while_running(retriever, answers, "retriever"))

        super().__init__(searched)
        self._retriever = retriever

    async def embed(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        return await call_again(lambda: self._retriever.embed.remote(list(texts), queries=queries), "retriever")

    async def heat(self, query: str, doc_id: str, page: int) -> NDArray[np.float32]:
        return await call_again(lambda: self._retriever.heat.remote(query, doc_id, page), "retriever")

    async def states(self) -> tuple[RetrieverState, ...]:
        return await call(self._retriever.states.remote(), "retriever")


class HandleRuns:
    """``RunPart`` over the agent. Calls for one run go to the replica that runs it as long as replicas neither come
    nor go; any other replica answers them too, from what it shares with that one."""

    def __init__(self, agent: DeploymentHandle) -> None:
        self._agent = agent

    async def state(self) -> AgentState:
        states = await call(_everywhere(self._agent, "state"), "agent")
        finished: Counter[str] = Counter()
        for state in states:
            finished.update(state.finished)
        return AgentState(
            active=sum(state.active for state in states),
            finished=dict(finished),
            loop_lag_p99_s=max(state.loop_lag_p99_s for state in states),
        )

    async def start(self, request: RunRequest, picture: QuestionPicture | None = None) -> str:
        run_id = request.run_id or uuid.uuid4().hex
        request = with_changes(request, {"run_id": run_id})
        # Again: by its id it joins a run that the lost replica had begun.
        return await call_again(lambda: self._of(run_id).start.remote(request, picture), "agent")

    async def events(self, run_id: str, after: int) -> AsyncIterator[LoggedEvent]:
        responses = self._of(run_id).options(stream=True).event_batches.remote(run_id, after)
        batches: AsyncIterator[tuple[LoggedEvent, ...]] = stream(responses, "agent")
        async for events in batches:
            for event in events:
                yield event

    async def summary(self, run_id: str) -> RunSummary:
        return await call_again(lambda: self._of(run_id).summary.remote(run_id), "agent")

    async def fetch(self, run_id: str) -> FetchedRun:
        return await call_again(lambda: self._of(run_id).fetch.remote(run_id), "agent")

    async def list_runs(self, limit: int) -> RunsPage:
        return await call_again(lambda: self._agent.list_runs.remote(limit), "agent")

    async def cancel(self, run_id: str) -> FetchedRun:
        return await call_again(lambda: self._of(run_id).cancel.remote(run_id), "agent")

    async def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        return await call_again(lambda: self._agent.rate.remote(run_id, feedback), "agent")

    async def rating(self, run_id: str) -> RatedRun:
        return await call_again(lambda: self._agent.rating.remote(run_id), "agent")

    async def rated(self) -> list[RatedRun]:
        return await call_again(self._agent.rated.remote, "agent")

    def _of(self, run_id: str) -> DeploymentHandle:
        return self._agent.options(session_id=run_id)


class HandleModel:
    """``ModelPart`` over the agent, which has the model's handle."""

    def __init__(self, agent: DeploymentHandle) -> None:
        self._agent = agent
        self._stream = agent.options(stream=True)

    async def ready(self) -> bool:
        return await call(self._agent.ready.remote(), "agent")

    async def agents(self) -> ServedAgents:
        return await call_again(self._agent.agents.remote, "agent")

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        responses = self._stream.chat.remote(request)
        try:
            async for piece in stream(responses, "agent"):
                yield piece
        finally:
            # A reader who leaves ends the generation; a reply that is whole is not changed by it.
            responses.cancel()


class HandleDocuments:
    """``DocumentPart`` over the library."""

    def __init__(self, library: DeploymentHandle) -> None:
        self._library = library
        self._stream = library.options(stream=True)

    async def ready(self) -> None:
        await call(self._library.ready.remote(), "library")

    async def list_documents(self, limit: int, offset: int, collection: str = "") -> DocumentsPage:
        return await call_again(lambda: self._library.list_documents.remote(limit, offset, collection), "library")

    async def document_info(self, doc_id: str) -> DocumentInfo:
        return await call_again(lambda: self._library.document_info.remote(doc_id), "library")

    async def delete_document(self, doc_id: str, collection: str = "") -> DocumentDeleted:
        return await call(self._library.delete_document.remote(doc_id, collection), "library")

    async def page_png(self, doc_id: str, page: int, dpi: float, box: Box | None) -> bytes:
        return await call_again(lambda: self._library.page_png.remote(doc_id, page, dpi, box), "library")

    async def page_elements(self, doc_id: str, page: int) -> PageElements:
        return await call_again(lambda: self._library.page_elements.remote(doc_id, page), "library")

    async def frame_elements(self, doc_id: str, t: float) -> PageElements:
        return await call_again(lambda: self._library.frame_elements.remote(doc_id, t), "library")

    async def frame_png(self, doc_id: str, t: float) -> bytes:
        return await call_again(lambda: self._library.frame_png.remote(doc_id, t), "library")

    async def original(self, doc_id: str) -> Original:
        return await call_again(lambda: self._library.original.remote(doc_id), "library")

    def original_bytes(self, doc_id: str, start: int, stop: int) -> AsyncIterator[bytes]:
        return stream(self._stream.original_bytes.remote(doc_id, start, stop), "library")

    async def submit(self, job_id: str, files: Sequence[UploadedFile], meta: Meta, collection: str = "") -> IngestJob:
        return await call(self._library.submit.remote(job_id, list(files), dict(meta), collection), "library")

    async def job(self, job_id: str) -> IngestJob:
        return await call_again(lambda: self._library.job.remote(job_id), "library")


async def _everywhere(handle: DeploymentHandle, method: str) -> list[AgentState]:
    """What every replica that can answer says. Raises what one of them raised where none can."""
    results = await handle.broadcast(method).results_async(return_exceptions=True)
    good = [result for result in results if not isinstance(result, Exception)]
    if results and not good:
        raise results[0]
    if not good:
        raise NotReadyError("no replica is running")
    return good
