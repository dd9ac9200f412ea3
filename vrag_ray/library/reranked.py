"""The first results of a search read again by a model that sees question and page together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.ports import Pages, Retriever
from vrag_ray.config import Settings
from vrag_ray.embedding.base import Content, PictureSpec
from vrag_ray.embedding.pictures import fitted_to
from vrag_ray.types import HYBRID, Hit, PassageKind, Query, SearchAnswer, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from vrag_ray.embedding.reranker import Reranker

RERANKER = "reranker"
"""The name of its score among those of the legs."""


async def reranker_of(settings: Settings) -> Reranker | None:
    """The model of ``settings.reranker``, loaded. Raises VragError where it cannot be."""
    if settings.reranker is None:
        return None
    from vrag_ray.embedding.reranker import load_reranker

    device = settings.device_of(settings.reranker.device)
    return await asyncio.to_thread(load_reranker, with_changes(settings.reranker, {"device": device}))


def reranked(settings: Settings, retriever: Retriever, pages: Pages, reranker: Reranker | None) -> Retriever:
    """``retriever``, with ``reranker`` after it where there is one."""
    if settings.reranker is None or reranker is None:
        return retriever
    return RerankedSearch(retriever, pages, reranker, settings.reranker.top_n)


class RerankedSearch:
    """``Retriever`` whose first ``top_n`` results are in the reranker's order; the others follow as they were found.

    A page is read as its picture, a clip as its middle frame, a text as its words. Where one of them cannot be drawn or
    read, the results stay as the search has them, and a notice says so.
    """

    def __init__(self, retriever: Retriever, pages: Pages, reranker: Reranker, top_n: int) -> None:
        self._retriever, self._pages, self._reranker = retriever, pages, reranker
        self._top_n = top_n

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        queries_ = [Query.of(query) for query in queries]
        answer = await self._retriever.search(queries_, top_k=max(top_k, self._top_n), mode=mode, filter=filter)
        results, notices = [], list(answer.notices)
        for query, hits in zip(queries_, answer.results, strict=True):
            try:
                ordered = await self._ordered(query, hits)
            except VragError as error:
                notices.append(f"the results were not read again by {self._reranker.id}: {error}")
                ordered = list(hits)
            results.append(tuple(ordered[:top_k]))
        return replace(answer, results=tuple(results), notices=tuple(dict.fromkeys(notices)))

    async def _ordered(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        first, rest = hits[: self._top_n], hits[self._top_n :]
        if not first:
            return []
        spec = self._reranker.pictures
        passages = await self._contents(first, spec)
        picture = None if query.picture is None else fitted_to(query.picture, spec)
        scores = await asyncio.to_thread(self._reranker.score, Content(query.text, picture), passages)
        read = [
            replace(hit, score=score, scores={**hit.scores, RERANKER: score})
            for hit, score in zip(first, scores, strict=True)
        ]
        # Stable: of equals, the result that the search had first stays first.
        read.sort(key=lambda hit: -hit.score)
        # Those that were not read rank below, and their scores say so.
        least, highest = read[-1].score, max((hit.score for hit in rest), default=1.0)
        return [*read, *(replace(hit, score=least * hit.score / highest if highest > 0 else 0.0) for hit in rest)]

    async def _contents(self, hits: Sequence[Hit], spec: PictureSpec) -> list[Content]:
        """Raises the VragError of the first page that cannot be drawn."""
        drawn = [hit for hit in hits if hit.passage.kind is not PassageKind.TEXT]
        requests = [
            PictureRequest(
                hit.passage.doc_id, hit.passage.locator, None, None, spec.patch, spec.min_pixels, spec.max_pixels
            )
            for hit in drawn
        ]
        pictures = dict(zip((hit.passage.id for hit in drawn), await self._pages.pictures(requests), strict=True))
        return [_content(hit, pictures.get(hit.passage.id)) for hit in hits]


def _content(hit: Hit, picture: Picture | VragError | None) -> Content:
    if isinstance(picture, VragError):
        raise picture
    return Content(hit.passage.text) if picture is None else Content(picture=picture.png)
