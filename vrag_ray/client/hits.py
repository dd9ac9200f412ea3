"""Search results as they go over HTTP, and back."""

from __future__ import annotations

from vrag_ray.client.schemas import SearchHit
from vrag_ray.types import SECTION, Box, Hit, Locator, Passage, PassageKind
from vrag_ray.types.redaction import public_uri


def search_hit(hit: Hit) -> SearchHit:
    """A hit as it leaves a system: no path of this machine, and a link to what it shows."""
    passage, locator = hit.passage, hit.passage.locator
    return SearchHit(
        passage_id=passage.id,
        doc_id=passage.doc_id,
        title=hit.title,
        uri=public_uri(hit.uri),
        kind=passage.kind,
        page=locator.page,
        label=locator.label,
        pages=locator.pages,
        section=str(passage.meta.get(SECTION, "")),
        t_start=locator.t_start,
        t_end=locator.t_end,
        span_start=locator.span_start,
        span_end=locator.span_end,
        score=hit.score,
        text=passage.text,
        bbox=passage.box.as_tuple() if passage.box is not None else None,
        region=hit.region.as_tuple() if hit.region is not None else None,
        scores=dict(hit.scores),
        duplicate_of=hit.duplicate_of,
        image_url=_image_path(hit),
        collection=hit.collection,
    )


def hit_of(sent: SearchHit) -> Hit:
    """The hit that was sent: ``search_hit`` of it is ``sent`` again."""
    locator = Locator(
        page=sent.page,
        t_start=sent.t_start,
        t_end=sent.t_end,
        span_start=sent.span_start,
        span_end=sent.span_end,
        label=sent.label,
        pages=sent.pages,
    )
    box = Box(*sent.bbox) if sent.bbox is not None else None
    meta = {SECTION: sent.section} if sent.section else {}
    passage = Passage(sent.passage_id, sent.doc_id, sent.kind, locator, 0, sent.text, box, meta=meta)
    region = Box(*sent.region) if sent.region is not None else None
    return Hit(passage, sent.title, sent.uri, sent.score, sent.scores, region, sent.duplicate_of, sent.collection)


def _image_path(hit: Hit) -> str | None:
    """Path of the picture of a hit on the server; None for plain text, which has none."""
    passage = hit.passage
    if passage.kind is PassageKind.CLIP and passage.locator.t_start is not None:
        return f"/v1/documents/{passage.doc_id}/frames/{passage.locator.t_start:.3f}.png"
    if passage.kind is not PassageKind.TEXT and passage.locator.page is not None:
        return f"/v1/documents/{passage.doc_id}/pages/{passage.locator.page}.png"
    return None
