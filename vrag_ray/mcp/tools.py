"""The four tools. Their docstrings are the descriptions that a model reads; each raises VragError where it fails."""

from __future__ import annotations

import base64
import logging
import uuid
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Annotated, Self

import anyio
from mcp.server.mcpserver import Context
from mcp.types import ImageContent, TextContent
from pydantic import Field

from vrag_ray.agent.events import AnswerEvent, ErrorEvent, StartEvent
from vrag_ray.client.http import AsyncClient, ServerError
from vrag_ray.client.schemas import CollectionChoice, DocumentInfo, Query, RunRequest, SearchRequest
from vrag_ray.mcp.pictures import PictureFormat, fitted_picture
from vrag_ray.mcp.results import Answer, Corners, PageContent, SearchResult
from vrag_ray.types import Box, DocumentKind, PassageKind, VragError
from vrag_ray.types.filters import SearchFilter
from vrag_ray.views.words import box_text, event_lines

log = logging.getLogger("vrag_ray.mcp")
CANCEL_TIMEOUT_S = 5.0
DocId = Annotated[
    # The id becomes a part of a path on the server, so nothing but hexadecimal digits may pass.
    str, Field(pattern="^[0-9a-f]{8,64}$", description="doc_id of a search hit or a citation.")
]
CollectionParam = Annotated[
    CollectionChoice,
    Field(description="Of several collections: one by its name, a list of names, or * for all; null: the main one."),
]


