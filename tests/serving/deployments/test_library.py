"""What a change of a collection means to several replicas of the retriever, some of which do not answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from ray.exceptions import RayActorError

from vrag_ray.serving.deployments.library import refresh_replicas
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle


class Replicas:
    """The handle of a retriever whose replicas answer so."""

    def __init__(self, *results: int | Exception) -> None:
        self._results = results

    def broadcast(self, method: str, name: str) -> Replicas:
        assert (method, name) == ("refresh", "c")
        return self

    async def results_async(self, *, return_exceptions: bool) -> list[int | Exception]:
        # Without it, the first fault would come back while others still load.
        assert return_exceptions
        return list(self._results)


def refreshed(*results: int | Exception) -> int | None:
    return asyncio.run(refresh_replicas(cast("DeploymentHandle", Replicas(*results)), "c"))


def test_the_lowest_version_of_all_replicas_that_answer_is_reported() -> None:
    assert refreshed(4, 3) == 3
    assert refreshed(4, RayActorError()) == 4
    # Those that are being started begin with the newest.
    assert refreshed(RayActorError()) is None


def test_a_replica_that_cannot_load_the_version_is_reported() -> None:
    with pytest.raises(VragError, match="passage x is damaged"):
        refreshed(4, RayActorError(), VragError("passage x is damaged"))
