"""What routes take from the application they run in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import Depends, Path, Request

from vrag_ray.client.schemas import ErrorBody
from vrag_ray.config import ServingConfig
from vrag_ray.serving.backends import Backends
from vrag_ray.serving.http.metrics import Metrics
from vrag_ray.serving.sent_pictures import SentPictures


@dataclass(frozen=True, slots=True)
class Gate:
    """Everything a route may use."""

    backends: Backends
    config: ServingConfig
    metrics: Metrics
    uploads: FilePath
    """Folder where the files of uploads are put for ingest to find."""
    pictures: SentPictures
    """Decodes the pictures of questions and chats."""


async def gate_of(request: Request) -> Gate:
    """Asynchronous, or FastAPI would start a thread for each request."""
    gate = request.app.state.gate
    assert isinstance(gate, Gate)
    return gate


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
