"""What sets one policy-gradient algorithm apart from another, as values, and the one loss that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vrag_ray.training import losses
from vrag_ray.training.algorithms.progress import RECALL_WEIGHT, TRACE
from vrag_ray.training.losses import Denominator, Ratio
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor


class Credit(StrEnum):
    """What a segment is (the whole ``trajectory``, else one for each node) and which ones are learnt from.

    ``ggpo`` is VimRAG's mask, ``ggpo_positive`` that mask on successes alone, ``ggpo_negative`` on failures alone.
    ``ggpo_first_find`` spares a gold page in a failure only when it is found for the first time: searching again for
    what is there keeps its price.
    ``progress`` masks nothing: each segment has an advantage of its own (``credit.progress_advantages``).
    """

    TRAJECTORY = "trajectory"
    SEGMENTS = "segments"
    GGPO = "ggpo"
    GGPO_POSITIVE = "ggpo_positive"
    GGPO_NEGATIVE = "ggpo_negative"
    GGPO_FIRST_FIND = "ggpo_first_find"
    PROGRESS = "progress"

    def masks(self, success: bool) -> bool:
        """Whether ``advantages.ggpo_keep`` applies to a trajectory of this verdict; else all its segments are kept."""
        if self in (Credit.GGPO, Credit.GGPO_FIRST_FIND):
            return True
        return self is (Credit.GGPO_POSITIVE if success else Credit.GGPO_NEGATIVE)


class Algorithm(BaseModel):
    """How rewards become a loss; ``losses`` explains ratio, clips and denominator, ``advantages`` the deviation.

    ``budget`` (Dr.GRPO, with the denominator ``tokens``): divide by segments times so many tokens instead of those
    said. ``dynamic_sampling``: drop groups of equal reward and refill the batch. ``kl`` and ``entropy`` are
    coefficients. ``truncate`` caps the weights that correct for a sampler unlike the trainer; None corrects nothing.
    ``trace`` and ``recall_weight`` are those of progress credit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: Ratio
    clip_low: float = Field(gt=0, lt=1)
    clip_high: float = Field(gt=0)
    denominator: Denominator = Denominator.ALL
    budget: int | None = Field(default=None, ge=1)
    normalize_std: bool = True
    credit: Credit
    dynamic_sampling: bool = False
    kl: float = Field(default=0.0, ge=0)
    entropy: float = Field(default=0.0, ge=0)
    truncate: float | None = Field(default=None, gt=0)
    trace: float = Field(default=TRACE, ge=0, le=1)
    recall_weight: float = Field(default=RECALL_WEIGHT, ge=0)

    @model_validator(mode="after")
    def _budget_is_of_tokens(self) -> Algorithm:
        if self.budget is not None and self.denominator is not Denominator.TOKENS:
            raise ValueError(f"budget needs the denominator 'tokens', not {self.denominator.value!r}")
        return self


_GRPO = Algorithm(ratio=Ratio.TOKEN, clip_low=0.2, clip_high=0.2, credit=Credit.TRAJECTORY)
_BY_TOKENS = _GRPO.model_copy(update={"denominator": Denominator.TOKENS})
_GSPO = Algorithm(ratio=Ratio.GEO, clip_low=3e-4, clip_high=4e-4, credit=Credit.TRAJECTORY)

