"""Searching vector spaces beside the texts: legs by name, pictures as queries, regions, duplicates, degradation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.support.planted import add_embedded, doc_id_of, plant, stored
from tests.support.planted_spaces import (
    COLOURS,
    EMBEDDERS,
    LATE,
    OTHER_TWIN,
    PLANTED,
    SINGLE,
    TWIN,
    WORDS,
    ColourEmbedder,
    MeanColourEmbedder,
    add_space,
    fill,
    painted,
    picture_of,
)
from vrag_ray.config import IndexConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.search.titles import TITLE
from vrag_ray.index.shards.local_shard import LocalShard
from vrag_ray.index.shards.shards import PageQuery
from vrag_ray.index.shards.space_index import PageTraits, QueryVectors
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import DENSE, HYBRID, LEXICAL, TEXT, Box, NotFoundError, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter


def settings_for(root: Path, shards: int = 1, embedder: SpaceConfig = PLANTED) -> Settings:
    return Settings(collection=str(root), spaces={"text": embedder}, index=IndexConfig(shards=shards, threads=1))


@asynccontextmanager
async def local(settings: Settings) -> AsyncIterator[ShardedRetriever]:
    retriever = await ShardedRetriever.start_local(settings)
    try:
        yield retriever
    finally:
        await retriever.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spaces") / "c"
    fill(folder)
    return folder


def search(root: Path, *queries: str | Query, **more: object) -> SearchAnswer:
    async def run() -> SearchAnswer:
        async with local(settings_for(root)) as retriever:
            return await retriever.search(list(queries), **more)  # type: ignore[arg-type]

    return asyncio.run(run())


def names(answer: SearchAnswer, query: int = 0) -> list[str]:
    return [hit.title for hit in answer.results[query]]


def test_a_space_is_a_leg_by_its_name_without_being_configured(root: Path) -> None:
    answer = search(root, "red", "green", mode="late", top_k=1)
    assert (names(answer, 0), names(answer, 1), answer.mode, answer.notices) == (["a"], ["b"], "late", ())
    assert set(answer.results[0][0].scores) == {"late"}
    assert search(root, "blue", mode="mean", top_k=2).results[0][0].title == TWIN


def test_a_hit_says_where_the_query_was_seen(root: Path) -> None:
    answer = search(root, "red", "green", mode="late", top_k=1)
    assert answer.results[0][0].region == Box(0.75, 0.75, 1, 1)
    assert answer.results[1][0].region == Box(0.25, 0.25, 0.75, 0.5)
    assert search(root, "blue", mode="mean", top_k=1).results[0][0].region is None


def test_a_picture_finds_the_page_that_looks_like_it_with_and_without_words(root: Path) -> None:
    for mode in ("late", "mean", HYBRID):
        assert names(search(root, Query(picture=picture_of("b")), mode=mode, top_k=1)) == ["b"]
    both = search(root, Query("two", picture_of("b")), top_k=1)
    assert names(both) == ["b"]
    assert set(both.results[0][0].scores) == {LEXICAL, TEXT, "late", "mean", TITLE}


def test_a_picture_alone_asks_no_leg_of_words(root: Path) -> None:
    answer = search(root, Query(picture=picture_of("a")), top_k=1)
    assert set(answer.results[0][0].scores) == {"late", "mean"}
    for mode in (LEXICAL, TEXT):
        with pytest.raises(VragError, match=rf"cannot be searched in mode {mode}: ask late, mean"):
            search(root, Query(picture=picture_of("a")), mode=mode)


def test_a_collection_without_pictures_searches_the_words_of_a_query_and_says_so(tmp_path: Path) -> None:
    fill(tmp_path / "c", ())
    answer = search(tmp_path / "c", Query("two", picture_of("a")), top_k=1)
    assert names(answer) == ["b"]
    assert any("the picture of the query was not searched, its words were" in notice for notice in answer.notices)
    with pytest.raises(VragError, match=r"no vector space of pictures here: `vrag embed`"):
        search(tmp_path / "c", Query(picture=picture_of("a")))


def test_a_leg_that_cannot_embed_a_query_is_left_out_of_hybrid_and_says_so_by_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: ColourEmbedder, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return [EmbedError("too many words") for _ in contents]

    monkeypatch.setattr(MeanColourEmbedder, "embed_queries", refuse)
    answer = search(root, "red", top_k=1)
    assert names(answer) == ["a"]
    assert "mean" not in answer.results[0][0].scores
    assert "the leg mean was left out: too many words" in answer.notices
    with pytest.raises(VragError, match="cannot be searched by mean: too many words"):
        search(root, "red", mode="mean")


def test_hybrid_asks_every_leg_that_can_read_the_query(root: Path) -> None:
    colours = search(root, "red", top_k=1)
    assert names(colours) == ["a"]
    words = search(root, "three", top_k=1)
    assert names(words) == ["c"]
    assert set(words.results[0][0].scores) == {LEXICAL, TEXT, TITLE}
    assert any("colours/1 knows 0%" in notice and "left out" in notice for notice in words.notices)


def test_pages_that_look_the_same_are_marked_after_the_first(root: Path) -> None:
    hits = search(root, "blue", mode="late", top_k=4).results[0]
    assert [hit.title for hit in hits[:2]] == [TWIN, OTHER_TWIN]
    assert (hits[0].duplicate_of, hits[1].duplicate_of) == ("", hits[0].passage.id)
    assert {hit.duplicate_of for hit in hits[2:]} == {""}


def test_dense_is_the_former_name_of_the_text_leg_and_an_unknown_name_is_refused_with_the_known_ones(
    root: Path,
) -> None:
    assert search(root, "one", mode=DENSE).mode == TEXT
    with pytest.raises(VragError, match="mode 'visual' is none of hybrid, lexical, text, late, mean"):
        search(root, "one", mode="visual")


def test_sharded_equals_unsharded_on_every_leg_filters_and_deletes_included(local_ray: None, tmp_path: Path) -> None:
    root = tmp_path / "c"
    rng = np.random.default_rng(3)
    plant(root, {f"d{n}": [f"word{n}"] for n in range(30)})
    with CollectionWriter(root) as writer:
        for name in EMBEDDERS:
            pictures = {f"d{n}": painted(rng.choice(COLOURS, 16).tolist()) for n in range(30)}
            add_space(writer, name, pictures, {})
        writer.publish("vectors")
        writer.delete(doc_id_of("d7"))
        writer.publish("one deleted")
    queries = ["red green", Query("green", painted(["black"] * 8 + ["yellow"] * 8)), "word7"]
    chosen = SearchFilter(doc_ids=[doc_id_of(f"d{n}") for n in range(10) if n != 7])

    async def check() -> None:
        sharded = await ShardedRetriever.start(settings_for(root, shards=3))
        async with local(settings_for(root)) as whole:
            for mode in (HYBRID, LEXICAL, TEXT, "late", "mean"):
                for doc_filter in (None, chosen):
                    mine = await whole.search(queries, top_k=30, mode=mode, filter=doc_filter)
                    theirs = await sharded.search(queries, top_k=30, mode=mode, filter=doc_filter)
                    assert mine.results == theirs.results
                    assert all(hit.title != "d7" for hits in mine.results for hit in hits)
            assert [status.space for status in whole.status().shards] == [TEXT, "late", "mean"]
        await sharded.close()

    asyncio.run(check())


def test_documents_that_a_space_lacks_are_counted_and_found_by_the_other_legs(tmp_path: Path) -> None:
    fill(tmp_path / "c", ("late",), names="ab")
    answer = search(tmp_path / "c", "four", top_k=1)
    assert names(answer) == ["d"]
    assert any("2 documents are not in the vector space late yet" in notice for notice in answer.notices)


def test_a_space_of_another_embedder_than_configured_stays_out_with_the_reason(tmp_path: Path) -> None:
    fill(tmp_path / "c", ("late",))
    settings = settings_for(tmp_path / "c").model_copy(update={"spaces": {"late": SINGLE, "other": LATE}})

    async def check() -> None:
        async with local(settings) as retriever:
            answer = await retriever.search(["one"], top_k=1)
            assert names(answer) == ["a"]
            text = " ".join(answer.notices)
            assert (
                "late is not searched: it holds vectors of colours/1 and spaces.late is set to mean-colours/1" in text
            )
            assert "other is not searched: this collection has no such vectors yet: `vrag embed --space other`" in text
            with pytest.raises(VragError, match=r"mode late is not available: .*--rebuild"):
                await retriever.search(["red"], mode="late")

    asyncio.run(check())


def test_a_page_has_a_heat_map_and_an_unknown_page_is_refused(root: Path) -> None:
    async def check() -> None:
        async with local(settings_for(root)) as retriever:
            heat = await retriever.heat("red", doc_id_of("a"), 1)
            assert heat.shape == (4, 4)
            assert np.unravel_index(heat.argmax(), heat.shape) == (3, 3)
            with pytest.raises(NotFoundError, match="page 2 of document"):
                await retriever.heat("red", doc_id_of("a"), 2)

    asyncio.run(check())


def test_a_new_space_is_served_after_a_refresh(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {name: [WORDS[name]] for name in WORDS})

    async def check() -> None:
        async with local(settings_for(root)) as retriever:
            assert (retriever.status().profile, retriever.status().heatmaps) == ("embedded", False)
            text_leg = retriever._served.legs.by_name[TEXT]
            with CollectionWriter(root) as writer:
                add_space(writer, "late", {"a": picture_of("a")}, {})
                writer.publish("vectors")
            await retriever.refresh()
            assert (retriever.status().profile, retriever.status().legs) == ("text + late", (LEXICAL, TEXT, "late"))
            assert retriever.status().heatmaps
            again = retriever._served.legs.by_name[TEXT]
            assert again.embedder is text_leg.embedder and again.titles is text_leg.titles
            assert names(await retriever.search(["red"], mode="late", top_k=1)) == ["a"]  # type: ignore[arg-type]

    asyncio.run(check())


def test_the_page_traits_of_a_batch_come_in_one_call_a_space(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int, int]] = []
    plain = LocalShard.page_traits

    async def counted(
        self: LocalShard, version: int, space: str, pages: Sequence[PageQuery], queries: QueryVectors
    ) -> list[PageTraits | None]:
        calls.append((space, len(pages), len(queries)))
        return await plain(self, version, space, pages, queries)

    monkeypatch.setattr(LocalShard, "page_traits", counted)
    answer = search(root, "red", "green", "blue", top_k=2)
    assert sorted(calls) == [("late", 6, 3), ("mean", 6, 3)]
    assert [hits[0].title for hits in answer.results[:2]] == ["a", "b"]
    assert [hits[0].region is not None for hits in answer.results] == [True] * 3


def test_a_page_of_several_windows_has_one_hit_and_its_region(tmp_path: Path) -> None:
    root = tmp_path / "c"
    fill(root, ("late",))
    with CollectionWriter(root) as writer:
        add_embedded(writer, [stored("a", 1, "rare second window", window=1)])
        writer.publish("another window")
    [hits] = search(root, "rare red", top_k=4).results
    assert [hit.title for hit in hits].count("a") == 1
    assert hits[0].region == Box(0.75, 0.75, 1, 1)
    assert Collection.open(root).space("late").passages == 4
