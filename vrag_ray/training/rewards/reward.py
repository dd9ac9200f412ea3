"""How good a finished run was. Pure functions of what the run did, never of the text of its transcript.

Source: VRAG-RL (arXiv 2505.22019, eq. 7 to 12) for retrieval, format and the mix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from vrag_ray.agent.events import RunStatus, SearchDoneEvent
from vrag_ray.agent.record import RunRecord

Page = tuple[str, str]
"""Document id and locator key: what a gold page and the page of a hit are compared by."""


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """Shares of the parts of a reward; they sum to 1. The default is VRAG-RL's, which does not grade cited elements."""

    answer: float = 0.7
    retrieval: float = 0.2
    format: float = 0.1
    grounding: float = 0.0

    def __post_init__(self) -> None:
        parts = (self.answer, self.retrieval, self.format, self.grounding)
        if min(parts) < 0 or not math.isclose(sum(parts), 1.0):
            names = ", ".join(f"{name} {value:g}" for name, value in asdict(self).items())
            raise ValueError(f"reward weights ({names}) must be at least 0 and sum to 1")


@dataclass(frozen=True, slots=True)
class Reward:
    """One run's reward, ``total``, and what it is made of; each part is from 0 to 1.

    ``success`` is the verdict on the answer alone: GGPO's masks go by it, whatever the weights. ``grounded`` says
    whether the question has gold boxes; ``grounding`` is a part of ``total`` only then, and else 0.
    """

    total: float
    answer: float
    retrieval: float
    format: float
    success: bool
    grounding: float = 0.0
    grounded: bool = False


UNGRADED = Reward(math.nan, math.nan, math.nan, math.nan, success=False, grounding=math.nan)
"""Of a run that says nothing about its policy. Numbers that spread: it must be in no mean and no advantage."""


def mixed(
    answer: float, retrieval: float, well_formed: bool, weights: RewardWeights, grounding: float | None = None
) -> Reward:
    """The parts, each from 0 to 1, by their weights. A run that broke the form earns nothing, as in VRAG-RL.

    ``grounding`` is None for a question without gold boxes. Its weight is then the answer's, so that the best run of
    such a question earns 1 too, and retrieval and form weigh as much as in any other.
    """
    form = 1.0 if well_formed else 0.0
    total = weights.answer * answer + weights.retrieval * retrieval + weights.format * form
    total += weights.grounding * (answer if grounding is None else grounding)
    return Reward(
        total if well_formed else 0.0,
        answer,
        retrieval,
        form,
        success=answer >= 0.5,
        grounding=0.0 if grounding is None else grounding,
        grounded=grounding is not None,
    )


def ndcg(ranked: Sequence[Page], gold: Sequence[Page]) -> float:
    """VRAG-RL's eq. 7 to 9: gain 1 for each gold page, discounted by ``log2`` of its rank, over the best order.

    Each page counts at its first rank: a page that is listed twice would otherwise earn more than 1. No gold page: 0.
    """
    gold_places = set(gold)
    ordered = list(dict.fromkeys(ranked))
    gain = math.fsum(1 / math.log2(rank + 1) for rank, page in enumerate(ordered, start=1) if page in gold_places)
    best = math.fsum(1 / math.log2(rank + 1) for rank in range(1, len(gold_places) + 1))
    return gain / best if gold_places else 0.0


def pages_of_searches(record: RunRecord) -> tuple[Page, ...]:
    """Every page that the run's searches brought into view, in that order, repeats included."""
    return tuple(page for pages in pages_by_node(record).values() for page in pages)


def pages_by_node(record: RunRecord) -> dict[str, tuple[Page, ...]]:
    """The pages that each search node brought: ``R_val`` of GGPO are the nodes whose pages meet the gold ones."""
    pages: dict[str, tuple[Page, ...]] = {}
    for event in record.events:
        if isinstance(event, SearchDoneEvent):
            pages[event.node_id] = tuple(
                (item.doc_id, _place(item.page, item.t_start, item.t_end)) for item in event.results
            )
    return pages


def well_formed(record: RunRecord) -> bool:
    """Whether the run searched at least once and ended with an answer of its own."""
    searched = any(isinstance(event, SearchDoneEvent) for event in record.events)
    return searched and record.status in (RunStatus.ANSWERED, RunStatus.ABSTAINED)


def _place(page: int | None, t_start: float | None, t_end: float | None) -> str:
    if page is not None:
        return f"p{page}"
    return f"t{t_start:.3f}-{t_end:.3f}" if t_start is not None and t_end is not None else ""
