"""Titles of documents in hybrid search: which page gains, and what is embedded for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.planted import PlantedEmbedder, plant
from vrag_ray.config import IndexConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError
from vrag_ray.index.search.fusion import Fused
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.search.titles import TITLE, TitleVectors, by_titles, still_needed
from vrag_ray.index.storage.collection import Collection
from vrag_ray.serving.parts.fresh_retriever import FreshRetriever
from vrag_ray.types import HYBRID, LEXICAL, TEXT, SearchAnswer

PLANTED = SpaceConfig(model="tests.support.planted:make_planted")
PAGES = {
    "lund": ["fleet cash ratio of boats", "crew"],
    "berg": ["fleet cash ratio of boats", "engines"],
}


class Counted(PlantedEmbedder):
    """It cannot read ``unreadable``, refuses ``refused``, and counts what it embeds."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([0.0 if text == "unreadable" else 1.0 for text in texts], np.float32)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        self.embedded += [content.text for content in contents]
        results = super().embed_passages(contents)
        return [
            EmbedError("too odd") if content.text == "refused" else embedded
            for content, embedded in zip(contents, results, strict=True)
        ]


def test_a_title_is_embedded_once_and_what_cannot_be_read_is_near_nothing(caplog: pytest.LogCaptureFixture) -> None:
    embedder = Counted()
    titles, query = TitleVectors(embedder), embedder.vectors(["lund boats"])
    names = ["lund boats", "refused", "unreadable"]
    assert titles.lacks(names)
    for _ in range(2):
        near = titles.similarities(names, query)
        assert near == {"lund boats": pytest.approx(1.0), "refused": 0.0, "unreadable": 0.0}
    assert not titles.lacks(names)
    assert embedder.embedded == ["lund boats", "refused"]
    assert [record.getMessage() for record in caplog.records] == [
        "pages of 'refused' gain nothing by this title: too odd"
    ]


scores = st.floats(0, 1, allow_nan=False)


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.tuples(scores, st.none() | scores)),
    st.floats(0, 2),
    st.integers(1, 9),
)
def test_scores_stay_in_their_range_and_order_follows_them(
    pages: dict[str, tuple[float, float | None]], weight: float, top_k: int
) -> None:
    fused = sorted((Fused(name, score, {}) for name, (score, _) in pages.items()), key=lambda item: -item.score)
    near = {name: title for name, (_, title) in pages.items() if title is not None}
    every = by_titles(fused, near, weight, len(pages))
    ranked = by_titles(fused, near, weight, top_k)
    assert ranked == every[:top_k]
    assert ranked == sorted(ranked, key=lambda item: (-item.score, item.id))
    assert {item.id for item in every} == set(pages)
    for item in ranked:
        score, title = pages[item.id]
        assert item.score * (1 + weight) == pytest.approx(score + weight * (title or 0.0))
        assert item.by_leg.get(TITLE) == title
        assert 0 <= item.score <= 1


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.tuples(scores, st.sampled_from("vwxyz"))),
    st.fixed_dictionaries(dict.fromkeys("vwxyz", scores)),
    st.sets(st.sampled_from("vwxyz")),
    st.floats(0, 2),
    st.integers(1, 9),
)
def test_titles_that_are_not_needed_change_nothing(
    pages: dict[str, tuple[float, str]], every: dict[str, float], first: set[str], weight: float, top_k: int
) -> None:
    fused = sorted((Fused(name, score, {}) for name, (score, _) in pages.items()), key=lambda item: -item.score)
    titles = {name: title for name, (_, title) in pages.items()}
    known = {title: every[title] for title in first}
    needed = still_needed(fused, titles, known, weight, top_k)
    assert not first & set(needed)
    known |= {title: every[title] for title in needed}

    def ordered(near: dict[str, float]) -> list[Fused]:
        return by_titles(fused, {name: near[title] for name, title in titles.items() if title in near}, weight, top_k)

    assert ordered(known) == ordered(every)


