"""A group of three trajectories whose losses were worked out by hand, as value and gradient."""

from __future__ import annotations

import torch

from vrag_ray.training.advantages import group_advantages

ROLLOUTS = [
    (1, [([0, 1], True), ([2], False), ([0], True)]),
    (0, [([1, 2, 0], False), ([1], True)]),
    (0, [([2, 2], True)]),
]
"""Reward and segments (tokens, whether the graph keeps it) of three trajectories of one question."""
GOLDEN_LOSSES = {
    (True, "geo", "all"): (0.22110924, [0.22670394, -0.05734100, -0.16936294]),
    (True, "geo", "kept"): (0.33166385, [0.34005591, -0.08601150, -0.25404441]),
    (True, "raw", "all"): (0.22079035, [0.28699230, 0.00928793, -0.29628023]),
    (True, "token", "all"): (0.22206909, [0.23643793, -0.06675610, -0.16968183]),
    (False, "geo", "all"): (0.31701417, [0.15952266, -0.11813925, -0.04138341]),
    (False, "raw", "all"): (0.31733199, [0.22623572, -0.05772454, -0.16851117]),
    (False, "token", "all"): (0.31765406, [0.16601199, -0.12441599, -0.04159600]),
}
"""Value and gradient by whether the graph masks, the ratio and the denominator."""


def golden_batch(theta: torch.Tensor) -> dict[str, torch.Tensor]:
    """The rollouts as the arguments of ``policy_loss``, three tokens wide, for a policy that is one logit vector."""
    rewards = torch.tensor([[reward for reward, _ in ROLLOUTS]], dtype=torch.float64)
    advantage = group_advantages(rewards)[0]
    segments = [(tokens, keep, advantage[g]) for g, (_, parts) in enumerate(ROLLOUTS) for tokens, keep in parts]
    new, old = torch.log_softmax(theta, 0), torch.log_softmax(torch.zeros(3, dtype=torch.float64), 0)
    padded = torch.tensor([tokens + [0] * (3 - len(tokens)) for tokens, *_ in segments])
    return {
        "logp_new": new[padded],
        "logp_old": old[padded],
        "advantages": torch.stack([value for *_, value in segments]),
        "token_mask": torch.tensor([[1] * len(tokens) + [0] * (3 - len(tokens)) for tokens, *_ in segments]),
        "keep": torch.tensor([keep for _, keep, _ in segments]),
    }
