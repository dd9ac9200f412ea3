"""Ingest of one upload as a Ray task."""

from __future__ import annotations

import queue
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.ray_faults import unwrapped
from vrag_ray.types import Meta

if TYPE_CHECKING:
    from vrag_ray.ingest import IngestReport, Progress, Source


async def ingest_in_task(
    settings: Settings, sources: Sequence[Source], meta: Meta
) -> AsyncGenerator[Progress | IngestReport]:
    """``IngestFiles`` on the Ray that this process is connected to."""
    import ray
    from ray.exceptions import RayError

    # Retried once: ingest goes on where a killed process left it.
    task = ray.remote(num_cpus=0, max_retries=1)(_ingest_in_thread)
    try:
        async for reference in task.options(num_returns="streaming").remote(settings, sources, meta):
            yield await reference
    except RayError as error:
        raise unwrapped(error, "ingest") from error


def _ingest_in_thread(settings: Settings, sources: Sequence[Source], meta: Meta) -> Iterator[Progress | IngestReport]:
    """Ingest as a generator: progress, then the report. The task's own thread only hands values on."""
    from vrag_ray.ingest import IngestReport, ingest

    updates: queue.Queue[Progress | IngestReport | Exception] = queue.Queue()

    def work() -> None:
        try:
            updates.put(ingest(sources, settings, meta=meta, on_progress=updates.put))
        except Exception as error:  # noqa: BLE001  raised again in the task's own thread
            updates.put(error)

    threading.Thread(target=work, name="ingest", daemon=True).start()
    while True:
        update = updates.get()
        if isinstance(update, Exception):
            raise update
        yield update
        if isinstance(update, IngestReport):
            return
