"""Each node of the graph is a sample of its own, with its run's advantage: what VimRAG compares GGPO with."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.segment_credit import SegmentCredit, run_advantages
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Trajectory


def assign(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, _ranks: Collectives
) -> list[list[SegmentCredit]]:
    """The run's advantage for each of its segments."""
    runs = [run for group in groups for run in group]
    advantages = run_advantages(groups, algorithm)
    return [[SegmentCredit(advantage)] * len(run.segments) for run, advantage in zip(runs, advantages, strict=True)]
