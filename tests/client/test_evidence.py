"""Evidence over HTTP is the evidence of the server: what a search knows of a hit arrives with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.support.agent_pages import Shelf
from tests.support.evidence_stub import evidence_stub
from vrag_ray.client.evidence import SystemEvidence
from vrag_ray.client.http import AsyncClient
from vrag_ray.types import Box, Hit

SEEN = Box(0.25, 0.5, 0.5, 0.75)


def found(shelf: Shelf, query: str) -> tuple[Hit, ...]:
    async def search(url: str) -> tuple[Hit, ...]:
        async with AsyncClient(url) as client:
            return (await SystemEvidence(client).search(query, top_k=3, filter=None)).results[0]

    with evidence_stub(shelf) as url:
        return asyncio.run(search(url))


def test_a_hit_comes_with_its_region_its_scores_and_its_twin() -> None:
    shelf = Shelf()
    shelf.add("Map", region=SEEN)
    shelf.add("plain harbour map", text="harbour map")
    shelf.hits[0] = replace(shelf.hits[0], scores={"late": 0.5, "lexical": 2.0}, duplicate_of="other:p1:w0")
    plain, drawn = found(shelf, "harbour map")
    assert (drawn.title, drawn.region, drawn.scores) == ("Map", SEEN, {"late": 0.5, "lexical": 2.0})
    assert drawn.duplicate_of == "other:p1:w0"
    assert (plain.region, plain.scores, plain.duplicate_of) == (None, {}, "")
