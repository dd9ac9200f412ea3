"""Search on the card against main memory: MaxSim and exact search by torch, or FAISS where it is; equal results."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.card.models import wait
from benchmarks.card.runner import Row, Setup
from vrag_ray.config import Engine, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding
from vrag_ray.index.shards.max_sim import MaxSimScan
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]
K = 10
SCAN_ERROR = 2e-3
"""More than a score in half precision differs from one in single precision, of vectors of length 1."""
QUERY_VECTORS = 20
BLOCK = 65_536
SENTENCE = "the harbour took more shore power in the second quarter than in the year before"


def max_sim(setup: Setup) -> Iterator[Row]:
    """Late interaction over pages of 768 vectors of 128 dimensions, as ColQwen2 makes them."""
    pages, each, dim = (60, 16, 32) if setup.tiny else (10_000, 768, 128)
    vectors = _unit_vectors(pages * each, dim, setup.device)
    bounds = np.arange(pages + 1, dtype=np.int64) * each
    scan = MaxSimScan(vectors, bounds, dim, binary=False, device=setup.device)
    yield Row("vectors", vectors.nbytes / 1e9, "GB", remark=f"{pages:,} pages of {each} x {dim}")
    chance = np.random.default_rng(1)
    for count in (1, 4) if setup.tiny else (1, 16):
        queries = [_near(vectors, chance, QUERY_VECTORS, bounds) for _ in range(count)]
        scores = scan.scores(queries)
        fast = _milliseconds(partial(scan.scores, queries), setup.device)
        began = time.perf_counter()
        exact = _cpu_max_sim(queries, vectors, bounds)
        slow = (time.perf_counter() - began) * 1e3

        def own(query: int, page: int, queries: Sequence[Floats] = queries) -> float:
            return _page_score(queries[query], vectors[bounds[page] : bounds[page + 1]])

        yield from _compared("MaxSim", setup.device, count, slow, fast, exact, scores, own)


def exact_search(setup: Setup) -> Iterator[Row]:
    """Single vectors by one matrix product; the product's own search on a card is FAISS's, see the part ``faiss``."""
    import torch

    count, dim = (3_000, 32) if setup.tiny else (1_000_000, 1024)
    vectors = _unit_vectors(count, dim, setup.device)
    there = torch.from_numpy(vectors).to(setup.device)
    yield Row("vectors", vectors.nbytes / 1e9, "GB", remark=f"{count:,} x {dim}; on the card by a product of torch")
    chance = np.random.default_rng(2)
    for batch in (1, 4) if setup.tiny else (1, 16, 256):
        queries = np.concatenate([_near(vectors, chance, 1) for _ in range(batch)])

        scores = partial(_products, there, queries)
        fast = _milliseconds(partial(_best_there, scores), setup.device)
        began = time.perf_counter()
        exact = _cpu_products(queries, vectors)
        slow = (time.perf_counter() - began) * 1e3

        def own(query: int, row: int, queries: Floats = queries) -> float:
            return float(queries[query] @ vectors[row].astype(np.float32))

        yield from _compared("exact search", setup.device, batch, slow, fast, exact, scores().cpu().numpy(), own)


def faiss_search(setup: Setup) -> Iterator[Row]:
    """The product's exact index in main memory and on the card, where FAISS is installed and sees one."""
    from vrag_ray.index.shards.faiss_library import load_faiss

    missing = _missing("faiss", "pyarrow")
    if not missing and setup.device == "cuda" and load_faiss().get_num_gpus() == 0:
        missing = "FAISS sees no GPU: install the extra `gpu`, which brings the wheel faiss-gpu"
    if missing or setup.device != "cuda":
        yield Row("not measured", remark=missing or "no card")
        return
    from vrag_ray.index.shards.flat_index import FlatIndex
    from vrag_ray.index.shards.shard_rows import ShardRows, SpaceRows

    count, dim = 1_000_000, 1024
    stored = _unit_vectors(count, dim, setup.device)
    rows = ShardRows.of(
        [f"{n:024x}:p1:w0" for n in range(count)], [f"{n:064x}" for n in range(count)], ["page"] * count, ["{}"] * count
    )
    space = SpaceRows.of(rows, stored)
    in_memory, on_card = FlatIndex(space, threads=16), FlatIndex(space, gpu_temp_mb=256)
    chance = np.random.default_rng(0)
    for batch in (1, 16, 256):
        queries = [_near(stored, chance, 1) for _ in range(batch)]
        slow, fast = (_milliseconds(partial(index.nearest, queries, K), setup.device) for index in (in_memory, on_card))
        pairs = zip(in_memory.nearest(queries, K), on_card.nearest(queries, K), strict=True)
        same = statistics.mean([hit.id for hit in a] == [hit.id for hit in b] for a, b in pairs)
        yield Row(
            f"{batch} queries on the card", fast, "ms", remark=f"in main memory {slow:.1f} ms; same results {same:.3f}"
        )


