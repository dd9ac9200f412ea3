"""The algorithms that the study compares, as what each credits a batch of runs with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING

from benchmarks.hunt.graphs import Run
from benchmarks.hunt.policy import TOKENS
from benchmarks.hunt.shuffled_mask import shuffled_keep
from vrag_ray.training.advantages import STD_FLOOR, ggpo_keep, group_advantages
from vrag_ray.training.algorithms.ggpo import first_finds
from vrag_ray.training.algorithms.progress import progress_advantages

if TYPE_CHECKING:
    from torch import Tensor

GIGPO_DISCOUNT = 0.95
SEARCH_TURN = TOKENS - 1
"""Tokens of a segment before the page comes."""


class Variant(StrEnum):
    """``gspo_segments`` masks nothing; ``grpo_trajectory`` also takes a whole run as one segment, by token ratio.

    ``ggpo`` is the published mask; ``ggpo_positive`` and ``ggpo_negative`` its halves; ``ggpo_search_turn`` spares
    the memorise turn; ``random_mask`` takes as many segments, but others; ``ggpo_first_find`` spares a gold page in a
    failure only the first time. ``gigpo`` (arXiv 2505.10978) compares segments of a group that start with the same
    gold pages found. ``gspo_recall`` adds the share of gold pages found to the reward and masks nothing.
    ``progress`` is ``progress.progress_advantages``; ``progress_bare`` the same without recall in the reward, and
    ``progress_unbiased`` without recall and with trace 1: a baseline that knows the graph, and nothing else.
    """

    GSPO_SEGMENTS = "gspo_segments"
    GRPO_TRAJECTORY = "grpo_trajectory"
    GGPO = "ggpo"
    GGPO_POSITIVE = "ggpo_positive"
    GGPO_NEGATIVE = "ggpo_negative"
    GGPO_SEARCH_TURN = "ggpo_search_turn"
    RANDOM_MASK = "random_mask"
    GGPO_FIRST_FIND = "ggpo_first_find"
    GIGPO = "gigpo"
    GSPO_RECALL = "gspo_recall"
    PROGRESS = "progress"
    PROGRESS_BARE = "progress_bare"
    PROGRESS_UNBIASED = "progress_unbiased"


@dataclass(frozen=True)
class Plan:
    """``advantages`` and ``keep`` [runs, turns], and which ``tokens`` [runs, turns, TOKENS] of a segment may count."""

    advantages: Tensor
    keep: Tensor
    tokens: Tensor


def plan(variant: Variant, runs: Sequence[Run], group: int, turns: int, random: Random) -> Plan:
    """What each segment is credited with; ``runs`` are groups of ``group`` next to each other."""
    import torch

    inputs = [run.credit_input() for run in runs]
    groups = [inputs[begin : begin + group] for begin in range(0, len(inputs), group)]
    tokens = torch.ones(len(runs), turns, TOKENS, dtype=torch.bool)
    if variant in (Variant.PROGRESS, Variant.PROGRESS_BARE, Variant.PROGRESS_UNBIASED):
        credited = progress_advantages(
            groups,
            recall_weight=1.0 if variant is Variant.PROGRESS else 0.0,
            trace=1.0 if variant is Variant.PROGRESS_UNBIASED else 0.8,
        )
        rows = [row for part in credited for row in part]
        return Plan(_table(rows, turns), torch.ones(len(runs), turns, dtype=torch.bool), tokens)
    rewards = torch.tensor([[_reward(variant, run) for run in runs[i : i + group]] for i in range(0, len(runs), group)])
    advantages = group_advantages(rewards).flatten().unsqueeze(1).repeat(1, turns)
    if variant is Variant.GIGPO:
        advantages += _of_anchors(runs, group, turns)
    keep = _table([torch.tensor(keep) for keep in _keeps(variant, runs, random)], turns).bool()
    if variant is Variant.GGPO_SEARCH_TURN:
        # A turn is masked, not a segment: what is left of a segment keeps the weight that its tokens had in it.
        tokens[..., :SEARCH_TURN] &= keep.unsqueeze(2)
        advantages = torch.where(keep, advantages, advantages * (TOKENS - SEARCH_TURN) / TOKENS)
        keep = torch.ones_like(keep)
    return Plan(advantages, keep, tokens)


def _reward(variant: Variant, run: Run) -> float:
    recall = len(frozenset().union(*run.found.values())) / run.gold
    return run.success + (recall if variant is Variant.GSPO_RECALL else 0.0)


def _keeps(variant: Variant, runs: Sequence[Run], random: Random) -> list[list[bool]]:
    masked = {
        Variant.GGPO: (True, False),
        Variant.GGPO_SEARCH_TURN: (True, False),
        Variant.GGPO_FIRST_FIND: (True, False),
        Variant.RANDOM_MASK: (True, False),
        Variant.GGPO_POSITIVE: (True,),
        Variant.GGPO_NEGATIVE: (False,),
    }.get(variant, ())
    keeps = []
    for run in runs:
        valuable = frozenset(run.found)
        if variant is Variant.GGPO_FIRST_FIND:
            valuable = first_finds(run.found, run.segment_nodes)
        keep = [True] * len(run.segment_nodes)
        if run.success in masked:
            keep = ggpo_keep(run.parents, run.answer_id, run.success, valuable, run.segment_nodes)
        keeps.append(keep)
    if variant is Variant.RANDOM_MASK:
        nodes, answers = [run.segment_nodes for run in runs], [run.answer_id for run in runs]
        return shuffled_keep(keeps, nodes, answers, [run.success for run in runs], random)
    return keeps


def _of_anchors(runs: Sequence[Run], group: int, turns: int) -> Tensor:
    """GiGPO's step advantage: the discounted reward against that of the group's segments from the same state."""
    import torch

    steps = torch.zeros(len(runs), turns)
    anchors: dict[tuple[int, frozenset[int]], list[tuple[int, int]]] = defaultdict(list)
    for number, run in enumerate(runs):
        known: frozenset[int] = frozenset()
        for turn, node in enumerate(run.segment_nodes):
            anchors[number // group, known].append((number, turn))
            known |= run.found.get(node, frozenset())
    for places in anchors.values():
        ahead = [len(runs[number].segment_nodes) - 1 - turn for number, turn in places]
        returns = torch.tensor(
            [runs[number].success * GIGPO_DISCOUNT**far for (number, _), far in zip(places, ahead, strict=True)]
        )
        if len(places) > 1 and float(returns.std()) > 0:
            values = (returns - returns.mean()) / (returns.std() + STD_FLOOR)
            for (number, turn), value in zip(places, values.tolist(), strict=True):
                steps[number, turn] = value
    return steps


def _table(rows: Sequence[Tensor], turns: int) -> Tensor:
    import torch
    from torch.nn.functional import pad

    return torch.stack([pad(row.float(), (0, turns - len(row))) for row in rows])
