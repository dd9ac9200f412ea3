"""Caches in memory and on disk within their room, and a single call for all that need the same at the same time."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vrag_ray.caching import SHELVES, BoundedDiskCache, SingleFlight, SizedLRU, cache_folder
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


def digest(number: int) -> str:
    """Keys of one shelf."""
    return f"ab{number:062x}"


def test_a_disk_cache_gives_back_what_any_process_put_there(tmp_path: Path) -> None:
    BoundedDiskCache(tmp_path / "c", 1 << 20).put(digest(1), b"one")
    cache = BoundedDiskCache(tmp_path / "c", 1 << 20)
    assert (cache.get(digest(1)), cache.get(digest(2))) == (b"one", None)
    cache.put(digest(1), b"two")
    assert cache.get(digest(1)) == b"two"
    for key in ("../../etc/passwd", "", "AB" * 32):
        with pytest.raises(ValueError, match="no key"):
            cache.put(key, b"x")


def test_a_disk_cache_keeps_what_was_used_last_within_its_bytes(tmp_path: Path) -> None:
    cache = BoundedDiskCache(tmp_path, 100 * SHELVES)
    for number in range(4):
        cache.put(digest(number), b"x" * 25)
        os.utime(tmp_path / "ab" / digest(number), (number, number))
    assert cache.get(digest(0)) is not None
    cache.put(digest(4), b"x" * 50)
    assert [number for number in range(5) if cache.get(digest(number)) is not None] == [0, 3, 4]
    cache.put(digest(5), b"x" * 101)
    assert cache.get(digest(5)) is None
    # On another shelf there is room.
    cache.put("cd" * 32, b"x" * 100)
    assert cache.get(digest(4)) is not None


def test_what_a_killed_writer_left_in_a_disk_cache_goes_with_the_oldest(tmp_path: Path) -> None:
    cache = BoundedDiskCache(tmp_path, 100 * SHELVES)
    left = tmp_path / "ab" / "tmp_of_a_killed_writer"
    left.parent.mkdir()
    left.write_bytes(b"x" * 90)
    os.utime(left, (1, 1))
    cache.put(digest(1), b"x" * 60)
    assert [path.name for path in left.parent.iterdir()] == [digest(1)]


def test_many_writers_share_a_disk_cache_and_nobody_reads_half_a_value(tmp_path: Path) -> None:
    def work(worker: int) -> bool:
        cache = BoundedDiskCache(tmp_path, 2_000 * SHELVES)
        whole = True
        for turn in range(60):
            cache.put(digest(turn % 7), bytes([worker]) * 400)
            value = cache.get(digest((turn + worker) % 7))
            whole = whole and (value is None or value == value[:1] * 400)
        return whole

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(1, 5)))
    assert sum(path.stat().st_size for path in (tmp_path / "ab").iterdir()) <= 2_000


def test_a_disk_cache_that_cannot_be_written_says_so_and_reads_as_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = BoundedDiskCache(tmp_path / "file", 1 << 20)
    assert cache.get(digest(1)) is None
    with pytest.raises(OSError, match="Not a directory"):
        cache.put(digest(1), b"x")


def test_the_folder_of_a_cache_is_the_configured_one_or_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("VRAG_CACHE_HOME", str(tmp_path / "mine"))
    assert cache_folder("ocr") == tmp_path / "mine" / "ocr"
    monkeypatch.delenv("VRAG_CACHE_HOME")
    assert cache_folder("ocr") == tmp_path / "vrag-ray" / "ocr"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder("ocr") == tmp_path / "home" / ".cache" / "vrag-ray" / "ocr"
