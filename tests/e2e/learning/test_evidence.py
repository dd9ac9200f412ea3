"""What a rollout searches and sees, against what serving does."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.mosaic.world.agent import mosaic_agent
from benchmarks.mosaic.world.drawing import draw, page_pixels
from tests.support.learning_place import Place
from tests.support.tiny_vllm import needs_vllm
from vrag_ray.agent.chat import PictureRequest
from vrag_ray.training.rollout.environment import open_evidence
from vrag_ray.types import Locator, VragError

pytestmark = needs_vllm


def test_training_searches_and_sees_the_collection_as_serving_does(place: Place) -> None:
    page = place.mosaic.pages[3]

    async def look() -> None:
        evidence = await open_evidence(place.environment)
        try:
            answer = await evidence.source.retriever.search([page.name], top_k=2)
            assert answer.results[0][0].passage.text == page.name
            assert await evidence.source.retriever.search([page.name], top_k=2) is answer, "searched once"
            family = mosaic_agent().picture_pixels
            doc_id = answer.results[0][0].passage.doc_id
            request = PictureRequest(doc_id, Locator(page=1), None, None, 28, family, family)
            nowhere = PictureRequest("0" * 64, Locator(page=1), None, None, 28, family, family)
            seen, refused, again = await evidence.source.pages.pictures([request, nowhere, request])
            assert seen == again == draw(page_pixels(page), request)
            assert isinstance(refused, VragError)
            assert (await evidence.source.pages.pictures([request]))[0] is seen
        finally:
            await evidence.close()

    asyncio.run(look())


def test_runs_that_search_for_the_same_at_once_share_one_search(place: Place) -> None:
    name = place.mosaic.pages[4].name

    async def search() -> None:
        evidence = await open_evidence(place.environment)
        retriever = evidence.source.retriever
        try:
            tasks = [asyncio.create_task(retriever.search([name], top_k=2)) for _ in range(8)]
            other = asyncio.create_task(retriever.search([name], top_k=1))
            await asyncio.sleep(0)
            tasks[0].cancel()
            answers = await asyncio.gather(*tasks[1:])
            assert tasks[0].cancelled(), "the one that gave up took the search from nobody"
            assert len({id(answer) for answer in answers}) == 1
            assert [len(answer.results[0]) for answer in (answers[0], await other)] == [2, 1]
            left = asyncio.create_task(retriever.search([place.mosaic.pages[5].name], top_k=2))
            await asyncio.sleep(0)
        finally:
            await evidence.close()
        with pytest.raises(asyncio.CancelledError):
            await left

    asyncio.run(search())


def test_an_empty_collection_is_refused(place: Place) -> None:
    environment = place.environment.model_copy(update={"collection": str(place.root / "nothing")})
    with pytest.raises(VragError, match="nothing"):
        asyncio.run(open_evidence(environment))
