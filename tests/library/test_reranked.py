"""The first results read again: their order, their scores, and what happens where a page cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.planted import plant
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.embedding.base import Content, EmbedError, PictureSpec
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.library.library import Library
from vrag_ray.library.reranked import RERANKER, RerankedSearch
from vrag_ray.types import DocumentKind, PassageKind, SearchAnswer

TEXTS = ["apple one", "apple two apple", "apple three apple apple", "apple four", "apple five"]


class Last:
    """Likes best what is long, and cannot read what holds ``refused``."""

    id = "last/1"
    pictures = PictureSpec(patch=28, min_pixels=28 * 28, max_pixels=56 * 56)

    def __init__(self, refused: str = "nothing") -> None:
        self.refused, self.read = refused, list[list[Content]]()

    def score(self, query: Content, passages: Sequence[Content]) -> list[float]:
        assert query.text == "apple"
        self.read.append(list(passages))
        for place, passage in enumerate(passages):
            if self.refused in passage.text:
                raise EmbedError(f"passage {place} cannot be read")
        return [len(passage.text) / 100 for passage in passages]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Planted passages have no page to draw, so they stand for pieces of a text."""
    root: Path = tmp_path_factory.mktemp("reranked") / "c"
    plant(root, {f"d{n}": [text] for n, text in enumerate(TEXTS)})
    with CollectionWriter(root) as writer:
        writer.commit_documents(
            [replace(document, kind=DocumentKind.TEXT) for document in list(writer.documents.values())]
        )
        writer.publish("texts")
    return root


def search(root: Path, reranker: Last, top_n: int, top_k: int) -> SearchAnswer:
    settings = Settings(collection=str(root), spaces={"text": SpaceConfig(model="none")})

    async def run() -> SearchAnswer:
        retriever = await ShardedRetriever.start_local(settings)
        library = Library(settings)

        class Texts:
            """The same hits, as pieces of a text."""

            async def search(self, *arguments: object, **named: object) -> SearchAnswer:
                answer = await retriever.search(*arguments, **named)  # type: ignore[arg-type]
                hits = tuple(
                    tuple(replace(hit, passage=replace(hit.passage, kind=PassageKind.TEXT)) for hit in result)
                    for result in answer.results
                )
                return replace(answer, results=hits)

        try:
            return await RerankedSearch(Texts(), library, reranker, top_n).search(["apple"], top_k=top_k)
        finally:
            library.close()
            await retriever.close()

    return asyncio.run(run())


def test_the_first_are_in_the_rerankers_order_with_its_scores(root: Path) -> None:
    reranker = Last()
    hits = search(root, reranker, top_n=5, top_k=2).results[0]
    assert [hit.passage.text for hit in hits] == ["apple three apple apple", "apple two apple"]
    assert [hit.score for hit in hits] == [pytest.approx(0.23), pytest.approx(0.15)]
    assert all(hit.scores[RERANKER] == hit.score for hit in hits)
    assert [len(read) for read in reranker.read] == [5]


def test_what_was_not_read_follows_with_lower_scores(root: Path) -> None:
    hits = search(root, Last(), top_n=2, top_k=5).results[0]
    assert len(hits) == 5
    assert [RERANKER in hit.scores for hit in hits] == [True, True, False, False, False]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_where_a_passage_cannot_be_read_the_order_of_the_search_stays_with_a_notice(root: Path) -> None:
    plain = search(root, Last(), top_n=1, top_k=5)
    answer = search(root, Last(refused="three"), top_n=5, top_k=5)
    assert {hit.passage.text for hit in answer.results[0]} == set(TEXTS)
    assert any("were not read again by last/1: passage" in notice for notice in answer.notices)
    assert not any("read again" in notice for notice in plain.notices)
    assert Collection.open(root).version == 2
