"""From samples to an optimiser step: the gradient of all of them.

Everything is divided by sizes of the whole batch over all ranks, so neither micro-batches nor the number of workers
change a step by more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.credit_assignment import TrainSample
from vrag_ray.training.algorithms.loss import Counts, loss, ratios
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.losses import k3, sampler_weights
from vrag_ray.training.trainer.batch import Batch, collate, parts
from vrag_ray.training.trainer.dummy_forward import Reference, dummy_forward, passes_behind
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.training.trainer.scorer import Scorer
from vrag_ray.training.trajectory import Call

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Update:
    """One optimiser step, over all ranks. ``tokens`` are those that were learnt from: kept, of groups that teach.

    ``gap_mean`` and ``gap_max``: |log p of sampler - of trainer| over those tokens; ``gap_kl``: the estimate by ``k3``
    of KL(sampler | trainer); ``effective``: the effective sample size ``(sum w)^2 / (n * sum w^2)`` of their weights
    ``w``, trainer's by sampler's probability; ``truncated``: the share of them whose weight ``truncate`` or ``band``
    cut. ``ratio_min`` and ``ratio_max`` are those that clipping looks at. All 0 without tokens, and ``effective`` where
    all weights are.
    """

    loss: float
    policy: float
    kl: float
    entropy: float
    clip_low: float
    clip_high: float
    gap_mean: float
    gap_max: float
    gap_kl: float
    effective: float
    truncated: float
    ratio_min: float
    ratio_max: float
    grad_norm: float
    lr: float
    tokens: int
    kept_tokens: int
    segments: int
    kept_segments: int


class Learner:
    """Turns samples into steps of ``optimizer``. ``reference`` scores the frozen model for the KL term."""

    def __init__(
        self,
        scorer: Scorer,
        optimizer: Optimizer,
        pixels: Pixels,
        ranks: Collectives,
        *,
        pad_id: int,
        tokens_per_batch: int,
        reference: Reference | None = None,
    ) -> None:
        self._scorer = scorer
        self._optimizer = optimizer
        self._pixels = pixels
        self._ranks = ranks
        self._pad_id = pad_id
        self._budget = tokens_per_batch
        self._reference = reference

    def update(self, batches: Sequence[Sequence[TrainSample]], algorithm: Algorithm) -> list[Update]:
        """One optimiser step for each of ``batches``, all sampled from the weights as they are now."""
        if len(batches) == 1:
            # The only step is on the very weights that sampled: their log-probs are those of the step itself.
            return [self._step(batches[0], algorithm, None)]
        old = [self._scored(batch) for batch in batches]
        return [self._step(batch, algorithm, before) for batch, before in zip(batches, old, strict=True)]

    def gap(self, samples: Sequence[TrainSample]) -> tuple[float, float]:
        """Mean and maximum of |log p of sampler - of trainer| over all completion tokens of all ranks."""
        total, largest, count = 0.0, 0.0, 0
        for number, scored in enumerate(self._scored(samples)):
            sampled = _sampler_logps(samples[number].calls)
            apart = (scored - sampled).abs()
            total, largest, count = total + float(apart.sum()), max(largest, float(apart.max())), count + len(apart)
        total, tokens = self._ranks.sums((total, count))
        return total / max(tokens, 1.0), self._ranks.maxima((largest,))[0]

    def _step(self, batch: Sequence[TrainSample], algorithm: Algorithm, old: Sequence[Tensor] | None) -> Update:
        import torch

        counts = self._counts(batch)
        sums = [0.0] * 12
        # The largest gap and ratio, and the smallest ratio.
        largest = [0.0, 0.0, -math.inf]
        lowest, highest = algorithm.weight_bounds
        # What cannot change the gradient is counted, but not computed.
        always = algorithm.kl > 0 or algorithm.entropy > 0
        live = [number for number, sample in enumerate(batch) if sample.keep and (sample.advantage != 0 or always)]
        passes = self._parts([batch[number] for number in live])
        behind = passes_behind(self._scorer, self._ranks, len(passes))
        for part in passes:
            numbers = [live[place] for place in part]
            chosen = [batch[number] for number in numbers]
            logp, entropy = self._matrices(chosen)
            mask = _mask(chosen, logp.shape[1]).to(logp.device)
            sampler = _padded([_sampler_logps(sample.calls) for sample in chosen], logp.shape[1]).to(logp)
            before = logp.detach() if old is None else _padded([old[number] for number in numbers], logp.shape[1])
            done = loss(
                logp,
                before.to(logp),
                torch.tensor([sample.advantage for sample in chosen], dtype=logp.dtype, device=logp.device),
                mask,
                torch.tensor([sample.keep for sample in chosen], device=logp.device),
                algorithm,
                counts=counts,
                logp_reference=self._reference_logps(chosen) if algorithm.kl else None,
                entropy=entropy,
                logp_sampler=sampler,
            )
            torch.autograd.backward(done.total)
            gap = ((before.to(logp) - sampler) * mask).detach()
            apart, weight = gap.abs(), sampler_weights(before.to(logp), sampler) * mask
            cut = ((weight < lowest) | (weight > highest)) & mask
            kl = k3(torch.zeros_like(gap), gap)
            measured = (done.total, done.policy, done.kl, done.entropy, done.clip_low, done.clip_high)
            weights = (weight.sum(), weight.square().sum())
            for place, value in enumerate((*measured, apart.sum(), kl.sum(), cut.sum(), *weights, mask.sum())):
                sums[place] += float(value.detach())
            ratio = ratios(logp.detach(), before.to(logp), mask, algorithm.ratio)
            smallest = ratio.masked_fill(~mask, math.inf).min()
            extremes = (apart.max(), ratio.masked_fill(~mask, 0.0).max(), -smallest)
            largest = [max(known, float(value)) for known, value in zip(largest, extremes, strict=True)]
        dummy_forward(self._scorer, self._pixels, self._pad_id, behind, self._reference if algorithm.kl else None)
        totals = self._ranks.sums(sums)
        gap_max, ratio_max, ratio_low = self._ranks.maxima(largest)
        tokens = totals[11]
        grad_norm = self._optimizer.step()
        return Update(
            loss=totals[0],
            policy=totals[1],
            kl=totals[2],
            entropy=totals[3],
            clip_low=totals[4],
            clip_high=totals[5],
            gap_mean=totals[6] / max(tokens, 1.0),
            gap_max=gap_max,
            gap_kl=totals[7] / max(tokens, 1.0),
            effective=totals[9] ** 2 / (tokens * totals[10]) if totals[10] else 0.0,
            truncated=totals[8] / max(tokens, 1.0),
            ratio_min=-ratio_low if tokens else 0.0,
            ratio_max=ratio_max,
            grad_norm=grad_norm,
            lr=self._optimizer.lr,
            tokens=int(tokens),
            kept_tokens=counts.tokens,
            segments=counts.segments,
            kept_segments=counts.kept,
        )

    def _counts(self, batch: Sequence[TrainSample]) -> Counts:
        own = (
            len(batch),
            sum(sample.keep for sample in batch),
            sum(sample.completion_tokens for sample in batch if sample.keep),
        )
        segments, counted, tokens = self._ranks.sums(own)
        return Counts(int(segments), int(counted), int(tokens))

    def _parts(self, batch: Sequence[TrainSample]) -> list[list[int]]:
        return list(parts([[call.tokens for call in sample.calls] for sample in batch], self._budget))

    def _matrices(self, chosen: Sequence[TrainSample]) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies, [segments, tokens]: the completions of a segment's calls side by side."""
        scores = self._scorer(self._batch(chosen))
        lengths = [sample.completion_tokens for sample in chosen]
        return _split(scores.logp, lengths), _split(scores.entropy, lengths)

    def _scored(self, batch: Sequence[TrainSample]) -> list[Tensor]:
        """Log-probs by sample, without gradient."""
        import torch

        logps: dict[int, Tensor] = {}
        with torch.no_grad():
            passes = self._parts(batch)
            behind = passes_behind(self._scorer, self._ranks, len(passes))
            for part in passes:
                chosen = [batch[number] for number in part]
                logp = self._scorer(self._batch(chosen)).logp
                logps.update(
                    zip(part, torch.split(logp.cpu(), [sample.completion_tokens for sample in chosen]), strict=True)
                )
            dummy_forward(self._scorer, self._pixels, self._pad_id, behind)
        return [logps[number] for number in range(len(batch))]

    def _reference_logps(self, chosen: Sequence[TrainSample]) -> Tensor:
        import torch

        if self._reference is None:
            raise ValueError("the algorithm has a KL term and the learner no reference model")
        with torch.no_grad():
            logp = self._reference(self._batch(chosen)).logp
        return _split(logp, [sample.completion_tokens for sample in chosen])

    def _batch(self, chosen: Sequence[TrainSample]) -> Batch:
        calls = [call for sample in chosen for call in sample.calls]
        return collate(calls, self._pixels, self._pad_id).to(self._scorer.device)


def _split(values: Tensor, lengths: list[int]) -> Tensor:
    """[segments, tokens] of the values of all segments one after the other."""
    import torch

    return _padded(torch.split(values, lengths), max(lengths))


def _padded(rows: Sequence[Tensor], width: int) -> Tensor:
    import torch
    from torch.nn.functional import pad

    return torch.stack([pad(row, (0, width - len(row))) for row in rows])


def _mask(chosen: Sequence[TrainSample], width: int) -> Tensor:
    import torch

    lengths = torch.tensor([sample.completion_tokens for sample in chosen])
    return torch.arange(width).unsqueeze(0) < lengths.unsqueeze(1)


def _sampler_logps(calls: Sequence[Call]) -> Tensor:
    import torch

    return torch.tensor([value for call in calls for value in call.logprobs])
