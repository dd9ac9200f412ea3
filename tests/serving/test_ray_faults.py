"""What becomes of a call while there is no replica to answer it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from ray.serve.exceptions import DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle

from vrag_ray.serving import ray_faults
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.serving.ray_faults import while_running

pytestmark = pytest.mark.anyio


class _Deployment:
    """A handle of which only ``broadcast`` is of use. ``states`` are what its replicas say; none: none runs."""

    def __init__(self, *states: object) -> None:
        self._states = states

    def broadcast(self, _: str) -> _Deployment:
        return self

    async def results_async(self, *, return_exceptions: bool) -> list[object]:
        assert return_exceptions
        if not self._states:
            raise DeploymentUnavailableError("Retriever")  # type: ignore[arg-type]
        return list(self._states)

    def handle(self) -> DeploymentHandle:
        return cast("DeploymentHandle", self)


async def test_a_call_without_a_replica_is_refused_soon(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ray_faults, "LOOKED_FOR_AFTER_S", 0.01)
    async with asyncio.timeout(10):
        with pytest.raises(NotReadyError, match="no replica of the retriever is running"):
            await while_running(_Deployment().handle(), asyncio.Event().wait(), "retriever")


async def test_a_slow_answer_of_a_replica_that_runs_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ray_faults, "LOOKED_FOR_AFTER_S", 0.01)
    assert await while_running(_Deployment("ready").handle(), asyncio.sleep(0.1, "found"), "retriever") == "found"
