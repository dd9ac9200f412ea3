"""What each segment of graded trajectories is credited with, and whether it is learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrag_ray.training.advantages import ggpo_keep, group_advantages
from vrag_ray.training.algorithms import Algorithm, Credit
from vrag_ray.training.credit import CreditInput, progress_advantages
from vrag_ray.training.masks import first_finds
from vrag_ray.training.ranks import Ranks
from vrag_ray.training.trajectory import Call, Trajectory


@dataclass(frozen=True, slots=True)
class Lesson:
    """A segment with what it is credited with. ``keep`` false: it counts, but nothing is learnt from it."""

    calls: tuple[Call, ...]
    advantage: float
    keep: bool

    @property
    def completion_tokens(self) -> int:
        return sum(len(call.completion_ids) for call in self.calls)


def lessons(groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, ranks: Ranks) -> list[list[Lesson]]:
    """The segments of each trajectory, in order. ``groups`` are this rank's runs of one question each, equally many.

    Progress credit compares with the groups of all ranks: there, every rank must call this at the same time.
    """
    runs = [run for group in groups for run in group]
    if algorithm.credit is Credit.PROGRESS:
        advantages = _progress(groups, algorithm, ranks)
    else:
        advantages = [
            [one] * max(len(run.calls), 1) for run, one in zip(runs, _by_group(groups, algorithm), strict=True)
        ]
    return [_lessons(run, each, algorithm) for run, each in zip(runs, advantages, strict=True)]


def kept(run: Trajectory, nodes: Sequence[str | None], credit: Credit) -> list[bool]:
    """Which segments of a run are learnt from."""
    if credit.masks(run.reward.success):
        valuable = first_finds(run.found, nodes) if credit is Credit.GGPO_FIRST_FIND else run.valuable
        return ggpo_keep(run.parents, run.answer_id, run.reward.success, valuable, nodes)
    return [True] * len(nodes)


def _lessons(run: Trajectory, advantages: Sequence[float], algorithm: Algorithm) -> list[Lesson]:
    """``advantages`` of at least as many segments as the run has."""
    if not run.calls:
        # Its time was up before the first reply: there is nothing that could be learnt from it.
        return []
    if algorithm.credit is Credit.TRAJECTORY:
        return [Lesson(run.calls, advantages[0], keep=True)]
    segments = run.segments
    keep = kept(run, [segment.node for segment in segments], algorithm.credit)
    return [Lesson(segment.calls, advantages[place], keep[place]) for place, segment in enumerate(segments)]


def _by_group(groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm) -> list[float]:
    """One advantage a run."""
    import torch

    if not groups:
        return []
    rewards = torch.tensor([[run.reward.total for run in group] for group in groups], dtype=torch.float64)
    advantages: list[float] = group_advantages(rewards, normalize_std=algorithm.normalize_std).flatten().tolist()
    return advantages


def _progress(groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, ranks: Ranks) -> list[list[float]]:
    """One advantage a segment, of each of this rank's runs."""
    everywhere = ranks.gathered([[credit_input(run) for run in group] for group in groups])
    # As ``Ranks.share`` dealt them out, so that the number of ranks changes nothing.
    places = [(row, rank) for rank, own in enumerate(everywhere) for row in range(len(own))]
    places.sort()
    if not places:
        return []
    found = progress_advantages(
        [everywhere[rank][row] for row, rank in places],
        trace=algorithm.trace,
        recall_weight=algorithm.recall_weight,
        normalize_std=algorithm.normalize_std,
    )
    return [
        advantages.tolist()
        for (_, rank), group in zip(places, found, strict=True)
        if rank == ranks.rank
        for advantages in group
    ]


def credit_input(run: Trajectory) -> CreditInput:
    """What progress credit knows of a run."""
    return CreditInput(run.reward.total, tuple(segment.node for segment in run.segments), run.found, run.gold)
