"""What a search says of its hits beside their order: where on the page the query was seen, and which look the same."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.index.shards.heat import hot_boxes
from vrag_ray.index.shards.late_index import Sight
from vrag_ray.index.shards.shards import Look, Shards
from vrag_ray.types import TEXT, Box, Hit

ALIKE_BITS = 4
"""Pictures whose perceptual hashes differ in at most so many of 64 bits look the same."""


async def seen(
    shards: Shards,
    version: int,
    results: Sequence[Sequence[Hit]],
    legs: Sequence[tuple[VectorLeg, Mapping[int, NDArray[np.float32]]]],
) -> list[tuple[Hit, ...]]:
    """The hits of each query with the region of the first leg that knows one, and the earlier hit that they look like.

    ``legs`` come with the vectors, [n, dim], of those queries that they were asked, by the query's number.
    """
    # The first window stands for its page in a space of pictures.
    places = [(n, _first_window(hit.passage.id), hit.passage.doc_id) for n, hits in enumerate(results) for hit in hits]
    asked = [(leg, vectors) for leg, vectors in legs if leg.name != TEXT and places]
    told = await asyncio.gather(*(_told(shards, version, leg, vectors, places) for leg, vectors in asked))
    hashes: dict[str, int] = {}
    regions: dict[tuple[int, str], Box] = {}
    for sights in told:
        for (n, passage_id, _), sight in zip(places, sights, strict=True):
            if sight is not None and sight.phash is not None:
                hashes.setdefault(passage_id, sight.phash)
            if sight is not None and sight.heat is not None and (n, passage_id) not in regions:
                regions[n, passage_id] = hot_boxes(sight.heat)[0]
    return [
        tuple(
            _marked_duplicates(
                [replace(hit, region=regions.get((n, _first_window(hit.passage.id)))) for hit in hits], hashes
            )
        )
        for n, hits in enumerate(results)
    ]


async def _told(
    shards: Shards,
    version: int,
    leg: VectorLeg,
    vectors: Mapping[int, NDArray[np.float32]],
    places: Sequence[tuple[int, str, str]],
) -> list[Sight | None]:
    numbers = {n: number for number, n in enumerate(vectors)}
    looks = [Look(passage_id, doc_id, numbers.get(n)) for n, passage_id, doc_id in places]
    return await shards.sights(version, leg.name, looks, list(vectors.values()))


def _first_window(passage_id: str) -> str:
    return f"{passage_id.rpartition(':')[0]}:w0"


def _marked_duplicates(hits: list[Hit], hashes: dict[str, int]) -> list[Hit]:
    marked: list[Hit] = []
    for hit in hits:
        own = hashes.get(_first_window(hit.passage.id))
        alike = next(
            (
                one.passage.id
                for one in marked
                if own is not None
                and not one.duplicate_of
                and (other := hashes.get(_first_window(one.passage.id))) is not None
                and (own ^ other).bit_count() <= ALIKE_BITS
            ),
            "",
        )
        marked.append(replace(hit, duplicate_of=alike) if alike else hit)
    return marked
