"""The retriever deployment: every served collection, each kept at its newest version, and searches over them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.backends import Found, RetrieverState
from vrag_ray.serving.deployments.fresh_retriever import FreshRetriever
from vrag_ray.serving.errors import InvalidError
from vrag_ray.types import HYBRID, Query
from vrag_ray.types.collection_names import UnknownCollectionError
from vrag_ray.types.filters import SearchFilter
from vrag_ray.types.redaction import scrub

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vrag_ray.embedding.reranker import Reranker


FIRST_LOAD_S = 600.0
"""For which a new replica waits for its collections; it then says of those that still load that they do."""


class RetrieverService:
    """One collection that cannot be loaded does not keep the others from being searched."""

    async def __init__(self, settings: Settings, shard_gpus: float = 0.0) -> None:  # type: ignore[misc]  # Serve awaits
        """``shard_gpus``: as ``ShardedRetriever.start``."""
        from vrag_ray.index.search.federated import FederatedRetriever
        from vrag_ray.index.search.leg_loader import LegLoader
        from vrag_ray.library.library import Library

        self._settings = settings
        self._reranker: Reranker | None = None
        self._loading = asyncio.Lock()
        loader = LegLoader()
        self._members = {
            name: FreshRetriever(_of(settings, root), name, loader, self._load_reranker, shard_gpus)
            for name, root in settings.served.items()
        }
        self._federated = FederatedRetriever(self._members, settings.index.candidates)
        # Where pages are read again, this deployment draws them itself: another's would cost a hop a page.
        self._library = Library(settings)
        # Serve sends requests once this returns: a replica that joins others must not answer that it is starting.
        await asyncio.wait(
            [asyncio.create_task(member.tried()) for member in self._members.values()], timeout=FIRST_LOAD_S
        )

    async def search(
        self,
        groups: Sequence[Sequence[str | Query]],
        top_k: int,
        mode: str,
        filter: SearchFilter | None,
        collections: Sequence[str] = (),
    ) -> list[Found]:
        """The queries of several who ask: what is found for each of them."""
        from vrag_ray.library.reranked import reranked

        with _invalid_fields():
            chosen = self._federated.choose(collections)
            if self._reranker is None:
                answers = await chosen.search_each(groups, top_k=top_k, mode=mode, filter=filter)
            else:
                search = reranked(self._settings, chosen, self._library, self._reranker)
                asked = (search.search(one, top_k=top_k, mode=mode, filter=filter) for one in groups)
                answers = await asyncio.gather(*asked)
        # A notice may quote what a model's loader said of its folder.
        answers = [replace(answer, notices=tuple(map(scrub, answer.notices))) for answer in answers]
        first = await self._federated.member(answers[0].collections[0])
        return [Found(answer, first.snapshot.legs.profile) for answer in answers]

    async def check(self, collections: Sequence[str], filter: SearchFilter | None) -> None:
        """Raises InvalidError for collections that are not here, or cannot be searched together, and NotFoundError for
        a document of the filter that none of them has."""
        with _invalid_fields():
            await self._federated.check(collections, HYBRID, filter)

    async def embed(self, texts: Sequence[str], queries: bool) -> NDArray[np.float32]:
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
    return settings.model_copy(update={"collection": root, "collections": {}})


@contextmanager
def _invalid_fields() -> Iterator[None]:
    """What is wrong with a field of the request as InvalidError, which names it."""
    from vrag_ray.index.search.modes import DisagreeingSpacesError, NoSuchLegError

    try:
        yield
    except NoSuchLegError as error:
        raise InvalidError(str(error), param="mode") from error
    except (UnknownCollectionError, DisagreeingSpacesError) as error:
        raise InvalidError(str(error), param="collection") from error
