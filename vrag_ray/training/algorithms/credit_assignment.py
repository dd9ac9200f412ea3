"""What each segment of graded trajectories is credited with, and whether it is learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrag_ray.training.advantages import ggpo_keep, group_advantages
from vrag_ray.training.algorithms.algorithm import Algorithm, Credit
from vrag_ray.training.algorithms.masks import first_finds
from vrag_ray.training.algorithms.progress import CreditInput, progress_advantages
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Call, Trajectory


@dataclass(frozen=True, slots=True)
class TrainSample:
    """A segment with what it is credited with. ``keep`` false: it counts, but nothing is learnt from it."""

    calls: tuple[Call, ...]
    advantage: float
    keep: bool

    @property
    def completion_tokens(self) -> int:
        return sum(len(call.completion_ids) for call in self.calls)


def train_samples(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, ranks: Collectives
) -> list[list[TrainSample]]:
    """The segments of each trajectory, in order. ``groups`` are this rank's runs of one question each, equally many.

    Runs that the engine's limits cut short teach nothing and are compared with none: a group is then smaller.
    Progress credit compares with the groups of all ranks: there, every rank must call this at the same time.
    """
    runs = [run for group in groups for run in group]
    if algorithm.credit is Credit.PROGRESS:
        advantages = _progress(groups, algorithm, ranks)
    else:
        advantages = [
            [one] * max(len(run.calls), 1) for run, one in zip(runs, _by_group(groups, algorithm), strict=True)
        ]
    return [_of_run(run, each, algorithm) for run, each in zip(runs, advantages, strict=True)]


def kept(run: Trajectory, nodes: Sequence[str | None], credit: Credit) -> list[bool]:
    """Which segments of a run are learnt from."""
    if credit.masks(run.reward.success):
        valuable = first_finds(run.found, nodes) if credit is Credit.GGPO_FIRST_FIND else run.valuable
        return ggpo_keep(run.parents, run.answer_id, run.reward.success, valuable, nodes)
    return [True] * len(nodes)


def _of_run(run: Trajectory, advantages: Sequence[float], algorithm: Algorithm) -> list[TrainSample]:
    """``advantages`` of at least as many segments as the run has."""
    if run.engine_limited:
        return []
    if not run.calls:
        # Its time was up before the first reply: there is nothing that could be learnt from it.
        return []
    if algorithm.credit is Credit.TRAJECTORY:
        return [TrainSample(run.calls, advantages[0], keep=True)]
    segments = run.segments
    keep = kept(run, [segment.node for segment in segments], algorithm.credit)
    return [TrainSample(segment.calls, advantages[place], keep[place]) for place, segment in enumerate(segments)]


def _by_group(groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm) -> list[float]:
    """One advantage a run; 0 for those without a grade."""
    import torch

    advantages: list[float] = []
    for group in groups:
        rewards = torch.tensor([[run.reward.total for run in _graded(group)]], dtype=torch.float64)
        if not rewards.numel():
            advantages += [0.0] * len(group)
            continue
        found = iter(group_advantages(rewards, normalize_std=algorithm.normalize_std).flatten().tolist())
        advantages += [0.0 if run.engine_limited else next(found) for run in group]
    return advantages


def _graded(group: Sequence[Trajectory]) -> list[Trajectory]:
    return [run for run in group if not run.engine_limited]


def _progress(groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, ranks: Collectives) -> list[list[float]]:
    """One advantage a segment, of each of this rank's runs; none of a run without a grade."""
    everywhere = ranks.gathered([[credit_input(run) for run in _graded(group)] for group in groups])
    # As ``Collectives.share`` dealt them out, so that the number of ranks changes nothing.
    places = sorted((row, rank) for rank, own in enumerate(everywhere) for row in range(len(own)))
    # Values are compared within groups of one size: where the engine cut runs short, groups differ.
    sizes = {len(everywhere[rank][row]) for row, rank in places} - {0}
    own: dict[int, list[list[float]]] = {}
    for size in sorted(sizes):
        alike = [(row, rank) for row, rank in places if len(everywhere[rank][row]) == size]
        found = progress_advantages(
            [everywhere[rank][row] for row, rank in alike],
            trace=algorithm.trace,
            recall_weight=algorithm.recall_weight,
            normalize_std=algorithm.normalize_std,
        )
        for (row, rank), group in zip(alike, found, strict=True):
            if rank == ranks.rank:
                own[row] = [advantages.tolist() for advantages in group]
    return [[] if run.engine_limited else own[row].pop(0) for row, group in enumerate(groups) for run in group]


def credit_input(run: Trajectory) -> CreditInput:
    """What progress credit knows of a run."""
    return CreditInput(run.reward.total, tuple(segment.node for segment in run.segments), run.found, run.gold)
