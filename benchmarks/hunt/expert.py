"""Players that need no training: an oracle, one that knows some topics badly, and pure chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.hunt.memory import Memory, Parent
from benchmarks.hunt.policy import Do
from benchmarks.hunt.world import NOTHING, Kind, Page

if TYPE_CHECKING:
    from torch import Generator, Tensor

NOISY_PARENTS = (0.1, 0.2, 0.6, 0.1)
"""How often a noisy expert declares the question, the node before, the right node, all nodes."""

BADLY_KNOWN, WELL_KNOWN = 0.3, 0.97
"""How often a noisy expert follows the right sign of a topic that it has wrong, and of one that it has right."""


@dataclass(frozen=True)
class Turn:
    """What is said before a page comes: each [runs]."""

    do: Tensor
    key: Tensor
    parent: Tensor


@dataclass(frozen=True)
class Expert:
    """``noise``: the chance that a decision is replaced by a blunder (1: chance plays alone).

    ``skill``: how often the right sign is followed, for a topic in the middle; 1 means always, for all topics.
    """

    noise: float = 0.0
    skill: float = 1.0

    def turn(self, memory: Memory, rows: Tensor, step: int, generator: Generator) -> Turn:
        import torch

        right = follow(memory, rows, step, self.skill, generator)
        if not self.noise:
            return right
        count = len(rows)
        err = torch.rand(count, generator=generator) < self.noise
        which = torch.randint(4, (count,), generator=generator)
        sight = memory.see(rows, step)
        anything = torch.randint(memory.config.keys, (count,), generator=generator)
        weight = sight.named.float() + 1e-6
        mentioned = sight.keys.gather(1, torch.multinomial(weight, 1, generator=generator)).squeeze(1)
        again = memory.queried[rows, step - 1] if step else memory.start[rows]
        key = torch.stack([mentioned, anything, again, anything]).gather(0, which.unsqueeze(0)).squeeze(0)
        key = torch.where(key == NOTHING, anything, key)
        do = torch.where(which == 3, int(Do.ANSWER), int(Do.SEARCH))
        odds = torch.tensor(NOISY_PARENTS).expand(count, -1)
        parent = torch.multinomial(odds, 1, generator=generator).squeeze(1)
        return Turn(torch.where(err, do, right.do), torch.where(err, key, right.key), parent)

    def memorise(self, page: Page, generator: Generator) -> Tensor:
        """Keeps what the search found, and dead pages too: they say where not to look. [runs] of 0 and 1."""
        import torch

        right = page.kind != Kind.MISSED
        err = torch.rand(len(right), generator=generator) < self.noise / 2
        return (right ^ err).long()


def known(skill: float, topics: int) -> Tensor:
    """How often the right sign is followed for each topic: [topics]; ``skill`` is about the share known well."""
    import torch

    if skill >= 1:
        return torch.ones(topics)
    place = (torch.arange(topics) + 0.5) / topics
    return BADLY_KNOWN + (WELL_KNOWN - BADLY_KNOWN) * torch.sigmoid((skill - place) * 2 * topics)


def follow(memory: Memory, rows: Tensor, step: int, skill: float, generator: Generator) -> Turn:
    """Answer from the newest leaf that was kept; else follow the newest inner page with an open key; else the question.

    A key is open until a kept page shows what is behind it. Of a page's fields the one under its sign is taken with
    the chance that ``skill`` gives its topic, else another. If that one is shut it was misread: search the page again.
    """
    import torch

    count = len(rows)
    parent = torch.full((count,), int(Parent.SOURCE))
    start = memory.start[rows]
    if step == 0:
        return Turn(torch.full((count,), int(Do.SEARCH)), start, parent)
    queried, memorised, kind = memory.queried[rows, :step], memory.memorised[rows, :step], memory.kind[rows, :step]
    fields, signs = memory.fields[rows, :step], memory.signs[rows, :step]
    slots, each = torch.arange(step).expand(count, -1), torch.arange(count)

    seen = torch.where(memorised & (kind != Kind.MISSED), queried, NOTHING)
    shut = (fields.unsqueeze(3) == seen.view(count, 1, 1, step)).any(dim=3) | (fields == NOTHING)
    inner = memorised & (kind == Kind.INNER)
    hopeful = torch.where(inner & (~shut).any(dim=2), slots, NOTHING).amax(dim=1)
    newest = torch.where(hopeful >= 0, hopeful, torch.where(inner, slots, NOTHING).amax(dim=1))
    leaf = torch.where(memorised & (kind == Kind.LEAF), slots, NOTHING).amax(dim=1)
    answers = leaf >= 0
    at = torch.where(answers, leaf, newest).clamp(min=0)

    topic = memory.topic[rows, :step][each, at]
    odds = known(skill, memory.config.topics)[topic.clamp(min=0)]
    follows = torch.rand(count, generator=generator) < odds
    score = torch.rand(count, signs.shape[2], generator=generator)
    right = signs[each, at] == topic.unsqueeze(1)
    score = score + torch.where(right, torch.where(follows, 2.0, -2.0).unsqueeze(1), 0.0)
    chosen = score.argmax(dim=1)
    picked = fields[each, at, chosen]
    again = torch.where(newest >= 0, queried[each, at], start)
    key = torch.where(answers | ((newest >= 0) & ~shut[each, at, chosen]), picked, again)
    return Turn(torch.where(answers, int(Do.ANSWER), int(Do.SEARCH)), key, parent)
