"""Real shard actors on three Ray nodes, whose scans take a planted time, called at random times.

Run as a program it prints one line of JSON: seconds until each search was answered, with all nodes (``whole``) and once
one of them has been killed (``degraded``), and of how many shards a replica was lost with it; ``measured`` runs it so.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.paths import ROOT
from tests.support.planted import DIM, EMBEDDER, plant
from vrag_ray.config import IndexConfig
from vrag_ray.index.shards import shard_pool
from vrag_ray.index.shards.shard_index import SpaceSpec
from vrag_ray.index.shards.space_index import QueryVectors
from vrag_ray.planning.tail import FanOutModel
from vrag_ray.types import TEXT

WHOLE = FanOutModel(
    qps=10.0, shards=3, replicas=2, scan_s=0.05, is_exponential=False, stragglers=0.03, straggler_factor=6.0
)
SEARCHES = 400
SHARDS_OF_A_NODE = 2
TIMEOUT_S = 300
CONFIG = IndexConfig(shards=WHOLE.shards, replicas=WHOLE.replicas, threads=1)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of each search, and of how many shards a replica was lost in between."""

    whole: list[float]
    degraded: list[float]
    lost: int


def measured() -> Measured:
    """In a process and a Ray of its own."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("VRAG_", "RAY_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), bare.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "tests.support.fan_out_nodes"]
    environment = bare | {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": path}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S
        )
    return Measured(**json.loads(done.stdout))


class PacedShard(shard_pool.IndexShard):
    """A shard whose scans come one after the other and take as long as the model says."""

    def __init__(self, root: str, shard: int, config: IndexConfig, lease_s: float | None = None) -> None:
        super().__init__(root, shard, config, lease_s)
        self._one_at_a_time, self._drawn = threading.Lock(), random.Random()

    def nearest(self, *arguments: Any) -> list[list[tuple[str, float]]]:
        with self._one_at_a_time:
            began = time.perf_counter()
            result = super().nearest(*arguments)
            straggles = self._drawn.random() < WHOLE.stragglers
            rest = WHOLE.scan_s * (WHOLE.straggler_factor if straggles else 1) - (time.perf_counter() - began)
            time.sleep(max(0.0, rest))
            return result


async def _search_times(pool: shard_pool.ShardPool, seed: int) -> list[float]:
    drawn = random.Random(seed)
    query: QueryVectors = [np.eye(1, DIM, dtype=np.float32)]
    seconds: list[float] = []

    async def ask() -> None:
        began = time.perf_counter()
        answer = await pool.nearest(1, TEXT, query, 3, None)
        assert answer.shards_ok == WHOLE.shards, answer.problems
        seconds.append(time.perf_counter() - began)

    tasks = []
    moment = time.perf_counter()
    for _ in range(SEARCHES):
        # From one moment to the next, so that what comes late does not put off all that follow.
        moment += drawn.expovariate(WHOLE.qps)
        await asyncio.sleep(max(0.0, moment - time.perf_counter()))
        tasks.append(asyncio.create_task(ask()))
    await asyncio.gather(*tasks)
    return seconds


async def _measured(kill: Callable[[], int], root: str) -> dict[str, Any]:
    pool = shard_pool.ShardPool(root, CONFIG)
    await pool.load(1, [SpaceSpec(TEXT, EMBEDDER)])
    whole = await _search_times(pool, seed=1)
    lost = await asyncio.to_thread(kill)
    # Each replica is called, so that the pool knows of those that are gone before anything is measured.
    for _ in range(4 * WHOLE.replicas):
        await pool.nearest(1, TEXT, [np.eye(1, DIM, dtype=np.float32)], 3, None)
    return {"whole": whole, "degraded": await _search_times(pool, seed=2), "lost": lost}


def _shards_by_node() -> dict[str, list[str]]:
    """The names of the shards whose replicas are on each node."""
    from ray._private.state import actors

    by_node: dict[str, list[str]] = {}
    for actor in actors().values():
        name = str(actor["Name"])
        if "-shard-" in name and actor["State"] == "ALIVE":
            by_node.setdefault(str(actor["Address"]["NodeID"]), []).append(name.rpartition("-")[0])
    return by_node


def main() -> None:
    import ray
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    answers, sys.stdout = sys.stdout, sys.stderr  # Ray prints what it notes of its nodes
    shard_pool.IndexShard = PacedShard  # type: ignore[misc]
    with tempfile.TemporaryDirectory(prefix="vrag-fan-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "library"
        plant(root, {f"d{n}": [f"the harbour of town {n} was dredged"] for n in range(60)})
        small = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args={"temp_dir": folder, **small})
        workers = [cluster.add_node(**small) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        # What is left on each node is room for its shards, and none for those of a lost one.
        taken = 1 - SHARDS_OF_A_NODE * 0.1
        fillers = [
            ray.remote(_Filler)
            .options(num_cpus=taken, scheduling_strategy=NodeAffinitySchedulingStrategy(node.node_id, soft=False))
            .remote()
            for node in (cluster.head_node, *workers)
        ]
        ray.get([filler.ready.remote() for filler in fillers])

        def kill() -> int:
            """A worker that has no shard twice; how many it had."""
            placed = _shards_by_node()
            victim = next(node for node in workers if len(set(placed[node.node_id])) == len(placed[node.node_id]))
            cluster.remove_node(victim, allow_graceful=False)
            return len(placed[victim.node_id])

        print(json.dumps(asyncio.run(_measured(kill, str(root)))), flush=True, file=answers)
        ray.shutdown()
        cluster.shutdown()


class _Filler:
    def ready(self) -> bool:
        return True


if __name__ == "__main__":
    main()
