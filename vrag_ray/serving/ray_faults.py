"""What becomes of the faults that come back through Ray: each as the caller of the service should see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from vrag_ray.serving.errors import DamagedError, OverloadedError, ReplicaLostError
from vrag_ray.types import VragError

T = TypeVar("T")
PAUSES_S = (0.0, 0.1, 0.5)
"""Before a lost call is made again: until the caller's handle has heard that the replica is gone."""


def unwrapped(error: Exception, part: str) -> Exception:
    """The fault behind what Ray raised: ours as it was raised, a lost or full replica as its HTTP meaning."""
    from ray.exceptions import RayActorError, RayTaskError
    from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, ReplicaUnavailableError

    if isinstance(error, RayTaskError):
        # Ray's own class carries the remote stack trace in its text.
        from vrag_ray.index.storage.rows import CorruptionError

        cause = error.cause
        if isinstance(cause, CorruptionError):
            return DamagedError(str(cause))
        return cause if isinstance(cause, VragError | BackPressureError) else error
    if isinstance(error, BackPressureError):
        return OverloadedError(f"the {part} has more requests than it can queue")
    if isinstance(error, RayActorError | DeploymentUnavailableError | ReplicaUnavailableError):
        return ReplicaLostError(f"the {part} is being restarted: try again in a few seconds")
    return error


async def call(response: Awaitable[T], part: str) -> T:
    """The result of a handle call. Raises VragError for every fault that has a meaning for the caller."""
    from ray.exceptions import RayError
    from ray.serve.exceptions import RayServeException

    try:
        return await response
    except (RayError, RayServeException) as error:
        raise unwrapped(error, part) from error


async def call_again(ask: Callable[[], Awaitable[T]], part: str) -> T:
    """As ``call``, for what may be asked twice: a call that was lost with its replica goes to another one."""
    for pause_s in PAUSES_S:
        try:
            return await call(ask(), part)
        except ReplicaLostError:
            await asyncio.sleep(pause_s)
    return await call(ask(), part)


async def stream(responses: AsyncIterator[T], part: str) -> AsyncIterator[T]:
    """The values of a streaming handle call, with faults as in ``call``."""
    from ray.exceptions import RayError
    from ray.serve.exceptions import RayServeException

    try:
        async for value in responses:
            yield value
    except (RayError, RayServeException) as error:
        raise unwrapped(error, part) from error
