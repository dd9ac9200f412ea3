"""Many runs of many questions at once, as in serving, and what they were worth.

No run waits for another: each requests its next reply as soon as it has what the last reply needed. Order and outcome
of the result do not depend on which run was faster.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.ports import EvidenceSource, Policy
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.policies.llm.chat_model import Sampling
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.questions.grounding import gold_cited
from vrag_ray.training.config import OverlongConfig
from vrag_ray.training.rewards.grader import gold_by_search
from vrag_ray.training.rewards.reward import UNGRADED, Reward
from vrag_ray.training.rollout.backend import TokenModel
from vrag_ray.training.rollout.recording import (
    ExpandImageTokens,
    ExpertPolicy,
    SamplingPolicy,
    derive_seed,
)
from vrag_ray.training.trajectory import Call, Trajectory, nodes_of_calls
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from vrag_ray.agent.record import RunRecord
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat

CACHED_PROMPTS = 256
"""Prompts of the last runs, with their token ids: runs of a group mostly read the same."""
Grade = Callable[["RunRecord", Example, Sequence[GoldPlace]], Awaitable[Reward]]
"""What a finished run of an example with this gold earns."""


class Recorder(Policy, Protocol):
    """A policy of one run that keeps its calls."""

    @property
    def calls(self) -> Sequence[Call]: ...


@dataclass(frozen=True, slots=True)
class Task:
    """An example to run, with its gold places as the collection knows them. ``repeat`` counts how often the step has it
    already: each time has draws of its own."""

    example: Example
    gold: tuple[GoldPlace, ...]
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class RolloutContext:
    """Where runs happen: evidence, the agent's form and budgets, the grade at the end, and what length costs."""

    source: EvidenceSource
    protocol: WireProtocol
    agent: AgentConfig
    grade: Grade
    concurrency: int
    overlong: OverlongConfig | None = None


async def rollouts(
    context: RolloutContext,
    model: TokenModel,
    form: ChatFormat,
    tasks: Sequence[Task],
    *,
    group: int,
    sampling: Sampling,
    seed: str,
) -> list[list[Trajectory]]:
    """``group`` runs of each task, in the order of ``tasks``. ``seed`` names the draw: other seeds, other runs."""
    tokens = lru_cache(CACHED_PROMPTS)(form.tokens)
    # A reply that held one of these would be read as a picture that is not there.
    sampling = replace(sampling, banned_token_ids=form.picture_tokens)

    def recorder(task: Task, sample: int) -> Recorder:
        draw = f"{seed}/{task.example.uid}/{sample}" + (f"/{task.repeat}" if task.repeat else "")
        return SamplingPolicy(model, tokens, context.protocol, sampling, draw)

    return await _all(context, tasks, group, recorder)


async def expert_runs(
    context: RolloutContext,
    expert: Callable[[Task, int], Policy],
    form: ChatFormat,
    expand_image_tokens: ExpandImageTokens,
    tasks: Sequence[Task],
    *,
    group: int = 1,
) -> list[list[Trajectory]]:
    """The same with ``expert(task, sample)`` in the model's place, in the model's tokens."""

    def recorder(task: Task, sample: int) -> Recorder:
        return ExpertPolicy(expert(task, sample), form, context.protocol, expand_image_tokens)

    return await _all(context, tasks, group, recorder)


def chosen(tasks: Sequence[Task], places: range, *, seed: int) -> list[Task]:
    """The tasks at ``places`` (from 0) of an endless order: all once, in a new order, before any comes again."""
    if not tasks:
        raise VragError("there are no questions to train on: the examples file is empty")
    epochs = {place // len(tasks) for place in places}
    orders = {epoch: order(len(tasks), f"{seed}/{epoch}") for epoch in epochs}
    return [tasks[orders[place // len(tasks)][place % len(tasks)]] for place in places]


def with_repeats(tasks: Iterable[Task]) -> list[Task]:
    """The same tasks, with each one's ``repeat``. Fewer questions than a step takes would otherwise be run with the
    same seeds again, at full price for the same runs."""
    seen: Counter[str] = Counter()
    numbered: list[Task] = []
    for task in tasks:
        numbered.append(replace(task, repeat=seen[task.example.uid]))
        seen[task.example.uid] += 1
    return numbered


def order(count: int, seed: str) -> list[int]:
    """A shuffle of ``range(count)`` that only ``seed`` decides."""
    return sorted(range(count), key=lambda number: (derive_seed(seed, number), number))


async def _all(
    context: RolloutContext, tasks: Sequence[Task], group: int, recorder: Callable[[Task, int], Recorder]
) -> list[list[Trajectory]]:
    room = asyncio.Semaphore(context.concurrency)

    async def run_sample(task: Task, sample: int) -> Trajectory:
        async with room:
            return await _run(context, task, sample, recorder(task, sample))

    try:
        async with asyncio.TaskGroup() as running:
            started = [[running.create_task(run_sample(task, sample)) for sample in range(group)] for task in tasks]
    except BaseExceptionGroup as failed:
        # Not ``except*``: Python 3.11.2 puts what is raised there into a group of its own.
        known = failed.subgroup(VragError)
        if known is None:
            raise
        # The runs that were under way fail with the first one, mostly for the same reason: one is enough to act on.
        raise _first(known) from failed
    return [[run.result() for run in runs] for runs in started]


def _first(failed: BaseExceptionGroup[VragError]) -> VragError:
    error = failed.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def _run(context: RolloutContext, task: Task, sample: int, policy: Recorder) -> Trajectory:
    example = task.example
    run = Run(
        f"{example.uid}-{sample}",
        example.question,
        policy=policy,
        protocol=context.protocol,
        source=context.source,
        config=context.agent,
        clock=time.monotonic,
    )
    record = await run.finish()
    if record.status is RunStatus.ERROR and not record.engine_limited:
        # A part of the system failed, not the policy: to train on it would teach noise.
        raise VragError(f"the run of {example.uid} (sample {sample}) failed: {record.error}")
    return Trajectory(
        uid=example.uid,
        sample=sample,
        calls=tuple(policy.calls),
        nodes=nodes_of_calls(record.events, len(policy.calls)),
        record=record,
        # What the engine cut short is no fault of the policy.
        reward=UNGRADED
        if record.engine_limited
        else _shortened(await context.grade(record, example, task.gold), policy.calls, context.overlong),
        found=gold_by_search(record, task.gold),
        gold=len(task.gold),
        kind=example.kind,
        data_source=example.data_source,
        cited=gold_cited(record, task.gold),
    )


def _shortened(reward: Reward, calls: Sequence[Call], overlong: OverlongConfig | None) -> Reward:
    """``reward`` less what the length of its run costs."""
    if overlong is None:
        return reward
    penalty = overlong.of([len(call.completion_ids) for call in calls])
    return replace(reward, total=reward.total + penalty, overlong=penalty)