def test_a_page_far_behind_needs_no_title() -> None:
    fused = [Fused("a", 0.9, {}), Fused("b", 0.8, {}), Fused("c", 0.2, {})]
    titles = {"a": "x", "b": "y", "c": "z"}
    assert still_needed(fused, titles, {}, 0.4, 1) == ["x", "y"]
    assert still_needed(fused, titles, {"x": 1.0}, 0.4, 1) == []
    assert still_needed(fused, titles, {"x": 1.0}, 0.4, 3) == ["y", "z"]


def searched(root: Path, query: str, weight: float = 0.4, mode: str = HYBRID) -> SearchAnswer:
    async def search() -> SearchAnswer:
        index = IndexConfig(shards=1, threads=1, title_weight=weight)
        settings = Settings(collection=str(root), spaces={"text": PLANTED}, index=index)
        retriever = await ShardedRetriever.start(settings)
        try:
            return await retriever.search([query], top_k=4, mode=mode)
        finally:
            await retriever.close()

    return asyncio.run(search())


@pytest.mark.usefixtures("local_ray")
def test_a_question_that_names_a_report_finds_the_page_in_that_report(tmp_path: Path) -> None:
    plant(tmp_path / "c", PAGES)
    for name in ("lund", "berg"):
        answer = searched(tmp_path / "c", f"cash ratio of {name}")
        first, second, *_ = answer.results[0]
        assert first.title == name and first.score > second.score
        assert first.scores[TITLE] > second.scores[TITLE]
    for mode, weight in ((HYBRID, 0.0), (TEXT, 0.4), (LEXICAL, 0.4)):
        [hits] = searched(tmp_path / "c", "cash ratio of berg", weight, mode).results
        assert hits[0].score == hits[1].score, "the two pages say the same"
        assert all(TITLE not in hit.scores for hit in hits)


@pytest.mark.usefixtures("local_ray")
def test_titles_change_nothing_where_all_pages_are_of_one_title(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"lund": ["fleet cash ratio of boats", "crew of boats"]})
    with_titles, without = (searched(tmp_path / "c", "cash of lund boats", weight) for weight in (0.4, 0.0))
    assert with_titles.results == without.results


@pytest.mark.parametrize(
    ("pages", "weight", "prepared"),
    [
        (PAGES, 0.4, ["lund", "berg"]),
        pytest.param({"lund": ["boats"]}, 0.4, [], id="a single title, which no search compares"),
        pytest.param(PAGES, 0.0, [], id="titles that count nothing"),
    ],
)
def test_titles_of_a_served_version_are_embedded_before_a_search_needs_them(
    tmp_path: Path, pages: dict[str, list[str]], weight: float, prepared: list[str]
) -> None:
    plant(tmp_path / "c", pages)
    index = IndexConfig(title_weight=weight)

    async def known() -> list[str]:
        settings = Settings(collection=str(tmp_path / "c"), spaces={"text": PLANTED}, index=index)
        retriever = await ShardedRetriever.start_local(settings)
        try:
            vectors = retriever.snapshot.legs.by_name[TEXT].titles
            assert vectors is not None
            assert all(vectors.lacks([title]) for title in pages)
            await retriever.prepare_titles()
            return [title for title in pages if not vectors.lacks([title])]
        finally:
            await retriever.close()

    assert asyncio.run(known()) == prepared


def test_a_served_collection_embeds_its_titles_without_a_search(tmp_path: Path) -> None:
    plant(tmp_path / "c", PAGES)
    settings = Settings(collection=str(tmp_path / "c"), spaces={"text": PLANTED})

    async def serve() -> None:
        served = FreshRetriever(settings, "c", partial(ShardedRetriever.start_local, settings))
        await served.tried()
        try:
            vectors = (await served.retriever()).snapshot.legs.by_name[TEXT].titles
            assert vectors is not None
            async with asyncio.timeout(60):
                while vectors.lacks(list(PAGES)):  # noqa: ASYNC110  a thread makes them
                    await asyncio.sleep(0.01)
        finally:
            served.close()

    asyncio.run(serve())


@pytest.mark.parametrize("most", [1, 2, 9])
def test_titles_of_a_collection_are_listed_once_each_up_to_a_number(tmp_path: Path, most: int) -> None:
    plant(tmp_path / "c", PAGES)
    titles = Collection.open(str(tmp_path / "c")).distinct_titles(most)
    assert len(titles) == min(most, len(PAGES)) and set(titles) <= set(PAGES)
