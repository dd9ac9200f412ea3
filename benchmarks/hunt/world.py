"""Questions of the hunt and what a search for a page brings back. Every tensor leads with [questions] or [runs].

A page has a key and a topic. A question names the key of the first gold page. An *inner* page names ``branches`` keys,
each under a sign; the one under the sign of the page's topic leads on, the others to *dead* pages or onto a false
trail, whose pages look like gold ones. The last page of a trail, the *leaf*, names values in the same way: on the gold
leaf, the one under the sign of its topic is the answer. Which sign belongs to which topic must be learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Generator, Tensor

NOTHING = -1


class Kind(IntEnum):
    """What a page is, as it shows itself; a search that missed shows ``MISSED``."""

    MISSED = 0
    DEAD = 1
    INNER = 2
    LEAF = 3


@dataclass(frozen=True)
class HuntConfig:
    """One regime.

    ``hops``: how many gold pages there are, drawn for each question from the least to the greatest. ``miss``: the
    share of searches that bring nothing; ``misread``: of keys and values that are read as others; ``false_trails``: of
    inner gold pages with a link onto the false trail. ``max_steps`` counts searches and the answer. Keys and values
    are numbers below ``keys``, topics and signs numbers below ``topics``.
    """

    hops: tuple[int, int] = (2, 2)
    branches: int = 2
    miss: float = 0.1
    misread: float = 0.0
    false_trails: float = 0.5
    max_steps: int = 8
    keys: int = 32
    topics: int = 12

    def __post_init__(self) -> None:
        low, high = self.hops
        if not 1 <= low <= high:
            raise VragError(f"hops are {self.hops}; give the least and the greatest, from 1 on")
        needed = 2 * high + (high - 1) * (self.branches - 1)
        if needed > self.keys:
            raise VragError(f"{high} hops with {self.branches} branches need {needed} keys; there are {self.keys}")
        if not 2 <= self.branches <= self.topics:
            raise VragError(f"{self.branches} branches: give 2 at least and no more than the {self.topics} topics")
        if self.max_steps <= high:
            raise VragError(f"{self.max_steps} steps cannot hold {high} searches and an answer; raise max_steps")


@dataclass(frozen=True)
class Questions:
    """``kind``, ``topic`` and ``gold_place`` (which gold page a key is, or -1): [questions, keys].

    ``fields`` (keys or values) and their ``signs``: [questions, keys, branches], -1 where a page names nothing.
    """

    config: HuntConfig
    hops: Tensor
    start: Tensor
    answer: Tensor
    kind: Tensor
    topic: Tensor
    gold_place: Tensor
    fields: Tensor
    signs: Tensor

    def __len__(self) -> int:
        return len(self.start)

    def repeat(self, times: int) -> Questions:
        """Each question ``times`` times in a row: one row a run, groups next to each other."""
        parts = (
            self.hops,
            self.start,
            self.answer,
            self.kind,
            self.topic,
            self.gold_place,
            self.fields,
            self.signs,
        )
        return Questions(self.config, *(part.repeat_interleave(times, dim=0) for part in parts))


@dataclass(frozen=True)
class Page:
    """One search: ``kind``, ``topic``, ``gold_place`` [runs]; ``fields`` as read and ``signs`` [.., branches]."""

    kind: Tensor
    topic: Tensor
    gold_place: Tensor
    fields: Tensor
    signs: Tensor

    def of(self, chosen: Tensor) -> Page:
        return Page(
            self.kind[chosen], self.topic[chosen], self.gold_place[chosen], self.fields[chosen], self.signs[chosen]
        )


def draw_questions(config: HuntConfig, count: int, generator: Generator) -> Questions:
    import torch

    low, high = config.hops
    hops = torch.randint(low, high + 1, (count,), generator=generator)
    order = torch.rand(count, config.keys, generator=generator).argsort(dim=1)
    gold, false, dead = order[:, :high], order[:, high : 2 * high], order[:, 2 * high :]
    topic = torch.randint(config.topics, (count, config.keys), generator=generator)
    answer = torch.randint(config.keys, (count,), generator=generator)
    kind = torch.full((count, config.keys), int(Kind.DEAD))
    gold_place = torch.full((count, config.keys), NOTHING)
    fields = torch.full((count, config.keys, config.branches), NOTHING)
    signs = torch.full_like(fields, NOTHING)
    rows = torch.arange(count)
    leads_astray = torch.rand(count, high, generator=generator) < config.false_trails
    for place in range(high):
        leaf = torch.eq(hops, place + 1)
        for trail in (gold, false):
            key = trail[:, place]
            wrong = _other_values(answer, config, generator)
            named = wrong if trail is false else torch.cat([answer.unsqueeze(1), wrong[:, 1:]], dim=1)
            if place < high - 1:
                begin = place * (config.branches - 1)
                others = dead[:, begin : begin + config.branches - 1].clone()
                if trail is gold:
                    astray = leads_astray[:, place]
                    others[astray, 0] = false[astray, place + 1]
                links = torch.cat([trail[:, place + 1 : place + 2], others], dim=1)
                named = torch.where(leaf.unsqueeze(1), named, links)
            sign = _signs(topic[rows, key], config, generator)
            shuffle = torch.rand(named.shape, generator=generator).argsort(dim=1)
            there = place < hops
            kind[rows[there], key[there]] = torch.where(leaf, int(Kind.LEAF), int(Kind.INNER))[there]
            fields[rows[there], key[there]] = named.gather(1, shuffle)[there]
            signs[rows[there], key[there]] = sign.gather(1, shuffle)[there]
            if trail is gold:
                gold_place[rows[there], key[there]] = place
    return Questions(config, hops, gold[:, 0], answer, kind, topic, gold_place, fields, signs)


def _other_values(answer: Tensor, config: HuntConfig, generator: Generator) -> Tensor:
    """[questions, branches] distinct values, none of them the answer."""
    import torch

    score = torch.rand(len(answer), config.keys, generator=generator)
    score.scatter_(1, answer.unsqueeze(1), -1.0)
    return score.topk(config.branches, dim=1).indices


def _signs(topic: Tensor, config: HuntConfig, generator: Generator) -> Tensor:
    """[questions, branches] distinct signs, the first that of the topic (its own number: a net cannot tell)."""
    import torch

    score = torch.rand(len(topic), config.topics, generator=generator)
    score.scatter_(1, topic.unsqueeze(1), 2.0)
    return score.topk(config.branches, dim=1).indices


def search(questions: Questions, rows: Tensor, keys: Tensor, generator: Generator) -> Page:
    """What the runs ``rows`` [runs] get for the keys they ask [runs]. Reading the same page again reads it anew."""
    import torch

    config = questions.config
    kind, place = questions.kind[rows, keys], questions.gold_place[rows, keys]
    fields = questions.fields[rows, keys]
    missed = torch.rand(len(rows), generator=generator) < config.miss
    lies = torch.rand(fields.shape, generator=generator) < config.misread
    other = (fields + torch.randint(1, config.keys, fields.shape, generator=generator)) % config.keys
    read = torch.where(lies & (fields != NOTHING), other, fields)
    return Page(
        kind=torch.where(missed, int(Kind.MISSED), kind),
        topic=torch.where(missed, NOTHING, questions.topic[rows, keys]),
        gold_place=torch.where(missed, NOTHING, place),
        fields=torch.where(missed.unsqueeze(1), NOTHING, read),
        signs=torch.where(missed.unsqueeze(1), NOTHING, questions.signs[rows, keys]),
    )
