"""The control of a mask: as many segments, others."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


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
