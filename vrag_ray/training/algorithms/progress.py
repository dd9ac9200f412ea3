"""Progress credit: each segment is credited with what it changed, measured by the gold pages that the graph holds.

GGPO (VimRAG, arXiv 2602.12735, eq. 11) deletes segments whose share in the outcome the graph denies. This keeps every
segment and gives each one its own advantage instead. Pure functions; they need no model and no critic network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.training.advantages import STD_FLOOR, group_advantages
from vrag_ray.training.algorithms.algorithm import (
    RECALL_WEIGHT,
    TRACE,
    Algorithm,
    Credit,
    SegmentCredit,
    graded,
)
from vrag_ray.training.algorithms.gspo import of_sequences
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Trajectory
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor

PRESETS = {"progress": of_sequences(Credit.PROGRESS)}
"""Ours (docs/research/ggpo.md)."""
RIDGE = 3.0
STALE = 3
"""From this many segments without a new gold page on, a run's standstill counts the same."""


@dataclass(frozen=True, slots=True)
class CreditInput:
    """What the credit of one trajectory is read from.

    ``segment_nodes``: of each segment, in order, the node it was generated for (None: a refused reply). ``found``:
    by node, the gold pages among what its search brought; its keys are GGPO's ``R_val``. ``gold``: how many gold pages
    the question has, 0 where nobody annotated them.
    """

    reward: float
    segment_nodes: Sequence[str | None]
    found: Mapping[str, Set[int]]
    gold: int

    def missing(self) -> list[int]:
        """How many gold pages nobody had brought before each segment, and after the last: [segments + 1]."""
        known: set[int] = set()
        counts = [self.gold]
        for node in self.segment_nodes:
            if node is not None:
                known |= set(self.found.get(node, ()))
            counts.append(self.gold - len(known))
        return counts


def assign(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, ranks: Collectives
) -> list[list[SegmentCredit]]:
    """An advantage of its own for each segment of this rank's runs; nothing is masked, and ungraded runs have none.

    Runs are compared with the groups of all ranks: every rank must call this at the same time.
    """
    everywhere = ranks.gathered([[credit_input(run) for run in graded(group)] for group in groups])
    # As ``Collectives.share`` dealt them out, so that the number of ranks changes nothing.
    places = sorted((row, rank) for rank, own in enumerate(everywhere) for row in range(len(own)))
    # Values are compared within groups of one size: where the engine cut runs short, groups differ.
    sizes = {len(everywhere[rank][row]) for row, rank in places} - {0}
    own: dict[int, list[list[float]]] = {}
    for size in sorted(sizes):
        alike = [(row, rank) for row, rank in places if len(everywhere[rank][row]) == size]
        credited = progress_advantages(
            [everywhere[rank][row] for row, rank in alike],
            trace=algorithm.trace,
            recall_weight=algorithm.recall_weight,
            normalize_std=algorithm.normalize_std,
        )
        for (row, rank), group in zip(alike, credited, strict=True):
            if rank == ranks.rank:
                own[row] = [advantages.tolist() for advantages in group]
    return [
        [] if run.engine_limited else [SegmentCredit(advantage) for advantage in own[row].pop(0)]
        for row, group in enumerate(groups)
        for run in group
    ]


def credit_input(run: Trajectory) -> CreditInput:
    """What progress credit knows of a run."""
    return CreditInput(run.reward.total, tuple(segment.node for segment in run.segments), run.found, run.gold)


def progress_advantages(
    groups: Sequence[Sequence[CreditInput]],
    *,
    trace: float = TRACE,
    recall_weight: float = RECALL_WEIGHT,
    normalize_std: bool = True,
) -> list[list[Tensor]]:
    """The advantage of each segment: for each group and trajectory a tensor [segments], without gradient.

    With ``R' = R + recall_weight * found / gold`` (distinct gold pages found), ``s_t`` the graph before segment ``t``
    and ``V`` what is to be expected of ``R'`` there::

        A_t = (V(s_{t+1}) - V(s_t)) + trace * A_{t+1},    and of the last segment    A_T = R' - V(s_T)

    ``V`` is a ridge regression on how many gold pages are missing, for how many segments none was found, the number
    of the segment, and the mean of ``R'`` over the *other* trajectories of the group; for each group it is fitted on
    the segments of all others. So ``trace = 1`` is an unbiased policy gradient of ``R'`` with a baseline that knows
    the graph; less takes the luck of later segments out too, and is as biased as ``V`` is blind. A first find has a
    positive advantage in a failure too; finding it again has not, nor has a dead end in a success.

    ``normalize_std`` divides by the standard deviation of ``R'`` over the batch. Groups without annotation get
    ``group_advantages`` of their rewards on every segment: where the graph gives nothing this is the baseline. Groups
    must be equally large. Where only one group is annotated, its others' mean is ``V``. Where all ``R'`` are equal
    everything is 0.
    """
    import torch

    sizes = {len(group) for group in groups}
    if len(sizes) != 1 or 0 in sizes:
        raise VragError(f"groups of {sorted(sizes)} trajectories; give groups of one and the same size")
    if not 0 <= trace <= 1:
        raise VragError(f"trace is {trace}; give a number from 0 to 1")
    annotated = [number for number, group in enumerate(groups) if all(run.gold > 0 for run in group)]
    rewards = torch.tensor([[run.reward for run in group] for group in groups], dtype=torch.float64)
    plain = group_advantages(rewards, normalize_std=normalize_std)
    advantages: list[list[Tensor]] = [
        [plain[number, place].repeat(len(run.segment_nodes)) for place, run in enumerate(group)]
        for number, group in enumerate(groups)
    ]
    chosen = [groups[number] for number in annotated]
    for number, credited in zip(annotated, _of_annotated(chosen, trace, recall_weight, normalize_std), strict=True):
        advantages[number] = credited
    return advantages


