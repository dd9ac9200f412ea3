"""The simulation behind ``vrag plan`` against shards with two replicas on three nodes, and after one node's death.

``python -m benchmarks.fan_out``: percentiles of measured searches beside those of 200 simulated runs of as many. What a
search takes longer than in the simulation are calls between processes, on a machine that does other work too.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

from tests.support.fan_out_nodes import SEARCHES, WHOLE, measured
from vrag_ray.planning.tail import FanOutModel, simulate

PERCENTILES = (50, 90, 99)
RUNS = 200


def main() -> int:
    times = measured()
    lost = dataclasses.replace(WHOLE, lost=times.lost)
    compared("three nodes", WHOLE, times.whole)
    compared("two of three nodes", lost, times.degraded)
    return 0


def compared(name: str, model: FanOutModel, seconds: list[float]) -> None:
    """Print where 98 of a hundred simulated runs have each percentile, and where it was measured."""
    runs = np.array([np.percentile(simulate(model, SEARCHES, seed), PERCENTILES) for seed in range(RUNS)])
    low, high = np.percentile(runs, [1, 99], axis=0)
    for percent, least, value, most in zip(PERCENTILES, low, np.percentile(seconds, PERCENTILES), high, strict=True):
        print(f"{name}: p{percent} {value * 1e3:.0f} ms, simulated {least * 1e3:.0f} to {most * 1e3:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
