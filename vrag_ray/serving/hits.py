"""A search result as it leaves the server. No web framework: the command line prints the same."""

from __future__ import annotations

from vrag_ray.client.schemas import SearchHit
from vrag_ray.corpus.passages import SECTION
from vrag_ray.types import Hit, PassageKind
from vrag_ray.types.redaction import public_uri


def search_hit(hit: Hit) -> SearchHit:
    """A hit as it goes over HTTP: no path of this machine, and a link to what it shows."""
    passage = hit.passage
    return SearchHit(
        passage_id=passage.id,
        doc_id=passage.doc_id,
        title=hit.title,
        uri=public_uri(hit.uri),
        kind=passage.kind,
        page=passage.locator.page,
        label=passage.locator.label,
        pages=passage.locator.pages,
        section=str(passage.meta.get(SECTION, "")),
        t_start=passage.locator.t_start,
        t_end=passage.locator.t_end,
        score=hit.score,
        text=passage.text,
        bbox=passage.box.as_tuple() if passage.box is not None else None,
        region=hit.region.as_tuple() if hit.region is not None else None,
        scores=dict(hit.scores),
        duplicate_of=hit.duplicate_of,
        image_url=image_path(hit),
        collection=hit.collection,
    )


def image_path(hit: Hit) -> str | None:
    """Path of the picture of a hit on this server; None for plain text, which has none."""
    passage = hit.passage
    if passage.kind is PassageKind.CLIP and passage.locator.t_start is not None:
        return f"/v1/documents/{passage.doc_id}/frames/{passage.locator.t_start:.3f}.png"
    if passage.kind is not PassageKind.TEXT and passage.locator.page is not None:
        return f"/v1/documents/{passage.doc_id}/pages/{passage.locator.page}.png"
    return None
