"""Imitation of a noisy expert, then reinforcement learning with any of the variants. Deterministic by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from benchmarks.hunt.expert import Expert
from benchmarks.hunt.graphs import Run, runs_of
from benchmarks.hunt.policy import TOKENS, HuntPolicy, new_policy
from benchmarks.hunt.rollout import Rollouts, play, step_logp
from benchmarks.hunt.variants import Plan, Variant, plan
from benchmarks.hunt.world import HuntConfig, draw_questions
from vrag_ray.training.advantages import ancestors
from vrag_ray.training.algorithms.ggpo import first_finds
from vrag_ray.training.losses import Ratio, policy_loss

if TYPE_CHECKING:
    from torch import Generator, Tensor

BLUNDERS = 0.02
CLIP = 0.2


@dataclass(frozen=True)
class Imitation:
    """``success``: of the expert that is imitated, whose skill is searched for; ``batch``: its runs a step."""

    success: float = 0.42
    steps: int = 150
    batch: int = 128
    lr: float = 2e-3
    blunders: float = BLUNDERS


@dataclass(frozen=True)
class Schedule:
    """``groups`` of ``size`` runs an update, in ``minibatches`` optimiser steps; measured every ``measure_every``."""

    updates: int = 64
    groups: int = 8
    size: int = 8
    minibatches: int = 2
    lr: float = 8e-4
    measure_every: int = 4
    measured_runs: int = 400


@dataclass(frozen=True)
class Measure:
    """How the policy does on fresh questions, sampled at temperature 1, and what it has cost to get there.

    ``kept_tokens`` carried a gradient so far. ``turns`` and ``repeats`` (searches for a gold page already found) are
    means over runs; ``dead_ends`` is the share of searches in successes that the answer does not rest on.
    """

    rollouts: int
    kept_tokens: int
    success: float
    turns: float
    repeats: float
    dead_ends: float
    masked_in_successes: float
    masked_in_failures: float


def seeded(*numbers: int) -> Generator:
    """A generator of its own for each row of numbers."""
    import torch

    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % 2**62
    return torch.Generator().manual_seed(mixed)


def expert_for(config: HuntConfig, imitation: Imitation, seed: int) -> Expert:
    """The expert whose success is the one asked for: its skill is found by bisection."""
    generator = seeded(seed, 1)
    questions = draw_questions(config, 3000, generator)
    low, high = 0.0, 0.999
    for _ in range(9):
        middle = (low + high) / 2
        reached = play(questions, Expert(imitation.blunders, middle), generator).success.float().mean()
        low, high = (middle, high) if reached < imitation.success else (low, middle)
    return Expert(imitation.blunders, (low + high) / 2)


def imitate(config: HuntConfig, imitation: Imitation, seed: int) -> HuntPolicy:
    """A new policy that has learnt every token of the expert's runs, blunders included."""
    import torch

    expert = expert_for(config, imitation, seed)
    generator = seeded(seed, 2)
    policy = new_policy(config, generator)
    optimizer = torch.optim.Adam(policy.parameters(), lr=imitation.lr)
    for step in range(imitation.steps):
        for part in optimizer.param_groups:
            part["lr"] = imitation.lr * min(1.0, 2 * (1 - step / imitation.steps))
        shown = play(draw_questions(config, imitation.batch, generator), expert, generator)
        logp = torch.cat([step_logp(policy, step) for step in shown.steps])
        optimizer.zero_grad()
        torch.autograd.backward(-logp.sum() / shown.sampled().sum())
        optimizer.step()
    return policy


