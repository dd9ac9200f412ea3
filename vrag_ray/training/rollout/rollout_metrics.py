"""What a batch of trajectories looks like in numbers, over all ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import stdev

from vrag_ray.agent.events import CropEvent, RunStatus, SearchDoneEvent
from vrag_ray.training.advantages import ancestors, ggpo_keep
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.ggpo import mask
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Trajectory

ENGINE_LIMITED = "rollout/engine_limited"
"""How many runs were cut short by the engine's limits; with ``_share`` behind it, of all."""
SAMPLED = "rollout/tokens"
"""How many tokens the policy generated, whether anything is learnt from them or not."""
Mean = tuple[str, float, float]
"""Name, and what it adds to the sum and to the count that the mean is made of."""


def rollout_metrics(
    groups: Sequence[Sequence[Trajectory]], ranks: Collectives, algorithm: Algorithm
) -> dict[str, float]:
    """Means over the runs of all ranks, by name; every rank gets the same. A mean of nothing is left out.

    ``success/<data_source>`` and ``mean_reward/<data_source>`` are those of the examples of one set,
    ``success_by_kind/<kind>`` of one kind; what has neither counts in ``reward/…`` alone. ``reward/grounding`` is that
    of questions with gold boxes, whatever its weight. Runs that the engine's limits cut short are counted
    (``ENGINE_LIMITED``) and in no mean of rewards and graphs.
    ``reward/group_std`` is the mean of the standard deviations within groups, which advantages are divided by.
    ``masked/positive`` is the share of segments that the published GGPO mask takes out of successes,
    ``masked/negative`` out of failures, whether the algorithm uses it or not: it shows what the graphs would allow.
    """
    sums: dict[str, tuple[float, float]] = {}
    for group in groups:
        for name, value, count in _of_group(group, algorithm):
            before = sums.get(name, (0.0, 0.0))
            sums[name] = (before[0] + value, before[1] + count)
    # Ranks may have met different things: each must add to the same names in the same order.
    names = sorted({name for own in ranks.gathered(sorted(sums)) for name in own})
    totals = ranks.sums([part for name in names for part in sums.get(name, (0.0, 0.0))])
    means = {
        name: totals[2 * place] / totals[2 * place + 1] for place, name in enumerate(names) if totals[2 * place + 1]
    }
    runs = [run for group in groups for run in group]
    longest = max((len(call.completion_ids) for run in runs for call in run.calls), default=0)
    turns = max((run.record.steps for run in runs), default=0)
    means["length/reply_max"], means["run/turns_max"] = ranks.maxima((longest, turns))
    tokens = sum(len(call.completion_ids) for run in runs for call in run.calls)
    means[ENGINE_LIMITED], means[SAMPLED] = ranks.sums((sum(run.engine_limited for run in runs), tokens))
    return means


def _of_group(group: Sequence[Trajectory], algorithm: Algorithm) -> Iterator[Mean]:
    graded = [run for run in group if not run.engine_limited]
    if len(graded) > 1:
        yield "reward/group_std", stdev(run.reward.total for run in graded), 1
    if graded:
        yield "reward/equal_groups", float(len({run.reward.total for run in graded}) == 1), 1
        yield "reward/solved_once", float(any(run.reward.success for run in graded)), 1
    for run in group:
        yield f"{ENGINE_LIMITED}_share", float(run.engine_limited), 1
        yield from _of_run(run)
    for run in graded:
        yield from _of_reward(run)
        yield from _of_graph(run, algorithm)


def _of_reward(run: Trajectory) -> Iterator[Mean]:
    yield "reward/mean", run.reward.total, 1
    yield "reward/success", float(run.reward.success), 1
    if run.kind:
        yield f"success_by_kind/{run.kind}", float(run.reward.success), 1
    if run.data_source:
        yield f"success/{run.data_source}", float(run.reward.success), 1
        yield f"mean_reward/{run.data_source}", run.reward.total, 1
    yield "reward/answer", run.reward.answer, 1
    yield "reward/retrieval", run.reward.retrieval, 1
    yield "reward/format", run.reward.format, 1
    yield "reward/overlong", run.reward.overlong, 1
    if run.reward.grounded:
        yield "reward/grounding", run.reward.grounding, 1


def _of_run(run: Trajectory) -> Iterator[Mean]:
    events = run.record.events
    yield "run/turns", run.record.steps, 1
    yield "run/searches", sum(isinstance(event, SearchDoneEvent) for event in events), 1
    yield "run/crops", sum(isinstance(event, CropEvent) for event in events), 1
    yield "run/invalid", run.record.corrections, run.record.steps
    yield "run/answered", float(run.record.status in (RunStatus.ANSWERED, RunStatus.ABSTAINED)), 1
    yield "run/step_limited", float(run.record.status is RunStatus.MAX_STEPS), 1
    for call in run.calls:
        yield "length/prompt", len(call.prompt_ids), 1
        yield "length/reply", len(call.completion_ids), 1
        yield "length/cut_off", float(call.finish == "length"), 1
        yield "run/pictures", len(call.images), 1


def _of_graph(run: Trajectory, algorithm: Algorithm) -> Iterator[Mean]:
    parents = run.parents
    answer = run.answer_id
    if answer is not None:
        yield "graph/parents_of_answer", len(parents[answer]), 1
        yield "graph/ancestors_share", len(ancestors(parents, answer)) / len(parents), 1
    nodes = [segment.node for segment in run.segments]
    sign = "positive" if run.reward.success else "negative"
    published = ggpo_keep(parents, answer, run.reward.success, run.valuable, nodes)
    own = mask(run, algorithm)
    yield f"masked/{sign}", published.count(False), len(nodes)
    yield f"kept/{sign}", own.count(True), len(nodes)
