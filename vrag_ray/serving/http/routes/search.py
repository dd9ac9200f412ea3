"""``POST /v1/search``, and ``/search`` as clients of the original VRAG search engine call it."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from vrag_ray.client.schemas import CollectionChoice, SearchRequest, SearchResponse
from vrag_ray.client.schemas import Query as QueryText
from vrag_ray.client.search_records import SearchColumns, search_columns
from vrag_ray.serving.http.routes.deps import ERRORS, GateDep

PATH = "/v1/search"
router = APIRouter(tags=["search"], responses=ERRORS)
LEGACY_TOP_K = 10
"""How many results ``GET /search`` of the original gives."""


@router.post(PATH, response_model=SearchResponse)
async def search(body: SearchRequest, gate: GateDep) -> SearchResponse:
    """The best passages for each query, best first, and how complete the answer is."""
    started = time.perf_counter()
    answer = await gate.system.search(body)
    gate.metrics.observe_search(time.perf_counter() - started)
    return answer


class LegacyRequest(BaseModel):
    """``POST /search``. Unknown names are ignored: older clients send some that mean nothing here."""

    queries: list[QueryText] = Field(min_length=1, max_length=256)
    top_k: int = Field(default=3, ge=1, le=100)
    vrag_ret: bool = False
    search_corpus: CollectionChoice = None
    """As ``collection`` of ``POST /v1/search``."""


class LegacyResponse(BaseModel):
    """``POST /search`` without ``vrag_ret``."""

    results: list[SearchColumns]


class LegacyImage(BaseModel):
    """One picture of the oldest shape; ``image_file`` is a URL of this server, never a path on it."""

    idx: int
    image_file: str


@router.post("/search", response_model=LegacyResponse | list[list[LegacyImage]], response_model_exclude_none=True)
async def legacy_post(body: LegacyRequest, request: Request, gate: GateDep) -> LegacyResponse | list[list[LegacyImage]]:
    """The original's request and response; ``vrag_ret`` asks for its older, pictures-only response."""
    same = SearchRequest(queries=body.queries, top_k=body.top_k, collection=body.search_corpus)
    answer = await search(same, gate)
    if body.vrag_ret:
        return _images(answer, request)
    base_url = str(request.base_url)
    return LegacyResponse(results=[search_columns(hits, base_url) for hits in answer.results])


@router.get("/search", response_model=list[list[LegacyImage]])
async def legacy_get(
    queries: Annotated[list[QueryText], Query(min_length=1, max_length=256)], request: Request, gate: GateDep
) -> list[list[LegacyImage]]:
    """``?queries=a&queries=b``: up to ten pictures a query."""
    return _images(await search(SearchRequest(queries=queries, top_k=LEGACY_TOP_K), gate), request)


def _images(answer: SearchResponse, request: Request) -> list[list[LegacyImage]]:
    base_url = str(request.base_url).rstrip("/")
    pictures = [[hit.image_url for hit in hits if hit.image_url is not None] for hits in answer.results]
    return [
        [LegacyImage(idx=number, image_file=base_url + path) for number, path in enumerate(paths)] for paths in pictures
    ]
