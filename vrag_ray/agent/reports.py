"""What events say of an observation: compact, and without the words of whole pages."""

from __future__ import annotations

from typing import TypedDict

from vrag_ray.agent.events import CropEvent, FoundItem, Place, ReadPage, SearchDoneEvent
from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.types import PassageKind, SearchAnswer

SHOWN_PASSAGE_CHARS = 400


class _PlaceFields(TypedDict):
    """The fields of ``Place``, for what is more than one."""

    information_id: str
    doc_id: str
    title: str
    kind: PassageKind
    page: int | None
    label: str
    pages: int
    t_start: float | None
    t_end: float | None
    bbox: tuple[float, float, float, float] | None


def _fields(sighting: Sighting) -> _PlaceFields:
    return _PlaceFields(
        information_id=sighting.id,
        doc_id=sighting.doc_id,
        title=sighting.title,
        kind=sighting.kind,
        page=sighting.locator.page,
        label=sighting.locator.label,
        pages=sighting.locator.pages,
        t_start=sighting.locator.t_start,
        t_end=sighting.locator.t_end,
        bbox=sighting.region.as_tuple() if sighting.region is not None else None,
    )


def found_items(seen: Observation) -> tuple[FoundItem, ...]:
    return tuple(
        FoundItem(
            **_fields(sighting),
            uri=sighting.uri,
            score=sighting.score,
            text=sighting.passage_text[:SHOWN_PASSAGE_CHARS],
        )
        for sighting in seen.sightings
    )


def read_pages(seen: Observation) -> tuple[ReadPage, ...]:
    return tuple(
        ReadPage(
            **_fields(sighting),
            words=len(sighting.words),
            characters=len(sighting.page.text) if sighting.page is not None else 0,
            error=sighting.read_error,
        )
        for sighting in seen.sightings
    )


def search_done(seen: Observation, answer: SearchAnswer, step: int) -> SearchDoneEvent:
    """What came into view of a search, and how complete it was."""
    return SearchDoneEvent(
        step=step,
        node_id=seen.node_id,
        query=seen.query,
        results=found_items(seen),
        shards_ok=answer.shards_ok,
        shards_total=answer.shards_total,
        collection_version=answer.collection_version,
        collections=answer.collections,
        notices=answer.notices,
    )


def crop_event(node_id: str, closer: Sighting, step: int) -> CropEvent:
    place = Place(**_fields(closer))
    return CropEvent(step=step, node_id=node_id, source_id=closer.source, place=place, text=closer.text)
