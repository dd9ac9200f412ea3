"""Shards, memory, nodes, hours: from the number of pages and the load to what a cluster must have.

Symbols of the formulas, as docs/planning.md writes them: P pages, r rows a page, b bytes of a row in memory, d
dimensions, f the fraction of the rows that an index scans, c cores of a shard, q searches a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt

from vrag_ray.planning.units import SpaceSize, Units
from vrag_ray.types import VragError

USABLE_MEMORY = 0.7
"""Of a node, for shards: Ray, the parts and a refresh need the rest."""
USABLE_CORES = 0.6
"""Busy above it, waiting times grow faster than the load."""
KMEANS_ROUNDS, POINTS_OF_A_LIST = 10, 256
"""Of FAISS where it trains an inverted file: its rounds, and the most rows of each list that they look at."""


@dataclass(frozen=True, slots=True)
class Need:
    """The requirements. ``scanned`` is the fraction of the rows that a search looks at: 1 for an exact index."""

    pages: float
    space: SpaceSize
    qps: float
    latency_s: float = 0.5
    scanned: float = 1.0
    node_memory_bytes: float = 128e9
    node_cores: int = 16
    shard_cores: int = 4
    gpus: int = 0
    replicas: int = 1
    """Of each shard: 2 and more go on when a node is lost."""
    rl_workers: int = 0
    """Workers of a reinforcement run that searches the collection: each opens it for itself."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``ingest_s`` is None where the speed of the space's embedder is not known."""

    rows: float
    memory_bytes: float
    shards: int
    nodes: int
    scan_s: float
    """Of one search in one shard."""
    search_cores: float
    """Busy with scanning and serving at ``qps``."""
    load_s: float
    """Until a shard that starts anew answers, training included."""
    training_s: float
    """Of these, for the inverted file of a shard (``ivf_sq``), which is trained whenever it starts; 0 for an exact
    index."""
    disk_bytes: float
    ingest_s: float | None
    bound_by: str
    """What the number of nodes follows from: memory, latency or load."""
    rl_memory_bytes: float
    """Of main memory, for the copies of ``rl_workers``; beside what the nodes of the service have."""


def plan(need: Need, units: Units) -> Plan:
    """Raises VragError for numbers that mean nothing."""
    _check(need)
    rows = need.pages * need.space.rows_per_page
    row_bytes = need.space.vector_bytes_per_page / need.space.rows_per_page + units.row_overhead_bytes.value
    memory = rows * row_bytes
    node_memory = need.node_memory_bytes * USABLE_MEMORY

    compared = need.pages * need.space.vectors_per_page * need.scanned
    products = compared * need.space.dims * (units.query_vectors.value if need.space.late else 1)
    core_s = products / units.products_per_core_s.value

    for_memory = ceil(memory / node_memory)
    for_latency = ceil(core_s / (need.shard_cores * need.latency_s))
    # Of more shards each scan is shorter: that takes the load without another copy of the vectors.
    for_load = ceil(need.qps * core_s / (need.shard_cores * need.replicas * USABLE_CORES))
    shards = max(1, for_memory, for_latency, for_load)
    scan_s = core_s / shards / need.shard_cores

    scanning, serving = need.qps * core_s, need.qps * units.request_core_s.value
    by_memory = ceil(memory * need.replicas / node_memory)
    # A shard's cores are there for the others between its scans.
    at_once, busy = shards * need.replicas * need.shard_cores, (scanning + serving) / USABLE_CORES
    nodes = max(1, by_memory, ceil(max(at_once, busy) / need.node_cores))
    bound_by = "memory" if nodes == by_memory else "latency" if for_latency > for_load else "load"

    speed = None
    on_gpu = units.on_gpu(need.space)
    if need.gpus and on_gpu is not None:
        speed = on_gpu.value * need.gpus
    elif not need.gpus and need.space.is_measured_on_cores:
        speed = units.pages_per_core_s.value * nodes * need.node_cores
    training_s = _training_products(rows / shards, need) / units.products_trained_per_core_s.value / need.shard_cores
    disk = need.pages * units.original_bytes_per_page.value + rows * units.row_disk_bytes.value
    return Plan(
        rows=rows,
        memory_bytes=memory * need.replicas,
        shards=shards,
        nodes=nodes,
        scan_s=scan_s,
        search_cores=scanning + serving,
        load_s=rows / shards / units.rows_loaded_s.value + training_s,
        training_s=training_s,
        disk_bytes=disk + need.pages * need.space.vector_bytes_per_page,
        ingest_s=need.pages / speed if speed is not None else None,
        bound_by=bound_by,
        rl_memory_bytes=memory * need.rl_workers,
    )


def _training_products(rows: float, need: Need) -> float:
    """Multiplications of k-means over the rows of a shard and of sorting each row into its list: as many lists as the
    square root of the rows. Late interaction and exact indexes train nothing."""
    if need.scanned == 1 or need.space.late:
        return 0.0
    lists = sqrt(rows)
    return (KMEANS_ROUNDS * min(rows, POINTS_OF_A_LIST * lists) + rows) * lists * need.space.dims


def _check(need: Need) -> None:
    for name in ("pages", "qps", "latency_s", "node_memory_bytes", "node_cores", "shard_cores", "replicas"):
        if not 0 < getattr(need, name) < inf:
            raise VragError(f"{name} is {getattr(need, name):g}: give a number above 0")
    if need.rl_workers < 0:
        raise VragError(f"rl_workers is {need.rl_workers}: give 0 (no training) or more")
    if not 0 < need.scanned <= 1:
        raise VragError(
            f"scanned is {need.scanned:g}: give the fraction of rows that a search looks at, above 0 up to 1"
        )
    if need.shard_cores > need.node_cores:
        raise VragError(f"a shard of {need.shard_cores} cores does not fit a node of {need.node_cores}")
