"""Search against raw FAISS: what do the actor, the fan-out and the exact merge cost?

    python benchmarks/search.py [--vectors 1000000] [--queries 40]

Plants random unit vectors (384-d fp16) in a real collection, then times the same queries, in turn within one run,
(a) by `IndexScalarQuantizer.search` in this process and (b) through the shard actors, for 1, 2, 3 and 7 shards.
Prints time per query, the ratio, whether the sharded result equals the unsharded one, and memory per vector.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

sys.path[0] = str(Path(__file__).parents[1])

from benchmarks.shard_load import EMBEDDER, plant
from vrag_ray.config import IndexConfig
from vrag_ray.index.shards.shard_index import SpaceSpec
from vrag_ray.index.shards.shard_pool import ShardPool
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import TEXT

DIM, K = 384, 10


async def measure(root: Path, queries: NDArray[np.float32], raw: faiss.Index) -> None:
    collection = Collection.open(root)
    unsharded: list[list[tuple[str, float]]] = []
    for shards in (1, 2, 3, 7):
        pool = ShardPool(collection.root, IndexConfig(shards=shards, shard_timeout_s=60.0))
        began = time.perf_counter()
        await pool.load(collection.version, [SpaceSpec(TEXT, EMBEDDER)])
        load_s = time.perf_counter() - began
        for query in queries[:3]:
            raw.search(query[None], K)
            await pool.nearest(collection.version, TEXT, [query[None]], K, None)
        alone, ours, results = [], [], []
        for query in queries:
            began = time.perf_counter()
            raw.search(query[None], K)
            alone.append(time.perf_counter() - began)
            began = time.perf_counter()
            answer = await pool.nearest(collection.version, TEXT, [query[None]], K, None)
            ours.append(time.perf_counter() - began)
            assert answer.shards_ok == shards
            results.append([(scored.id, scored.score) for scored in answer.results[0]])
        if shards == 1:
            unsharded = results
        a, b = statistics.median(alone) * 1e3, statistics.median(ours) * 1e3
        bytes_each = statistics.mean(status.bytes_per_passage for status in pool.statuses())
        print(
            f"{shards} shards: raw {a:6.2f} ms  ours {b:6.2f} ms  over (ours-2ms)/raw {(b - 2) / a:5.2f}"
            f"  equal to unsharded: {results == unsharded}  {bytes_each:.0f} B/vector  load {load_s:.1f} s",
            flush=True,
        )
        pool.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=40)
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    ray.init(num_cpus=16, include_dashboard=False, logging_level="WARNING", log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "collection"
        began = time.perf_counter()
        with CollectionWriter(root) as writer:
            plant(writer, 0, arguments.vectors, DIM)
            writer.publish("planted")
        print(f"planted {arguments.vectors} vectors in {time.perf_counter() - began:.0f} s", flush=True)
        table = Collection.open(root).space_table(TEXT).to_table(columns=["vectors"])
        codes = np.frombuffer(b"".join(table["vectors"].to_pylist()), dtype=np.uint8).reshape(-1, DIM * 2)
        raw = faiss.IndexScalarQuantizer(DIM, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        raw.is_trained = True
        raw.add_sa_codes(codes)
        faiss.omp_set_num_threads(os.cpu_count() or 1)
        chance = np.random.default_rng(1)
        queries = chance.standard_normal((arguments.queries, DIM)).astype(np.float32)
        # Half of the queries are planted vectors, whose repeats tie exactly at the top.
        for i in range(0, len(queries), 2):
            queries[i] = codes[(i + 1) * 50 % len(codes)].view(np.float16).astype(np.float32)
        asyncio.run(measure(root, queries, raw))
    ray.shutdown()


if __name__ == "__main__":
    main()
