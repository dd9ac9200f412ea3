"""Stored documents as people and models see them: pages, words, pictures and original bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.caching import SingleFlight, SizedLRU
from vrag_ray.config import Settings
from vrag_ray.library.newest import NewestCollection
from vrag_ray.library.pages import PageReader, Stored
from vrag_ray.types import (
    Box,
    Document,
    DocumentKind,
    DocumentStatus,
    InvalidError,
    Locator,
    NotFoundError,
    PageText,
    VragError,
)
from vrag_ray.types.collection_names import ALL_COLLECTIONS, chosen_names, single_name
from vrag_ray.types.page_breaks import continuation, open_paragraph

if TYPE_CHECKING:
    from vrag_ray.index.storage.collection import Collection

T = TypeVar("T")
CHUNK_BYTES = 1 << 20
LOCK_WAIT_S = 5.0
"""How long a delete waits for an ingest that is writing, before it asks the caller to come back."""
FRAME_DPI = 150.0
"""The sandbox gives frames their own pixels at this value."""


class UndrawableError(InvalidError):
    """A stored document, or a page of it, of which no picture can be drawn; the message says why."""

    param = "doc_id"


class CollectionBusyError(VragError):
    """Another process writes to the collection for longer than a caller should wait."""

    status = 409
    code = "busy"


class SeveralCollectionsError(VragError):
    """A document is in more than one collection, and the request names none."""

    status = 409
    code = "ambiguous"
    param = "collection"


class Library:
    """The documents of ``settings.served``, always at the newest version of each collection.

    Ids of documents name their content, so a page is the same in whichever collection it is found: it is read in the
    first that has it.
    """

    def __init__(self, settings: Settings) -> None:
        self._collections = {name: NewestCollection(root) for name, root in settings.served.items()}
        self._fitted: SizedLRU[str, bytes] = SizedLRU(settings.serving.render_cache_mb << 20, len)
        self._fitting: SingleFlight[str, Picture] = SingleFlight()
        self._pages = PageReader(settings.corpus, settings.serving)

    async def documents(self, collection: str = "") -> tuple[Sequence[Document], int]:
        """All documents of one collection, by default the main one, and its version.

        Raises UnknownCollectionError.
        """
        newest = await self._collections[single_name(self._collections, collection)].get()
        return newest.documents(), newest.version

    async def document(self, doc_id: str) -> Document:
        """As readers see it. Raises NotFoundError."""
        collection, document = await self._holder_of(doc_id)
        return collection.shown(document)

    async def delete(self, doc_id: str, collection: str = "") -> str:
        """Delete a document; the name of the collection that had it. A retriever finds it until that is refreshed.

        Raises SeveralCollectionsError where no collection is named and several have the document, and
        CollectionBusyError while another process writes for longer than ``LOCK_WAIT_S``.
        """
        names = chosen_names(self._collections, [collection or ALL_COLLECTIONS])
        holders = {name: held for name in names if (held := await self._document_in(name, doc_id)) is not None}
        if not holders:
            await self._holder_of(doc_id)
            raise NotFoundError(f"document {doc_id} is not in {collection}: it is in another collection here")
        if len(holders) > 1:
            raise SeveralCollectionsError(f"document {doc_id} is in {' and '.join(holders)}: say in which to delete it")
        [(name, document)] = holders.items()
        await asyncio.to_thread(_delete, self._collections[name].root, document.doc_id)
        return name

    async def page_png(self, doc_id: str, page: int, dpi: float, box: Box | None) -> bytes:
        collection, document = await self._holder_of(doc_id)
        return await self._png(collection, document, _place_of(document, page), dpi, box)

    async def page(self, doc_id: str, page: int) -> PageText:
        """The words and the elements of a page, those that OCR found at ingest included. Raises as ``page_png``."""
        from vrag_ray.corpus.model import DecodeError

        collection, document = await self._holder_of(doc_id)
        place = _place_of(document, page)
        if document.status is DocumentStatus.ERROR:
            raise UndrawableError(f"document {document.doc_id} could not be read: {document.error}")
        try:
            return await self._page_text(collection, document, place)
        except DecodeError as error:
            raise UndrawableError(f"{place} of document {document.doc_id} cannot be read: {error}") from error

    async def clip(self, doc_id: str, t: float) -> PageText:
        """What is spoken, written and shown in the clip of a video around a second. Raises as ``page_png``."""
        from vrag_ray.corpus.model import DecodeError

        collection, document = await self._holder_of(doc_id)
        if document.kind is not DocumentKind.VIDEO:
            raise NotFoundError(f"document {doc_id} is no video: ask for pages/{{n}}/elements")
        if document.status is DocumentStatus.ERROR:
            raise UndrawableError(f"document {document.doc_id} could not be read: {document.error}")
        clips = await asyncio.to_thread(collection.clips, document.doc_id)
        # A second on the border of two belongs to the later.
        clip = next((clip for clip in reversed(clips) if (clip.t_start or 0.0) <= t <= (clip.t_end or 0.0)), None)
        if clip is None:
            raise NotFoundError(f"document {doc_id} has no {t:g} s: it lasts {clips[-1].t_end if clips else 0:g} s")
        try:
            return await self._text(collection, document, clip)
        except DecodeError as error:
            raise UndrawableError(f"{clip} of document {document.doc_id} cannot be read: {error}") from error

    async def frame_png(self, doc_id: str, t: float) -> bytes:
        collection, document = await self._holder_of(doc_id)
        if document.kind is not DocumentKind.VIDEO:
            raise NotFoundError(f"document {doc_id} is no video: ask for pages/{{n}}.png")
        return await self._png(collection, document, Locator(t_start=t, t_end=t), FRAME_DPI, None)

    async def page_text(self, doc_id: str, locator: Locator) -> PageText:
        """The words of one unit, those that OCR found at ingest included, and how the next page goes on with it."""
        return await self._page_text(*await self._holder_of(doc_id), locator)

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        """``page_text`` of each, or why not: one call for all pages of a search, because each call has its price.

        So have hundreds of elements: of the cells of a page of figures the boxes alone are sent, and agents read their
        words in the text of the table.
        """
        texts = await _each([self.page_text(doc_id, locator) for doc_id, locator in pages])
        return [text if isinstance(text, VragError) else _with_plain_cells(text) for text in texts]

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        """``picture`` of each, or why not."""
        return await _each([self.picture(request) for request in requests])

    async def picture(self, request: PictureRequest) -> Picture:
        """A page, picture or frame, or a part of it, as a model is to see it.

        Runs look at the same pages again and again, and drawing one takes a tenth of a second: the last are kept.
        """
        from vrag_ray.imaging.fitting import size_of

        key = repr(request)
        known = self._fitted.get(key)
        if known is not None:
            return Picture(known, size_of(known))
        picture = await self._fitting.result(key, lambda: self._fit(request))
        self._fitted.put(key, picture.png)
        return picture

    async def _fit(self, request: PictureRequest) -> Picture:
        from vrag_ray.library.page_images import fitted

        collection, document = await self._holder_of(request.doc_id)
        page = await self._text(collection, document, request.locator)

        async def draw(place: Locator, dpi: float, box: Box | None) -> bytes:
            return await self._png(collection, document, place, dpi, box)

        return await fitted(request, document.kind, (page.width, page.height), draw)

    async def original_bytes(self, doc_id: str, start: int, stop: int) -> AsyncIterator[bytes]:
        collection, _ = await self._holder_of(doc_id)
        path = await asyncio.to_thread(collection.blob_path, doc_id)
        position = start
        while position < stop:
            chunk = await asyncio.to_thread(_read, path, position, min(CHUNK_BYTES, stop - position))
            if not chunk:
                return
            position += len(chunk)
            yield chunk

    async def ready(self) -> None:
        """Raises VragError where a collection cannot be read."""
        for collection in self._collections.values():
            await collection.get()

    def close(self) -> None:
        self._pages.close()

    async def _page_text(self, collection: Collection, document: Document, locator: Locator) -> PageText:
        page = await self._text(collection, document, locator)
        if locator.page is None or locator.page >= document.units or open_paragraph(page.elements) is None:
            return page
        try:
            following = await self._text(collection, document, Locator(page=locator.page + 1))
        except VragError:
            # This page was read; a request for the next one says what is wrong with it.
            return page
        rest = continuation(page.elements, following.elements)
        return replace(page, continuation=rest) if rest else page

    async def _text(self, collection: Collection, document: Document, locator: Locator) -> PageText:
        return await self._pages.text(
            document, locator, lambda: asyncio.to_thread(_stored, collection, document.doc_id, locator)
        )

    async def _png(
        self, collection: Collection, document: Document, locator: Locator, dpi: float, box: Box | None
    ) -> bytes:
        from vrag_ray.corpus.model import DecodeError

        if document.status is DocumentStatus.ERROR:
            raise UndrawableError(f"document {document.doc_id} could not be read: {document.error}")
        path = await asyncio.to_thread(collection.pages_path, document.doc_id)
        try:
            return await self._pages.png(document, path, locator, dpi, box)
        except DecodeError as error:
            raise UndrawableError(f"{locator} of document {document.doc_id} cannot be drawn: {error}") from error

    async def _holder_of(self, doc_id: str) -> tuple[Collection, Document]:
        """The first collection that has a document. Raises NotFoundError."""
        problem: VragError | None = None
        for newest in self._collections.values():
            try:
                collection = await newest.get()
                return collection, collection.document(doc_id)
            except VragError as error:
                # An error of a collection that cannot be read tells more than its absence from another.
                problem = problem if problem is not None and isinstance(error, NotFoundError) else error
        raise problem or NotFoundError(f"document {doc_id} is in no collection here")

    async def _document_in(self, name: str, doc_id: str) -> Document | None:
        try:
            return (await self._collections[name].get()).document(doc_id)
        except NotFoundError:
            return None


async def _each(reads: Sequence[Awaitable[T]]) -> Sequence[T | VragError]:
    async def result_of(call: Awaitable[T]) -> T | VragError:
        try:
            return await call
        except VragError as error:
            return error

    return await asyncio.gather(*map(result_of, reads))


def _with_plain_cells(page: PageText) -> PageText:
    """``page`` as agents are given it: of the cells of its tables those of several lines, whose words the lines of the
    page mix, as elements, and of all the boxes."""
    cells = tuple(part.box.as_tuple() for part in page.elements if part.table is not None)
    return replace(
        page, elements=tuple(part for part in page.elements if part.table is None or "\n" in part.text), cells=cells
    )


def _place_of(document: Document, page: int) -> Locator:
    """Raises NotFoundError where a document has no pages, or no page of that number."""
    if document.kind is DocumentKind.VIDEO:
        raise NotFoundError(f"document {document.doc_id} is a video: ask for frames/{{seconds}}.png")
    if document.kind is DocumentKind.TEXT:
        raise NotFoundError(f"document {document.doc_id} is plain text and has no pages: ask for original")
    if page > document.units:
        raise NotFoundError(f"document {document.doc_id} has {document.units} pages, there is no page {page}")
    return Locator(page=page)


def _stored(collection: Collection, doc_id: str, locator: Locator) -> Stored:
    """Blocking."""
    first = collection.first_window(doc_id, locator)
    words, cues, shots = (first.words, first.cues, first.shots) if first is not None else ((), (), ())
    return Stored(collection.pages_path(doc_id), words, cues, shots, collection.notes_path(doc_id))


def _delete(root: str, doc_id: str) -> None:
    """Blocking."""
    from vrag_ray.index.storage.writer import BusyError, CollectionWriter

    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            writer = CollectionWriter(root)
            break
        except BusyError as error:
            if time.monotonic() > deadline:
                raise CollectionBusyError(f"document {doc_id} cannot be deleted now: {error}") from error
            time.sleep(0.1)
    with writer:
        writer.delete(doc_id)
        writer.publish("delete")


def _read(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)
