"""The retriever over real Ray actors: modes, degradation, refresh, and a shard that dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import add_embedded, doc_id_of, document, plant, stored
from vrag_ray.config import IndexConfig, Settings, SpaceConfig
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import HYBRID, LEXICAL, TEXT, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter

pytestmark = pytest.mark.usefixtures("local_ray")
PLANTED = SpaceConfig(model="tests.support.planted:make_planted")


def settings_for(root: Path, *, shards: int = 1, replicas: int = 1, embedder: SpaceConfig = PLANTED) -> Settings:
    index = IndexConfig(shards=shards, replicas=replicas, threads=1)
    return Settings(collection=str(root), spaces={"text": embedder}, index=index)


@asynccontextmanager
async def retriever_over(settings: Settings) -> AsyncIterator[ShardedRetriever]:
    retriever = await ShardedRetriever.start(settings)
    try:
        yield retriever
    finally:
        await retriever.close()


def texts(answer: SearchAnswer) -> list[list[str]]:
    return [[hit.passage.text for hit in hits] for hits in answer.results]


async def until_whole(retriever: ShardedRetriever) -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        await asyncio.gather(*(r.reviving for replicas in retriever.pool._shards for r in replicas if r.reviving))


def test_each_mode_finds_the_planted_page_and_carries_its_scores(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["red apple", "green pear"], "b": ["blue plum"]})

    async def check() -> None:
        async with retriever_over(settings_for(tmp_path / "c", shards=2)) as retriever:
            for mode in (HYBRID, TEXT, LEXICAL):
                answer = await retriever.search(["green pear", "plum"], top_k=1, mode=mode)
                assert texts(answer) == [["green pear"], ["blue plum"]]
                assert (answer.shards_ok, answer.shards_total, answer.mode) == (2, 2, mode)
                hit = answer.results[0][0]
                assert (TEXT in hit.scores) == (mode != LEXICAL)
                assert (LEXICAL in hit.scores) == (mode != TEXT)
                assert (hit.uri, hit.title, hit.passage.locator.page) == ("a.pdf", "a", 2)

    asyncio.run(check())


def test_a_local_retriever_finds_what_shard_actors_find(tmp_path: Path) -> None:
    words = ("red", "green", "blue", "apple", "pear", "plum")
    plant(tmp_path / "c", {f"d{n}": [f"{words[n % 6]} {words[(n + k) % 6]}" for k in range(4)] for n in range(12)})
    settings = settings_for(tmp_path / "c", shards=3)
    queries, chosen = ["green pear", "plum"], SearchFilter(doc_ids=[doc_id_of("d1"), doc_id_of("d2")])

    async def check() -> None:
        local = await ShardedRetriever.start_local(settings)
        async with retriever_over(settings) as sharded:
            for mode in (HYBRID, TEXT, LEXICAL):
                for doc_filter in (None, chosen):
                    mine = await local.search(queries, top_k=7, mode=mode, filter=doc_filter)
                    theirs = await sharded.search(queries, top_k=7, mode=mode, filter=doc_filter)
                    assert mine.results == theirs.results
            status = local.status()
            assert (status.shards_ok, status.shards_total, [shard.size for shard in status.shards]) == (1, 1, [48])
            assert status.notices == ()
        await local.close()

    asyncio.run(check())


def test_a_page_is_returned_once_however_many_of_its_windows_match(tmp_path: Path) -> None:
    with CollectionWriter(tmp_path / "c") as writer:
        add_embedded(writer, [stored("a", 1, f"red {i}", window=i) for i in range(300)] + [stored("a", 2, "red only")])
        writer.commit_documents([document("a", units=2)])
        writer.publish("long page")

    async def check() -> None:
        async with retriever_over(settings_for(tmp_path / "c")) as retriever:
            for mode in (HYBRID, TEXT, LEXICAL):
                answer = await retriever.search(["red"], top_k=5, mode=mode)
                assert sorted(hit.passage.locator.page or 0 for hit in answer.results[0]) == [1, 2]

    asyncio.run(check())


def test_an_empty_collection_is_served_and_says_so(tmp_path: Path) -> None:
    Collection.open_or_create(tmp_path / "c")

    async def check() -> None:
        async with retriever_over(settings_for(tmp_path / "c")) as retriever:
            answer = await retriever.search(["anything"])
            assert answer.results == ((),)
            assert any("empty" in notice for notice in answer.notices)

    asyncio.run(check())


def test_without_an_embedder_hybrid_says_that_it_is_lexical_and_dense_is_refused(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["red apple"]})

    async def check() -> None:
        async with retriever_over(settings_for(tmp_path / "c", embedder=SpaceConfig(model="none"))) as retriever:
            answer = await retriever.search(["apple"])
            assert texts(answer) == [["red apple"]]
            assert answer.mode == LEXICAL
            assert any("lexical search only" in notice for notice in answer.notices)
            with pytest.raises(VragError, match="search by text vectors is not available"):
                await retriever.search(["apple"], mode=TEXT)

    asyncio.run(check())


def test_an_unknown_document_in_a_filter_is_an_error_and_a_prefix_is_enough(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["red apple"], "b": ["red pear"]})

    async def check() -> None:
        async with retriever_over(settings_for(tmp_path / "c")) as retriever:
            answer = await retriever.search(["red"], filter=SearchFilter(doc_ids=[doc_id_of("b")[:12]]))
            assert texts(answer) == [["red pear"]]
            with pytest.raises(VragError, match="is not in this collection"):
                await retriever.search(["red"], filter=SearchFilter(doc_ids=["0" * 64]))

    asyncio.run(check())


def test_a_deleted_document_is_gone_after_refresh_in_every_mode(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {"a": ["red apple"], "b": ["red pear"]})

    async def check() -> None:
        async with retriever_over(settings_for(root, shards=3)) as retriever:
            with CollectionWriter(root) as writer:
                writer.delete(doc_id_of("a"))
                writer.publish("deleted")
            assert await retriever.refresh() == 2
            for mode in (HYBRID, TEXT, LEXICAL):
                assert texts(await retriever.search(["red apple"], mode=mode)) == [["red pear"]]

    asyncio.run(check())


def test_searches_during_refresh_are_all_answered_whole_by_one_version(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {"v1": ["red apple"]})

    async def check() -> None:
        async with retriever_over(settings_for(root, shards=2)) as retriever:
            seen: list[tuple[int, list[list[str]]]] = []
            done = asyncio.Event()

            async def keep_searching() -> None:
                while not done.is_set():
                    answer = await retriever.search(["red"], top_k=20, mode=TEXT)
                    assert answer.shards_ok == answer.shards_total == 2
                    seen.append((answer.collection_version, texts(answer)))

            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(keep_searching())
                for number in range(2, 7):
                    await asyncio.to_thread(plant, root, {f"v{number}": ["red apple"]})
                    assert await retriever.refresh() == number
                done.set()
            assert {version for version, _ in seen} >= {1, 6} or len(seen) > 5
            for version, titles in seen:
                assert titles == [["red apple"] * version]

    asyncio.run(check())


def test_a_killed_shard_is_reported_while_it_is_gone_and_comes_back_by_itself(tmp_path: Path) -> None:
    import ray

    root = tmp_path / "c"
    plant(root, {f"doc{i}": [f"red {i}"] for i in range(20)})

    async def check() -> None:
        async with retriever_over(settings_for(root, shards=2)) as retriever:
            whole = await retriever.search(["red"], top_k=20, mode=TEXT)
            assert whole.shards_ok == 2 and len(whole.results[0]) == 20
            os.kill(ray.get(retriever.pool.actors[0][0].pid.remote()), signal.SIGKILL)
            partial = await retriever.search(["red"], top_k=20, mode=TEXT)
            assert (partial.shards_ok, partial.shards_total) == (1, 2)
            assert 0 < len(partial.results[0]) < 20
            assert any("shard 0" in notice for notice in partial.notices)
            await until_whole(retriever)
            again = await retriever.search(["red"], top_k=20, mode=TEXT)
            assert again.results == whole.results and again.notices == ()

    asyncio.run(check())


def test_a_stopped_shard_costs_one_short_limit_however_many_searches_wait_for_it(tmp_path: Path) -> None:
    plant(tmp_path / "c", {f"d{n}": ["red apple"] for n in range(6)})
    index = IndexConfig(shards=2, threads=1, shard_timeout_s=600, shard_silence_s=0.5)
    settings = settings_for(tmp_path / "c").model_copy(update={"index": index})

    async def check() -> None:
        async with retriever_over(settings) as retriever:
            pid = await retriever.pool.actors[1][0].pid.remote()
            os.kill(pid, signal.SIGSTOP)
            try:
                async with asyncio.timeout(20):
                    waiting = [asyncio.create_task(retriever.search(["apple"], top_k=10)) for _ in range(20)]
                    for answer in await asyncio.gather(*waiting):
                        assert (answer.shards_ok, answer.shards_total) == (1, 2)
                    assert retriever.pool.problems() == ("shard 1 gave no sign of life for 0.5 s",)
                    with CollectionWriter(settings.collection) as writer:
                        writer.delete(doc_id_of("d0"))
                        writer.publish("deleted")
                    # A new version does not wait for it either.
                    assert await retriever.refresh() == 2
            finally:
                os.kill(pid, signal.SIGCONT)
            await until_whole(retriever)
            whole = await retriever.search(["apple"], top_k=10)
            assert (whole.shards_ok, len(whole.results[0])) == (2, 5)

    asyncio.run(check())


def test_a_replica_takes_over_for_a_killed_one_without_a_partial_answer(tmp_path: Path) -> None:
    import ray

    root = tmp_path / "c"
    plant(root, {f"doc{i}": [f"red {i}"] for i in range(5)})

    async def check() -> None:
        async with retriever_over(settings_for(root, replicas=2)) as retriever:
            os.kill(ray.get(retriever.pool.actors[0][0].pid.remote()), signal.SIGKILL)
            for _ in range(4):
                answer = await retriever.search(["red"], top_k=5, mode=TEXT)
                assert answer.shards_ok == 1 and len(answer.results[0]) == 5

    asyncio.run(check())