class Tools:
    """The tools over the gateway at ``url``. Use as an async context manager."""

    def __init__(self, url: str, api_key: str | None) -> None:
        self.url = url
        self._client = AsyncClient(url, api_key=api_key)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def search_documents(
        self,
        query: Annotated[Query, Field(description="What to look for, in plain words.")],
        top_k: Annotated[int, Field(ge=1, le=100, description="Hits at most.")] = 5,
        kinds: Annotated[
            list[PassageKind] | None, Field(min_length=1, description="Only these kinds of passage; null: all.")
        ] = None,
        collection: CollectionParam = None,
    ) -> SearchResult:
        """Find the pages, pictures, video clips and texts of a collection that fit a query best.

        Each hit names its document, its page or time range and, where known, the box around its text: hand these to
        get_page to see the place itself.
        """
        narrowed = SearchFilter(kinds=kinds) if kinds else None
        request = SearchRequest(query=query, top_k=top_k, collection=collection, filter=narrowed)
        return SearchResult.of(await self._client.search(request))

    async def get_page(
        self,
        doc_id: DocId,
        page: Annotated[int | None, Field(ge=1, description="Page, from 1; 1 for a picture.")] = None,
        t: Annotated[float | None, Field(ge=0, description="For videos, instead of page: seconds.")] = None,
        bbox: Annotated[
            Corners | None,
            Field(description="x0, y0, x1, y1 in fractions of the page, origin top left; null: all of it."),
        ] = None,
        dpi: Annotated[int, Field(ge=9, le=600, description="Dots per inch of a page; more shows finer print.")] = 100,
        max_side: Annotated[
            int, Field(ge=64, le=10_000, description="Pixels of the longer side at most; larger pictures are reduced.")
        ] = 2_000,
        format: Annotated[
            PictureFormat, Field(description="auto: the smaller of both, reduced to at most 1 MB.")
        ] = PictureFormat.AUTO,
    ) -> list[TextContent | ImageContent]:
        """See a page, a part of a page or a video frame as a picture.

        Give page for PDFs and pictures, t for videos. A part (bbox) is drawn anew from the source, so a higher dpi
        shows real detail.
        """
        box = Box(*bbox) if bbox is not None else None
        document = await self._document(doc_id)
        if document.kind is DocumentKind.TEXT:
            raise VragError(f"document {doc_id} is plain text without pictures: search_documents returns its text")
        if document.kind is DocumentKind.VIDEO:
            if t is None or page is not None or box is not None:
                raise VragError(f"document {doc_id} is a video: give t in seconds, and neither page nor bbox")
            png = await self._client.frame_png(doc_id, t)
            place = f"frame at {t:g} s"
        else:
            if page is None or t is not None:
                raise VragError(f"document {doc_id} has pages and is no video: give page, and no t")
            png = await self._client.page_png(doc_id, page, dpi=dpi, box=box)
            region = f", region {box_text(box.as_tuple())}" if box is not None else ""
            place = f"page {page}{region} at {dpi} dpi"
        picture = await anyio.to_thread.run_sync(partial(fitted_picture, png, max_side=max_side, format=format))
        size = f"{picture.width} x {picture.height} pixels{picture.reduced_from}"
        caption = f"{document.title}, {place}, {size} (document {document.doc_id})"
        return [
            TextContent(type="text", text=caption),
            ImageContent(
                type="image", data=base64.b64encode(picture.data).decode("ascii"), mime_type=f"image/{picture.format}"
            ),
        ]

    async def read_page(
        self,
        doc_id: DocId,
        page: Annotated[int | None, Field(ge=1, description="Page, from 1; 1 for a picture.")] = None,
        t: Annotated[float | None, Field(ge=0, description="Of a video: a second of the clip.")] = None,
    ) -> PageContent:
        """Read a page: its headings, paragraphs, tables (as Markdown), captions and pictures in reading order.

        Or the clip of a video around a second: what is said, what is written in the picture, and its shots. Each has a
        number and its box, in a video its times: hand the box, or a time, to get_page to see it.
        """
        document = await self._document(doc_id)
        if document.kind is DocumentKind.TEXT:
            raise VragError(f"document {doc_id} has no pages: search_documents returns its text")
        if document.kind is DocumentKind.VIDEO:
            if t is None or page is not None:
                raise VragError(f"document {doc_id} is a video: give t in seconds, and no page")
            return PageContent.of(document.title, await self._client.frame_elements(doc_id, t))
        if page is None or t is not None:
            raise VragError(f"document {doc_id} has pages and is no video: give page, and no t")
        return PageContent.of(document.title, await self._client.page_elements(doc_id, page))

    async def ask(
        self,
        context: Context,
        question: Annotated[Query, Field(description="In plain words.")],
        agent: Annotated[
            str | None,
            Field(
                min_length=1,
                max_length=64,
                description="Who answers: vimrag or vrag ask a language model, extractive quotes by rules; null: as "
                "the server is set.",
            ),
        ] = None,
        max_steps: Annotated[
            int | None, Field(ge=2, le=100, description="Steps at most; null: what the server has set.")
        ] = None,
        collection: CollectionParam = None,
    ) -> Answer:
        """Have an agent search, look closer and answer, with numbered citations of document, page or time, and box.

        The answer is taken from the documents alone. When the evidence is weak the agent abstains and says so.
        """
        request = RunRequest(
            question=question, agent=agent, max_steps=max_steps, collection=collection, run_id=uuid.uuid4().hex
        )
        run_id, answering = request.run_id or "", agent or ""
        try:
            async with aclosing(self._client.ask(request)) as events:
                async for event in events:
                    line = next(event_lines(event), None)
                    if line is not None:
                        await context.report_progress(event.seq + 1, message=" ".join(line.split()))
                    if isinstance(event, StartEvent):
                        answering = event.agent
                    if isinstance(event, AnswerEvent):
                        return Answer.of(event, run_id)
                    if isinstance(event, ErrorEvent) and event.terminal:
                        raise VragError(f"run {run_id} of the agent {answering} failed: {event.message}")
        except anyio.get_cancelled_exc_class():
            await self._cancel(run_id)
            raise
        raise VragError(f"run {run_id} of the agent {answering} ended without an answer: ask again")

    async def _document(self, doc_id: str) -> DocumentInfo:
        try:
            return await self._client.document(doc_id)
        except ServerError as error:
            if error.status != 404:
                raise
            raise VragError(
                f"document {doc_id} is not known to the server at {self.url}: use a doc_id of search_documents"
            ) from error

    async def _cancel(self, run_id: str) -> None:
        """End the run of a caller who no longer waits; where that fails, its deadline ends it."""
        with anyio.move_on_after(CANCEL_TIMEOUT_S, shield=True):
            try:
                await self._client.cancel(run_id)
            except VragError as error:
                log.warning("run %s could not be cancelled: %s", run_id, error)
