"""The front door for programs: fill a collection, open it here, or connect to a service; blocking or async."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from vrag_ray.client.blocking import BlockingSystem
from vrag_ray.client.contract import System
from vrag_ray.types import MetaValue
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.config import Settings
    from vrag_ray.ingest import IngestReport

Opener = Callable[[], AbstractAsyncContextManager[System]]


def ingest_files(
    paths: Sequence[str | Path],
    collection: str | Path,
    *,
    settings: Settings | None = None,
    meta: Mapping[str, MetaValue] | None = None,
) -> IngestReport:
    """Add files, folders and URIs to a collection, which is made where it does not exist.

    Documents that are in the collection are skipped. Files that cannot be read are in ``IngestReport.failed`` and stop
    nothing. More than a few files start a Ray, which ends with the call, unless this process has one. ``settings``:
    ``vrag_ray.config.load_settings`` reads them from YAML and from the environment, as it does here for None.

    Raises VragError for paths that hold nothing, and while another process writes to the collection.
    """
    from vrag_ray.cluster import ray_session
    from vrag_ray.ingest import ingest

    with ray_session(at_once=False):
        return ingest(paths, _of(settings, collection), meta=meta or {})


def open_collection(collection: str | Path, *, settings: Settings | None = None) -> Opening:
    """A collection in this process, without Ray and without a service. ``settings`` as for ``ingest_files``.

    Entering raises NotFoundError where there is no collection.
    """
    from vrag_ray.system.here import local_system

    return Opening(lambda: local_system(_of(settings, collection)))


def connect(url: str, *, api_key: str | None = None, timeout_s: float = 60.0) -> Opening:
    """The service at ``url``. Calls raise VragError where it cannot be reached."""
    from vrag_ray.client.http import AsyncClient

    return Opening(lambda: AsyncClient(url, api_key=api_key, timeout_s=timeout_s))


def _of(settings: Settings | None, collection: str | Path) -> Settings:
    from vrag_ray.config import load_settings

    return with_changes(settings or load_settings(None), {"collection": str(collection), "collections": {}})


class Opening:
    """``with`` gives a ``BlockingSystem``, ``async with`` the ``System`` itself."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._blocking = ExitStack()
        self._system: AbstractAsyncContextManager[System] | None = None

    def __enter__(self) -> BlockingSystem:
        from anyio.from_thread import start_blocking_portal

        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            system = stack.enter_context(portal.wrap_async_context_manager(self._opener()))
            self._blocking = stack.pop_all()
        return BlockingSystem(portal, system)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocking.__exit__(kind, error, trace)

    async def __aenter__(self) -> System:
        self._system = self._opener()
        return await self._system.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._system is not None
        await self._system.__aexit__(kind, error, trace)
