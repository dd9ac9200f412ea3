"""Masks beside the published one, to tell what in it does what. All are lists of "keeps its gradient" by segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from random import Random


def first_finds(found: Mapping[str, Set[int]], segment_nodes: Sequence[str | None]) -> frozenset[str]:
    """The nodes whose search brought a gold page that no node before them had brought.

    ``found`` holds the gold pages by node. As ``valuable`` of ``advantages.ggpo_keep`` it spares, in a failure, the
    find and not its repetition: searching again for what is there already keeps its price.
    """
    known: set[int] = set()
    first: set[str] = set()
    for node in segment_nodes:
        new = set(found.get(node, ())) - known if node is not None else set()
        if new and node is not None:
            first.add(node)
        known |= new
    return frozenset(first)


def shuffled_keep(
    keeps: Sequence[Sequence[bool]],
    segment_nodes: Sequence[Sequence[str | None]],
    answer_ids: Sequence[str | None],
    successes: Sequence[bool],
    random: Random,
) -> list[list[bool]]:
    """As many segments masked as in ``keeps``, of successes and of failures, but others, drawn by chance.

    The control of a mask: what of its effect comes from how many segments it takes, not from which. Each argument but
    the last has one entry a trajectory. Answers are never masked, as in the published mask.
    """
    mixed = [list(keep) for keep in keeps]
    for verdict in (True, False):
        places = [
            (run, place)
            for run, (nodes, answer_id) in enumerate(zip(segment_nodes, answer_ids, strict=True))
            if successes[run] is verdict
            for place, node in enumerate(nodes)
            if node is None or node != answer_id
        ]
        values = [keeps[run][place] for run, place in places]
        random.shuffle(values)
        for (run, place), value in zip(places, values, strict=True):
            mixed[run][place] = value
    return mixed
