"""A collection at its newest version, opened again only when there is a newer one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vrag_ray.caching import SingleFlight
from vrag_ray.types import NotFoundError, VragError

if TYPE_CHECKING:
    from vrag_ray.index.storage.collection import Collection


class UnreadableError(VragError):
    """A collection is not where it should be."""

    status = 503
    type = "server_error"
    code = "not_ready"


class NewestCollection:
    """The collection at ``root``. Those who find at the same time that it has changed open it once."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._newest: Collection | None = None
        self._opening: SingleFlight[int | None, Collection] = SingleFlight()

    async def get(self) -> Collection:
        """With its documents read. Raises UnreadableError where it cannot be."""
        try:
            known = self._newest or await self._opened(None)
            newest = await asyncio.to_thread(known.newest_version)
            return known if newest == known.version else await self._opened(newest)
        except NotFoundError as error:
            # Not a document is missing, but all of them.
            raise UnreadableError(f"the collection {self.root} cannot be read: {error}") from error

    async def _opened(self, version: int | None) -> Collection:
        """Opened when ``version`` was there already: an opening that began before may have missed it."""
        self._newest = await self._opening.result(version, lambda: asyncio.to_thread(_opened, self.root, self._newest))
        return self._newest


def _opened(root: str, earlier: Collection | None) -> Collection:
    """Blocking."""
    from vrag_ray.index.storage.collection import Collection

    collection = Collection.open(root, earlier=earlier)
    collection.documents()
    return collection
