"""From graded runs to what the trainer learns from: each algorithm assigns, in its own file, advantage and mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vrag_ray.training.algorithms import ggpo, progress, segments, trajectories
from vrag_ray.training.algorithms.algorithm import Algorithm, Credit
from vrag_ray.training.algorithms.segment_credit import SegmentCredit
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Call, Trajectory

Assign = Callable[[Sequence[Sequence[Trajectory]], Algorithm, Collectives], list[list[SegmentCredit]]]
ASSIGN: dict[Credit, Assign] = {
    Credit.TRAJECTORY: trajectories.assign,
    Credit.SEGMENTS: segments.assign,
    Credit.GGPO: ggpo.assign,
    Credit.GGPO_POSITIVE: ggpo.assign,
    Credit.GGPO_NEGATIVE: ggpo.assign,
    Credit.GGPO_FIRST_FIND: ggpo.assign,
    Credit.PROGRESS: progress.assign,
}


@dataclass(frozen=True, slots=True)
class TrainSample:
    """A segment with what it is credited with. ``keep`` false: it counts, but nothing is learnt from it."""

    calls: tuple[Call, ...]
    advantage: float
    keep: bool

    @property
    def completion_tokens(self) -> int:
        return sum(len(call.completion_ids) for call in self.calls)


def train_samples(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, ranks: Collectives
) -> list[list[TrainSample]]:
    """The samples of each trajectory, in order. ``groups`` are this rank's runs of one question each, equally many.

    Runs that the engine's limits cut short teach nothing and are compared with none: a group is then smaller.
    Progress credit compares with the groups of all ranks: there, every rank must call this at the same time.
    """
    runs = [run for group in groups for run in group]
    assigned = ASSIGN[algorithm.credit](groups, algorithm, ranks)
    return [_samples(run, credit, algorithm) for run, credit in zip(runs, assigned, strict=True)]


def _samples(run: Trajectory, assigned: Sequence[SegmentCredit], algorithm: Algorithm) -> list[TrainSample]:
    # Without calls its time was up before the first reply: there is nothing that could be learnt from it.
    if run.engine_limited or not run.calls:
        return []
    if algorithm.credit is Credit.TRAJECTORY:
        return [TrainSample(run.calls, assigned[0].advantage, keep=True)]
    return [
        TrainSample(segment.calls, credit.advantage, credit.keep)
        for segment, credit in zip(run.segments, assigned, strict=True)
    ]
