"""Whom a command asks: a server that was named or runs here, or the collection in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from vrag_ray.cli.console import Echo
from vrag_ray.cli.options import api_key, echo_line

if TYPE_CHECKING:
    from vrag_ray.client.contract import System
    from vrag_ray.config import Settings

T = TypeVar("T")
Use = Callable[["System", str | None, Echo], Awaitable[T]]
"""Works with a system at a base URL (None: in this process) and prints through the function it is given."""
PROBE_TIMEOUT_S = 2.0


def with_system(
    url: str | None,
    settings: Settings,
    *,
    collection_typed: bool,
    use: Use[T],
) -> T:
    """Run ``use``.

    The order is: ``url``; the collection if it was typed; a server on the configured port; the configured collection.
    """
    if url is None and not collection_typed:
        url = _running_server(settings)
        if url is not None:
            typer.echo(f"asking the server at {url}", err=True)
    if url is not None:
        return asyncio.run(_with_server(url, use))
    from vrag_ray.system.here import require_collection

    require_collection(settings.collection)
    return asyncio.run(_with_local(settings, use))


async def _with_server(url: str, use: Use[T]) -> T:
    from vrag_ray.client.http import AsyncClient

    async with AsyncClient(url, api_key=api_key()) as client:
        return await use(client, client.base_url, typer.echo)


async def _with_local(settings: Settings, use: Use[T]) -> T:
    from vrag_ray.system.here import local_system

    async with local_system(settings, on_line=echo_line) as system:
        return await use(system, None, typer.echo)


def _running_server(settings: Settings) -> str | None:
    """The address of a vrag server on this machine at the configured port, if one is there."""
    from vrag_ray.client.blocking import Client
    from vrag_ray.types import VragError

    url = f"http://127.0.0.1:{settings.serving.port}"
    try:
        with Client(url, timeout_s=PROBE_TIMEOUT_S) as client:
            client.ready()
    except VragError:
        return None
    return url
