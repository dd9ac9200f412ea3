"""Evidence over HTTP is the evidence of the server: what a search knows of a hit arrives with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.support.agent_pages import HEIGHT, WIDTH, Shelf, put, table
from tests.support.evidence_stub import evidence_stub
from vrag_ray.client.evidence import SystemRetriever, page_of
from vrag_ray.client.http import AsyncClient
from vrag_ray.client.schemas import PageElements
from vrag_ray.corpus.elements import elements, elements_of_clip
from vrag_ray.serving.parts.documents import elements_reply
from vrag_ray.types import Box, Cue, Hit, Locator, PageText

SEEN = Box(0.25, 0.5, 0.5, 0.75)


def hits_of(shelf: Shelf, query: str) -> tuple[Hit, ...]:
    async def search(url: str) -> tuple[Hit, ...]:
        async with AsyncClient(url) as client:
            return (await SystemRetriever(client).search([query])).results[0]

    with evidence_stub(shelf) as url:
        return asyncio.run(search(url))


def test_a_page_and_a_clip_are_known_by_their_elements_as_they_are_where_they_were_read() -> None:
    words = [
        *put(50, 40, "Sales by region"),
        *table(50, 70, (0, 150), ("North", "12"), ("South", "21"), ("West", "31")),
    ]
    page = PageText("d", Locator(page=3), "", tuple(words), WIDTH, HEIGHT, elements=elements(words, WIDTH / HEIGHT))
    cues = [Cue(1.0, 4.0, "Good morning"), Cue(2.0, 9.0, "Dredging", SEEN)]
    clip = PageText(
        "v", Locator(t_start=0.0, t_end=9.0), "", (), 640, 480, elements=elements_of_clip(cues, [(0.0, 9.0)])
    )
    for read in (page, clip):
        sent = PageElements.model_validate_json(elements_reply(read).model_dump_json())
        known = page_of(sent, read.locator)
        assert [replace(part, box=part.box.rounded()) for part in read.elements] == list(known.elements)
        assert (known.doc_id, known.locator, known.aspect) == (read.doc_id, read.locator, read.aspect)
    assert page_of(elements_reply(page), page.locator).text.splitlines() == [
        "Sales by region",
        "| North | 12 |",
        "| South | 21 |",
        "| West | 31 |",
    ]
    assert known.text == "[1.0-4.0] Good morning\n[2.0-9.0] Dredging"


def test_a_hit_comes_with_its_region_its_scores_and_its_twin() -> None:
    shelf = Shelf()
    shelf.add("Map", region=SEEN)
    shelf.add("plain harbour map", text="harbour map")
    shelf.hits[0] = replace(shelf.hits[0], scores={"late": 0.5, "lexical": 2.0}, duplicate_of="other:p1:w0")
    plain, drawn = hits_of(shelf, "harbour map")
    assert (drawn.title, drawn.region, drawn.scores) == ("Map", SEEN, {"late": 0.5, "lexical": 2.0})
    assert drawn.duplicate_of == "other:p1:w0"
    assert (plain.region, plain.scores, plain.duplicate_of) == (None, {}, "")
