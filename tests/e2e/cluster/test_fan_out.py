"""Searches go on when a node with shards dies: its replicas elsewhere take over, and searches wait longer for it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.support.fan_out_nodes import SEARCHES, WHOLE, measured
from vrag_ray.planning.tail import simulate


# Quick form: ``tests/planning/test_tail``, the simulation against queueing theory. How near the simulation comes is
# printed by ``benchmarks/fan_out.py``: that takes a machine that does nothing else.
@pytest.mark.exhaustive
def test_every_search_is_answered_with_all_nodes_and_without_one_and_none_sooner_than_simulated() -> None:
    times = measured()
    assert times.lost == 2
    degraded = dataclasses.replace(WHOLE, lost=times.lost)
    assert degraded.busy < 1
    for model, seconds in ((WHOLE, times.whole), (degraded, times.degraded)):
        assert len(seconds) == SEARCHES
        soonest = min(float(np.median(simulate(model, SEARCHES, seed))) for seed in range(200))
        assert np.median(seconds) >= soonest
