"""Which queries and passages make up a step, and which passages count as negatives of which query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.training.retriever.pairs import Item, Pair
from vrag_ray.training.rollout.rollout import order
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch:
    """One step. ``targets`` [queries] is the place of each query's passage among ``passages``, which differ."""

    pairs: tuple[Pair, ...]
    passages: tuple[Item, ...]
    targets: tuple[int, ...]

    @property
    def queries(self) -> tuple[Item, ...]:
        return tuple(pair.query for pair in self.pairs)

    def allowed(self) -> Tensor:
        """[queries, passages], bool: the query's own passage, and those that do not answer it."""
        import torch

        rows = [
            [place == target or not pair.answered_by(passage) for place, passage in enumerate(self.passages)]
            for pair, target in zip(self.pairs, self.targets, strict=True)
        ]
        return torch.tensor(rows)


class Batches:
    """Steps without end over ``pairs``: every epoch has each passage once, in an order of its own.

    Passages that are left over when an epoch does not divide by ``batch`` wait for the next. Raises VragError where
    there is nothing to tell apart.
    """

    def __init__(self, pairs: Sequence[Pair], *, batch: int, queries: int, hard_negatives: int, seed: int) -> None:
        of_passage: dict[Item, list[Pair]] = {}
        for pair in pairs:
            for passage in pair.positives:
                of_passage.setdefault(passage, []).append(pair)
        self._passages = list(of_passage.items())
        if len(self._passages) < 2 and not any(pair.negatives for pair in pairs):
            raise VragError("there is one passage and no negative: a contrastive loss needs both")
        self._batch = min(batch, len(self._passages))
        self._queries = queries
        self._negatives = hard_negatives
        self._seed = seed

    @property
    def steps_an_epoch(self) -> int:
        return len(self._passages) // self._batch

    def of(self, step: int) -> Batch:
        """Step ``step``, from 0: the same for the same data and seed."""
        epoch, within = divmod(step, self.steps_an_epoch)
        places = order(len(self._passages), f"retriever/{self._seed}/{epoch}")
        chosen = [self._passages[place] for place in places[within * self._batch : (within + 1) * self._batch]]
        passages = {passage: place for place, (passage, _) in enumerate(chosen)}
        pairs: list[Pair] = []
        targets: list[int] = []
        for passage, queries in chosen:
            for pair in _in_turn(queries, epoch, self._queries):
                pairs.append(pair)
                targets.append(passages[passage])
        for pair in pairs:
            for negative in _in_turn(pair.negatives, epoch, self._negatives):
                passages.setdefault(negative, len(passages))
        return Batch(tuple(pairs), tuple(passages), tuple(targets))


def _in_turn(values: Sequence[T], epoch: int, count: int) -> list[T]:
    """``count`` different ones, those that follow the last epoch's."""
    taken = min(count, len(values))
    return [values[(epoch * taken + number) % len(values)] for number in range(taken)]
