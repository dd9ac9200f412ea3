"""``POST /v1/search``, and ``/search`` as clients of the original VRAG search engine call it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from vrag_ray.client.schemas import CollectionChoice, SearchRequest, SearchResponse, collection_names
from vrag_ray.client.schemas import Query as QueryText
from vrag_ray.client.search_records import SearchColumns, search_columns
from vrag_ray.serving.backends import Found
from vrag_ray.serving.hits import image_path, search_hit
from vrag_ray.serving.http.routes.deps import ERRORS, Gate, GateDep
from vrag_ray.serving.sent_pictures import sent_file
from vrag_ray.types import HYBRID, SearchAnswer
from vrag_ray.types import Query as SearchQuery
from vrag_ray.types.filters import SearchFilter

PATH = "/v1/search"
router = APIRouter(tags=["search"], responses=ERRORS)
LEGACY_TOP_K = 10
"""How many results ``GET /search`` of the original gives."""


@router.post(PATH, response_model=SearchResponse)
async def search(body: SearchRequest, gate: GateDep) -> SearchResponse:
    """The best passages for each query, best first, and how complete the answer is."""
    picture = None if body.picture is None else await gate.pictures.png(sent_file(body.picture, "picture"), "picture")
    names = collection_names(body.collection)
    found = await _search(gate, body.asked(picture), body.top_k, body.mode, body.filter, names)
    answer = found.answer
    return SearchResponse(
        results=[[search_hit(hit) for hit in hits] for hits in answer.results],
        shards_ok=answer.shards_ok,
        shards_total=answer.shards_total,
        mode=answer.mode,
        retrieval_profile=found.profile,
        collection_version=answer.collection_version,
        collections=list(answer.collections),
        notices=list(answer.notices),
    )


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
    names = collection_names(body.search_corpus)
    answer = (await _search(gate, body.queries, body.top_k, HYBRID, None, names)).answer
    if body.vrag_ret:
        return _images(answer, request)
    base_url = str(request.base_url)
    return LegacyResponse(results=[search_columns(hits, base_url) for hits in answer.results])


@router.get("/search", response_model=list[list[LegacyImage]])
async def legacy_get(
    queries: Annotated[list[QueryText], Query(min_length=1, max_length=256)], request: Request, gate: GateDep
) -> list[list[LegacyImage]]:
    """``?queries=a&queries=b``: up to ten pictures a query."""
    return _images((await _search(gate, queries, LEGACY_TOP_K, HYBRID, None, ())).answer, request)


async def _search(
    gate: Gate,
    queries: Sequence[str | SearchQuery],
    top_k: int,
    mode: str,
    filter: SearchFilter | None,
    collections: Sequence[str],
) -> Found:
    started = time.perf_counter()
    found = await gate.backends.search.search(queries, top_k=top_k, mode=mode, filter=filter, collections=collections)
    gate.metrics.observe_search(time.perf_counter() - started)
    return found


def _images(answer: SearchAnswer, request: Request) -> list[list[LegacyImage]]:
    pictures = [[path for path in map(image_path, hits) if path is not None] for hits in answer.results]
    return [
        [LegacyImage(idx=number, image_file=_absolute(path, request)) for number, path in enumerate(paths)]
        for paths in pictures
    ]


def _absolute(path: str, request: Request) -> str:
    return str(request.base_url).rstrip("/") + path
