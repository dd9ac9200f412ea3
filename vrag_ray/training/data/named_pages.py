"""Pages of a collection as data sets name them: by the file name of a document and the number of a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import unquote

from vrag_ray.types import Document, DocumentKind, DocumentStatus, Locator, VragError


class NamedPages:
    """A document answers to the file names of all its uris."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._by_name: dict[str, dict[str, Document]] = defaultdict(dict)
        for document in documents:
            for uri in document.uris:
                name = file_name(unquote(uri) if uri.startswith("file:") else uri)
                self._by_name[name][document.doc_id] = document

    def find(self, name: str, page: int, which: str) -> tuple[str, Locator]:
        """The document's id, and the place of the page.

        Raises VragError, whose message begins with ``which``, for a file that no document or more than one answers to,
        for one that could not be read, and for a page that it has not.
        """
        named = self._by_name.get(file_name(name), {})
        if not named:
            raise VragError(f"{which} is not in the collection: ingest it, or correct the name")
        if len(named) > 1:
            raise VragError(
                f"{which} is the name of {len(named)} documents of the collection: keep one, or rename them"
            )
        [document] = named.values()
        if document.status is DocumentStatus.ERROR:
            raise VragError(f"{which} could not be read by ingest: {document.error or 'no reason given'}")
        if document.kind not in (DocumentKind.PDF, DocumentKind.IMAGE):
            raise VragError(f"{which} is a {document.kind}, which has no pages: leave its page out")
        if page > document.units:
            raise VragError(f"{which} has {document.units} pages, so none is page {page}")
        return document.doc_id, Locator(page=page)


def file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
