"""How much each remembered picture matters, and how many pixels it may take of a model's context.

Intrinsic energy of item ``m`` at node ``v``: ``E(m) = (priority / 5) * (1 + outdegree(v)) * exp(-decay * (T - t_v))``
where ``t_v`` is the node's place in order of creation and ``T`` that of the newest node.

Reinforcement, children first: ``W(m) = E(m) + F(v)`` with the node's feedback ``F(v) = feedback * sum of M(c)`` over
its children ``c``, and ``M(c) = mean(E over the visual items of c) + F(c)``.

``M`` is the mean reinforced energy of a child's items. Written as mean plus feedback it is also defined for a node
without visual items, whose mean is 0: energy flows *through* text-only nodes to the pictures that led there. The
original's arithmetic stops at such a node; where every node holds a picture, both give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.types import VragError


@dataclass(frozen=True, slots=True)
class ItemEnergy:
    """The energy of item ``index`` of node ``node_id``."""

    node_id: str
    index: int
    intrinsic: float
    energy: float


class Allotment(BaseModel):
    """How many pixels item ``index`` of node ``node_id`` may take; a video frame's share is the item's own.

    ``characters`` of its words, where the model is given words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    node_id: str
    index: int
    energy: float
    pixels: int
    characters: int = 0


def energies(graph: MemoryGraph, *, decay: float, feedback: float, texts: bool = False) -> tuple[ItemEnergy, ...]:
    """Every visual item's energy, in order of node and item. ``texts``: every item's, for a model that reads words."""
    newest = len(graph.nodes) - 1
    intrinsic: dict[str, dict[int, float]] = {}
    feedbacks: dict[str, float] = {}
    means: dict[str, float] = {}
    for place in range(newest, -1, -1):
        node = graph.nodes[place]
        children = graph.children(node.id)
        scale = (1 + len(children)) * math.exp(-decay * (newest - place))
        own = {index: item.priority / 5 * scale for index, item in enumerate(node.items) if texts or item.visual}
        flow = feedback * math.fsum(means[child.id] for child in children)
        intrinsic[node.id] = own
        feedbacks[node.id] = flow
        means[node.id] = (math.fsum(own.values()) / len(own) if own else 0.0) + flow
    return tuple(
        ItemEnergy(node.id, index, energy, energy + feedbacks[node.id])
        for node in graph.nodes
        for index, energy in intrinsic[node.id].items()
    )


def strongest(items: Sequence[ItemEnergy], k: int) -> tuple[ItemEnergy, ...]:
    """The ``k`` items of most energy over the whole graph, best first; equals keep their order."""
    return tuple(sorted(items, key=lambda item: -item.energy)[: max(0, k)])


def pixel_budgets(items: Sequence[ItemEnergy], total_pixels: int) -> tuple[Allotment, ...]:
    """``floor(total * energy / sum of energies)`` each, so that the sum never exceeds ``total_pixels``."""
    if total_pixels < 0:
        raise VragError(f"the pixel budget is {total_pixels}: it cannot be negative")
    return tuple(
        Allotment(node_id=item.node_id, index=item.index, energy=item.energy, pixels=pixels)
        for item, pixels in zip(items, shares(items, total_pixels), strict=False)
    )


def shares(items: Sequence[ItemEnergy], amount: int) -> tuple[int, ...]:
    """``amount`` in proportion to the energies, rounded down; empty where there is no energy at all."""
    total = math.fsum(item.energy for item in items)
    if total <= 0.0:
        return ()
    return tuple(math.floor(amount * (item.energy / total)) for item in items)
