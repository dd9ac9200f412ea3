"""What every surface asks of collections, wherever they are searched."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import RunRequest, SearchRequest, SearchResponse
from vrag_ray.types import Box


class System(Protocol):
    """``vrag_ray.system.here.LocalSystem`` in this process, ``vrag_ray.client.http.AsyncClient`` over HTTP.

    Every method raises VragError.
    """

    async def search(self, request: SearchRequest) -> SearchResponse: ...

    def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        """The events of a run, as they happen; the last is an answer or a terminal error."""
        ...

    async def run(self, run_id: str) -> RunRecord:
        """A run that has ended."""
        ...

    async def page_png(self, doc_id: str, page: int, *, dpi: float = 150.0, box: Box | None = None) -> bytes:
        """A page (from 1), or the part of it in ``box``, drawn from the source."""
        ...

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        """Of a video."""
        ...
