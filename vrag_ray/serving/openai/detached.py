"""Work that outlives its request."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Coroutine

from vrag_ray.types import VragError

log = logging.getLogger("vrag_ray.serving")
_under_way: set[asyncio.Task[object]] = set()


def detached(work: Coroutine[object, object, object], failure: str) -> None:
    """Do ``work`` later on this loop. A fault is logged after ``failure``.

    In the context of a request that has ended, Serve would cancel the calls that ``work`` makes.
    """
    task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
    _under_way.add(task)
    task.add_done_callback(lambda done: _finished(done, failure))


def _finished(task: asyncio.Task[object], failure: str) -> None:
    _under_way.discard(task)
    fault = None if task.cancelled() else task.exception()
    if isinstance(fault, VragError):
        log.info("%s: %s", failure, fault)
    elif fault is not None:
        log.error("%s", failure, exc_info=fault)
