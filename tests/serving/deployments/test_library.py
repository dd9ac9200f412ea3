"""What a change of a collection means to several replicas of the retriever, some of which do not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from ray.exceptions import RayActorError

from tests.support.planted import plant
from vrag_ray.config import EmbedderConfig, Settings
from vrag_ray.library.library import Library
from vrag_ray.serving.deployments.library import LibraryService
from vrag_ray.types import VragError


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


def refreshed(root: Path, *results: int | Exception) -> int:
    service = LibraryService.__new__(LibraryService)
    Library.__init__(service, Settings(collection=str(root), embedder=EmbedderConfig(name="none")))
    service._retriever = Replicas(*results)
    try:
        return asyncio.run(service._refresh("c"))
    finally:
        service.close()


def test_the_least_version_of_all_replicas_that_answer_is_told(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["one"]})
    assert refreshed(tmp_path / "c", 4, 3) == 3
    assert refreshed(tmp_path / "c", 4, RayActorError()) == 4
    # Those that are being started begin with the newest.
    assert refreshed(tmp_path / "c", RayActorError()) == 1


def test_a_replica_that_cannot_load_the_version_is_told(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["one"]})
    with pytest.raises(VragError, match="passage x is damaged"):
        refreshed(tmp_path / "c", 4, RayActorError(), VragError("passage x is damaged"))
