"""Reports of what a run asks of its model and of its evidence: events leave prompts and whole hits out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from vrag_ray.agent.chat import Delta, Message
from vrag_ray.agent.ports import Retriever
from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest
from vrag_ray.types import HYBRID, Completion, Hit, Query, SearchAnswer
from vrag_ray.types.filters import SearchFilter


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A chat as it goes to the model. A reply that was lost on the way is requested again by the same call."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole reply to the last call."""

    completion: Completion


@dataclass(frozen=True, slots=True)
class SearchHits:
    """All hits of a search, best first."""

    hits: tuple[Hit, ...]


Observation = ModelCall | ModelReply | SearchHits
Report = Callable[[Observation], None]
"""Takes each observation at once and in order. Cheap, and never raises."""


class WatchedModel:
    """``ChatModel`` that reports each call and each whole reply of ``model``."""

    def __init__(self, model: ChatModel, report: Report) -> None:
        self._model = model
        self._report = report

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        self._report(ModelCall(request.messages))
        async with aclosing(self._model.chat(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    self._report(ModelReply(piece))
                yield piece


class WatchedRetriever:
    """``Retriever`` that reports the hits of each query of ``retriever``."""

    def __init__(self, retriever: Retriever, report: Report) -> None:
        self._retriever = retriever
        self._report = report

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        answer = await self._retriever.search(queries, top_k=top_k, mode=mode, filter=filter)
        for hits in answer.results:
            self._report(SearchHits(hits))
        return answer
