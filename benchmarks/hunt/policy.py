"""A small net that plays the hunt: it attends over mentions and points at the one to search for or to answer.

A turn is the tokens (what to do, key or answer, parent); after a search follows the memorise token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from benchmarks.hunt.memory import MENTION_FEATURES, PAGE_FEATURES, STATE_FEATURES, Parent, Sight
from benchmarks.hunt.world import HuntConfig

if TYPE_CHECKING:
    from torch import Generator, Tensor

TOKENS = 4
"""What to do, key or answer, parent, memorise. The last is not said where the turn answers."""

WIDE, TRUNK = 64, 128
FAR = -1e9
FIRST_GATE = -5.0
"""The logit, at first, of naming any number at all instead of a mention."""


class Do(IntEnum):
    SEARCH = 0
    ANSWER = 1


@dataclass(frozen=True)
class HuntPolicy:
    """Weights by name; the net itself is ``turn_logp`` and ``memorise_logp``."""

    weights: Mapping[str, Tensor]
    keys: int

    def parameters(self) -> list[Tensor]:
        return list(self.weights.values())

    def size(self) -> int:
        return sum(part.numel() for part in self.weights.values())

    def copy(self) -> HuntPolicy:
        return HuntPolicy(
            {name: part.detach().clone().requires_grad_() for name, part in self.weights.items()}, self.keys
        )


def new_policy(config: HuntConfig, generator: Generator) -> HuntPolicy:
    import torch

    shapes = {
        "mention": (MENTION_FEATURES + 2 * config.topics, WIDE),
        "mention_state": (STATE_FEATURES, WIDE),
        "mention_deep": (WIDE, WIDE),
        "trunk": (2 * WIDE + STATE_FEATURES, TRUNK),
        "trunk_deep": (TRUNK, TRUNK),
        "do": (TRUNK, len(Do)),
        "search_query": (TRUNK, WIDE),
        "answer_query": (TRUNK, WIDE),
        "gates": (TRUNK, len(Do)),
        "parent": (TRUNK + len(Do), WIDE),
        "parent_out": (WIDE, len(Parent)),
        "page": (TRUNK + PAGE_FEATURES, WIDE),
        "memorise": (WIDE, 2),
    }
    weights: dict[str, Tensor] = {}
    for name, (inputs, outputs) in shapes.items():
        weights[name] = torch.randn(inputs, outputs, generator=generator) / math.sqrt(inputs)
        weights[f"{name}_bias"] = torch.zeros(outputs)
    for name in ("do", "gates", "parent_out", "memorise"):
        weights[name] *= 0.1
    weights["gates_bias"] += FIRST_GATE
    return HuntPolicy({name: part.requires_grad_() for name, part in weights.items()}, config.keys)


@dataclass(frozen=True)
class TurnLogp:
    """``do`` [runs, 2]; ``key`` [runs, 2, keys], given what is done; ``parent`` [runs, 2, 4]; ``trunk`` for later."""

    do: Tensor
    key: Tensor
    parent: Tensor
    trunk: Tensor


def turn_logp(policy: HuntPolicy, sight: Sight) -> TurnLogp:
    """Log-probabilities of every token of a search or answer turn."""
    import torch

    net = policy.weights
    state = sight.state @ net["mention_state"] + net["mention_state_bias"]
    hidden = torch.relu(sight.mentions @ net["mention"] + net["mention_bias"] + state.unsqueeze(1))
    hidden = torch.relu(hidden @ net["mention_deep"] + net["mention_deep_bias"])
    there = (sight.named | sight.read).unsqueeze(2)
    hidden = hidden * there
    pooled = [hidden.sum(dim=1) / there.sum(dim=1), hidden.amax(dim=1), sight.state]
    trunk = torch.relu(torch.cat(pooled, dim=1) @ net["trunk"] + net["trunk_bias"])
    trunk = torch.relu(trunk @ net["trunk_deep"] + net["trunk_deep_bias"])
    gates = torch.sigmoid(trunk @ net["gates"] + net["gates_bias"])
    pointed = [
        _point(policy, hidden, trunk, f"{name}_query", allowed, sight.keys, gates[:, [index]])
        for index, (name, allowed) in enumerate((("search", sight.named), ("answer", sight.read)))
    ]
    doing = torch.eye(len(Do)).expand(len(trunk), -1, -1)
    inputs = torch.cat([trunk.unsqueeze(1).expand(-1, len(Do), -1), doing], dim=2)
    parent = torch.relu(inputs @ net["parent"] + net["parent_bias"]) @ net["parent_out"] + net["parent_out_bias"]
    return TurnLogp(
        do=(trunk @ net["do"] + net["do_bias"]).log_softmax(dim=1),
        key=torch.stack(pointed, dim=1).log(),
        parent=parent.log_softmax(dim=2),
        trunk=trunk,
    )


def _point(
    policy: HuntPolicy, hidden: Tensor, trunk: Tensor, query: str, allowed: Tensor, keys: Tensor, gate: Tensor
) -> Tensor:
    """Probability of each number [runs, keys]: attention summed over its mentions, a little for every number."""
    import torch

    query_vector = trunk @ policy.weights[query] + policy.weights[f"{query}_bias"]
    scores = (hidden @ query_vector.unsqueeze(2)).squeeze(2) / math.sqrt(WIDE)
    share = scores.masked_fill(~allowed, FAR).softmax(dim=1) * allowed
    none = ~allowed.any(dim=1, keepdim=True)
    numbers = torch.zeros(len(keys), policy.keys).scatter_add(1, keys.clamp(min=0), share)
    anything = torch.where(none, torch.ones_like(gate), gate)
    return (1 - anything) * numbers + anything / policy.keys


def memorise_logp(policy: HuntPolicy, trunk: Tensor, page: Tensor) -> Tensor:
    """Log-probabilities of dropping and of keeping the page that came: [runs, 2]."""
    import torch

    net = policy.weights
    hidden = torch.relu(torch.cat([trunk, page], dim=1) @ net["page"] + net["page_bias"])
    return (hidden @ net["memorise"] + net["memorise_bias"]).log_softmax(dim=1)


def pick(logp: Tensor, generator: Generator) -> Tensor:
    """One sample of each row of log-probabilities [runs, choices]: [runs]."""
    import torch

    ladder = logp.exp().cumsum(dim=1)
    drawn = torch.rand(len(logp), 1, generator=generator) * ladder[:, -1:]
    return (ladder < drawn).sum(dim=1).clamp(max=logp.shape[1] - 1)
