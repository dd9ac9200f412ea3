"""The HTTP layer over stand-ins, on a real loopback port: httpx's in-process transport would buffer event streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn

from tests.support.patience import HANGS_AFTER_S
from tests.support.stand_in import StandIn
from vrag_ray.config import ServingConfig
from vrag_ray.serving.http.gateway import create_api
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.system import ServedSystem


@asynccontextmanager
async def http(
    backend: StandIn, folder: Path, config: ServingConfig | None = None, security: Security | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the gateway over ``backend``, served by uvicorn on a free loopback port."""
    api = create_api(ServedSystem(backend.parts, folder / "uploads"), config or ServingConfig(), security or Security())
    settings = uvicorn.Config(api, host="127.0.0.1", port=0, log_level="error")
    settings.load()
    server = uvicorn.Server(settings)
    server.lifespan = settings.lifespan_class(settings)
    # startup and shutdown themselves: `serve` looks for its end only every 100 ms.
    await server.startup()
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=HANGS_AFTER_S) as client:
        yield client
    for listener in server.servers:
        listener.close()
    for connection in list(server.server_state.connections):
        connection.shutdown()
    # As `shutdown`, which first waits 100 ms in any case.
    while server.server_state.connections or server.server_state.tasks:  # noqa: ASYNC110  it sets no event
        await asyncio.sleep(0.001)
    await server.lifespan.shutdown()
