"""Shard actors that several retrievers of a cluster share: found by their name, ended by the last user."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import doc_id_of, plant
from vrag_ray.config import IndexConfig, Settings, SpaceConfig
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.shards.shard_pool import NotLoadedError, ShardPool
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import TEXT

pytestmark = pytest.mark.usefixtures("local_ray")
PLANTED = SpaceConfig(model="tests.support.planted:make_planted")


def settings_for(root: Path, shards: int = 2) -> Settings:
    plant(root, {f"doc{number}": [f"red {number}"] for number in range(6)})
    return Settings(collection=str(root), spaces={"text": PLANTED}, index=IndexConfig(shards=shards, threads=1))


async def pids_of(pool: ShardPool) -> list[int]:
    return list(await asyncio.gather(*(replica.pid.remote() for replicas in pool.actors for replica in replicas)))


async def found_by(retriever: ShardedRetriever) -> tuple[int, int]:
    """Hits, and shards that answered."""
    answer = await retriever.search(["red"], top_k=10, mode=TEXT)
    return len(answer.results[0]), answer.shards_ok


async def until_gone(pids: list[int]) -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        while any(psutil.pid_exists(pid) for pid in pids):  # noqa: ASYNC110  a process has no event
            await asyncio.sleep(0.1)


async def until_whole(retriever: ShardedRetriever) -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        while await found_by(retriever) != (6, 1):  # noqa: ASYNC110  the actor is started anew by Ray
            await asyncio.sleep(0.1)


def test_retrievers_of_the_same_settings_share_actors_and_the_last_ends_them(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "c")
    other = settings.model_copy(update={"index": IndexConfig(shards=1, threads=1)})

    async def check() -> None:
        first, second = await asyncio.gather(*(ShardedRetriever.start(settings, share=True) for _ in range(2)))
        third = await ShardedRetriever.start(other, share=True)
        pids = await pids_of(first.pool)
        assert await pids_of(second.pool) == pids
        assert not set(pids) & set(await pids_of(third.pool))
        await first.close()
        assert await found_by(second) == (6, 2)
        await second.close()
        await until_gone(pids)
        # The next one begins anew.
        again = await ShardedRetriever.start(settings, share=True)
        assert await found_by(again) == (6, 2)
        for retriever in (again, third):
            left = await pids_of(retriever.pool)
            await retriever.close()
            await until_gone(left)

    asyncio.run(check())


def test_each_user_searches_its_version_until_it_goes_on(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "c", shards=1)

    async def check() -> None:
        ahead, behind = [await ShardedRetriever.start(settings, share=True) for _ in range(2)]
        first_version = behind.collection.version
        with CollectionWriter(settings.collection) as writer:
            writer.delete(doc_id_of("doc0"))
            writer.publish("deleted")
        assert await ahead.refresh() > first_version
        assert [await found_by(retriever) for retriever in (ahead, behind)] == [(5, 1), (6, 1)]
        await behind.refresh()
        assert await found_by(behind) == (5, 1)
        [[actor]] = ahead.pool.actors
        with pytest.raises(NotLoadedError):
            await actor.nearest.remote(first_version, TEXT, [], 1, None)
        await ahead.close()
        await behind.close()

    asyncio.run(check())


def test_every_user_gets_a_killed_actor_back_also_one_that_did_not_search(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "c", shards=1)

    async def check() -> None:
        retrievers = [await ShardedRetriever.start(settings, share=True) for _ in range(2)]
        [pid] = await pids_of(retrievers[0].pool)
        os.kill(pid, signal.SIGKILL)
        for retriever in retrievers:
            await until_whole(retriever)
        assert await pids_of(retrievers[0].pool) == await pids_of(retrievers[1].pool) != [pid]
        for retriever in retrievers:
            await retriever.close()

    asyncio.run(check())


def test_a_user_that_vanishes_holds_actors_no_longer_than_its_lease(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "c", shards=1)

    async def check() -> None:
        pool = ShardPool(settings.collection, settings.index, shared=f"lease-{tmp_path.name}", lease_s=2.0)
        await pool.load(1, ())
        pids = await pids_of(pool)
        # As where the process of the user is killed.
        assert pool._renewing is not None
        pool._renewing.cancel()
        await until_gone(pids)

    asyncio.run(check())


def test_an_actor_that_hangs_keeps_no_other_from_hearing_of_its_users(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "c")

    async def check() -> None:
        pools = [
            ShardPool(settings.collection, settings.index, shared=f"hangs-{tmp_path.name}", lease_s=60.0)
            for _ in range(2)
        ]
        for pool in pools:
            pool._renew_s = 0.2
            await pool.load(1, ())
        [_, [healthy]] = pools[0].actors
        pids = await pids_of(pools[0])
        os.kill(pids[0], signal.SIGSTOP)
        try:
            await healthy.leave.remote(pools[0]._user)
            # The next renewal finds that the actor does not know the pool, which then loads its version again.
            async with asyncio.timeout(HANGS_AFTER_S):
                while not await healthy.renew.remote(pools[0]._user):  # noqa: ASYNC110  an actor has no event
                    await asyncio.sleep(0.1)
        finally:
            os.kill(pids[0], signal.SIGCONT)
        for pool in pools:
            pool.close()
        await until_gone(pids)

    asyncio.run(check())
