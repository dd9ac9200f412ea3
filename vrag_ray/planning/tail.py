"""The slowest answers of a fan-out: every search waits for its slowest shard. A discrete-event simulation.

Searches arrive at random (Poisson). Each asks one replica of every shard, the replicas in turn, and is answered when
the last has answered. A replica serves ``servers`` searches at once, others wait in line. A service time is exponential
or constant around its mean; a straggler, one in n, takes a multiple of it (Dean and Barroso, "The Tail at
Scale", CACM 2013).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FanOutModel:
    """Times in seconds; ``stragglers`` is the probability of one."""

    qps: float
    shards: int
    replicas: int
    scan_s: float
    servers: int = 1
    is_exponential: bool = True
    stragglers: float = 0.0
    straggler_factor: float = 10.0
    lost: int = 0
    """One replica of one of n shards is gone, and the others have its searches."""

    @property
    def busy(self) -> float:
        """Of its time a replica that has most to do, on average; from 1 on its line grows without end."""
        mean_s = self.scan_s * (1 + self.stragglers * (self.straggler_factor - 1))
        return self.qps * mean_s / ((self.replicas - (self.lost > 0)) * self.servers)


def simulate(model: FanOutModel, searches: int, seed: int) -> NDArray[np.float64]:
    """Seconds until each of n searches is answered, [searches]. The same seed gives the same."""
    drawn = np.random.default_rng(seed)
    arrivals = np.cumsum(drawn.exponential(1 / model.qps, searches))
    answered = np.zeros(searches)
    for shard in range(model.shards):
        replicas = model.replicas - (shard < model.lost)
        times = np.full(searches, model.scan_s)
        if model.is_exponential:
            times = drawn.exponential(model.scan_s, searches)
        times[drawn.random(searches) < model.stragglers] *= model.straggler_factor
        for replica in range(replicas):
            mine = np.arange(replica, searches, replicas)
            ends = _queue(arrivals[mine], times[mine], model.servers)
            answered[mine] = np.maximum(answered[mine], ends)
    seconds: NDArray[np.float64] = answered - arrivals
    return seconds


def _queue(arrivals: NDArray[np.float64], times: NDArray[np.float64], servers: int) -> NDArray[np.float64]:
    """When each is done that comes to a line before n servers; first come, first served."""
    free = [0.0] * servers
    ends = np.empty(len(arrivals))
    for number, (arrival, time) in enumerate(zip(arrivals.tolist(), times.tolist(), strict=True)):
        ends[number] = max(arrival, heapq.heappop(free)) + time
        heapq.heappush(free, ends[number])
    return ends
