"""The simulation behind `vrag plan` against shards with two replicas on three nodes, and after one node's death."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.fan_out_nodes import SEARCHES, WHOLE
from tests.support.paths import ROOT
from vrag_ray.planning.tail import FanOutModel, simulate

PERCENTILES = (50, 90, 99)
CALLS_S = 0.03
"""At most so much more than in the simulation: calls between processes on a machine that does other work."""


def agreement(name: str, model: FanOutModel, seconds: list[float]) -> None:
    """Each percentile lies where 98 of a hundred simulated runs of as many searches have it, but for the calls."""
    runs = np.array([np.percentile(simulate(model, SEARCHES, seed), PERCENTILES) for seed in range(200)])
    low, high = np.percentile(runs, [1, 99], axis=0)
    measured = np.percentile(seconds, PERCENTILES)
    for percent, least, value, most in zip(PERCENTILES, low, measured, high, strict=True):
        print(f"{name}: p{percent} {value * 1e3:.0f} ms, simulated {least * 1e3:.0f} to {most * 1e3:.0f} ms")
    assert np.all(low <= measured), name
    assert np.all(measured <= high + CALLS_S), name


# Quick form: ``tests/planning/test_tail``, the simulation against queueing theory.
@pytest.mark.exhaustive
def test_searches_wait_as_long_as_the_simulation_says_with_all_nodes_and_without_one(tmp_path: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("VRAG_", "RAY_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), bare.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "tests.support.fan_out_nodes"]
    environment = bare | {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=True, timeout=300)
    told = json.loads(done.stdout)
    assert told["lost"] == 2
    degraded = dataclasses.replace(WHOLE, lost=told["lost"])
    assert degraded.busy < 1
    agreement("three nodes", WHOLE, told["whole"])
    agreement("two of three nodes", degraded, told["degraded"])
    assert np.percentile(told["degraded"], 90) > np.percentile(told["whole"], 90)
