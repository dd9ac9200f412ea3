"""From a finished run and its example to a reward, and from gold pages by name to gold pages of a collection.

Everything is read from what the run did (``RunRecord``), never from the text of its transcript.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import cast

from vrag_ray.agent.record import RunRecord
from vrag_ray.questions.answer_scores import anls, exact_match, f1, own_answer
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace, gold_places
from vrag_ray.questions.grounding import GroundingMeasure, grounding
from vrag_ray.questions.judge import Judge
from vrag_ray.training.rewards.reward import (
    Page,
    Reward,
    RewardWeights,
    mixed,
    ndcg,
    places_by_node,
    ranked,
    well_formed,
)
from vrag_ray.types import Document, VragError
from vrag_ray.types.dotted_path import load_object, raised_by

VRAG_RL_WEIGHTS = RewardWeights(answer=0.7, retrieval=0.2, format=0.1)
"""Those of VRAG-RL's published trainer."""


class AnswerScorer(StrEnum):
    """How an answer is compared with the references. ``judge`` asks a language model, the others compare words."""

    EXACT_MATCH = "exact_match"
    F1 = "f1"
    ANLS = "anls"
    JUDGE = "judge"


_BY_WORDS: Mapping[AnswerScorer, Callable[[str, Sequence[str]], float]] = {
    AnswerScorer.EXACT_MATCH: exact_match,
    AnswerScorer.F1: f1,
    AnswerScorer.ANLS: anls,
}

UserReward = Callable[[RunRecord, Example, Sequence[Page]], Reward | float | Awaitable[Reward | float]]
"""A custom function: the finished run, its example, its gold places as (document id, key).

The gold pages are in the order of ``example.gold``, which holds their boxes. It returns a ``Reward``, which is taken as
it is, or the score of the answer from 0 to 1, which is mixed with the other parts by the weights; it may be a coroutine
function. It is called once a run, many at once on one event loop.
"""


class Grader:
    """Rewards of finished runs, as ``vrag_ray.training.rollout.rollout.Grade``.

    ``scorer`` is an ``AnswerScorer`` or ``package.module:function`` (a ``UserReward``); ``measure`` says what of the
    cited elements is graded. Raises ``VragError`` for a scorer that cannot be used: unknown, not to be imported, not
    callable, or ``judge`` without a judge.
    """

    def __init__(
        self,
        scorer: str,
        *,
        weights: RewardWeights = VRAG_RL_WEIGHTS,
        measure: GroundingMeasure = GroundingMeasure.F1,
        judge: Judge | None = None,
    ) -> None:
        self._name = scorer
        self._weights = weights
        self._measure = measure
        self._judge = judge
        self._own = None if scorer in tuple(AnswerScorer) else user_reward(scorer)
        if scorer == AnswerScorer.JUDGE and judge is None:
            raise VragError("scorer judge needs a judge: set its endpoint, or compare by exact_match, f1 or anls")

    async def __call__(self, record: RunRecord, example: Example, gold: Sequence[GoldPlace] = ()) -> Reward:
        """Raises ``JudgeError`` where the judge gives no verdict, ``VragError`` where a
        user's function fails."""
        pages = tuple(place.page_key for place in gold)
        score = await self._score(record, example, pages)
        if isinstance(score, Reward):
            return score
        return mixed(
            score,
            ndcg(ranked(record, gold), pages),
            well_formed(record),
            self._weights,
            grounding(record, gold, self._measure),
        )

    async def _score(self, record: RunRecord, example: Example, gold: tuple[Page, ...]) -> Reward | float:
        if self._own is not None:
            return await _user_score(self._own, self._name, record, example, gold)
        answer = own_answer(record)
        if not answer:
            return 0.0
        if self._judge is not None and self._name == AnswerScorer.JUDGE:
            return float(await self._judge.verdict(example.question, example.answers, answer))
        return _BY_WORDS[AnswerScorer(self._name)](answer, example.answers)


def gold_by_search(record: RunRecord, gold: Sequence[GoldPlace]) -> dict[str, frozenset[int]]:
    """By search node whose results meet gold places (GGPO's ``R_val``): which, as indices into ``gold``."""
    numbers = {
        node: frozenset(number for number, place in enumerate(gold) if any(map(place.is_met_by, seen)))
        for node, seen in places_by_node(record).items()
    }
    return {node: held for node, held in numbers.items() if held}


def resolve_gold(examples: Sequence[Example], documents: Iterable[Document]) -> dict[str, tuple[GoldPlace, ...]]:
    """Gold places by the uid of each example, in the example's order: pages with the boxes on them, seconds of films,
    and texts as a whole.

    A document answers to the file names of its uris. Raises ``VragError``, which names example and file, for a file
    that no document or more than one answers to, for one that could not be read, and for a place that it has not.
    """
    known: set[str] = set()
    for example in examples:
        if example.uid in known:
            raise VragError(f"two examples have the uid {example.uid!r}: uids name examples, so give each its own")
        known.add(example.uid)
    return gold_places(examples, documents)


def user_reward(path: str) -> UserReward:
    """The function at ``package.module:function``; raises ``VragError`` where there is none."""
    # What it is called with and what it returns is checked where it is called.
    return cast("UserReward", load_object(path, "reward.scorer", AnswerScorer))


async def _user_score(
    function: UserReward, name: str, record: RunRecord, example: Example, gold: tuple[Page, ...]
) -> Reward | float:
    where = f"scorer {name!r} on run {record.run_id} of example {example.uid!r}"
    try:
        given: object = function(record, example, gold)
        score = await given if inspect.isawaitable(given) else given
    except Exception as error:
        raise VragError(f"{where} failed: {raised_by(error)}") from error
    if isinstance(score, Reward):
        parts = (score.total, score.answer, score.retrieval, score.format, score.grounding)
        if not all(map(math.isfinite, parts)):
            raise VragError(f"{where} returned a reward that is not finite: {score}")
        return score
    if not isinstance(score, (int, float)) or not 0 <= score <= 1:
        raise VragError(f"{where} returned {score!r}: return a Reward, or the answer's score from 0 to 1")
    return float(score)
