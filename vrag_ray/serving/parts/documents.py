"""Documents and their pages, uploads and the jobs that ingest them."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    IngestJob,
    PageElement,
    PageElements,
)
from vrag_ray.config import Settings
from vrag_ray.corpus.formats.encodings import encoding_in
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.library.library import Library
from vrag_ray.serving.contract import Original, UploadedFile
from vrag_ray.serving.ingest_jobs.queue import JobQueue, Report, StoredJob
from vrag_ray.serving.ingest_jobs.task import run_job
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.types import Document, DocumentKind, Meta, PageText
from vrag_ray.types.collection_names import single_name
from vrag_ray.types.copies import with_changes
from vrag_ray.types.redaction import public_uri, scrub

if TYPE_CHECKING:
    from vrag_ray.serving.ingest_jobs.task import IngestFiles

_SAFE_PREFIXES = {DocumentKind.IMAGE: "image/", DocumentKind.VIDEO: "video/"}


class Documents(Library):
    """``Library`` as ``DocumentPart``: its answers as the gateway sends them, and the jobs that ingest uploads."""

    def __init__(
        self, settings: Settings, refresh: Callable[[str], Awaitable[int | None]], ingest: IngestFiles
    ) -> None:
        """``refresh`` has searches find the newest version of a collection. It returns the version's number, or None
        where the next search begins with it, and raises VragError where the version cannot be searched. ``ingest``
        reads the files of one upload. Made on an event loop.
        """
        super().__init__(settings)
        self._refresh_searches = refresh
        self._served = settings.served

        async def run(job: StoredJob, report: Report) -> IngestJob:
            name = self._name(job.public.collection)
            collection = with_changes(settings, {"collection": settings.served[name], "collections": {}})
            return await run_job(collection, job, report, ingest, lambda: self._refresh(name))

        uploads_dir, limits = ServingPaths.of(settings).uploads, settings.serving
        with storage_faults(str(uploads_dir), "opening it (serving.uploads_dir) for writing", is_collection=False):
            self._jobs = JobQueue(uploads_dir, run, max_waiting=limits.max_waiting_jobs, keep=limits.kept_jobs)

    async def aclose(self) -> None:
        """A job that is under way is interrupted; the next start of the service goes on with it."""
        await self._jobs.close()
        self.close()

    async def list_documents(self, limit: int, offset: int, collection: str = "") -> DocumentsPage:
        name = self._name(collection)
        newest = await self._collections[name].get()
        documents = newest.documents()
        return DocumentsPage(
            collection=name,
            documents=[document_info(newest.shown(document)) for document in documents[offset : offset + limit]],
            total=len(documents),
            collection_version=newest.version,
        )

    async def document_info(self, doc_id: str) -> DocumentInfo:
        return document_info(await self.document(doc_id))

    async def delete_document(self, doc_id: str, collection: str = "") -> DocumentDeleted:
        if collection:
            self._name(collection)
        document = await self.document(doc_id)
        name = await self.delete(doc_id, collection)
        version = await self._refresh(name)
        return DocumentDeleted(doc_id=document.doc_id, collection=name, collection_version=version)

    async def page_elements(self, doc_id: str, page: int) -> PageElements:
        return elements_reply(await self.page(doc_id, page))

    async def frame_elements(self, doc_id: str, t: float) -> PageElements:
        return elements_reply(await self.clip(doc_id, t))

    async def original(self, doc_id: str) -> Original:
        document = await self.document(doc_id)
        name = public_uri(document.uri).rpartition("/")[2] or document.doc_id
        type_ = media_type(document, name)
        return Original(document.doc_id, name, type_, document.size_bytes)

    async def submit(self, job_id: str, files: Sequence[UploadedFile], meta: Meta, collection: str = "") -> IngestJob:
        name = self._name(collection)
        # An ingest makes the collection that it is given; a service only fills those that it serves.
        await self.documents(name)
        return self._jobs.submit(job_id, files, meta, name)

    async def job(self, job_id: str) -> IngestJob:
        return self._jobs.job(job_id)

    def _name(self, collection: str) -> str:
        """The name of a collection, of the main one for "". Raises UnknownCollectionError."""
        return single_name(self._served, collection)

    async def _refresh(self, name: str) -> int:
        version = await self._refresh_searches(name)
        return (await self.documents(name))[1] if version is None else version


def document_info(document: Document) -> DocumentInfo:
    """A document as it goes over HTTP: no path of this machine."""
    return DocumentInfo(
        doc_id=document.doc_id,
        uris=[public_uri(uri) for uri in document.uris],
        title=document.title,
        kind=document.kind,
        status=document.status,
        units=document.units,
        size_bytes=document.size_bytes,
        added_at=document.added_at,
        error=scrub(document.error),
        notices=[scrub(notice) for notice in document.notices],
        meta=dict(document.meta),
    )


def media_type(document: Document, name: str) -> str:
    """A type that a browser cannot be led to run: detected from the bytes, from the name only within that kind.

    What is drawn as pages but is no PDF, an office file or a web page, is nothing for a browser.
    """
    format_ = document.meta.get("format")
    if (document.kind is DocumentKind.PDF and format_) or format_ == "Outlook message":
        return "application/octet-stream"
    if document.kind is DocumentKind.PDF:
        return "application/pdf"
    if document.kind is DocumentKind.TEXT:
        # A name that a browser does not know is as none to it: it detects the encoding itself.
        return f"text/plain; charset={encoding_in(document.notices).lower()}"
    guessed = mimetypes.guess_type(name)[0] or ""
    safe = guessed.startswith(_SAFE_PREFIXES[document.kind]) and "svg" not in guessed
    return guessed if safe else "application/octet-stream"


def elements_reply(page: PageText) -> PageElements:
    """The elements of a page or a clip as they are sent."""
    return PageElements(
        doc_id=page.doc_id,
        page=page.locator.page,
        t_start=page.locator.t_start,
        t_end=page.locator.t_end,
        width=page.width,
        height=page.height,
        elements=[
            PageElement(
                number=element.number,
                kind=element.kind,
                bbox=element.box.rounded().as_tuple(),
                text=element.text,
                section=element.section,
                table=element.table,
                t_start=element.t_start,
                t_end=element.t_end,
            )
            for element in page.elements
        ],
        notes=page.notes,
        continuation=page.continuation,
    )
