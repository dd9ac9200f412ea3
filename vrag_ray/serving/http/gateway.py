"""The HTTP application over a system: routes, security and error shape. Knows nothing of Ray."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from vrag_ray import __version__
from vrag_ray.client.schemas import MAX_PICTURE_URL
from vrag_ray.config import ServingConfig
from vrag_ray.serving import error_body as envelope
from vrag_ray.serving.http.metrics import Metrics
from vrag_ray.serving.http.middleware import AnswerHead, Guard, LimitBody, LimitInFlight, Observe
from vrag_ray.serving.http.routes import (
    documents,
    feedback,
    health,
    openai_chat,
    openai_models,
    openai_responses,
    runs,
    search,
)
from vrag_ray.serving.http.routes.deps import Gate
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.system import ServedSystem

ROUTES = (search, runs, feedback, documents, openai_chat, openai_responses, openai_models, health)
MAX_JSON_BYTES = 4 << 20
MAX_RUN_BYTES = MAX_JSON_BYTES + MAX_PICTURE_URL
"""A question, or a search, may come with a picture."""
MAX_CHAT_BYTES = 48 << 20
"""A chat may hold pictures, a third larger for being base64."""
_MULTIPART_OVERHEAD = 1 << 20
"""Boundaries, headers and the meta field beside the files of an upload."""


def create_api(
    system: ServedSystem,
    config: ServingConfig,
    security: Security,
    *,
    behind_serve: bool = True,
    closing: asyncio.Event | None = None,
) -> FastAPI:
    """The gateway of one process. ``behind_serve`` and ``closing``: as ``Observe``."""
    closing = closing or asyncio.Event()
    api = FastAPI(
        title="vrag_ray",
        version=__version__,
        summary="Search and cited answers over PDF pages, slides, images, videos and text.",
        # The interactive pages load scripts from elsewhere, which the gateway's own policy forbids.
        docs_url=None,
        redoc_url=None,
        # Not `include_router`, which builds each route anew: 40 ms of each start.
        routes=[route for module in ROUTES for route in module.router.routes],
    )
    metrics = Metrics()
    api.state.gate = Gate(system, config, metrics, security, closing)
    envelope.install(api)
    # Added last runs first.
    limit = (config.max_upload_mb << 20) + _MULTIPART_OVERHEAD
    limits = {
        "/v1/documents": limit,
        openai_chat.PATH: MAX_CHAT_BYTES,
        openai_responses.PATH: MAX_CHAT_BYTES,
        runs.PATH: MAX_RUN_BYTES,
        search.PATH: MAX_RUN_BYTES,
    }
    api.add_middleware(LimitBody, limits=limits, default=MAX_JSON_BYTES)
    exempt = (runs.PATH, openai_chat.PATH, openai_responses.PATH, *health.PATHS)
    api.add_middleware(LimitInFlight, most=config.max_concurrent_requests, exempt=exempt)
    api.add_middleware(AnswerHead)
    api.add_middleware(Guard, security=security)
    if config.cors_origins:
        # Before the guard: a browser requests permission without a key.
        api.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "HEAD", "POST", "PUT", "DELETE"],
            allow_headers=["*"],
            expose_headers=["X-Run-ID", "X-Request-ID", "Location", "Content-Range", "Retry-After"],
        )
    api.add_middleware(
        Observe,
        metrics=metrics,
        closing=closing,
        behind_serve=behind_serve,
        read_by_other_origins=bool(config.cors_origins),
    )
    return api
