"""Search results in the form of the original's search engine: columns of scores, positions and records.

Its clients open ``file_path`` as what ``type`` says, so a record never calls a picture a video.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from vrag_ray.client.schemas import SearchHit
from vrag_ray.types import PassageKind

RECORD_TYPES = {
    PassageKind.PAGE: "image",
    PassageKind.IMAGE: "image",
    PassageKind.CLIP: "video",
    PassageKind.TEXT: "text",
}


class SearchRecord(BaseModel):
    """One result. ``type`` is ``text``, ``image`` or ``video``, and ``file_path`` leads to bytes of that type.

    An image is the page or picture, drawn. A video is the whole file that was ingested; ``t_start`` and ``t_end``
    (seconds from its start) bound the clip. ``content`` is the text of the passage that matched: all of
    a text result, the words in a picture or clip.
    """

    model_config = ConfigDict(frozen=True)

    uid: str
    type: str
    file_path: str
    content: str
    t_start: float | None = Field(default=None, description="Seconds; of a video only.")
    t_end: float | None = Field(default=None, description="Seconds; of a video only.")


class SearchColumns(BaseModel):
    """The results of one query, best first, as three columns; ``indice`` counts from 0 in rank order."""

    model_config = ConfigDict(frozen=True)

    score: list[float]
    indice: list[int]
    data: list[SearchRecord]


def search_columns(hits: Sequence[SearchHit], base_url: str) -> SearchColumns:
    """``hits`` of one query with URLs of the gateway at ``base_url``."""
    return SearchColumns(
        score=[hit.score for hit in hits],
        indice=list(range(len(hits))),
        data=[_search_record(hit, base_url) for hit in hits],
    )


def _search_record(hit: SearchHit, base_url: str) -> SearchRecord:
    drawn = RECORD_TYPES[hit.kind] == "image"
    place = f"pages/{hit.page}.png" if drawn else "original"
    return SearchRecord(
        uid=hit.passage_id,
        type=RECORD_TYPES[hit.kind],
        file_path=f"{base_url.rstrip('/')}/v1/documents/{hit.doc_id}/{place}",
        content=hit.text,
        t_start=hit.t_start,
        t_end=hit.t_end,
    )
