"""What a search says of its hits beside their order: where on the page the query was seen, and which look the same."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vrag_ray.index.search.leg_search import LegReply
from vrag_ray.index.search.snapshot import Snapshot
from vrag_ray.index.shards.heat import hot_boxes
from vrag_ray.index.shards.shards import PageQuery
from vrag_ray.index.shards.space_index import PageTraits
from vrag_ray.types import Box, Hit

ALIKE_BITS = 4
"""Pictures whose perceptual hashes differ in at most this many of 64 bits look the same."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A hit. The first window stands for its page in a space of pictures; ``query`` is its query's number."""

    query: int
    collection: str
    first_window: str
    doc_id: str

    @classmethod
    def of(cls, query: int, hit: Hit) -> _Place:
        return cls(query, hit.collection, _first_window(hit.passage.id), hit.passage.doc_id)


async def with_page_traits(
    snapshots: Mapping[str, Snapshot], results: Sequence[Sequence[Hit]], legs: Sequence[LegReply]
) -> list[tuple[Hit, ...]]:
    """The hits of each query with the region of the first leg that knows one, and the earlier hit that they look like.

    ``snapshots`` are the collections of the hits, by name.
    """
    places = [_Place.of(n, hit) for n, hits in enumerate(results) for hit in hits]
    seeing = [leg for leg in legs if leg.leg.sees and places]
    known = await asyncio.gather(*(_traits(snapshot, leg, places) for leg in seeing for snapshot in snapshots.values()))
    hashes: dict[str, int] = {}
    regions: dict[tuple[int, str], Box] = {}
    for by_place in known:
        for place, traits in by_place.items():
            if traits.phash is not None:
                hashes.setdefault(place.first_window, traits.phash)
            if traits.heat is not None and (place.query, place.first_window) not in regions:
                regions[place.query, place.first_window] = hot_boxes(traits.heat)[0]
    return [
        tuple(
            _marked_duplicates(
                [replace(hit, region=regions.get((n, _first_window(hit.passage.id)))) for hit in hits], hashes
            )
        )
        for n, hits in enumerate(results)
    ]


async def _traits(snapshot: Snapshot, leg: LegReply, places: Sequence[_Place]) -> dict[_Place, PageTraits]:
    """What the leg's space tells of the hits in one collection."""
    own = [place for place in places if place.collection == snapshot.name]
    if not own:
        return {}
    numbers = {n: number for number, n in enumerate(leg.vectors)}
    pages = [PageQuery(place.first_window, place.doc_id, numbers.get(place.query)) for place in own]
    queries = list(leg.vectors.values())
    known = await snapshot.shards.page_traits(snapshot.collection.version, leg.leg.name, pages, queries)
    return {place: traits for place, traits in zip(own, known, strict=True) if traits is not None}


def _first_window(passage_id: str) -> str:
    return f"{passage_id.rpartition(':')[0]}:w0"


def _marked_duplicates(hits: list[Hit], hashes: dict[str, int]) -> list[Hit]:
    marked: list[Hit] = []
    for hit in hits:
        own = hashes.get(_first_window(hit.passage.id))
        alike = next(
            (
                previous.passage.id
                for previous in marked
                if own is not None
                and not previous.duplicate_of
                and (other := hashes.get(_first_window(previous.passage.id))) is not None
                and (own ^ other).bit_count() <= ALIKE_BITS
            ),
            "",
        )
        marked.append(replace(hit, duplicate_of=alike) if alike else hit)
    return marked
