"""A system in this process, where no server runs: the parts of a service, without Ray."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from vrag_ray.config import Settings
from vrag_ray.serving.parts.local import local_parts
from vrag_ray.serving.placement import local_placement
from vrag_ray.serving.system import ServedSystem
from vrag_ray.types import NotFoundError
from vrag_ray.types.copies import with_changes


@asynccontextmanager
async def local_system(
    settings: Settings, *, on_line: Callable[[str], None] | None = None
) -> AsyncIterator[ServedSystem]:
    """``settings.served`` ready to be searched and questioned. Its runs and uploads are its own: they end with it, and
    those of a service on the same collection stay as they are.

    ``on_line`` is called with what runs on which device before it does; None: that is logged.
    Raises NotFoundError where there is no main collection.
    """
    local_placement(settings).report(on_line)
    with tempfile.TemporaryDirectory(prefix="vrag-system-") as folder:
        uploads = Path(folder) / "uploads"
        own = {
            "runs_dir": f"{folder}/runs",
            "uploads_dir": str(uploads),
            # The limit protects a service from its callers; here they are one program.
            "max_concurrent_runs": sys.maxsize,
        }
        settings = with_changes(settings, {"serving": with_changes(settings.serving, own)})
        async with local_parts(settings, must_load=True) as parts:
            system = ServedSystem(parts, uploads)
            try:
                yield system
            finally:
                system.close()


def require_collection(root: str) -> None:
    """Raise NotFoundError, before anything is started, unless ``root`` is a collection with documents."""
    from vrag_ray.index.storage.collection import Collection

    if Collection.open(root).record is None:
        raise NotFoundError(f"the collection {root} is empty: `vrag ingest PATH --collection {root}` adds documents")
