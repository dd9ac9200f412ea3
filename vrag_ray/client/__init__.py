"""The HTTP interface as a program sees it: its JSON, a typed client, and evidence and events that come over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vrag_ray.client.http import AsyncClient, Client, ServerError, UnreachableError

__all__ = ["AsyncClient", "Client", "ServerError", "UnreachableError"]


def __getattr__(name: str) -> object:
    """The client itself on demand, so that what only needs the JSON does not wait for an HTTP library."""
    if name in __all__:
        from vrag_ray.client import http

        found: object = getattr(http, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
