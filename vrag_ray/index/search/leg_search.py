"""One vector leg within one search: its queries, and its hits in one or more collections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vrag_ray.embedding.base import LEAST_READABLE, Embedding, EmbedError
from vrag_ray.index.search.fusion import Leg, best_windows
from vrag_ray.index.search.snapshot import Part
from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.index.shards.scored import merge_distinct
from vrag_ray.index.shards.shards import FanOut
from vrag_ray.types import HYBRID, Query, VragError


@dataclass
class LegReply:
    """The queries of a leg, by number: how much of each its embedder can read, their vectors, [n, dim], or
    why there are none, and the leg's pages for it.

    ``shards_ok`` is that of the search of the shards that fewest answered, None where they were not searched;
    ``problems`` say why the others did not.
    """

    leg: VectorLeg
    readable: dict[int, float]
    vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    legs: dict[int, Leg] = field(default_factory=dict)
    shards_ok: int | None = None
    problems: tuple[str, ...] = ()


async def search_leg(
    leg: VectorLeg, parts: Sequence[Part], queries: Sequence[Query], *, top_k: int, candidates: int, mode: str
) -> LegReply:
    """The reply of the leg to the queries that it can read, as if ``parts`` were one collection.

    ``leg`` embeds the queries for all of them. Raises VragError where a leg that the request names cannot embed one.
    """
    searched = await _embedded(leg, queries, mode)
    fetch_k = max(candidates, top_k)
    while numbers := [number for number in searched.vectors if number not in searched.legs]:
        vectors = [searched.vectors[number] for number in numbers]
        fans = await asyncio.gather(
            *(
                part.snapshot.shards.nearest(part.collection.version, leg.name, vectors, fetch_k, part.filter)
                for part in parts
            )
        )
        fan = _joined(parts, fans, fetch_k)
        searched.shards_ok = fan.shards_ok if searched.shards_ok is None else min(fan.shards_ok, searched.shards_ok)
        searched.problems = tuple(dict.fromkeys((*searched.problems, *fan.problems)))
        for number, windows in zip(numbers, fan.results, strict=True):
            reply = Leg(leg.name, best_windows(windows), len(windows) < fetch_k, leg.weight)
            # Long pages have many windows: widen until there are enough pages or no more windows.
            if len(reply.pages) >= top_k or reply.complete:
                searched.legs[number] = reply
        fetch_k *= 4
    return searched


async def _embedded(leg: VectorLeg, queries: Sequence[Query], mode: str) -> LegReply:
    """The leg with the vectors of those queries that it has something to say about."""
    parts = {n: part for n, query in enumerate(queries) if (part := leg.part_of(query)) is not None}
    if not parts:
        return LegReply(leg, {})
    # A vector of what the embedder cannot read is noise: only a search of this leg by name gets it.
    least = LEAST_READABLE if mode == HYBRID else 0.0
    read = dict(zip(parts, await leg.read(list(parts.values()), least_readable=least), strict=True))
    faults = {n: str(query.embedded) for n, query in read.items() if isinstance(query.embedded, EmbedError)}
    if faults and mode != HYBRID:
        raise VragError(f"the query cannot be searched by {leg.name}: {next(iter(faults.values()))}")
    vectors = {n: query.embedded.vectors for n, query in read.items() if isinstance(query.embedded, Embedding)}
    return LegReply(leg, {n: query.share for n, query in read.items()}, vectors, faults)


def _joined(parts: Sequence[Part], fans: Sequence[FanOut], k: int) -> FanOut:
    """The ``k`` best windows of each query over several collections."""
    if len(fans) == 1:
        return fans[0]
    results = [merge_distinct(lists, k) for lists in zip(*(fan.results for fan in fans), strict=True)]
    problems = tuple(
        f"{part.snapshot.name}: {problem}" for part, fan in zip(parts, fans, strict=True) for problem in fan.problems
    )
    return FanOut(results, sum(fan.shards_ok for fan in fans), problems)
