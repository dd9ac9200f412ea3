"""Reinforcement learning of a searching agent, whole in one file: python examples/tiny_rl.py

An agent is to find a page in two searches: the words of a question lead to a first page, what stands there leads to the
second, and then it has to answer. Which search fits which words must be learnt. The policy is a table of logits, an
episode is played in a few lines, and the rest is the project's: advantages within a group, GGPO's mask from the memory
graph, the clipped loss. GRPO and GGPO learn from the same questions, side by side. `vrag train` does the same with a
vision-language model, vLLM and real pages.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vrag_ray.training.advantages import ggpo_keep, group_advantages
from vrag_ray.training.losses import policy_loss

TOPICS = 12
"""A question is in the words of one topic; its first page is of another, its second of a third."""
ANSWER = TOPICS
"""The action after those that search for a topic."""
GOLD = 2 * TOPICS
"""The state in which the second page is known; those before are the words of a question and what a first page says."""
MOST_TURNS = 6
QUESTIONS, ROLLOUTS = 8, 8
"""Questions of a step, and episodes of each question, which are a group."""


@dataclass
class World:
    """Which topic to search for is hidden in two permutations."""

    first: Tensor
    second: Tensor

    @classmethod
    def drawn(cls, draws: torch.Generator) -> World:
        return cls(torch.randperm(TOPICS, generator=draws), torch.randperm(TOPICS, generator=draws))


@dataclass
class Episode:
    """A run as a memory graph: each turn is a node, whose parent is the page that led to it."""

    states: list[int] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    parents: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"root": ()})
    useful: set[str] = field(default_factory=set)
    """Nodes whose search found a page that is needed."""
    answer: str | None = None
    is_right: bool = False

    @property
    def nodes(self) -> list[str]:
        return [name for name in self.parents if name != "root"]


def play(world: World, question: int, logits: Tensor, draws: torch.Generator) -> Episode:
    """The agent sees its state alone: the question, a first page that it found, or both pages."""
    run, state, led_by = Episode(), question, "root"
    for turn in range(MOST_TURNS):
        action = int(torch.multinomial(logits[state].softmax(0), 1, generator=draws))
        node = f"turn {turn}"
        run.states.append(state)
        run.actions.append(action)
        run.parents[node] = (led_by,)
        if action == ANSWER:
            run.answer, run.is_right = node, state == GOLD
            break
        page = int(world.first[question])
        if state == question and action == page:
            run.useful.add(node)
            state, led_by = TOPICS + page, node
        elif state == TOPICS + page and action == int(world.second[page]):
            run.useful.add(node)
            state, led_by = GOLD, node
    return run


def learn(algorithm: str, steps: int, seed: int) -> list[float]:
    """The share of right answers at every step."""
    draws = torch.Generator().manual_seed(seed)
    world = World.drawn(draws)
    logits = torch.zeros(GOLD + 1, TOPICS + 1, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    shares = []
    for _ in range(steps):
        questions = torch.randint(TOPICS, (QUESTIONS,), generator=draws).tolist()
        groups = [[play(world, question, logits.detach(), draws) for _ in range(ROLLOUTS)] for question in questions]
        rewards = torch.tensor([[float(run.is_right) for run in group] for group in groups])
        shares.append(float(rewards.mean()))
        advantages = group_advantages(rewards)

        states, actions, credit, keep = [], [], [], []
        for group, row in zip(groups, advantages.tolist(), strict=True):
            for run, advantage in zip(group, row, strict=True):
                states += run.states
                actions += run.actions
                credit += [advantage] * len(run.actions)
                if algorithm == "ggpo":
                    # Of a success what the answer rests on, of a failure all but the searches that found something.
                    keep += ggpo_keep(run.parents, run.answer, run.is_right, run.useful, run.nodes)
                else:
                    keep += [True] * len(run.actions)

        chosen = logits.log_softmax(1)[states, actions].unsqueeze(1)
        loss = policy_loss(
            chosen,
            # One update on each batch: what was sampled and what is trained are the same policy.
            chosen.detach(),
            torch.tensor(credit),
            torch.ones_like(chosen),
            torch.tensor(keep),
            clip_low=0.2,
            clip_high=0.2,
        )
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return shares


def main(steps: int, seeds: int = 3) -> None:
    print("right answers, mean of the last 20 steps")
    curves = {
        name: torch.tensor([learn(name, steps, seed) for seed in range(seeds)]).mean(0) for name in ("grpo", "ggpo")
    }
    for step in range(20, steps + 1, 20):
        shares = "  ".join(f"{name} {curve[step - 20 : step].mean():.2f}" for name, curve in curves.items())
        print(f"step {step:4d}  {shares}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
