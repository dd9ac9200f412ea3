"""The shard actors: N shards times R replicas, each rebuilt from the collection alone after a crash."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import IndexConfig
from vrag_ray.index.search.lexical import Scored
from vrag_ray.index.search.shard import ShardIndex, load_index, merge
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from ray.actor import ActorHandle

REVIVE_FIRST_DELAY_S = 0.2
REVIVE_MAX_DELAY_S = 5.0
ACTOR_CONCURRENCY = 16


class NotLoadedError(VragError):
    """The shard does not hold that version (yet): it has just been restarted."""


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """What one shard holds: windows, their dimension and the bytes each takes in memory."""

    size: int
    dim: int
    bytes_per_vector: float


class IndexShard:
    """The code inside a shard actor. Holds one index a version, so that a refresh leaves no gap in service."""

    def __init__(self, root: str, shard: int, config: IndexConfig) -> None:
        self._root, self._shard, self._config = root, shard, config
        self._indexes: dict[int, ShardIndex] = {}

    def load(self, version: int, embedder_id: str) -> ShardStatus:
        if version not in self._indexes:
            self._indexes[version] = load_index(
                CollectionFiles(self._root),
                version,
                embedder_id,
                shard=self._shard,
                shards=self._config.shards,
                threads=self._config.threads or os.cpu_count() or 1,
                # Ray leaves CUDA_VISIBLE_DEVICES as it is for actors without a GPU: what FAISS sees is no permission.
                on_gpu=self._config.num_gpus > 0,
            )
        index = self._indexes[version]
        return ShardStatus(index.size, index.dim, index.bytes_per_vector)

    def search(
        self, version: int, queries: NDArray[np.float32], k: int, wanted: SearchFilter | None
    ) -> list[list[tuple[str, float]]]:
        if version not in self._indexes:
            raise NotLoadedError(f"shard {self._shard} does not hold version {version}")
        found = self._indexes[version].search(queries, k, wanted)
        return [[(scored.id, scored.score) for scored in per_query] for per_query in found]

    def keep_only(self, version: int) -> None:
        self._indexes = {number: index for number, index in self._indexes.items() if number == version}

    def pid(self) -> int:
        return os.getpid()


@dataclass
class _Replica:
    actor: ActorHandle
    status: ShardStatus | None = None
    problem: str = "is loading"
    reviving: asyncio.Task[None] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class FanOut:
    """Merged windows of each query, the number of shards that answered, and why the others did not."""

    results: list[list[Scored]]
    shards_ok: int
    problems: tuple[str, ...]


class ShardPool:
    """Fan-out over the shard actors of one collection. All methods run on one event loop."""

    def __init__(self, root: str, embedder_id: str, config: IndexConfig) -> None:
        import ray

        self._config, self._embedder_id, self._version = config, embedder_id, 0
        self._turn = 0
        pool = uuid4().hex[:8]
        actor_class = ray.remote(IndexShard)
        self._shards = [
            [
                _Replica(
                    actor_class.options(
                        name=f"vrag-{pool}-shard-{shard:02d}-r{replica}",
                        num_cpus=0.1,
                        num_gpus=config.num_gpus,
                        max_restarts=-1,
                        max_concurrency=ACTOR_CONCURRENCY,
                        scheduling_strategy="SPREAD",
                    ).remote(root, shard, config)
                )
                for replica in range(config.replicas)
            ]
            for shard in range(config.shards)
        ]

    @property
    def total(self) -> int:
        return len(self._shards)

    @property
    def healthy(self) -> int:
        return sum(any(not replica.problem for replica in replicas) for replicas in self._shards)

    @property
    def actors(self) -> list[list[ActorHandle]]:
        """Handles by shard and replica, for health checks and for tests that kill them."""
        return [[replica.actor for replica in replicas] for replicas in self._shards]

    def statuses(self) -> list[ShardStatus]:
        """One status a shard that has a healthy replica."""
        best = (next((r.status for r in replicas if not r.problem and r.status), None) for replicas in self._shards)
        return [status for status in best if status is not None]

    def problems(self) -> tuple[str, ...]:
        return tuple(
            f"shard {number} {replicas[0].problem}"
            for number, replicas in enumerate(self._shards)
            if all(replica.problem for replica in replicas)
        )

    async def load(self, version: int) -> None:
        """Load ``version`` everywhere beside what is served now. A replica that cannot is revived in the background."""
        self._version = version
        everyone = [replica for replicas in self._shards for replica in replicas]
        await asyncio.gather(*(self._load_one(replica) for replica in everyone))

    async def keep_only(self, version: int) -> None:
        """Free all other versions. A replica that is down frees them by its restart."""
        healthy = [replica for replicas in self._shards for replica in replicas if not replica.problem]
        await asyncio.gather(*(r.actor.keep_only.remote(version) for r in healthy), return_exceptions=True)

    async def search(self, version: int, queries: NDArray[np.float32], k: int, wanted: SearchFilter | None) -> FanOut:
        """The ``k`` best windows over all shards that answer in time; the others are counted and named."""
        self._turn += 1
        answers = await asyncio.gather(*(self._ask(n, version, queries, k, wanted) for n in range(self.total)))
        good = [answer for answer in answers if not isinstance(answer, str)]
        results = [merge((part[number] for part in good), k) for number in range(len(queries))]
        return FanOut(results, len(good), tuple(answer for answer in answers if isinstance(answer, str)))

    def close(self) -> None:
        import ray

        for replicas in self._shards:
            for replica in replicas:
                if replica.reviving is not None:
                    replica.reviving.cancel()
                ray.kill(replica.actor)

    async def _ask(
        self, number: int, version: int, queries: NDArray[np.float32], k: int, wanted: SearchFilter | None
    ) -> list[list[Scored]] | str:
        """One shard's answer from the first replica that gives one, or the reason why none does."""
        from ray.exceptions import RayError

        replicas = self._shards[number]
        start = self._turn % len(replicas)
        for replica in replicas[start:] + replicas[:start]:
            if replica.problem:
                continue
            try:
                reference = replica.actor.search.remote(version, queries, k, wanted)
                found = await asyncio.wait_for(reference, self._config.shard_timeout_s)
                return [[Scored(*scored) for scored in per_query] for per_query in found]
            except TimeoutError:
                self._down(replica, f"did not answer within {self._config.shard_timeout_s:g} s")
            except (RayError, NotLoadedError) as error:
                self._down(replica, f"is down ({type(error).__name__})")
        return f"shard {number} {replicas[0].problem}"

    async def _load_one(self, replica: _Replica) -> None:
        from ray.exceptions import RayError

        try:
            replica.status = await replica.actor.load.remote(self._version, self._embedder_id)
            replica.problem = ""
        except (RayError, VragError) as error:
            reason = str(error.cause) if hasattr(error, "cause") and error.cause else type(error).__name__
            self._down(replica, f"cannot load version {self._version}: {reason}")

    def _down(self, replica: _Replica, problem: str) -> None:
        replica.problem = problem
        if replica.reviving is None or replica.reviving.done():
            replica.reviving = asyncio.get_running_loop().create_task(self._revive(replica))

    async def _revive(self, replica: _Replica) -> None:
        """Load the served version again, with growing pauses, until the replica holds it."""
        from ray.exceptions import RayError

        delay = REVIVE_FIRST_DELAY_S
        while True:
            version = self._version
            try:
                replica.status = await replica.actor.load.remote(version, self._embedder_id)
            except (RayError, VragError) as error:
                replica.problem = f"cannot load version {version} ({type(error).__name__})"
            else:
                if version == self._version:
                    replica.problem = ""
                    return
            await asyncio.sleep(delay)
            delay = min(delay * 2, REVIVE_MAX_DELAY_S)
