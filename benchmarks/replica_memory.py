"""What several replicas of the retriever take of a machine's memory, and their shards, against one.

    python benchmarks/replica_memory.py [--rows 300000] [--replicas 4]

Plants random fp16 vectors of 384 numbers through the real writer, deploys the retriever with one replica and then with
several on Ray Serve, and adds up the proportional set sizes (PSS) of the processes: a page that several of them share
counts once. Shards are one set for all replicas; a replica itself is an interpreter with the table of documents.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.shard_load import EMBEDDER, plant
from vrag_ray.cluster import ray_session
from vrag_ray.config import IndexConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, single_vectors
from vrag_ray.index.storage.writer import CollectionWriter

DIM = 384
MEGABYTE = 1 << 20


class RandomEmbedder:
    """An ``Embedder`` of the planted vectors' name, which knows nothing of a text."""

    id = EMBEDDER
    dim = DIM
    multi_vector = False
    modalities = frozenset({Modality.TEXT})
    pictures = None

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones(len(texts), np.float32)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        vectors = np.random.default_rng(0).standard_normal((len(contents), DIM), np.float32)
        return single_vectors(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    embed_queries = embed_passages


def make_embedder(_: SpaceConfig) -> RandomEmbedder:
    return RandomEmbedder()


def memory_mb(name: str) -> tuple[int, float]:
    """Of this process's descendants called so: how many there are, and their PSS."""
    processes = [child for child in psutil.Process().children(recursive=True) if name in " ".join(child.cmdline())]
    return len(processes), sum(child.memory_full_info().pss for child in processes) / MEGABYTE


async def deployed(settings: Settings, replicas: int, at_once: int) -> tuple[float, float]:
    """Megabytes of the shards and of the replicas, once these have answered ``at_once`` searches together."""
    from ray import serve

    from vrag_ray.serving.contract import SearchScope
    from vrag_ray.serving.deployments.retriever import RetrieverService

    options = {"num_replicas": replicas, "ray_actor_options": {"num_cpus": 0.1}}
    retriever = serve.deployment(RetrieverService).options(**options).bind(settings)
    handle = await asyncio.to_thread(serve.run, retriever, name=f"of-{replicas}", route_prefix=None)
    scope = SearchScope(3, "text", None)
    searches = [handle.broadcast("search_groups", [["a"]], scope) for _ in range(at_once // replicas)]
    answers = [result for each in await asyncio.gather(*(each.results_async() for each in searches)) for result in each]
    assert all(result[0].answer.shards_ok == settings.index.shards for result in answers)
    shards, shard_mb = memory_mb("IndexShard")
    count, replica_mb = memory_mb("RetrieverService")
    assert (shards, count) == (settings.index.shards, replicas), (shards, count)
    await asyncio.to_thread(serve.delete, f"of-{replicas}")
    return shard_mb, replica_mb


async def compared(settings: Settings, most: int) -> None:
    """Print the table, and the ratio of the shards' memory."""
    print("| replicas | shards, MB | replicas, MB | together, MB |\n|---|---|---|---|")
    of_shards = []
    for replicas in (1, most):
        shard_mb, replica_mb = await deployed(settings, replicas, most)
        of_shards.append(shard_mb)
        print(f"| {replicas} | {shard_mb:.0f} | {replica_mb:.0f} | {shard_mb + replica_mb:.0f} |", flush=True)
    print(f"shards of {most} replicas against those of one: {of_shards[1] / of_shards[0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--replicas", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ray_session():
        from ray import serve

        root = Path(folder) / "collection"
        with CollectionWriter(str(root)) as writer:
            plant(writer, 0, arguments.rows, DIM)
            writer.publish("planted")
        settings = Settings(
            collection=str(root),
            spaces={"text": SpaceConfig(model="benchmarks.replica_memory:make_embedder")},
            index=IndexConfig(shards=2),
        )
        vectors_mb = arguments.rows * DIM * 2 / 1e6
        print(f"{arguments.rows:,} vectors of {DIM} numbers, {vectors_mb:.0f} MB, in 2 shards")
        serve.start(proxy_location="Disabled")
        asyncio.run(compared(settings, arguments.replicas))


if __name__ == "__main__":
    main()
