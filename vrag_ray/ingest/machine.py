"""How the graphs of ingest use a machine."""

from __future__ import annotations

import logging
import os

ACTOR_CPUS = 0.1
"""Parallelism is set by pool sizes. Whole-CPU reservations of three pools would deadlock a small machine."""


def usable_cpus() -> int:
    """CPUs that really exist: the runtime tells Ray of more logical ones than that on a small machine."""
    import ray

    alive = [node for node in ray.nodes() if node["Alive"]]
    if len(alive) == 1:
        return os.cpu_count() or 1
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def without_ray_data_output() -> None:
    """Ray Data's own bars, plans and advice would fight with ours for the terminal."""
    from ray.data import DataContext

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # They would ask the user for memory reservations that this graph leaves to its pool sizes.
    context.issue_detectors_config.detectors = []
    logging.getLogger("ray.data").setLevel(logging.WARNING)
