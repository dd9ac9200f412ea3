"""What a run remembers, one slot a search, and what a policy sees of it. Every tensor leads with [runs].

The policy points at *mentions*: the key in the question, and every key or value on a page that was kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from benchmarks.hunt.world import NOTHING, HuntConfig, Kind, Page

if TYPE_CHECKING:
    from torch import Tensor

MENTION_FEATURES = 17
"""Besides topic and sign, which come one-hot."""

STATE_FEATURES = 12
PAGE_FEATURES = 8


class Parent(IntEnum):
    """What a node says it rests on: the question, the node before, the node that names its key, or all kept ones."""

    ROOT = 0
    PREVIOUS = 1
    SOURCE = 2
    ALL = 3


@dataclass(frozen=True)
class Sight:
    """What is seen before a search turn; ``M`` mentions, the question's first.

    ``keys`` [runs, M] are the numbers named, ``named`` marks those that may be searched for, ``read`` those that may
    be answers; ``mentions`` [runs, M, features]; ``state`` [runs, features].
    """

    keys: Tensor
    named: Tensor
    read: Tensor
    mentions: Tensor
    state: Tensor

    def take(self, rows: Tensor) -> Sight:
        return Sight(self.keys[rows], self.named[rows], self.read[rows], self.mentions[rows], self.state[rows])


@dataclass(frozen=True)
class Memory:
    """Slots of the runs, filled in place: ``queried`` key, ``kind``, ``memorised``, ``parent`` (see ``Parent``),
    ``source`` (a slot or -1), ``depth`` below the root, ``gold_place``: all [runs, steps]; ``fields``: [runs, steps,
    branches].
    """

    config: HuntConfig
    start: Tensor
    queried: Tensor
    kind: Tensor
    memorised: Tensor
    parent: Tensor
    source: Tensor
    depth: Tensor
    topic: Tensor
    gold_place: Tensor
    fields: Tensor
    signs: Tensor

    @classmethod
    def empty(cls, config: HuntConfig, start: Tensor) -> Memory:
        import torch

        shape = (len(start), config.max_steps)
        return cls(
            config=config,
            start=start,
            queried=torch.full(shape, NOTHING),
            kind=torch.zeros(shape, dtype=torch.long),
            memorised=torch.zeros(shape, dtype=torch.bool),
            parent=torch.zeros(shape, dtype=torch.long),
            source=torch.full(shape, NOTHING),
            depth=torch.zeros(shape),
            topic=torch.full(shape, NOTHING),
            gold_place=torch.full(shape, NOTHING),
            fields=torch.full((*shape, config.branches), NOTHING),
            signs=torch.full((*shape, config.branches), NOTHING),
        )

    def add(self, rows: Tensor, step: int, keys: Tensor, parent: Tensor, page: Page, memorised: Tensor) -> None:
        """The searches of the runs ``rows`` at ``step``: one node each."""
        source = self.naming(rows, step, keys)
        self.queried[rows, step] = keys
        self.kind[rows, step] = page.kind
        self.memorised[rows, step] = memorised
        self.parent[rows, step] = parent
        self.source[rows, step] = source
        self.gold_place[rows, step] = page.gold_place
        self.topic[rows, step] = page.topic
        self.fields[rows, step] = page.fields
        self.signs[rows, step] = page.signs
        self.depth[rows, step] = 1 + self._parent_depth(rows, step, parent, source)

    def naming(self, rows: Tensor, step: int, keys: Tensor) -> Tensor:
        """The newest kept slot with ``keys`` on its page, -1 where none: [rows]."""
        import torch

        if step == 0:
            return torch.full_like(rows, NOTHING)
        names = (self.fields[rows, :step] == keys.view(-1, 1, 1)).any(dim=2) & self.memorised[rows, :step]
        slots = torch.arange(step).expand_as(names)
        return torch.where(names, slots, NOTHING).amax(dim=1)

    def _parent_depth(self, rows: Tensor, step: int, parent: Tensor, source: Tensor) -> Tensor:
        import torch

        if step == 0:
            return torch.zeros(len(rows))
        depth = self.depth[rows, :step]
        of_source = torch.where(source >= 0, depth.gather(1, source.clamp(min=0).unsqueeze(1)).squeeze(1), 0.0)
        of_all = torch.where(self.memorised[rows, :step], depth, 0.0).amax(dim=1)
        choices = torch.stack([torch.zeros(len(rows)), depth[:, -1], of_source, of_all], dim=1)
        return choices.gather(1, parent.unsqueeze(1)).squeeze(1)

    def see(self, rows: Tensor, step: int) -> Sight:
        import torch

        runs, branches = len(rows), self.config.branches
        queried, kind, memorised = self.queried[rows, :step], self.kind[rows, :step], self.memorised[rows, :step]
        shown = torch.where(memorised.unsqueeze(2), self.fields[rows, :step], NOTHING).reshape(runs, -1)
        keys = torch.cat([self.start[rows].unsqueeze(1), shown], dim=1)
        there = keys != NOTHING
        of_leaf = (kind == Kind.LEAF).repeat_interleave(branches, dim=1)
        read = torch.cat([torch.zeros(runs, 1, dtype=torch.bool), of_leaf], dim=1) & there
        named = there & ~read

        known = [queried != NOTHING, *(memorised & (kind == value) for value in (Kind.DEAD, Kind.INNER, Kind.LEAF))]
        same = (keys.unsqueeze(2) == queried.unsqueeze(1)).float()
        history = torch.bmm(same, torch.stack(known, dim=2).float()) * named.unsqueeze(2)
        alike = (keys.unsqueeze(2) == keys.unsqueeze(1)) & (read.unsqueeze(2) == read.unsqueeze(1)) & there.unsqueeze(2)
        agreeing = (alike & there.unsqueeze(1)).sum(dim=2).float() - there.float()

        slot = torch.arange(step).repeat_interleave(branches)
        age = torch.cat([torch.full((1,), float(step)), step - 1.0 - slot]).expand(runs, -1)
        first = torch.cat([torch.ones(1), (torch.arange(step * branches) % branches == 0).float()]).expand(runs, -1)
        place = torch.cat([torch.zeros(1), (torch.arange(step * branches) % branches) / branches]).expand(runs, -1)
        depth = torch.cat([torch.zeros(runs, 1), self.depth[rows, :step].repeat_interleave(branches, dim=1)], dim=1)
        is_question = torch.zeros(runs, keys.shape[1])
        is_question[:, 0] = 1
        times = history[..., 0]
        mentions = torch.stack(
            [
                is_question,
                named.float(),
                read.float(),
                (times == 0).float(),
                (times == 1).float(),
                (times >= 2).float(),
                *(history[..., index].clamp(max=1) for index in (1, 2, 3)),
                (agreeing == 0).float(),
                (agreeing >= 1).float(),
                agreeing / 4,
                age / 8,
                (age == 0).float(),
                first,
                place,
                depth / 8,
            ],
            dim=2,
        )
        lore = self._lore(rows, step, memorised)
        return Sight(keys, named, read, torch.cat([mentions, lore], dim=2), self._state(kind, memorised, step))

    def _lore(self, rows: Tensor, step: int, memorised: Tensor) -> Tensor:
        """Topic of the page and sign of the field, one-hot; zero for the question's mention: [runs, M, 2 * topics]."""
        import torch

        topics, branches = self.config.topics, self.config.branches
        shape = (len(rows), 1 + step * branches, topics + 1)
        topic = torch.where(memorised, self.topic[rows, :step], NOTHING).repeat_interleave(branches, dim=1)
        sign = torch.where(memorised.unsqueeze(2), self.signs[rows, :step], NOTHING).reshape(len(rows), -1)
        parts = []
        for part in (topic, sign):
            hot = torch.zeros(shape)
            hot[:, 1:].scatter_(2, (part + 1).unsqueeze(2), 1.0)
            parts.append(hot[..., 1:])
        return torch.cat(parts, dim=2)

    def _state(self, kind: Tensor, memorised: Tensor, step: int) -> Tensor:
        import torch

        runs = len(kind)
        left = self.config.max_steps - step
        counts = [(memorised & (kind == value)).sum(dim=1).float() for value in (Kind.INNER, Kind.LEAF)]
        last = torch.zeros(runs, 5)
        if step:
            last[torch.arange(runs), kind[:, -1]] = 1
            last[:, 4] = memorised[:, -1]
        rest = torch.stack(
            [
                torch.full((runs,), step / 8),
                torch.full((runs,), left / 8),
                torch.full((runs,), float(left == 1)),
                counts[0] / 4,
                counts[1] / 4,
                (counts[1] > 0).float(),
                (counts[1] > 1).float(),
            ],
            dim=1,
        )
        return torch.cat([last, rest], dim=1)

    def look(self, rows: Tensor, step: int, keys: Tensor, page: Page) -> Tensor:
        """What is seen before a memorise turn, besides the search turn's sight: [runs, features]."""
        import torch

        kinds = torch.zeros(len(rows), 4)
        kinds[torch.arange(len(rows)), page.kind] = 1
        there = page.fields != NOTHING
        before = torch.where(self.memorised[rows, :step].unsqueeze(2), self.fields[rows, :step], NOTHING).reshape(
            len(rows), -1
        )
        if before.shape[1]:
            seen = (page.fields.unsqueeze(2) == before.unsqueeze(1)).any(dim=2) & there
            again = ((self.queried[rows, :step] == keys.unsqueeze(1)) & self.memorised[rows, :step]).any(dim=1)
        else:
            seen, again = torch.zeros_like(there), torch.zeros(len(rows), dtype=torch.bool)
        rest = torch.stack(
            [
                there.float().mean(dim=1),
                seen.float().mean(dim=1),
                again.float(),
                torch.full((len(rows),), (self.config.max_steps - step) / 8),
            ],
            dim=1,
        )
        return torch.cat([kinds, rest], dim=1)
