"""Where the citations of an answer stand, as places that gold places are compared with."""

from __future__ import annotations

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.record import RunRecord
from vrag_ray.training.data.gold_places import Seen


def cited_places(record: RunRecord) -> list[Seen]:
    """Those of all citations of a run, in their order."""
    return [cited_place(citation) for citation in record.citations]


def cited_place(citation: Citation) -> Seen:
    """With the boxes of the citation, of its element and of the figure that the answer states of it."""
    return Seen(
        citation.doc_id,
        citation.page,
        citation.t_start,
        citation.t_end,
        citation.bbox,
        element=citation.element.bbox if citation.element is not None else None,
        value=citation.value_bbox,
    )
