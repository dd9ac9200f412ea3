"""GRPO, Dr.GRPO, DAPO and GSPO: the whole run is one sample with one advantage."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.segment_credit import SegmentCredit, run_advantages
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Trajectory


def assign(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, _ranks: Collectives
) -> list[list[SegmentCredit]]:
    """One credit a run, for all that it said."""
    return [[SegmentCredit(advantage)] for advantage in run_advantages(groups, algorithm)]
