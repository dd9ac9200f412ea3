"""What is cached in memory or on disk, and what is fetched once for all simultaneous callers."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizedLRU(Generic[K, V]):
    """The values used last, at most ``room`` by the sum of their ``size`` (by default, the number of values).

    A value larger than all the room is not cached, unless ``keep_newest``: then the value put last always is. Not
    thread-safe.
    """

    def __init__(self, room: int, size: Callable[[V], int] = lambda _: 1, *, keep_newest: bool = False) -> None:
        self._room = room
        self._size = size
        self._least = 1 if keep_newest else 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._used = 0

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        if key in self._values:
            self._used -= self._size(self._values.pop(key))
        if self._size(value) > self._room and not self._least:
            return
        self._values[key] = value
        self._used += self._size(value)
        while self._used > self._room and len(self._values) > self._least:
            self._used -= self._size(self._values.popitem(last=False)[1])

    def clear(self) -> None:
        self._values.clear()
        self._used = 0


SHELVES = 256
TOUCH_EVERY_S = 60.0
_KEY = re.compile(r"[0-9a-f]{8,128}")


def cache_folder(name: str) -> Path | None:
    """The folder of a cache of this user on this machine, None for a user without any.

    It is in ``VRAG_CACHE_HOME``, or else in ``vrag-ray`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    own, general = (os.environ.get(variable, "") for variable in ("VRAG_CACHE_HOME", "XDG_CACHE_HOME"))
    if own:
        return Path(own).absolute() / name
    if general and Path(general).is_absolute():
        return Path(general) / "vrag-ray" / name
    try:
        return Path.home() / ".cache" / "vrag-ray" / name
    except RuntimeError:
        return None


class BoundedDiskCache:
    """Bytes by key in files of a folder, at most ``max_bytes`` of them, those used last.

    Keys are digests in lower-case hexadecimal digits, whose first two choose one of 256 shelves: a folder that holds
    at most its share of ``max_bytes``. A value larger than that share is not stored. Any number of threads and
    processes may use one folder: a value appears whole or not at all, and each writer bounds the shelf that it wrote
    to. What lies there may be anybody's: who reads a value checks it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._shelf_bytes = max_bytes // SHELVES

    def get(self, key: str) -> bytes | None:
        """The value, or None where it is not there or cannot be read. A hit makes it the newest of its shelf."""
        path = self._path(key)
        try:
            value = path.read_bytes()
            # A file that many read is not to be written to by each of them.
            if time.time() - path.stat().st_mtime > TOUCH_EVERY_S:
                os.utime(path)
        except FileNotFoundError:
            return None
        except OSError:
            # Of another user, or on a disk that fails: ``put`` says so.
            return None
        return value

    def put(self, key: str, value: bytes) -> None:
        """Store ``value``; the oldest of its shelf go. Raises OSError where the folder cannot be written."""
        path = self._path(key)
        if len(value) > self._shelf_bytes:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # In the same folder, so that renaming it is atomic; what a killed writer leaves there ages like a value.
        number, name = tempfile.mkstemp(dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(value)
            temporary.replace(path)
        except FileNotFoundError:
            # Another writer had no room left for it.
            return
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._bound(path)

    def _bound(self, newest: Path) -> None:
        files: list[tuple[float, int, Path]] = []
        for path in newest.parent.iterdir():
            # Another process may have removed it since.
            with suppress(FileNotFoundError):
                stat = path.lstat()
                files.append((stat.st_mtime, stat.st_size, path))
        used = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if used <= self._shelf_bytes:
                return
            if path != newest:
                path.unlink(missing_ok=True)
                used -= size

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key: a key is a digest in lower-case hexadecimal digits")
        return self._folder / key[:2] / key


class SingleFlight(Generic[K, V]):
    """Calls under way, by what they are for. Belongs to one event loop. Nothing is cached once a call has ended."""

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def result(self, key: K, call: Callable[[], Coroutine[None, None, V]]) -> V:
        """What the call under way for ``key`` gives or raises; ``call`` is made if there is none."""
        # Imported here, because a child that decodes has no event loop: a tenth of its start.
        import asyncio

        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(call())
            task.add_done_callback(lambda _: self._under_way.pop(key))
        # One who goes away must not take it from the others.
        return await asyncio.shield(task)

    async def cancel(self) -> None:
        """End what is under way, and wait until it has."""
        import asyncio

        left = tuple(self._under_way.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
