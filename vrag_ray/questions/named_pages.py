"""Pages of a collection as data sets name them: by the file name of a document and the number of a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from vrag_ray.types import DocumentKind, DocumentStatus, Locator, VragError
from vrag_ray.types.file_names import is_file_uri, path_in_uri, shown_name

PAGED = (DocumentKind.PDF, DocumentKind.IMAGE)
"""Kinds whose places are pages."""


class NamedDocument(Protocol):
    """What is needed of a document of a collection, or of one that a service lists."""

    @property
    def doc_id(self) -> str: ...
    @property
    def uris(self) -> Sequence[str]: ...
    @property
    def kind(self) -> DocumentKind: ...
    @property
    def status(self) -> DocumentStatus: ...
    @property
    def units(self) -> int: ...
    @property
    def error(self) -> str: ...


class NamedPages:
    """A document answers to the file names of all its uris."""

    def __init__(self, documents: Iterable[NamedDocument]) -> None:
        self._by_name: dict[str, dict[str, NamedDocument]] = defaultdict(dict)
        for document in documents:
            for uri in document.uris:
                name = file_name(shown_name(path_in_uri(uri)) if is_file_uri(uri) else uri)
                self._by_name[name][document.doc_id] = document

    def document(self, name: str, which: str) -> NamedDocument:
        """Raises VragError, whose message begins with ``which``, for a file that no document or more than one answers
        to, and for a document that could not be read."""
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
        return document

    def find(self, name: str, page: int, which: str) -> tuple[str, Locator]:
        """The document's id, and the place of the page. Raises VragError as ``document``, and for a page that it has
        not."""
        document = self.document(name, which)
        if document.kind not in PAGED:
            raise VragError(f"{which} is a {document.kind}, which has no pages: leave its page out")
        if page > document.units:
            raise VragError(f"{which} has {document.units} pages, so none is page {page}")
        return document.doc_id, Locator(page=page)


def file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
