"""What an algorithm says of each segment, and what most of them start from: one advantage a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrag_ray.training.advantages import group_advantages
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class SegmentCredit:
    """``keep`` false: the segment counts in the denominator, but nothing is learnt from it."""

    advantage: float
    keep: bool = True


def graded(group: Sequence[Trajectory]) -> list[Trajectory]:
    """Those that the engine's limits did not cut short: the others teach nothing and are compared with none."""
    return [run for run in group if not run.engine_limited]


def run_advantages(groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm) -> list[float]:
    """The group-normalised advantage of each run, in order; 0 for those without a grade."""
    import torch

    advantages: list[float] = []
    for group in groups:
        rewards = torch.tensor([[run.reward.total for run in graded(group)]], dtype=torch.float64)
        if not rewards.numel():
            advantages += [0.0] * len(group)
            continue
        found = iter(group_advantages(rewards, normalize_std=algorithm.normalize_std).flatten().tolist())
        advantages += [0.0 if run.engine_limited else next(found) for run in group]
    return advantages
