"""Policy-gradient losses over segments. Pure tensor functions; every shape is [segments, tokens] or [segments].

A *segment* is what a policy generated for one node of its memory graph, or a whole response where there is no graph.
``m(w, A) = min(w * A, clip(w, 1 - clip_low, 1 + clip_high) * A)`` is PPO's clipped term (arXiv 1707.06347, eq. 7).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_LOG_RATIO = 20.0
"""Beyond it a ratio is as good as infinite; the bound keeps exp finite, and so the gradient of what was not clipped."""


class Ratio(StrEnum):
    """What is clipped.

    ``token``: ``exp(d_t)`` of each token (GRPO, DAPO). ``geo``: ``exp(mean_t d_t)`` of the segment (GSPO, arXiv
    2507.18071, eq. 7; GGPO's default). ``raw``: ``exp(sum_t d_t)`` (VimRAG's eq. 12 to the letter), with
    ``d_t = logp_new - logp_old``.
    """

    TOKEN = "token"  # noqa: S105  the field's word for it
    GEO = "geo"
    RAW = "raw"


class Denominator(StrEnum):
    """What the sum is divided by: ``all`` segments, those that are ``kept``, or the ``tokens`` of those (DAPO)."""

    ALL = "all"
    KEPT = "kept"
    TOKENS = "tokens"


def policy_loss(
    logp_new: Tensor,
    logp_old: Tensor,
    advantages: Tensor,
    token_mask: Tensor,
    keep: Tensor,
    *,
    ratio: str = Ratio.GEO,
    clip_low: float,
    clip_high: float,
    denominator: str = Denominator.ALL,
    weights: Tensor | None = None,
    count: float | None = None,
) -> Tensor:
    """The value to minimise: ``-1/N * sum over kept segments of their term``, a scalar.

    ``logp_new``, ``logp_old`` and ``token_mask`` (1 on tokens that the policy generated) have shape [segments, tokens];
    ``advantages`` and ``keep`` [segments]. A segment's term is ``m(w, A)``, and for ``token`` the mean of its tokens'
    terms; with the denominator ``tokens`` each term counts as often as the segment has tokens. ``weights``
    ([segments, tokens], no gradient) multiply each token's term, for example ``truncated_weights``.

    Segments that are not kept are inert: whatever they hold, NaN included, changes neither value nor gradient. So is
    what ``token_mask`` leaves out. ``count`` is N where the batch is spread over micro-batches or ranks, which must all
    divide by the same number; by default it is counted here.
    """
    import torch

    counted = keep.bool()
    mask = token_mask[counted].bool()
    lengths = mask.sum(dim=1)
    # Chosen before anything is computed: a product with 0 would let NaN through.
    nothing = torch.zeros((), dtype=logp_new.dtype, device=logp_new.device)
    delta = torch.where(mask, logp_new[counted], nothing) - torch.where(mask, logp_old[counted], nothing)
    advantage = advantages[counted].to(delta.dtype).unsqueeze(1)
    each = torch.where(mask, torch.ones_like(delta), nothing)
    if weights is not None:
        each = torch.where(mask, weights[counted].to(delta.dtype), nothing)
    match Ratio(ratio):
        case Ratio.TOKEN:
            log_ratio = delta
        case Ratio.GEO:
            log_ratio = (delta.sum(dim=1) / lengths.clamp(min=1)).unsqueeze(1).expand_as(delta)
        case Ratio.RAW:
            log_ratio = delta.sum(dim=1, keepdim=True).expand_as(delta)
    terms = clipped(log_ratio, advantage, clip_low, clip_high) * each
    by_tokens = Denominator(denominator) is Denominator.TOKENS
    segment_terms = terms.sum(dim=1) if by_tokens else terms.sum(dim=1) / lengths.clamp(min=1)
    if count is None:
        counts = {
            Denominator.ALL: keep.numel(),
            Denominator.KEPT: int(counted.sum()),
            Denominator.TOKENS: int(lengths.sum()),
        }
        count = float(counts[Denominator(denominator)])
    return -segment_terms.sum() / max(count, 1.0)


def clipped(log_ratio: Tensor, advantages: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """``m(exp(log_ratio), A)``, elementwise with broadcasting."""
    import torch

    weight = torch.exp(log_ratio.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))
    return torch.minimum(weight * advantages, weight.clamp(1 - clip_low, 1 + clip_high) * advantages)


def gspo_token_log_ratio(logp_new: Tensor, logp_old: Tensor, token_mask: Tensor) -> Tensor:
    """``log s_t = sg[log s] + logp_new - sg[logp_new]``: GSPO's ratio in value, each token's own in gradient.

    arXiv 2507.18071, eq. 14; for advantages that differ from token to token. Shape [segments, tokens]; 0 off the mask.
    """
    import torch

    mask = token_mask.bool()
    nothing = torch.zeros((), dtype=logp_new.dtype, device=logp_new.device)
    new = torch.where(mask, logp_new, nothing)
    delta = (new - torch.where(mask, logp_old, nothing)).detach()
    mean = delta.sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.where(mask, mean + new - new.detach(), nothing)


def k3(logp_new: Tensor, logp_reference: Tensor) -> Tensor:
    """Of each token ``exp(d) - d - 1`` with ``d = logp_reference - logp_new``.

    An unbiased estimate of KL(new | reference) that is never negative (GRPO, arXiv 2402.03300, eq. 4).
    """
    import torch

    delta = (logp_reference - logp_new).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
    return torch.exp(delta) - delta - 1


def mean_over_kept(values: Tensor, token_mask: Tensor, keep: Tensor, *, count: float | None = None) -> Tensor:
    """The sum over kept segments of the mean over their tokens, divided by the number of all segments (or ``count``).

    For KL and entropy: masked and weighted exactly as ``policy_loss`` with the denominator ``all``.
    """
    import torch

    counted = keep.bool()
    mask = token_mask[counted].bool()
    chosen = torch.where(mask, values[counted], torch.zeros((), dtype=values.dtype, device=values.device))
    means = chosen.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    return means.sum() / max(float(keep.numel()) if count is None else count, 1.0)


def sampler_weights(logp_trainer: Tensor, logp_sampler: Tensor) -> Tensor:
    """``exp(logp_trainer - logp_sampler)`` of each token, without gradient."""
    return (logp_trainer - logp_sampler).detach().clamp(max=LARGEST_LOG_RATIO).exp()


def truncated_weights(logp_trainer: Tensor, logp_sampler: Tensor, cap: float) -> Tensor:
    """``min(exp(logp_trainer - logp_sampler), cap)`` of each token, without gradient.

    Corrects for a sampler whose probabilities differ from the trainer's of the same weights (truncated importance
    sampling); ``logp_trainer`` is that of the weights that sampled.
    """
    return sampler_weights(logp_trainer, logp_sampler).clamp(max=cap)


def banded_weights(logp_trainer: Tensor, logp_sampler: Tensor, low: float, high: float) -> Tensor:
    """``exp(logp_trainer - logp_sampler)`` of each token where that lies in [low, high], else 0; without gradient.

    Where sampler and trainer are too far apart the token is not corrected but left out (IcePop, arXiv 2510.18855).
    """
    import torch

    weights = sampler_weights(logp_trainer, logp_sampler)
    return torch.where((weights >= low) & (weights <= high), weights, torch.zeros_like(weights))
