"""What a step is made of: passages in turn, their queries in turn, and who is a negative of whom."""

from __future__ import annotations

import pytest

from vrag_ray.training.retriever.batches import Batches
from vrag_ray.training.retriever.pairs import Item, Pair
from vrag_ray.types import VragError

PASSAGES = [Item(f"passage {number}", labels=frozenset({f"group {number // 2}"})) for number in range(6)]


def pairs(queries: int = 3) -> list[Pair]:
    return [
        Pair(Item(f"query {number} of {passage.text}"), (passage,), (Item(f"not {passage.text} {number}"),))
        for passage in PASSAGES
        for number in range(queries)
    ]


def batches(pairs: list[Pair], *, batch: int = 3, queries: int = 2, hard_negatives: int = 0) -> Batches:
    return Batches(pairs, batch=batch, queries=queries, hard_negatives=hard_negatives, seed=1)


def test_an_epoch_has_every_passage_once_and_the_next_asks_other_queries():
    made = batches(pairs(4))
    assert made.steps_an_epoch == 2
    first, second = ([made.of(step) for step in steps] for steps in ((0, 1), (2, 3)))
    for epoch in (first, second):
        assert {passage for batch in epoch for passage in batch.passages} == set(PASSAGES)
    earlier, later = ({query for batch in epoch for query in batch.queries} for epoch in (first, second))
    assert len(earlier) == len(later) == 12
    assert not earlier & later
    assert made.of(3) == batches(pairs(4)).of(3)
    assert [batch.passages for batch in first] != [batch.passages for batch in second]


def test_targets_point_at_the_passages_that_answer():
    batch = batches(pairs()).of(0)
    for pair, target in zip(batch.pairs, batch.targets, strict=True):
        assert batch.passages[target] in pair.positives


def test_passages_that_answer_too_are_no_negatives():
    both = Pair(Item("both"), (PASSAGES[0], PASSAGES[2]))
    labelled = Pair(Item("labelled", labels=frozenset({"group 2"})), (PASSAGES[4],))
    rest = [Pair(Item(f"plain {number}"), (PASSAGES[number],)) for number in (1, 3, 5)]
    batch = Batches([both, labelled, *rest], batch=6, queries=2, hard_negatives=0, seed=0).of(0)
    allowed = batch.allowed()
    place = {passage: number for number, passage in enumerate(batch.passages)}
    for row, (pair, target) in enumerate(zip(batch.pairs, batch.targets, strict=True)):
        refused = {passage for passage, number in place.items() if not allowed[row, number]}
        own = batch.passages[target]
        answers = {both.query: set(both.positives), labelled.query: {PASSAGES[4], PASSAGES[5]}}
        assert refused == answers.get(pair.query, {own}) - {own}


def test_hard_negatives_are_passages_that_nobody_asks_for():
    batch = batches(pairs(), hard_negatives=1).of(0)
    assert len(batch.passages) == 3 + 6
    assert {pair.negatives[0] for pair in batch.pairs} == set(batch.passages[3:])
    assert bool(batch.allowed()[:, 3:].all())


def test_pairs_that_leave_nothing_to_distinguish_are_reported():
    alone = [Pair(Item("q"), (PASSAGES[0],))]
    with pytest.raises(VragError, match="one passage and no negative"):
        batches(alone)
    assert len(batches([Pair(Item("q"), (PASSAGES[0],), (PASSAGES[1],))], hard_negatives=1).of(0).passages) == 2
