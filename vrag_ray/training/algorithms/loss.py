"""The one loss that all algorithms share: policy term, KL term, entropy bonus, and what clipping took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.training import losses
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.losses import Denominator, Ratio
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of a batch: its segments, those that are not masked, and the policy's tokens in these."""

    segments: int
    kept: int
    tokens: int

    @classmethod
    def of(cls, token_mask: Tensor, keep: Tensor) -> Counts:
        counted = keep.bool()
        return cls(counted.numel(), int(counted.sum()), int(token_mask[counted].bool().sum()))

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
    (where gradients are averaged over ranks, multiply by their number). ``truncate`` and ``band`` weigh the policy term
    alone.
    Raises ``VragError`` where the algorithm needs a tensor that is missing.
    """
    count, weights = counts.divisor(algorithm), None
    if algorithm.truncate is not None:
        sampler = _given(logp_sampler, "truncate", "logp_sampler")
        weights = losses.truncated_weights(logp_old, sampler, algorithm.truncate)
    elif algorithm.band is not None:
        weights = losses.banded_weights(logp_old, _given(logp_sampler, "band", "logp_sampler"), *algorithm.band)
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
    weight, advantage = ratios(logp_new, logp_old, mask, algorithm.ratio), advantages.unsqueeze(1)
    low = mask & (advantage < 0) & (weight < 1 - algorithm.clip_low)
    high = mask & (advantage > 0) & (weight > 1 + algorithm.clip_high)
    if algorithm.ratio is Ratio.TOKEN:
        return low.sum() / max(counts.tokens, 1), high.sum() / max(counts.tokens, 1)
    return low.any(dim=1).sum() / max(counts.kept, 1), high.any(dim=1).sum() / max(counts.kept, 1)


def ratios(logp_new: Tensor, logp_old: Tensor, mask: Tensor, ratio: Ratio) -> Tensor:
    """What clipping compares with its bounds, of each token, [segments, tokens]; 1 off the mask."""
    log_ratio = losses.gspo_token_log_ratio(logp_new, logp_old, mask)
    if ratio is Ratio.TOKEN:
        log_ratio = (logp_new - logp_old).masked_fill(~mask, 0.0)
    elif ratio is Ratio.RAW:
        log_ratio = log_ratio * mask.sum(dim=1, keepdim=True)
    return log_ratio.exp()


def _given(value: Tensor | None, setting: str, name: str) -> Tensor:
    if value is None:
        raise VragError(f"the algorithm's {setting!r} needs {name}: give it, or set {setting!r} to nothing")
    return value
