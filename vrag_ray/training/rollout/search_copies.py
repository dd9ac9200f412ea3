"""What the searches of a training run take.

Each worker opens shards and embedders of its own, beside trainer and engine: nothing is shared between workers yet, so
what one takes is taken as often as there are workers. It is measured after it was opened; ``memory_plan`` and
``vrag plan --rl-workers`` compute it before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.config import IndexConfig
from vrag_ray.embedding.base import Embedder, Residence, Resident

if TYPE_CHECKING:
    from vrag_ray.index.search.retriever import ShardedRetriever

GB = 1e9
PLACES = {"cpu": "in main memory", "cuda": "on the GPU of its worker, which trainer and engine use too"}


@dataclass(frozen=True, slots=True)
class EmbedderCopy:
    """One embedder of a worker; ``residence`` is None where it does not say where its weights lie."""

    space: str
    id: str
    residence: Residence | None


@dataclass(frozen=True, slots=True)
class SearchCopy:
    """What one worker has opened. ``shards`` counts the actors, replicas included, and ``nbytes`` what they hold."""

    shards: int
    nbytes: float
    gpus: float
    """Share of a GPU that each shard reserves."""
    embedders: tuple[EmbedderCopy, ...]


def search_copy(retriever: ShardedRetriever, index: IndexConfig) -> SearchCopy:
    """What ``retriever`` holds. A shard that is down holds nothing."""
    status = retriever.status()
    held = sum(shard.size * shard.bytes_per_passage for shard in status.shards)
    legs = retriever.snapshot.legs.by_name
    return SearchCopy(
        status.shards_total * index.replicas,
        held * index.replicas,
        index.num_gpus or 0.0,
        tuple(EmbedderCopy(name, leg.embedder.id, _residence(leg.embedder)) for name, leg in legs.items()),
    )


def copies_line(copies: Sequence[SearchCopy]) -> str:
    """One line: how many copies of the collection and of its embedders, where, and how many bytes together."""
    workers = len(copies)
    each = "the worker opens" if workers == 1 else f"each of {workers} workers opens"
    shards = sum(copy.shards for copy in copies)
    place = f"with {copies[0].gpus:g} GPU each" if copies[0].gpus else "in main memory"
    parts = [f"{shards} shards of {_gb(sum(copy.nbytes for copy in copies))} {place}"]
    for number, embedder in enumerate(copies[0].embedders):
        residences = [copy.embedders[number].residence for copy in copies if number < len(copy.embedders)]
        known = [residence for residence in residences if residence is not None]
        name = f"the embedder of {embedder.space} ({embedder.id})"
        if len(known) < len(residences) or not known:
            parts.append(f"{name} {len(residences)} times, of a size that it does not say")
            continue
        where = PLACES.get(known[0].device, f"on {known[0].device}")
        parts.append(f"{name} {len(known)} times, {_gb(sum(residence.nbytes for residence in known))} {where}")
    return f"searches: {each} the collection and its embedders for itself: {'; '.join(parts)}"


def _residence(embedder: Embedder) -> Residence | None:
    return embedder.residence if isinstance(embedder, Resident) else None


def _gb(nbytes: float) -> str:
    return f"{nbytes / GB:.2f} GB" if nbytes >= GB / 100 else f"{nbytes / 1e6:.1f} MB"
