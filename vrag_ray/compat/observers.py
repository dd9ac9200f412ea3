"""Reports of what a run asks of its model and of its evidence: events leave prompts and whole hits out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from vrag_ray.agent.chat import Delta, Message, Picture, PictureRequest
from vrag_ray.agent.ports import EvidenceSource
from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest
from vrag_ray.types import Completion, Hit, Locator, PageText, SearchAnswer, VragError
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


class WatchedEvidence:
    """``EvidenceSource`` that reports the hits of each search of ``source``."""

    def __init__(self, source: EvidenceSource, report: Report) -> None:
        self._source = source
        self._report = report

    async def search(
        self, query: str, *, top_k: int, filter: SearchFilter | None, picture: bytes | None = None
    ) -> SearchAnswer:
        answer = await self._source.search(query, top_k=top_k, filter=filter, picture=picture)
        self._report(SearchHits(answer.results[0] if answer.results else ()))
        return answer

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return await self._source.page_texts(pages)

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return await self._source.pictures(requests)