def _of_annotated(
    groups: Sequence[Sequence[CreditInput]], trace: float, recall_weight: float, normalize_std: bool
) -> Iterator[list[Tensor]]:
    import torch

    if not groups:
        return
    rewards = torch.tensor(
        [[run.reward + recall_weight * (1 - run.missing()[-1] / run.gold) for run in group] for group in groups],
        dtype=torch.float64,
    )
    values = state_values(groups, rewards)
    spread = rewards.std().item() + STD_FLOOR if normalize_std and rewards.numel() > 1 else 1.0
    equal = bool((rewards == rewards[0, 0]).all())
    for number, group in enumerate(groups):
        credited = []
        for place, run in enumerate(group):
            advantages = torch.zeros(len(run.segment_nodes), dtype=torch.float64)
            later, after = 0.0, rewards[number, place].item()
            for segment in reversed(range(0 if equal else len(advantages))):
                value = values[number][place][segment].item()
                later = after - value + trace * later
                after = value
                advantages[segment] = later / spread
            credited.append(advantages)
        yield credited


def state_values(groups: Sequence[Sequence[CreditInput]], rewards: Tensor) -> list[list[Tensor]]:
    """``V`` before each segment, [segments] by group and trajectory; ``rewards`` [groups, size] is what it predicts."""
    import torch

    size = rewards.shape[1]
    others = (rewards.sum(dim=1, keepdim=True) - rewards) / max(size - 1, 1) if size > 1 else rewards
    runs = [run for group in groups for run in group]
    owner = torch.cat([torch.full((len(run.segment_nodes),), number) for number, run in enumerate(runs)])
    by_segment = others.flatten()[owner]
    if len(groups) == 1:
        values = by_segment
    else:
        states = _states(runs, by_segment)
        target, group_of = rewards.flatten()[owner], owner // size
        values = torch.zeros_like(target)
        for number in range(len(groups)):
            here = group_of == number
            # Runs that never spoke have no segments: there may be nothing to learn from.
            values[here] = by_segment[here] if bool(here.all()) else _ridge(states[~here], target[~here], states[here])
    lengths = [len(run.segment_nodes) for run in runs]
    parts = torch.split(values, lengths)
    return [list(parts[begin : begin + size]) for begin in range(0, len(parts), size)]


def _states(runs: Sequence[CreditInput], others: Tensor) -> Tensor:
    """What ``V`` sees before each segment of all runs, one after the other: [all segments, features]."""
    import torch
    from torch.nn.functional import one_hot

    most = max(run.gold for run in runs)
    missing, stale, turn = [], [], []
    for run in runs:
        counts = run.missing()
        waited = 0
        for segment in range(len(run.segment_nodes)):
            if segment:
                waited = 0 if counts[segment] < counts[segment - 1] else min(waited + 1, STALE)
            missing.append(counts[segment])
            stale.append(waited)
            turn.append(segment)
    left = torch.tensor(missing)
    parts = [
        one_hot(left, most + 1).double(),
        one_hot(torch.tensor(stale), STALE + 1).double(),
        torch.tensor(turn, dtype=torch.float64).unsqueeze(1) / 10,
        others.unsqueeze(1),
        (others * left / most).unsqueeze(1),
    ]
    return torch.cat(parts, dim=1)


def _ridge(states: Tensor, target: Tensor, at: Tensor) -> Tensor:
    """Ridge regression of ``target`` on ``states``, read off ``at``, never beyond what was seen."""
    import torch

    middle = target.mean()
    normal = states.T @ states + RIDGE * torch.eye(states.shape[1], dtype=states.dtype)
    weights = torch.linalg.solve(normal, states.T @ (target - middle))
    predicted: Tensor = at @ weights + middle
    return predicted.clamp(min=float(target.min()), max=float(target.max()))
