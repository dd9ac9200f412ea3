"""What becomes of the faults that come back through Ray: each as the caller of the service should see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.serving.errors import NotReadyError, OverloadedError, ReplicaLostError
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

T = TypeVar("T")
PAUSES_S = (0.0, 0.1, 0.5)
"""Before a lost call is made again: until the caller's handle has heard that the replica is gone."""

LOOKED_FOR_AFTER_S = 1.0


def unwrapped(error: Exception, part: str) -> Exception:
    """The fault behind what Ray raised: ours as it was raised, a lost or full replica as its HTTP meaning."""
    from ray.exceptions import RayActorError, RayTaskError
    from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, ReplicaUnavailableError

    if isinstance(error, RayTaskError):
        # Ray's own class carries the remote stack trace in its text.
        cause = error.cause
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
    """As ``call``, for what may be called twice: a call that was lost with its replica goes to another one."""
    for pause_s in PAUSES_S:
        try:
            return await call(ask(), part)
        except ReplicaLostError:
            await asyncio.sleep(pause_s)
    return await call(ask(), part)


async def while_running(handle: DeploymentHandle, answer: Awaitable[T], part: str) -> T:
    """``answer``, or NotReadyError once it has taken a second and no replica of the deployment runs.

    Serve keeps a call until there is a replica for it, which may be a minute, and its caller would know nothing.
    """
    answering = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait({answering}, timeout=LOOKED_FOR_AFTER_S))[0]:
            if not await _runs(handle):
                raise NotReadyError(f"no replica of the {part} is running: one is being started, try again soon")
        return answering.result()
    finally:
        answering.cancel()


async def _runs(handle: DeploymentHandle) -> bool:
    """Whether a replica is there: one that is busy or slow is."""
    from ray.exceptions import RayActorError
    from ray.serve.exceptions import DeploymentUnavailableError, ReplicaUnavailableError

    lost = (RayActorError, DeploymentUnavailableError, ReplicaUnavailableError)
    asking = asyncio.ensure_future(handle.broadcast("states").results_async(return_exceptions=True))
    await asyncio.wait({asking}, timeout=LOOKED_FOR_AFTER_S)
    if not asking.done():
        asking.cancel()
        return True
    try:
        states = asking.result()
    except lost:
        return False
    return not states or not all(isinstance(state, lost) for state in states)


async def stream(responses: AsyncIterator[T], part: str) -> AsyncIterator[T]:
    """The values of a streaming handle call, with faults as in ``call``."""
    from ray.exceptions import RayError
    from ray.serve.exceptions import RayServeException

    try:
        async for value in responses:
            yield value
    except (RayError, RayServeException) as error:
        raise unwrapped(error, part) from error
