"""What only a GPU can show, in one table: exact search on the card against main memory, and embedding by both engines.

    python benchmarks/gpu.py [--model FOLDER_OR_HUB_ID]

Where there is no GPU, or FAISS is the CPU wheel, it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import Engine, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.shard_rows import ShardRows
from vrag_ray.types import VragError

K = 10
ROUNDS = 20
SENTENCE = "the harbour took more shore power in the second quarter than in the year before"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--model", help="an embedder of single vectors: measured with transformers and with vLLM")
    parser.add_argument("--texts", type=int, default=512)
    arguments = parser.parse_args()
    missing = _missing()
    if missing:
        print(f"nothing was measured: {missing}")
        return
    print("| what | main memory | GPU | ratio | same results |")
    print("|---|---|---|---|---|")
    _search(arguments.vectors, arguments.dim)
    if arguments.model:
        _embedding(arguments.model, arguments.texts)


def _missing() -> str:
    import torch

    from vrag_ray.index.shards.faiss_library import load_faiss

    if not torch.cuda.is_available():
        return "PyTorch sees no GPU here"
    if load_faiss().get_num_gpus() == 0:
        return "FAISS sees no GPU: install the extra `gpu`, which brings the wheel faiss-gpu"
    return ""


def _search(count: int, dim: int) -> None:
    chance = np.random.default_rng(0)
    vectors = chance.standard_normal((count, dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    stored = vectors.astype(np.float16)
    rows = ShardRows.of(
        [f"{n:024x}:p1:w0" for n in range(count)], [f"{n:064x}" for n in range(count)], ["page"] * count, ["{}"] * count
    )
    in_memory, on_card = FlatIndex(rows, stored, threads=16), FlatIndex(rows, stored, gpu_temp_mb=256)
    for batch in (1, 16, 256):
        queries = chance.standard_normal((batch, dim), dtype=np.float32)
        slow, fast = (_milliseconds(index, queries) for index in (in_memory, on_card))
        pairs = zip(in_memory.search(queries, K), on_card.search(queries, K), strict=True)
        same = statistics.mean(len({o.id for o in a} & {o.id for o in b}) / K for a, b in pairs)
        print(
            f"| {count:,} x {dim}, {batch} queries | {slow:.1f} ms | {fast:.1f} ms | {slow / fast:.1f} | {same:.4f} |"
        )


def _embedding(model: str, texts: int) -> None:
    chance = np.random.default_rng(1)
    contents = [Content(" ".join(chance.choice(SENTENCE.split(), 60))) for _ in range(texts)]
    found: dict[Engine, tuple[float, NDArray[np.float32]]] = {}
    for engine in Engine:
        try:
            embedder = space_embedder(SpaceConfig(model=model, engine=engine, device="cuda", batch=32))
        except VragError as error:
            print(f"| {model} by {engine} | | not measured: {error} | | |")
            continue
        embedder.embed_passages(contents[:32])
        began = time.perf_counter()
        embedded = embedder.embed_passages(contents)
        seconds = time.perf_counter() - began
        vectors = np.concatenate([one.vectors for one in embedded if isinstance(one, Embedding)])
        found[engine] = (texts / seconds, vectors)
        print(f"| {model} by {engine} | | {texts / seconds:.0f} texts/s | | |")
    if len(found) == 2:
        (_, ours), (_, theirs) = found.values()
        print(f"| lowest cosine between the engines | | {float((ours * theirs).sum(axis=1).min()):.6f} | | |")


def _milliseconds(index: FlatIndex, queries: NDArray[np.float32]) -> float:
    index.search(queries, K)
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        index.search(queries, K)
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