def engines(setup: Setup) -> Iterator[Row]:
    """A published text embedder by both engines: ``--model`` names it."""
    missing = "" if setup.model else "name an embedder of single vectors by --model"
    if missing or setup.device != "cuda":
        yield Row("not measured", remark=missing or "no card")
        return
    chance = np.random.default_rng(1)
    texts = 512
    contents = [Content(" ".join(chance.choice(SENTENCE.split(), 60))) for _ in range(texts)]
    by_engine: list[Floats] = []
    for engine in Engine:
        from vrag_ray.embedding.registry import space_embedder

        try:
            embedder = space_embedder(SpaceConfig(model=setup.model, engine=engine, device="cuda", batch=32))
        except VragError as error:
            yield Row(f"{setup.model} by {engine}", remark=f"not measured: {error}")
            continue
        embedder.embed_passages(contents[:32])
        began = time.perf_counter()
        embedded = embedder.embed_passages(contents)
        seconds = time.perf_counter() - began
        by_engine.append(np.concatenate([result.vectors for result in embedded if isinstance(result, Embedding)]))
        yield Row(f"{setup.model} by {engine}", texts / seconds, "texts/s")
    if len(by_engine) == len(Engine):
        yield Row("lowest cosine between the engines", float((by_engine[0] * by_engine[1]).sum(axis=1).min()))


def _compared(
    what: str,
    device: str,
    count: int,
    slow: float,
    fast: float,
    exact: Floats,
    scores: Floats,
    own: Callable[[int, int], float],
) -> Iterator[Row]:
    """Times, and whether the card's best, scored again as main memory does it, are those of main memory."""
    error = float(np.abs(exact - scores).max())
    same = statistics.mean(_best(exact[query], 0.0, query, own) == _best(scores[query], SCAN_ERROR, query, own)
                           for query in range(count))  # fmt: skip
    queries = "1 query" if count == 1 else f"{count} queries"
    yield Row(f"{what}, {queries}, main memory", slow, "ms", remark="NumPy, once")
    yield Row(
        f"{what}, {queries}, torch on {device}",
        fast,
        "ms",
        remark=f"{slow / fast:.1f} times as fast; scores differ by {error:.1e}",
    )
    yield Row(f"{what}, {queries}, same {K} best in the same order", same, "of the queries")


def _best(scores: Floats, error: float, query: int, own: Callable[[int, int], float]) -> list[int]:
    """Numbers of the ``K`` best by their own scores, of all that can be among them."""
    worst = np.partition(scores, len(scores) - K)[len(scores) - K]
    # Main memory's scan is rounded too.
    numbers = np.flatnonzero(scores >= worst - 2 * max(error, 1e-4)).tolist()
    return sorted(numbers, key=lambda number: (-own(query, number), number))[:K]


def _unit_vectors(count: int, dim: int, device: str) -> NDArray[np.float16]:
    """[count, dim], the same ones for the same device; drawn there, because main memory would take minutes."""
    import torch

    source = torch.Generator(device).manual_seed(0)
    units = np.empty((count, dim), np.float16)
    for start in range(0, count, 16 * BLOCK):
        drawn = torch.randn((min(16 * BLOCK, count - start), dim), generator=source, device=device)
        units[start : start + len(drawn)] = torch.nn.functional.normalize(drawn, dim=1).half().cpu().numpy()
    return units


def _products(stored: torch.Tensor, queries: Floats) -> torch.Tensor:
    """[queries, rows], on the device of ``stored``."""
    import torch

    return (torch.from_numpy(queries).to(stored) @ stored.T).float()


def _best_there(scores: Callable[[], torch.Tensor]) -> torch.Tensor:
    """What has to leave the card: twice as many as are asked for, to be scored again."""
    return scores().topk(2 * K, dim=1).values.cpu()


def _near(
    vectors: NDArray[np.float16], chance: np.random.Generator, count: int, bounds: NDArray[np.int64] | None = None
) -> Floats:
    """Query vectors near stored ones, of one page where ``bounds`` says which are: results have a first and a tail."""
    if bounds is None:
        rows = chance.integers(len(vectors), size=count)
    else:
        page = int(chance.integers(len(bounds) - 1))
        rows = chance.integers(bounds[page], bounds[page + 1], size=count)
    mixed = vectors[rows].astype(np.float32) + 0.5 * chance.standard_normal((count, vectors.shape[1]), np.float32)
    unit: Floats = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit


def _cpu_max_sim(queries: Sequence[Floats], vectors: NDArray[np.float16], bounds: NDArray[np.int64]) -> Floats:
    """As ``LateIndex`` scans in main memory: single precision, page by page of a block."""
    together = np.concatenate(queries)
    scores = np.empty((len(queries), len(bounds) - 1), np.float32)
    pages = max(1, BLOCK // int(bounds[1] - bounds[0]))
    for start in range(0, scores.shape[1], pages):
        stop = min(start + pages, scores.shape[1])
        products = together @ vectors[bounds[start] : bounds[stop]].astype(np.float32).T
        best = np.maximum.reduceat(products, bounds[start:stop] - bounds[start], axis=1)
        scores[:, start:stop] = best.reshape(len(queries), -1, stop - start).mean(axis=1)
    return scores


def _cpu_products(queries: Floats, vectors: NDArray[np.float16]) -> Floats:
    blocks = (vectors[start : start + BLOCK].astype(np.float32) for start in range(0, len(vectors), BLOCK))
    products: Floats = np.concatenate([queries @ block.T for block in blocks], axis=1)
    return products


def _page_score(query: Floats, page: NDArray[np.float16]) -> float:
    return float((query @ page.astype(np.float32).T).max(axis=1).mean())


def _milliseconds(run: Callable[[], object], device: str, rounds: int = 10) -> float:
    run()
    taken: list[float] = []
    for _ in range(rounds):
        wait(device)
        began = time.perf_counter()
        run()
        wait(device)
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


def _missing(*packages: str) -> str:
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""
