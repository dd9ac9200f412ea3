"""An English embedder over Chinese slides: what it cannot read must not outvote the words, and a notice says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.chinese_slides import CLOUD_ENTERPRISE_NETWORK, draw_slides
from vrag_ray.config import CorpusConfig, IndexConfig, Settings
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.ingest import ingest
from vrag_ray.types import HYBRID, LEXICAL, TEXT, PassageKind, SearchAnswer
from vrag_ray.types.filters import SearchFilter

pytestmark = pytest.mark.usefixtures("local_ray")
CHINESE = "云企业网"


class Slides:
    """A retriever over the ingested slides, on an event loop of its own: started once for this module."""

    def __init__(self, settings: Settings) -> None:
        self._runner = asyncio.Runner()
        self._retriever = self._runner.run(ShardedRetriever.start(settings))

    def search(self, queries: list[str], mode: str = HYBRID, filter: SearchFilter | None = None) -> SearchAnswer:
        return self._runner.run(self._retriever.search(queries, top_k=3, mode=mode, filter=filter))

    def close(self) -> None:
        self._runner.run(self._retriever.close())
        self._runner.close()


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory, local_ray: None) -> Iterator[Slides]:
    """Drawn, ingested with the real embedder and searched with the real indexes."""
    folder = tmp_path_factory.mktemp("chinese")
    draw_slides(folder / "slides.pdf")
    settings = Settings(
        collection=str(folder / "c"), corpus=CorpusConfig(ocr=False), index=IndexConfig(shards=2, threads=1)
    )
    report = ingest([folder / "slides.pdf"], settings)
    assert report.failed == () and report.notices == ()
    slides = Slides(settings)
    yield slides
    slides.close()


def first_pages(answer: SearchAnswer) -> list[int | None]:
    return [hits[0].passage.locator.page for hits in answer.results]


def test_a_chinese_query_finds_its_slide_first_and_the_reply_says_that_the_embedder_stayed_out(
    slides: Slides,
) -> None:
    answer = slides.search([CHINESE])
    assert first_pages(answer) == [CLOUD_ENTERPRISE_NETWORK]
    assert answer.mode == HYBRID
    assert all(TEXT not in hit.scores for hit in answer.results[0])
    [notice] = answer.notices
    assert 'knows 0% of the query "云企业网": it was searched by words only' in notice


def test_english_queries_on_the_same_slides_are_answered_by_both_legs_in_one_batch_with_a_chinese_one(
    slides: Slides,
) -> None:
    queries = ["Bandwidth package", "Distributed training of deep models", "protect from denial of service", CHINESE]
    answer = slides.search(queries)
    assert first_pages(answer) == [CLOUD_ENTERPRISE_NETWORK, 10, 9, CLOUD_ENTERPRISE_NETWORK]
    for hits in answer.results[:3]:
        assert {TEXT, LEXICAL} <= hits[0].scores.keys()
    assert len(answer.notices) == 1 and CHINESE in answer.notices[0]
    for number, query in enumerate(queries):
        assert slides.search([query]).results[0] == answer.results[number]


def test_a_question_in_other_words_is_answered_by_meaning_and_the_reply_says_so(slides: Slides) -> None:
    answer = slides.search(["repel hackers"])
    assert first_pages(answer) == [9]
    assert answer.notices == ('no passage has a word of the query "repel hackers": it was searched by meaning only',)


def test_a_query_that_neither_leg_can_answer_finds_nothing_and_says_why(slides: Slides) -> None:
    answer = slides.search(["энергосбережение"], filter=SearchFilter(kinds=[PassageKind.PAGE]))
    assert answer.results == ((),)
    [notice] = answer.notices
    assert "knows 0% of the query" in notice
    assert "and no passage that the filter lets through has a word of it: nothing was found" in notice


def test_dense_search_by_name_is_answered_with_the_notice_that_it_is_noise(slides: Slides) -> None:
    answer = slides.search([CHINESE], TEXT)
    assert len(answer.results[0]) == 3
    [notice] = answer.notices
    assert 'knows 0% of the query "云企业网": these results are noise, search by words' in notice


def test_lexical_search_asks_no_embedder_and_has_nothing_to_tell(slides: Slides) -> None:
    answer = slides.search([CHINESE], LEXICAL)
    assert first_pages(answer) == [CLOUD_ENTERPRISE_NETWORK]
    assert answer.notices == ()
