"""What a search says of its hits beside their order: where on the page the query was seen, and which look the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.index.shards.heat import heat_map, hot_boxes
from vrag_ray.index.shards.late_index import PageVectors
from vrag_ray.types import TEXT, Hit

ALIKE_BITS = 4
"""Pictures whose perceptual hashes differ in at most so many of 64 bits look the same."""


class Pages(Protocol):
    """What spaces know of single passages; see ``Shards``."""

    async def pages(self, version: int, space: str, passages: Sequence[tuple[str, str]]) -> dict[str, PageVectors]: ...


async def seen(
    pages: Pages,
    version: int,
    hits: Sequence[Hit],
    legs: Sequence[tuple[VectorLeg, NDArray[np.float32] | None]],
) -> list[Hit]:
    """The hits with the region of the first leg that knows one, and with the earlier hit that they look like.

    ``legs`` come with the vectors of the query, [n, dim]; None for a leg that was not asked.
    """
    hashes: dict[str, int] = {}
    regions: dict[str, Hit] = {}
    # The first window stands for its page in a space of pictures.
    first = {_first_window(hit.passage.id): hit for hit in hits}
    wanted = [(passage_id, hit.passage.doc_id) for passage_id, hit in first.items()]
    for leg, vectors in legs:
        if leg.name == TEXT or not wanted:
            continue
        for passage_id, page in (await pages.pages(version, leg.name, wanted)).items():
            if page.phash is not None:
                hashes.setdefault(passage_id, page.phash)
            if page.grid is not None and vectors is not None and passage_id not in regions:
                boxes = hot_boxes(heat_map(vectors, page.vectors, page.grid))
                regions[passage_id] = replace(first[passage_id], region=boxes[0])
    return _marked_duplicates([regions.get(_first_window(hit.passage.id), hit) for hit in hits], hashes)


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
