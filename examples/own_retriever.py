"""The agent over a retriever of one's own: python examples/own_retriever.py "When was crane 2 inspected?"

An agent asks a ``Retriever`` for hits, and ``Pages`` for their words and pictures of them. This class holds
three notes and ranks them by the words that they share with the query; yours may call any search engine.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Sequence

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.driver import Run
from vrag_ray.agent.ports import EvidenceSource
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import Settings
from vrag_ray.policies.registry import agent_spec
from vrag_ray.types import (
    HYBRID,
    Hit,
    Locator,
    PageText,
    Passage,
    PassageKind,
    Query,
    SearchAnswer,
    VragError,
    document_id,
    passage_id,
)
from vrag_ray.types.filters import SearchFilter

NOTES = {
    "cranes": "Crane 1 was inspected on 3 May 2024. Crane 2 was inspected on 17 September 2024.",
    "berths": "Shore power at the cruise berth was 4,210 MWh in 2024.",
    "ferries": "The ferries carried 8,431 passengers in 2024.",
}


class Notes:
    """A ``Retriever``, and the ``Pages`` behind its results."""

    def __init__(self, notes: dict[str, str]) -> None:
        self._passages = {}
        for title, text in notes.items():
            doc_id, place = document_id(title.encode()), Locator(span_start=0, span_end=len(text))
            name = passage_id(doc_id, place, 0)
            self._passages[title] = Passage(name, doc_id, PassageKind.TEXT, place, 0, text)

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,  # noqa: ARG002  these notes know no other
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        if filter is not None:
            raise VragError("these notes are searched without filters")
        results = tuple(self._best(Query.of(query), top_k) for query in queries)
        return SearchAnswer(results, shards_ok=1, shards_total=1, mode="words", collection_version=1)

    def _best(self, query: Query, top_k: int) -> tuple[Hit, ...]:
        if query.picture is not None:
            raise VragError("these notes are searched by words alone")
        words = set(query.text.lower().split())
        hits = [
            Hit(passage, title, f"note:{title}", score=len(words & set(passage.text.lower().split())) / len(words))
            for title, passage in self._passages.items()
        ]
        return tuple(sorted((hit for hit in hits if hit.score), key=lambda hit: -hit.score)[:top_k])

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        texts = {passage.doc_id: passage.text for passage in self._passages.values()}
        return [PageText(doc_id, place, texts[doc_id], (), width=0, height=0) for doc_id, place in pages]

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return [VragError("notes have no pictures") for _ in requests]


async def answer(question: str, notes: Notes) -> RunRecord:
    settings = Settings()
    # `extractive` needs no model; `vimrag` and `vrag` take one, as vrag_ray.policies.llm.openai_api.OpenAiModel.
    spec = agent_spec("extractive", settings.agent, settings.corpus, None)
    run = Run(
        uuid.uuid4().hex,
        question,
        policy=spec.policy,
        protocol=spec.protocol,
        source=EvidenceSource(retriever=notes, pages=notes),
        config=settings.agent,
        clock=time.monotonic,
        agent="extractive",
    )
    async for event in run.events():
        print(f"  {event.kind}")
    return run.record()


if __name__ == "__main__":
    print(asyncio.run(answer(sys.argv[1], Notes(NOTES))).answer)
