"""The document rows that a writer has committed, and which document each uri names. In memory, and no file."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import replace

from vrag_ray.types import Document


class DocumentRows:
    """Every committed document by id, with an index by uri: no uri names two."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._rows: dict[str, Document] = {}
        self._owners: dict[str, str] = {}
        for document in documents:
            self.put(document)

    @property
    def by_id(self) -> Mapping[str, Document]:
        return self._rows

    def owner_of(self, uri: str) -> str | None:
        """The id of the document that has this uri."""
        return self._owners.get(uri)

    def put(self, document: Document) -> None:
        self.remove(document.doc_id)
        self._rows[document.doc_id] = document
        self._owners.update(dict.fromkeys(document.uris, document.doc_id))

    def remove(self, doc_id: str) -> None:
        known = self._rows.pop(doc_id, None)
        for uri in known.uris if known is not None else ():
            if self._owners.get(uri) == doc_id:
                del self._owners[uri]

    def changes(self, documents: Iterable[Document]) -> tuple[list[Document], list[str]]:
        """What putting ``documents`` in takes: the rows to write, and the ids of those that lose their last uri.

        The rows are ``documents`` and those that lose one uri of several to them. Nothing is changed yet.
        """
        changed: dict[str, Document] = {}
        orphans: set[str] = set()
        owners = ChainMap(dict[str, str](), self._owners)
        for document in documents:
            for uri in document.uris:
                owner = owners.get(uri, document.doc_id)
                if owner == document.doc_id:
                    continue
                other = changed.get(owner) or self._rows[owner]
                changed[owner] = replace(other, uris=tuple(known for known in other.uris if known != uri))
                if not changed[owner].uris:
                    orphans.add(owner)
            changed[document.doc_id] = document
            orphans.discard(document.doc_id)
            owners.update(dict.fromkeys(document.uris, document.doc_id))
        return [document for document in changed.values() if document.doc_id not in orphans], sorted(orphans)
