"""What sets one policy-gradient algorithm apart from another, and what most of them start from: one advantage a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vrag_ray.training.advantages import group_advantages
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.losses import Denominator, Ratio
from vrag_ray.training.trajectory import Trajectory

TRACE, RECALL_WEIGHT = 0.8, 1.0
"""Of progress credit; see ``progress``."""


class Credit(StrEnum):
    """What a segment is (the whole ``trajectory``, else one for each node) and which ones are learnt from.

    ``ggpo`` is VimRAG's mask, ``ggpo_positive`` that mask on successes alone, ``ggpo_negative`` on failures alone.
    ``ggpo_first_find`` spares a gold page in a failure only when it is found for the first time: searching again for
    what is there keeps its price.
    ``progress`` masks nothing: each segment has an advantage of its own (``progress.progress_advantages``).
    """

    TRAJECTORY = "trajectory"
    SEGMENTS = "segments"
    GGPO = "ggpo"
    GGPO_POSITIVE = "ggpo_positive"
    GGPO_NEGATIVE = "ggpo_negative"
    GGPO_FIRST_FIND = "ggpo_first_find"
    PROGRESS = "progress"


class Algorithm(BaseModel):
    """How rewards become a loss; ``losses`` explains ratio, clips and denominator, ``advantages`` the deviation.

    ``budget`` (Dr.GRPO, with the denominator ``tokens``): divide by segments times this many tokens instead of those
    said. ``dynamic_sampling``: drop groups of equal reward and refill the batch. ``kl`` and ``entropy`` are
    coefficients. For a sampler unlike the trainer, each token's weight is trainer's by sampler's probability: capped at
    ``truncate``, or 0 outside of ``band`` (lowest and highest); without either, nothing is corrected.
    ``trace`` and ``recall_weight`` are those of progress credit. ``credit`` is a ``Credit`` or, as
    ``package.module:function``, an ``Assign`` of your own. ``cited_elements``: for GGPO's masks, a search from
    which the answer cites an element that meets a gold box is no dead end (``ggpo.mask``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: Ratio
    clip_low: float = Field(gt=0, lt=1)
    clip_high: float = Field(gt=0)
    denominator: Denominator = Denominator.ALL
    budget: int | None = Field(default=None, ge=1)
    normalize_std: bool = True
    credit: Credit | str = Field(union_mode="left_to_right")
    dynamic_sampling: bool = False
    kl: float = Field(default=0.0, ge=0)
    entropy: float = Field(default=0.0, ge=0)
    truncate: float | None = Field(default=None, gt=0)
    band: tuple[float, float] | None = None
    trace: float = Field(default=TRACE, ge=0, le=1)
    recall_weight: float = Field(default=RECALL_WEIGHT, ge=0)
    cited_elements: bool = False

    @model_validator(mode="after")
    def _budget_is_of_tokens(self) -> Algorithm:
        if self.budget is not None and self.denominator is not Denominator.TOKENS:
            raise ValueError(f"budget needs the denominator 'tokens', not {self.denominator.value!r}")
        return self

    @model_validator(mode="after")
    def _band_holds_equal_policies(self) -> Algorithm:
        if self.band is None:
            return self
        if self.truncate is not None:
            raise ValueError("truncate and band both correct for the sampler: give one of them")
        low, high = self.band
        if not 0 <= low <= 1 <= high < math.inf:
            raise ValueError(f"band {list(self.band)}: give the lowest and the highest weight of a token, around 1")
        return self

    @property
    def weight_bounds(self) -> tuple[float, float]:
        """Within which a token's weight for the sampler is what it is."""
        return self.band or (0.0, self.truncate or math.inf)

    @model_validator(mode="after")
    def _cited_elements_are_for_masks(self) -> Algorithm:
        unmasked = (Credit.TRAJECTORY, Credit.SEGMENTS, Credit.PROGRESS)
        if self.cited_elements and (not isinstance(self.credit, Credit) or self.credit in unmasked):
            raise ValueError(f"cited_elements needs a credit that masks, such as 'ggpo', not {str(self.credit)!r}")
        return self

    @model_validator(mode="after")
    def _credit_is_known_or_a_path(self) -> Algorithm:
        if not isinstance(self.credit, Credit) and ":" not in self.credit:
            raise ValueError(
                f"there is no credit {self.credit!r}: choose from {', '.join(Credit)}, or name a function as "
                "package.module:function"
            )
        return self


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
        of_graded = iter(group_advantages(rewards, normalize_std=algorithm.normalize_std).flatten().tolist())
        advantages += [0.0 if run.engine_limited else next(of_graded) for run in group]
    return advantages


Assign = Callable[[Sequence[Sequence[Trajectory]], Algorithm, Collectives], list[list[SegmentCredit]]]
"""From the groups of this rank, runs of one question each, to the credit of each run: one ``SegmentCredit`` for each
of its ``segments``, or with ``Credit.TRAJECTORY`` one for the run as a whole. A function that compares with the groups
of other ranks gathers them by ``Collectives``; every rank calls it at the same time."""
