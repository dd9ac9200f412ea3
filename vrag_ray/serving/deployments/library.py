"""The library deployment: documents for the gateway and for agents, and ingest jobs in Ray tasks of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.serving.ingest_jobs.ray_task import ingest_in_task
from vrag_ray.serving.parts.documents import Documents
from vrag_ray.serving.ray_faults import unwrapped

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle


class LibraryService(Documents):
    """``Documents`` as a deployment."""

    async def __init__(self, settings: Settings, retriever: DeploymentHandle) -> None:  # type: ignore[misc]
        async def refresh(collection: str) -> int | None:
            return await refresh_replicas(retriever, collection)

        super().__init__(settings, refresh, ingest_in_task)

    def __del__(self) -> None:
        # Serve calls this when it stops a replica.
        if hasattr(self, "_jobs"):
            self._jobs.leave()


async def refresh_replicas(retriever: DeploymentHandle, collection: str) -> int | None:
    """Every replica serves the newest version from now on. Each searches the version that it knows, and none may go on
    finding what was deleted.

    The lowest number of a version that a replica serves, None where none runs. Raises VragError where one cannot load
    the version, once all others have.
    """
    from ray.serve.exceptions import RayServeException

    try:
        results = await retriever.broadcast("refresh", collection).results_async(return_exceptions=True)
    except RayServeException as error:
        results = [error]
    for fault in (unwrapped(result, "retriever") for result in results if isinstance(result, Exception)):
        # A replica that is being started begins with the newest version.
        if not isinstance(fault, NotReadyError):
            raise fault
    return min((int(result) for result in results if not isinstance(result, Exception)), default=None)