def improve(
    start: HuntPolicy,
    config: HuntConfig,
    variant: Variant,
    schedule: Schedule,
    seed: int,
    report: Callable[[Measure], None],
) -> HuntPolicy:
    """Reinforcement learning from ``start``, which is left as it is. The same seed draws the same questions."""
    import torch

    policy = start.copy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=schedule.lr, betas=(0.9, 0.99))
    generator, random = seeded(seed, 3), Random(seed)
    exam = draw_questions(config, schedule.measured_runs, seeded(seed, 4))
    tokens = 0
    masked: tuple[float, float] = (0.0, 0.0)
    for update in range(schedule.updates + 1):
        if update % schedule.measure_every == 0:
            taken = play(exam, policy, seeded(seed, 5, update))
            report(_measured(taken, update * schedule.groups * schedule.size, tokens, masked))
        if update == schedule.updates:
            break
        questions = draw_questions(config, schedule.groups, generator).repeat(schedule.size)
        rollouts = play(questions, policy, generator)
        runs = runs_of(rollouts)
        planned = plan(variant, runs, schedule.size, config.max_steps, random)
        tokens += learnt_tokens(rollouts, planned)
        masked = masked_shares(rollouts, runs, planned)
        part_of = (torch.arange(len(runs)) // schedule.size) % schedule.minibatches
        for part in range(schedule.minibatches):
            loss = batch_loss(policy, rollouts, planned, variant, part_of == part)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
    return policy


def batch_loss(policy: HuntPolicy, rollouts: Rollouts, planned: Plan, variant: Variant, chosen: Tensor) -> Tensor:
    """The loss of the runs that ``chosen`` ([runs], bool) marks: a scalar."""
    import torch

    steps = [step.of(chosen) for step in rollouts.steps]
    logp = torch.cat([step_logp(policy, step) for step in steps if len(step.runs)])
    return credited_loss(logp, rollouts, planned, variant, chosen)


def credited_loss(logp: Tensor, rollouts: Rollouts, planned: Plan, variant: Variant, chosen: Tensor) -> Tensor:
    """The same, from the log-probabilities ([segments of those runs, TOKENS]) under the policy that learns."""
    import torch

    ours = chosen[rollouts.runs()]
    runs, turns = rollouts.runs()[ours], rollouts.turns()[ours]
    old, sampled = rollouts.logp()[ours], rollouts.sampled()[ours]
    if variant is Variant.GRPO_TRAJECTORY:
        place = chosen.long().cumsum(dim=0) - 1
        shape = (int(chosen.sum()), planned.keep.shape[1], TOKENS)
        where = (place[runs], turns)
        rows = [torch.zeros(shape, dtype=part.dtype).index_put(where, part).flatten(1) for part in (logp, old, sampled)]
        advantages, keep = planned.advantages[chosen, 0], torch.ones(shape[0])
        return policy_loss(
            rows[0], rows[1], advantages, rows[2], keep, ratio=Ratio.TOKEN, clip_low=CLIP, clip_high=CLIP
        )
    mask = sampled & planned.tokens[runs, turns]
    return policy_loss(
        logp, old, planned.advantages[runs, turns], mask, planned.keep[runs, turns], clip_low=CLIP, clip_high=CLIP
    )


def learnt_tokens(rollouts: Rollouts, planned: Plan) -> int:
    """How many tokens carry a gradient: said, kept, and of an advantage that is not 0."""
    runs, turns = rollouts.runs(), rollouts.turns()
    live = planned.keep[runs, turns] & (planned.advantages[runs, turns] != 0)
    return int((rollouts.sampled() & planned.tokens[runs, turns] & live.unsqueeze(1)).sum())


def masked_shares(rollouts: Rollouts, runs: list[Run], planned: Plan) -> tuple[float, float]:
    """Share of tokens that are masked, in successes and in failures; 0 where there are none of them."""
    import torch

    whose, turns, sampled = rollouts.runs(), rollouts.turns(), rollouts.sampled()
    live = sampled & planned.tokens[whose, turns] & planned.keep[whose, turns].unsqueeze(1)
    success = torch.tensor([run.success for run in runs])[whose]
    shares = []
    for verdict in (success, ~success):
        spoken = int(sampled[verdict].sum())
        shares.append(1 - int(live[verdict].sum()) / spoken if spoken else 0.0)
    return shares[0], shares[1]


def _measured(taken: Rollouts, rollouts: int, tokens: int, masked: tuple[float, float]) -> Measure:
    runs = runs_of(taken)
    searches = dead = 0
    for run in runs:
        if run.success:
            rests_on = ancestors(run.parents, run.answer_id or "")
            names = [node for node in run.segment_nodes if node != run.answer_id]
            searches, dead = searches + len(names), dead + sum(node not in rests_on for node in names)
    return Measure(
        rollouts=rollouts,
        kept_tokens=tokens,
        success=sum(run.success for run in runs) / len(runs),
        turns=sum(len(run.segment_nodes) for run in runs) / len(runs),
        repeats=sum(len(run.found) - len(first_finds(run.found, run.segment_nodes)) for run in runs) / len(runs),
        dead_ends=dead / max(searches, 1),
        masked_in_successes=masked[0],
        masked_in_failures=masked[1],
    )
