"""The algorithms by name, and from graded runs to what the trainer learns from: each algorithm has its presets and its
assignment of advantages and masks in a file of its own. An algorithm of a user's is a function that assigns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from vrag_ray.training.algorithms import ggpo, grpo, gspo, progress
from vrag_ray.training.algorithms.algorithm import Algorithm, Assign, Credit, SegmentCredit
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Call, Trajectory
from vrag_ray.types import VragError
from vrag_ray.types.dotted_path import load_object, raised_by

ALGORITHMS: dict[str, Algorithm] = grpo.PRESETS | gspo.PRESETS | ggpo.PRESETS | progress.PRESETS
ASSIGN: dict[Credit, Assign] = {
    Credit.TRAJECTORY: grpo.assign,
    Credit.SEGMENTS: gspo.assign_segments,
    Credit.GGPO: ggpo.assign,
    Credit.GGPO_POSITIVE: ggpo.assign,
    Credit.GGPO_NEGATIVE: ggpo.assign,
    Credit.GGPO_FIRST_FIND: ggpo.assign,
    Credit.PROGRESS: progress.assign,
}


def algorithm_of(name: str) -> Algorithm:
    """A preset, or for ``package.module:function`` GSPO's loss with the credit that this function assigns.

    Raises VragError for any other name, and for a function that cannot be imported or called.
    """
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    user_assign(name, "algorithm", ALGORITHMS)
    return gspo.of_sequences(name)


def user_assign(path: str, setting: str = "algorithm.credit", known: Iterable[str] = tuple(Credit)) -> Assign:
    """The function at ``package.module:function``; raises VragError where there is none."""
    # What it returns is checked where it is called.
    return cast("Assign", load_object(path, setting, known))


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
    credit = algorithm.credit
    if isinstance(credit, Credit):
        assigned = ASSIGN[credit](groups, algorithm, ranks)
    else:
        assigned = _of_user(credit, groups, algorithm, ranks)
    if len(assigned) != len(runs):
        raise VragError(f"{credit} credits {len(assigned)} runs of {len(runs)}: return a list for each run, in order")
    return [_samples(run, segments, algorithm) for run, segments in zip(runs, assigned, strict=True)]


def _of_user(
    name: str, groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, ranks: Collectives
) -> list[list[SegmentCredit]]:
    assign = user_assign(name)
    try:
        return [list(segments) for segments in assign(groups, algorithm, ranks)]
    except VragError:
        raise
    except Exception as error:
        raise VragError(f"{name} failed: {raised_by(error)}") from error


def _samples(run: Trajectory, assigned: Sequence[SegmentCredit], algorithm: Algorithm) -> list[TrainSample]:
    # Without calls its time was up before the first reply: there is nothing that could be learnt from it.
    if run.engine_limited or not run.calls:
        return []
    if algorithm.credit is Credit.TRAJECTORY:
        return [TrainSample(run.calls, assigned[0].advantage, keep=True)]
    if len(assigned) != len(run.segments):
        raise VragError(
            f"{algorithm.credit} credits {len(assigned)} segments of {len(run.segments)}: return a SegmentCredit for "
            "each of Trajectory.segments"
        )
    for credit in assigned:
        # One that is not finite would end as NaN in every weight.
        if not isinstance(credit, SegmentCredit) or not math.isfinite(credit.advantage):
            raise VragError(
                f"{algorithm.credit} returned {credit!r} for a segment of {run.uid} (sample {run.sample}): return "
                "SegmentCredit(advantage, keep) with a finite advantage"
            )
    return [
        TrainSample(segment.calls, credit.advantage, credit.keep)
        for segment, credit in zip(run.segments, assigned, strict=True)
    ]
