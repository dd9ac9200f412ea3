"""GRPO and what differs from it in the loss alone, Dr.GRPO and DAPO: the whole run is one sample with one advantage."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.training.algorithms.algorithm import Algorithm, Credit, SegmentCredit, run_advantages
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.losses import Denominator, Ratio
from vrag_ray.training.trajectory import Trajectory

PRESETS = {
    # Clip and KL are those of VRAG-RL's script; the paper (arXiv 2402.03300) has KL .04 and does not state its clip.
    "grpo": Algorithm(ratio=Ratio.TOKEN, clip_low=0.2, clip_high=0.2, credit=Credit.TRAJECTORY, kl=0.01),
    # arXiv 2503.20783. The budget, here VRAG-RL's reply length, should be sampling's limit: it only scales the loss.
    "dr_grpo": Algorithm(
        ratio=Ratio.TOKEN,
        clip_low=0.2,
        clip_high=0.2,
        credit=Credit.TRAJECTORY,
        denominator=Denominator.TOKENS,
        budget=2048,
        normalize_std=False,
    ),
    # arXiv 2503.14476: clip .2 and .28, every token weighs the same, no KL.
    "dapo": Algorithm(
        ratio=Ratio.TOKEN,
        clip_low=0.2,
        clip_high=0.28,
        credit=Credit.TRAJECTORY,
        denominator=Denominator.TOKENS,
        dynamic_sampling=True,
    ),
}


def assign(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, _ranks: Collectives
) -> list[list[SegmentCredit]]:
    """One credit a run, for all its replies."""
    return [[SegmentCredit(advantage)] for advantage in run_advantages(groups, algorithm)]
