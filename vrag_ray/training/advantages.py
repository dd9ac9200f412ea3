"""From rewards and memory graphs to what each segment of a trajectory is credited with. Pure functions.

A *group* is the trajectories sampled for one question; a *segment* is what a policy generated for one node of its
graph.
Sources: GRPO (arXiv 2402.03300, eq. 3), Dr.GRPO (arXiv 2503.20783, eq. 3), VimRAG (arXiv 2602.12735, eq. 11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

STD_FLOOR = 1e-6


def group_advantages(rewards: Tensor, *, normalize_std: bool = True) -> Tensor:
    """``(R - mean) / (std + 1e-6)`` within each group; without the division where ``normalize_std`` is off (Dr.GRPO).

    ``rewards`` and the result have shape [groups, size]; the standard deviation is the unbiased one. Each trajectory
    counts once, however many segments it has. A group of one, or of equal rewards, teaches nothing: exactly zero.
    """
    import torch

    if rewards.dim() != 2:
        raise ValueError(f"rewards have shape {tuple(rewards.shape)}, not [groups, size]")
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    if normalize_std and rewards.shape[1] > 1:
        centred = centred / (rewards.std(dim=1, keepdim=True) + STD_FLOOR)
    equal = rewards.amax(dim=1, keepdim=True) == rewards.amin(dim=1, keepdim=True)
    return torch.where(equal, torch.zeros_like(centred), centred)


def ancestors(graph_parents: Mapping[str, Sequence[str]], node: str) -> frozenset[str]:
    """``node`` and every node that a path of declared parents leads back to; empty where ``node`` is not in the graph.

    ``graph_parents`` is in order of creation. A parent that is unknown, the node itself or created later is no parent.
    """
    place = {name: number for number, name in enumerate(graph_parents)}
    reached: set[str] = set()
    open_nodes = [node] if node in place else []
    while open_nodes:
        current = open_nodes.pop()
        if current in reached:
            continue
        reached.add(current)
        earlier = (
            graph_parent
            for graph_parent in graph_parents[current]
            if place.get(graph_parent, len(place)) < place[current]
        )
        open_nodes.extend(earlier)
    return frozenset(reached)


def ggpo_keep(
    graph_parents: Mapping[str, Sequence[str]],
    answer_id: str | None,
    success: bool,
    valuable: Set[str],
    segment_nodes: Sequence[str | None],
) -> list[bool]:
    """Which segments of a trajectory keep their gradient: ``1 - mu_t`` of VimRAG's eq. 11.

    ``mu_t = 1[r = 1] * 1[v_t not in P_ans] + 1[r = 0] * 1[v_t in R_val]``: of a success only what the answer rests on
    is learnt (``P_ans``, all ancestors of the answer), of a failure all but the searches that found something relevant
    (``valuable``). ``success`` is the judge's verdict, not the shaped reward. The answer's own segment is always
    learnt. A segment without a node (None: a reply that was refused) is a dead end of a success and a fault of a
    failure.
    """
    path = ancestors(graph_parents, answer_id) if answer_id is not None else frozenset()
    if success:
        return [node is not None and (node == answer_id or node in path) for node in segment_nodes]
    return [node is None or node == answer_id or node not in valuable for node in segment_nodes]
