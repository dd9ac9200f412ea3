"""Searches over every served collection, each at its newest version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from vrag_ray.config import Settings
from vrag_ray.serving.contract import ProfiledAnswer, Queries, RetrieverState, SearchScope
from vrag_ray.serving.joined_searches import JoinedSearches
from vrag_ray.serving.parts.fresh_retriever import FreshRetriever
from vrag_ray.types import HYBRID
from vrag_ray.types.copies import with_changes
from vrag_ray.types.filters import SearchFilter
from vrag_ray.types.redaction import scrub

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vrag_ray.embedding.reranker import Reranker
    from vrag_ray.index.search.leg_loader import LegLoader
    from vrag_ray.index.search.retriever import ShardedRetriever

    StartRetriever: TypeAlias = Callable[[Settings, str, LegLoader], Awaitable[ShardedRetriever]]

FIRST_LOAD_S = 600.0
"""Limit on the wait of ``loaded``; collections that still load then say that they do."""


class ServedCollections(JoinedSearches):
    """``SearchPart``. A collection that cannot be loaded does not keep the others from being searched. Made on an
    event loop."""

    def __init__(self, settings: Settings, start: StartRetriever) -> None:
        """``start`` makes the retriever of ``settings.collection`` under a name, with a shared loader of embedders."""
        from vrag_ray.index.search.federated import FederatedRetriever
        from vrag_ray.index.search.leg_loader import LegLoader
        from vrag_ray.library.library import Library

        super().__init__(self.search_groups)
        self._settings = settings
        self._reranker: Reranker | None = None
        self._loading = asyncio.Lock()
        loader = LegLoader()

        async def started(collection: Settings, name: str) -> ShardedRetriever:
            await self._load_reranker()
            return await start(collection, name, loader)

        self._members = {
            name: FreshRetriever(_of(settings, root), name, partial(started, _of(settings, root), name))
            for name, root in settings.served.items()
        }
        self._federated = FederatedRetriever(self._members, settings.index)
        # Where pages are read again, the retriever draws them itself: another part's would cost a hop a page.
        self._library = Library(settings)

    async def loaded(self, *, must_load: bool = False) -> None:
        """Returns once every collection is loaded, or could not be, after ``FIRST_LOAD_S`` at the latest.

        ``must_load``: raise what hindered the main collection from loading.
        """
        tries = [asyncio.create_task(member.tried()) for member in self._members.values()]
        await asyncio.wait(tries, timeout=FIRST_LOAD_S)
        if must_load:
            next(iter(self._members.values())).require()

    def close(self) -> None:
        for member in self._members.values():
            member.close()
        self._library.close()

    async def search_groups(self, groups: Sequence[Queries], scope: SearchScope) -> list[ProfiledAnswer]:
        """The queries of several callers; an answer for each of the callers."""
        from vrag_ray.library.reranked import reranked

        chosen = self._federated.choose(scope.collections)
        if self._reranker is None:
            answers = await chosen.search_each(groups, top_k=scope.top_k, mode=scope.mode, filter=scope.filter)
        else:
            reranking = reranked(self._settings, chosen, self._library, self._reranker)
            search = partial(reranking.search, top_k=scope.top_k, mode=scope.mode, filter=scope.filter)
            answers = await asyncio.gather(*map(search, groups))
        # A notice may quote the message of a model's loader about its folder.
        answers = [replace(answer, notices=tuple(map(scrub, answer.notices))) for answer in answers]
        first = await self._federated.member(answers[0].collections[0])
        return [ProfiledAnswer(answer, first.snapshot.legs.profile) for answer in answers]

    async def check(self, collections: Sequence[str], filter: SearchFilter | None) -> None:
        """As ``FederatedRetriever.check``, for a hybrid search."""
        await self._federated.check(collections, HYBRID, filter)

    async def embed(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        """As ``ShardedRetriever.embed``."""
        return await self._federated.embed(texts, queries=queries)

    async def heat(self, query: str, doc_id: str, page: int) -> NDArray[np.float32]:
        """As ``FederatedRetriever.heat``."""
        return await self._federated.heat(query, doc_id, page)

    async def refresh(self, collection: str) -> int:
        """Serve the newest version of a collection from now on; its number."""
        return await self._members[collection].refresh()

    async def states(self) -> tuple[RetrieverState, ...]:
        return tuple(member.state() for member in self._members.values())

    async def _load_reranker(self) -> None:
        from vrag_ray.library.reranked import reranker_of

        async with self._loading:
            self._reranker = self._reranker or await reranker_of(self._settings)


def _of(settings: Settings, root: str) -> Settings:
    return with_changes(settings, {"collection": root, "collections": {}})