ALGORITHMS = {
    # Clip and KL are those of VRAG-RL's script; the paper (arXiv 2402.03300) has KL .04 and does not state its clip.
    "grpo": _GRPO.model_copy(update={"kl": 0.01}),
    # arXiv 2503.20783. The budget, here VRAG-RL's reply length, should be sampling's limit: it only scales the loss.
    "dr_grpo": _BY_TOKENS.model_copy(update={"budget": 2048, "normalize_std": False}),
    # arXiv 2503.14476: clip .2 and .28, every token weighs the same, no KL.
    "dapo": _BY_TOKENS.model_copy(update={"clip_high": 0.28, "dynamic_sampling": True}),
    # arXiv 2507.18071: clip 3e-4 and 4e-4, which fit its length-normalised ratio alone; no KL.
    "gspo": _GSPO,
    # What VimRAG (arXiv 2602.12735) compares with, "GSPO without pruning": each node is a sample of its own.
    "gspo_segments": _GSPO.model_copy(update={"credit": Credit.SEGMENTS}),
    # VimRAG's eq. 12, divided by all segments; it states neither ratio nor clip, so those of its baseline.
    "ggpo": _GSPO.model_copy(update={"credit": Credit.GGPO}),
    # Ours (docs/ggpo.md). The mask without its cost; and the graph's credit for what each segment changed, no mask.
    "ggpo_first_find": _GSPO.model_copy(update={"credit": Credit.GGPO_FIRST_FIND}),
    "progress": _GSPO.model_copy(update={"credit": Credit.PROGRESS}),
}


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of a batch: its segments, those kept, and the tokens that the policy said in the kept ones."""

    segments: int
    kept: int
    tokens: int

    @classmethod
    def of(cls, token_mask: Tensor, keep: Tensor) -> Counts:
        kept = keep.bool()
        return cls(kept.numel(), int(kept.sum()), int(token_mask[kept].bool().sum()))

    def divisor(self, algorithm: Algorithm) -> int:
        if algorithm.budget is not None:
            return self.segments * algorithm.budget
        by_name = {Denominator.ALL: self.segments, Denominator.KEPT: self.kept, Denominator.TOKENS: self.tokens}
        return by_name[algorithm.denominator]


@dataclass(frozen=True, slots=True)
class LossParts:
    """Scalars that add up over micro-batches and ranks. Only ``total``, the value to minimise, carries a gradient.

    ``policy``, ``kl`` and ``entropy`` are without coefficients, 0 where not measured. ``clip_low`` and ``clip_high``
    are the shares of kept tokens (segments, for a segment's ratio) whose gradient clipping cut off.
    """

    total: Tensor
    policy: Tensor
    kl: Tensor
    entropy: Tensor
    clip_low: Tensor
    clip_high: Tensor


def loss(
    logp_new: Tensor,
    logp_old: Tensor,
    advantages: Tensor,
    token_mask: Tensor,
    keep: Tensor,
    algorithm: Algorithm,
    *,
    counts: Counts,
    logp_reference: Tensor | None = None,
    entropy: Tensor | None = None,
    logp_sampler: Tensor | None = None,
) -> LossParts:
    """``policy_loss + kl * k3 - entropy * H``, each summed over the same tokens and divided by the same number.

    ``logp_*``, ``entropy`` and ``token_mask`` have shape [segments, tokens], ``advantages`` and ``keep`` [segments].
    ``counts`` are of the *whole* batch, over all micro-batches and ranks: their losses then sum to that of the batch
    (where gradients are averaged over ranks, multiply by their number). ``truncate`` weighs the policy term alone.
    Raises ``VragError`` where the algorithm needs a tensor that is missing.
    """
    count, weights, cap = counts.divisor(algorithm), None, algorithm.truncate
    if cap is not None:
        weights = losses.truncated_weights(logp_old, _given(logp_sampler, "truncate", "logp_sampler"), cap)
    policy = total = losses.policy_loss(
        logp_new,
        logp_old,
        advantages,
        token_mask,
        keep,
        ratio=algorithm.ratio,
        clip_low=algorithm.clip_low,
        clip_high=algorithm.clip_high,
        denominator=algorithm.denominator,
        weights=weights,
        count=count,
    )

    def averaged(values: Tensor) -> Tensor:
        if algorithm.denominator is not Denominator.TOKENS:
            return losses.mean_over_kept(values, token_mask, keep, count=count)
        # A segment of one token has a mean that is its sum: so every token weighs the same, as in the policy term.
        tokens, each = token_mask.reshape(-1, 1), keep.repeat_interleave(token_mask.shape[1])
        return losses.mean_over_kept(values.reshape(-1, 1), tokens, each, count=count)

    kl = bonus = policy.detach().new_zeros(())
    if algorithm.kl or logp_reference is not None:
        kl = averaged(losses.k3(logp_new, _given(logp_reference, "kl", "logp_reference")))
    if algorithm.entropy or entropy is not None:
        bonus = averaged(_given(entropy, "entropy", "entropy"))
    # What has no coefficient is only measured: times 0 it would still cost a backward pass, and carry a NaN through.
    if algorithm.kl:
        total = total + algorithm.kl * kl
    if algorithm.entropy:
        total = total - algorithm.entropy * bonus
    low, high = _clip_shares(logp_new.detach(), logp_old, advantages, token_mask, keep, algorithm, counts)
    return LossParts(total, policy.detach(), kl.detach(), bonus.detach(), low, high)


def _clip_shares(
    logp_new: Tensor,
    logp_old: Tensor,
    advantages: Tensor,
    token_mask: Tensor,
    keep: Tensor,
    algorithm: Algorithm,
    counts: Counts,
) -> tuple[Tensor, Tensor]:
    mask = token_mask.bool() & keep.bool().unsqueeze(1)
    log_ratio = losses.gspo_token_log_ratio(logp_new, logp_old, mask)
    if algorithm.ratio is Ratio.TOKEN:
        log_ratio = (logp_new - logp_old).masked_fill(~mask, 0.0)
    elif algorithm.ratio is Ratio.RAW:
        log_ratio = log_ratio * mask.sum(dim=1, keepdim=True)
    weight, advantage = log_ratio.exp(), advantages.unsqueeze(1)
    low = mask & (advantage < 0) & (weight < 1 - algorithm.clip_low)
    high = mask & (advantage > 0) & (weight > 1 + algorithm.clip_high)
    if algorithm.ratio is Ratio.TOKEN:
        return low.sum() / max(counts.tokens, 1), high.sum() / max(counts.tokens, 1)
    return low.any(dim=1).sum() / max(counts.kept, 1), high.any(dim=1).sum() / max(counts.kept, 1)


def _given(value: Tensor | None, setting: str, name: str) -> Tensor:
    if value is None:
        raise VragError(f"the algorithm's {setting!r} needs {name}: give it, or set {setting!r} to nothing")
    return value
