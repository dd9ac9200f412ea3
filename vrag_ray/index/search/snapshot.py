"""One version of a collection in service, and the part of it that a search may look at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from vrag_ray.index.search.served_legs import ServedLegs
from vrag_ray.index.shards.shards import Shards
from vrag_ray.index.storage.collection import Collection
from vrag_ray.types import NotFoundError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.filters import SearchFilter


@dataclass(eq=False)
class Snapshot:
    """A collection's version with its legs and shards, and how many searches still use it.

    ``name`` is what requests and hits call the collection; "" where nobody has to tell it from others.
    """

    name: str
    collection: Collection
    legs: ServedLegs
    shards: Shards
    _active: int = 0
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Until the end of this block the version is not let go of."""
        self._active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._active -= 1
            if self._active == 0:
                self._idle.set()

    async def unused(self) -> None:
        """Wait for the searches that still use it."""
        if self._active:
            await self._idle.wait()

    @property
    def is_empty(self) -> bool:
        return self.collection.version == 0


@dataclass(frozen=True, slots=True)
class Part:
    """A snapshot, and the filter as far as it concerns that collection."""

    snapshot: Snapshot
    filter: SearchFilter | None

    @property
    def collection(self) -> Collection:
        return self.snapshot.collection


def parts_of(snapshots: Sequence[Snapshot], filter: SearchFilter | None) -> list[Part]:
    """What is to be searched: each collection with those of the filter's documents that it has; left out with none.

    Document ids may be given as unique prefixes. Raises NotFoundError for one that no collection has.
    """
    if filter is None or filter.doc_ids is None:
        return [Part(snapshot, filter) for snapshot in snapshots]
    ids: dict[str, list[str]] = {snapshot.name: [] for snapshot in snapshots}
    for doc_id in filter.doc_ids:
        for name, full in _holders(snapshots, doc_id).items():
            ids[name].append(full)
    matching = [snapshot for snapshot in snapshots if ids[snapshot.name]] or snapshots[:1]
    return [Part(snapshot, with_changes(filter, {"doc_ids": ids[snapshot.name]})) for snapshot in matching]


def _holders(snapshots: Sequence[Snapshot], doc_id: str) -> dict[str, str]:
    """The full id by the name of each collection that has the document."""
    holders: dict[str, str] = {}
    problems: list[NotFoundError] = []
    for snapshot in snapshots:
        try:
            holders[snapshot.name] = snapshot.collection.document(doc_id).doc_id
        except NotFoundError as error:
            problems.append(error)
    if not holders:
        if all(snapshot.name for snapshot in snapshots):
            searched = " and ".join(snapshot.name for snapshot in snapshots)
            raise NotFoundError(
                f"document {doc_id} is not in {searched}: where another collection has it, name that one to search it"
            )
        raise problems[0]
    return holders
