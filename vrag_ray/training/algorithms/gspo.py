"""GSPO: ratio and clip of a whole sequence, normalised by its length (arXiv 2507.18071).

``gspo`` takes a run as its sequence and is assigned as GRPO is; ``gspo_segments`` takes each node of the memory graph,
which VimRAG (arXiv 2602.12735) compares GGPO with, "GSPO without pruning".
"""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.training.algorithms.algorithm import Algorithm, Credit, SegmentCredit, run_advantages
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.losses import Ratio
from vrag_ray.training.trajectory import Trajectory

CLIP_LOW, CLIP_HIGH = 3e-4, 4e-4
"""They fit the length-normalised ratio alone."""


def of_sequences(credit: Credit | str, *, cited_elements: bool = False) -> Algorithm:
    """GSPO's ratio and clip without KL, with a credit of its own."""
    return Algorithm(
        ratio=Ratio.GEO, clip_low=CLIP_LOW, clip_high=CLIP_HIGH, credit=credit, cited_elements=cited_elements
    )


PRESETS = {"gspo": of_sequences(Credit.TRAJECTORY), "gspo_segments": of_sequences(Credit.SEGMENTS)}


def assign_segments(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, _ranks: Collectives
) -> list[list[SegmentCredit]]:
    """The run's advantage for each of its segments."""
    runs = [run for group in groups for run in group]
    advantages = run_advantages(groups, algorithm)
    return [[SegmentCredit(advantage)] * len(run.segments) for run, advantage in zip(runs, advantages, strict=True)]
