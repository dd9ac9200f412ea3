"""Pictures of pages and video frames, fetched once and in the background where nobody should wait for them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import Place
from vrag_ray.agent.memory.graph import MemoryItem
from vrag_ray.client.blocking import Client
from vrag_ray.types import Box, PassageKind

CACHED, CACHED_S = 1024, 600.0
AT_ONCE = 4
THUMBNAIL_DPI, PAGE_DPI, MOST_DPI = 40.0, 110.0, 600.0


@dataclass(frozen=True, slots=True)
class Shot:
    """A page (from 1) at ``dpi``, or the frame at ``seconds``; or the part of the page in ``box``."""

    doc_id: str
    page: int | None = None
    seconds: float | None = None
    dpi: float = THUMBNAIL_DPI
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class HeatShot:
    """A page (from 1), tinted where ``query`` is seen. ``version`` is the collection's: its vectors change with it."""

    doc_id: str
    page: int
    query: str
    version: int
    dpi: float


class _Entry:
    """A cached picture, and when it was fetched."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.png = b""
        self.fetched_at = -math.inf


class Pictures:
    """All sessions share one. Thread-safe. A picture is fetched again after ten minutes: documents are deleted."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._entry: Callable[[Shot | HeatShot], _Entry] = lru_cache(maxsize=CACHED)(lambda _: _Entry())
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="pictures")

    def get(self, shot: Shot | HeatShot) -> bytes:
        """PNG. Raises VragError where the gateway cannot draw it: ServerError 404 for heat that no leg can tell."""
        entry = self._entry(shot)
        with entry.lock:
            if self._clock() - entry.fetched_at > CACHED_S:
                entry.png = self._fetch(shot)
                entry.fetched_at = self._clock()
            return entry.png

    def later(self, shot: Shot) -> Future[bytes]:
        return self._pool.submit(self.get, shot)

    def _fetch(self, shot: Shot | HeatShot) -> bytes:
        if isinstance(shot, HeatShot):
            return self._client.heatmap_png(shot.doc_id, shot.page, shot.query, dpi=shot.dpi)
        if shot.page is not None:
            return self._client.page_png(shot.doc_id, shot.page, dpi=shot.dpi, box=shot.box)
        return self._client.frame_png(shot.doc_id, shot.seconds or 0.0)


def shot_of(place: Place | Citation, dpi: float = THUMBNAIL_DPI) -> Shot | None:
    """The whole page or frame; None for plain text, of which there is no picture."""
    if place.kind is PassageKind.TEXT:
        return None
    seconds = place.moment if isinstance(place, Citation) else place.t_start
    return Shot(place.doc_id, place.page, seconds, dpi)


def shot_of_item(item: MemoryItem, dpi: float = THUMBNAIL_DPI) -> Shot | None:
    """The region that is remembered, or the whole page or frame."""
    if not item.visual:
        return None
    seconds = item.t_frame if item.t_frame is not None else item.locator.t_start
    return Shot(item.doc_id, item.locator.page, seconds, dpi, item.box if item.locator.page is not None else None)
