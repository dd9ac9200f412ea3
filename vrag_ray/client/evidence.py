"""What agents read of a system: for runs outside of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.client.contract import System
from vrag_ray.client.hits import hit_of
from vrag_ray.client.schemas import PageElements, SearchRequest, data_url
from vrag_ray.imaging.coordinates import Size, model_size
from vrag_ray.imaging.fitting import REFERENCE_DPI, fitted, size_of
from vrag_ray.types import FULL_PAGE, HYBRID, Box, Locator, PageText, Query, SearchAnswer, VragError
from vrag_ray.types.captions import stamped
from vrag_ray.types.elements import Element
from vrag_ray.types.filters import SearchFilter

MAX_DPI = 1200.0
"""More the gateway refuses."""


def page_of(sent: PageElements, locator: Locator) -> PageText:
    """A page or clip as its elements tell it, without the places of single words."""
    parts = tuple(
        Element(part.number, part.kind, Box(*part.bbox), part.text, part.section, part.table, part.t_start, part.t_end)
        for part in sent.elements
    )
    lines = (stamped(part) for part in parts if part.table is None and part.text.strip())
    text = "\n".join([*lines, *([sent.notes] if sent.notes else [])])
    return PageText(
        sent.doc_id,
        locator,
        text,
        (),
        sent.width,
        sent.height,
        notes=sent.notes,
        elements=parts,
        continuation=sent.continuation,
    )


class SystemRetriever:
    """``Retriever`` over a system, whose errors it lets through."""

    def __init__(self, system: System) -> None:
        self._system = system

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """Raises VragError for several queries of which one has a picture: a request holds one picture."""
        sent = [Query.of(query) for query in queries]
        pictures = [query.picture for query in sent if query.picture is not None]
        if not pictures:
            request = SearchRequest(queries=[query.text for query in sent], top_k=top_k, mode=mode, filter=filter)
        elif len(sent) == 1:
            text, url = sent[0].text or None, data_url(pictures[0])
            request = SearchRequest(query=text, picture=url, top_k=top_k, mode=mode, filter=filter)
        else:
            raise VragError("a service searches for one picture at a time: send each query that has a picture alone")
        reply = await self._system.search(request)
        results = tuple(tuple(map(hit_of, hits)) for hits in reply.results)
        return SearchAnswer(
            results, reply.shards_ok, reply.shards_total, reply.mode, reply.collection_version, tuple(reply.notices)
        )


class SystemPages:
    """``Pages`` over a system. A page is known by its elements: the places of single words stay in the service."""

    def __init__(self, system: System) -> None:
        self._system = system

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return await asyncio.gather(*(self._text(doc_id, locator) for doc_id, locator in pages))

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return await asyncio.gather(*map(self._drawn, requests))

    async def _text(self, doc_id: str, locator: Locator) -> PageText | VragError:
        try:
            if locator.page is not None:
                return page_of(await self._system.page_elements(doc_id, locator.page), locator)
            if locator.t_start is not None and locator.t_end is not None:
                middle = (locator.t_start + locator.t_end) / 2
                return page_of(await self._system.frame_elements(doc_id, middle), locator)
        except VragError as error:
            return error
        # A plain text has no elements: it is known by the window that matched.
        return PageText(doc_id, locator, "", words=(), width=0.0, height=0.0)

    async def _drawn(self, request: PictureRequest) -> Picture | VragError:
        try:
            return await self._picture(request)
        except VragError as error:
            return error

    async def _picture(self, request: PictureRequest) -> Picture:
        is_page = request.locator.page is not None
        png = await self._draw(request, REFERENCE_DPI)
        # Of a video the whole frame comes, and the part is cut out here.
        part = FULL_PAGE if is_page or request.region is None else request.region
        whole = size_of(png)
        width, height = whole.width * (part.x1 - part.x0), whole.height * (part.y1 - part.y0)
        raw = Size(max(1, round(width)), max(1, round(height)))
        size = model_size(raw, patch=request.patch, min_pixels=request.min_pixels, max_pixels=request.max_pixels)
        scale = max(size.width / raw.width, size.height / raw.height)
        if scale > 1 and is_page:
            # A small part is drawn again, larger, from the source: enlarging its pixels would add nothing.
            png = await self._draw(request, min(MAX_DPI, REFERENCE_DPI * scale))
        return Picture(fitted(png, size, part), size)

    async def _draw(self, request: PictureRequest, dpi: float) -> bytes:
        locator = request.locator
        if locator.page is not None:
            return await self._system.page_png(request.doc_id, locator.page, dpi=dpi, box=request.region)
        start, end = locator.t_start or 0.0, locator.t_end or 0.0
        moment = request.t_frame if request.t_frame is not None else (start + end) / 2
        return await self._system.frame_png(request.doc_id, moment)
