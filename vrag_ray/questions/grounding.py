"""How the elements that an answer cites meet the gold boxes of its question. Pure functions of what a run did.

The measure is that of evaluations (``gold_places.box_scores``): a gold box is met at an intersection over union of 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.questions.gold_places import BoxScores, GoldPlace, Seen, box_scores


class GroundingMeasure(StrEnum):
    """What of cited elements is graded: the share of gold boxes met, that of citations that meet one, or their F1."""

    RECALL = "recall"
    PRECISION = "precision"
    F1 = "f1"


def grounding(record: RunRecord, gold: Sequence[GoldPlace], measure: GroundingMeasure) -> float | None:
    """From 0 to 1; None where no gold place has a box."""
    scores = grounding_scores(record, gold)
    if scores is None:
        return None
    values = {
        GroundingMeasure.RECALL: scores.recall,
        GroundingMeasure.PRECISION: scores.precision,
        GroundingMeasure.F1: scores.f1,
    }
    return values[measure]


def grounding_scores(record: RunRecord, gold: Sequence[GoldPlace]) -> BoxScores | None:
    """Of the citations of the policy's own answer, both 0 where it gave none; None where no gold place has a box."""
    return box_scores(gold, [cited_place(citation) for citation in own_citations(record)])


def gold_cited(record: RunRecord, gold: Sequence[GoldPlace]) -> dict[str, frozenset[int]]:
    """By search node from which the policy's own answer cites an element that meets a gold box: which boxes, as indices
    into ``gold``."""
    met: dict[str, frozenset[int]] = {}
    for citation in own_citations(record):
        place = cited_place(citation)
        numbers = frozenset(number for number, gold_place in enumerate(gold) if gold_place.has_box_met_by(place))
        if numbers:
            met[citation.node_id] = met.get(citation.node_id, frozenset()) | numbers
    return met


def own_citations(record: RunRecord) -> tuple[Citation, ...]:
    """Those of an answer that the policy gave. An abstention rests on nothing, and what a run cites in the policy's
    place when its steps or its time are up is not the policy's choice."""
    return record.citations if record.status is RunStatus.ANSWERED else ()


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
