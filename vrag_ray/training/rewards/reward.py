"""How good a finished run was. Pure functions of what the run did, never of the text of its transcript.

Source: VRAG-RL (arXiv 2505.22019, eq. 7 to 12) for retrieval, format and the mix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from vrag_ray.agent.events import RunStatus, SearchDoneEvent
from vrag_ray.agent.record import RunRecord
from vrag_ray.questions.gold_places import GoldPlace, Seen, place_key

Page = tuple[str, str]
"""Document id and key of the place in it: ``p3``, ``t12.000-24.000``, or nothing for a text or a film as a whole."""


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
    whether the question has gold boxes; ``grounding`` is a part of ``total`` only then, and else 0. ``overlong`` is the
    penalty for length in ``total``, 0 or less.
    """

    total: float
    answer: float
    retrieval: float
    format: float
    success: bool
    grounding: float = 0.0
    grounded: bool = False
    overlong: float = 0.0


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


def overlong_penalty(tokens: int, limit: int, cache: int) -> float:
    """DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13), from 0 to -1.

    0 up to ``limit - cache`` tokens, then ``(limit - cache - tokens) / cache``, from ``limit`` on -1.
    """
    return min(0.0, max(-1.0, (limit - cache - tokens) / cache))


def ndcg(ranked: Sequence[Page], gold: Sequence[Page]) -> float:
    """VRAG-RL's eq. 7 to 9: gain 1 for each gold page, discounted by ``log2`` of its rank, over the best order.

    Each page counts at its first rank: a page that is listed twice would otherwise earn more than 1. No gold page: 0.
    """
    gold_places = set(gold)
    ordered = list(dict.fromkeys(ranked))
    gain = math.fsum(1 / math.log2(rank + 1) for rank, page in enumerate(ordered, start=1) if page in gold_places)
    best = math.fsum(1 / math.log2(rank + 1) for rank in range(1, len(gold_places) + 1))
    return gain / best if gold_places else 0.0


def places_by_node(record: RunRecord) -> dict[str, tuple[Seen, ...]]:
    """What each search node brought into view, in that order: pages, moments of films, pieces of texts."""
    places: dict[str, tuple[Seen, ...]] = {}
    for event in record.events:
        if isinstance(event, SearchDoneEvent):
            places[event.node_id] = tuple(
                Seen(item.doc_id, item.page, item.t_start, item.t_end) for item in event.results
            )
    return places


def ranked(record: RunRecord, gold: Sequence[GoldPlace]) -> tuple[Page, ...]:
    """Every place that the searches brought into view, in that order, repeats included, as ``ndcg`` compares them.

    What meets a gold place goes by that one's name, of several by the first that nothing before has met: a clip that
    two gold spans share finds one of them, so that no run earns more than 1.
    """
    names: dict[Seen, Page] = {}
    for seen in chain.from_iterable(places_by_node(record).values()):
        if seen not in names:
            met = [place.page_key for place in gold if place.is_met_by(seen)]
            new = [name for name in met if name not in names.values()]
            names[seen] = next(iter(new or met), (seen.doc_id, place_key(seen.page, seen.t_start, seen.t_end)))
    return tuple(names[seen] for places in places_by_node(record).values() for seen in places)


def well_formed(record: RunRecord) -> bool:
    """Whether the run searched at least once and ended with an answer of its own."""
    searched = any(isinstance(event, SearchDoneEvent) for event in record.events)
    return searched and record.status in (RunStatus.ANSWERED, RunStatus.ABSTAINED)
