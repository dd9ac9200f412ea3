"""What routes take from the application they run in."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request

from vrag_ray.client.schemas import ErrorBody
from vrag_ray.config import ServingConfig
from vrag_ray.serving.http.metrics import Metrics
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.openai.citations import Links
from vrag_ray.serving.system import ServedSystem


@dataclass(frozen=True, slots=True)
class Gate:
    """Everything a route may use."""

    system: ServedSystem
    config: ServingConfig
    metrics: Metrics
    security: Security
    """Signs the addresses of citations."""
    closing: asyncio.Event
    """Set when the service stops: replies that go on are to end."""


async def gate_of(request: Request) -> Gate:
    """Asynchronous, or FastAPI would start a thread for each request."""
    gate = request.app.state.gate
    assert isinstance(gate, Gate)
    return gate


def links_of(request: Request, gate: Gate) -> Links:
    """How the citations of a reply to ``request`` are linked; their signatures end together."""
    expires = int(time.time()) + gate.config.link_seconds
    signature = partial(gate.security.signature, expires=expires) if gate.config.link_seconds else None
    return Links(str(request.base_url).rstrip("/"), signature, gate.config.footnotes)


GateDep = Annotated[Gate, Depends(gate_of)]
DocId = Annotated[str, Path(description="SHA-256 of the document, or a unique prefix of at least 8 hex digits.")]
RunId = Annotated[str, Path(description="Id of the run.")]

ERRORS: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorBody, "description": text}
    for status, text in {
        401: "No known key.",
        404: "No such id.",
        422: "A field is wrong; `param` names it.",
        429: "Full; try again after `Retry-After` seconds.",
        503: "A part is not ready; `GET /readyz` says which.",
    }.items()
}
