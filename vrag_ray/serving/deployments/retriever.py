"""The retriever deployment: the served collections over shard actors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.parts.collections import ServedCollections

if TYPE_CHECKING:
    from vrag_ray.index.search.leg_loader import LegLoader
    from vrag_ray.index.search.retriever import ShardedRetriever


class RetrieverService(ServedCollections):
    """``ServedCollections`` as a deployment."""

    async def __init__(self, settings: Settings, shard_gpus: float = 0.0) -> None:  # type: ignore[misc]  # Serve awaits
        """``shard_gpus``: as ``ShardedRetriever.start``."""
        from vrag_ray.index.search.retriever import ShardedRetriever

        async def start(collection: Settings, name: str, loader: LegLoader) -> ShardedRetriever:
            return await ShardedRetriever.start(collection, name=name, loader=loader, shard_gpus=shard_gpus, share=True)

        super().__init__(settings, start)
        # Serve sends requests once this returns: a replica that joins others must not answer that it is starting.
        await self.loaded()

    def __del__(self) -> None:
        # Serve calls this when it stops a replica: shards end with the last replica that searches them.
        if hasattr(self, "_library"):
            self.close()
