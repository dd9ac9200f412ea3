"""Gradients of the variants at a policy that stands still: how far they point astray, and how noisy they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from benchmarks.hunt.graphs import runs_of
from benchmarks.hunt.learning import credited_loss, seeded
from benchmarks.hunt.policy import Do, HuntPolicy, turn_logp
from benchmarks.hunt.rollout import Rollouts, play, step_logp
from benchmarks.hunt.variants import Variant, plan
from benchmarks.hunt.world import HuntConfig, draw_questions

if TYPE_CHECKING:
    from torch import Tensor

TRUE = "true"
"""The name under which the policy gradient of success itself stands beside the variants."""


@dataclass(frozen=True)
class GradientFigures:
    """One variant's gradient (in the direction of ascent), estimated from batches of the size that training uses.

    ``cosine``: of its expectation with the gradient of success, freed of sampling noise by halves of the batches that
    share nothing. ``noise``: variance of a batch's gradient, all parameters together, over the square of the
    expectation. ``batch_cosine``: mean cosine of a single batch's gradient with the gradient of success.
    ``search_again``: cosine of the expectation with the direction in which, where the gold leaf is in memory, the
    log-odds of searching on against answering rise fastest; ``search_again_error`` is its standard error.
    """

    variant: str
    cosine: float
    noise: float
    batch_cosine: float
    search_again: float
    search_again_error: float


def measure_gradients(
    policy: HuntPolicy,
    config: HuntConfig,
    variants: Sequence[Variant],
    *,
    batches: int,
    groups: int,
    size: int,
    seed: int,
) -> list[GradientFigures]:
    """Figures of each variant over the same ``batches``, the gradient of success first. ``batches`` must be even.

    The gradient of success is that of ``sum_t log p(token) * (R - mean of the group)``, all tokens alike.
    """
    import torch

    generator, random = seeded(seed, 6), Random(seed)
    gathered: dict[str, list[Tensor]] = {TRUE: [], **{str(variant): [] for variant in variants}}
    probes = []
    everyone = torch.ones(groups * size, dtype=torch.bool)
    for _ in range(batches):
        rollouts = play(draw_questions(config, groups, generator).repeat(size), policy, generator)
        runs = runs_of(rollouts)
        probes.append(_direction(policy, search_again_odds(policy, rollouts)))
        logp = torch.cat([step_logp(policy, step) for step in rollouts.steps])
        reward = torch.tensor([float(run.success) for run in runs]).view(groups, size)
        centred = (reward - reward.mean(dim=1, keepdim=True)).flatten()[rollouts.runs()]
        gathered[TRUE].append(_direction(policy, (logp.sum(dim=1) * centred).sum() / len(runs)))
        for variant in variants:
            planned = plan(variant, runs, size, config.max_steps, random)
            value = -credited_loss(logp, rollouts, planned, variant, everyone)
            gathered[str(variant)].append(_direction(policy, value))
    probe = torch.stack(probes).mean(dim=0)
    true = torch.stack(gathered[TRUE])
    return [_figures(name, torch.stack(each), true, probe) for name, each in gathered.items()]


def search_again_odds(policy: HuntPolicy, rollouts: Rollouts) -> Tensor:
    """Mean of ``log p(search) - log p(answer)`` over the turns before which the gold leaf was in memory: a scalar."""
    import torch

    memory = rollouts.memory
    is_leaf = memory.gold_place == (rollouts.questions.hops - 1).unsqueeze(1)
    has_leaf = (is_leaf & memory.memorised).long().cumsum(dim=1) > 0
    odds = []
    for number, step in enumerate(rollouts.steps[1:], start=1):
        rows = has_leaf[step.runs, number - 1].nonzero().squeeze(1)
        if len(rows):
            do = turn_logp(policy, step.sight.take(rows)).do
            odds.append(do[:, Do.SEARCH] - do[:, Do.ANSWER])
    return torch.cat(odds).mean() if odds else torch.zeros((), requires_grad=True)


def _direction(policy: HuntPolicy, value: Tensor) -> Tensor:
    import torch

    parts = torch.autograd.grad(
        value, policy.parameters(), retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return torch.cat([part.flatten() for part in parts])


def _figures(name: str, each: Tensor, true: Tensor, probe: Tensor) -> GradientFigures:
    """``each`` and ``true`` are [batches, parameters]; products of different batches have no noise in expectation."""
    from torch.nn.functional import cosine_similarity

    count = len(each)
    even, odd = each[::2].mean(dim=0), each[1::2].mean(dim=0)
    true_even, true_odd = true[::2].mean(dim=0), true[1::2].mean(dim=0)
    square = max(float(even @ odd), 1e-20)
    true_square = max(float(true_even @ true_odd), 1e-20)
    across = float(even @ true_odd + odd @ true_even) / 2
    spread = float((each - each.mean(dim=0)).square().sum()) / (count - 1)
    alone = cosine_similarity(each[::2], true_odd.unsqueeze(0)).mean()
    alone = (alone + cosine_similarity(each[1::2], true_even.unsqueeze(0)).mean()) / 2
    along = each @ (probe / probe.norm().clamp(min=1e-20)) / math.sqrt(square)
    return GradientFigures(
        variant=name,
        cosine=across / math.sqrt(square * true_square),
        noise=spread / square,
        batch_cosine=float(alone),
        search_again=float(along.mean()),
        search_again_error=float(along.std()) / math.sqrt(count),
    )
