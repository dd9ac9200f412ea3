"""What is kept in memory within its room, and one call for all who want the same at the same time."""

from __future__ import annotations

import asyncio

import pytest

from vrag_ray.caching import SingleFlight, SizedLRU
from vrag_ray.types import VragError


class Desk:
    """Answers when ``open`` is set; ``asked`` lists the calls by what they were for, ``rung`` is set by the first."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.rung = asyncio.Event()
        self.asked: list[str] = []
        self.calls: SingleFlight[str, str] = SingleFlight()

    async def _answer(self, key: str) -> str:
        self.asked.append(key)
        self.rung.set()
        await self.open.wait()
        if key == "bad":
            raise VragError("no such thing")
        return key.upper()

    async def ask(self, key: str) -> str:
        return await self.calls.result(key, lambda: self._answer(key))


def test_the_cache_keeps_the_recently_used_within_its_bytes() -> None:
    cache = SizedLRU[str, bytes](10, len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"1234")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (b"1234", None, b"1234")
    cache.put("huge", b"x" * 11)
    assert cache.get("huge") is None
    assert cache.get("a") == b"1234"
    cache.put("a", b"12")
    cache.put("d", b"1234")
    assert [cache.get(key) for key in ("a", "c", "d")] == [b"12", b"1234", b"1234"]


def test_the_newest_value_can_be_kept_whatever_its_size() -> None:
    cache = SizedLRU[str, bytes](10, len, keep_newest=True)
    cache.put("small", b"1234")
    cache.put("huge", b"x" * 11)
    assert (cache.get("small"), cache.get("huge")) == (None, b"x" * 11)
    cache.put("next", b"1234")
    assert (cache.get("huge"), cache.get("next")) == (None, b"1234")
    cache.clear()
    assert cache.get("next") is None


def test_those_who_ask_for_the_same_at_the_same_time_share_one_call() -> None:
    async def ask() -> None:
        desk = Desk()
        asking = asyncio.gather(*(desk.ask(key) for key in ("a", "b", "a", "bad", "bad")), return_exceptions=True)
        desk.open.set()
        *good, bad, same = await asking
        assert good == ["A", "B", "A"]
        assert isinstance(bad, VragError) and same is bad
        assert desk.asked == ["a", "b", "bad"]

    asyncio.run(ask())


def test_who_asks_after_a_call_has_ended_has_a_new_one_also_after_a_failure() -> None:
    async def ask() -> None:
        desk = Desk()
        desk.open.set()
        for _ in range(2):
            assert await desk.ask("a") == "A"
            with pytest.raises(VragError, match="no such thing"):
                await desk.ask("bad")
        assert desk.asked == ["a", "bad", "a", "bad"]

    asyncio.run(ask())


def test_one_who_goes_away_takes_the_result_from_nobody() -> None:
    async def ask() -> None:
        desk = Desk()
        leaving, staying = asyncio.create_task(desk.ask("a")), asyncio.create_task(desk.ask("a"))
        await desk.rung.wait()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        desk.open.set()
        assert await staying == "A"
        assert desk.asked == ["a"]

    asyncio.run(ask())


def test_after_cancel_nothing_is_under_way() -> None:
    async def ask() -> None:
        desk = Desk()
        asking = asyncio.create_task(desk.ask("a"))
        await desk.rung.wait()
        await desk.calls.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        desk.open.set()
        assert await desk.ask("a") == "A"
        assert desk.asked == ["a", "a"]

    asyncio.run(ask())
