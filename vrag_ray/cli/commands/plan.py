"""``vrag plan``: what a service of a given size needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vrag_ray.cli.options import JsonFlag
from vrag_ray.types.copies import with_changes

MOST_SHARDS = 20_000


def plan(
    pages: Annotated[float, typer.Option(help="Pages in the collection, such as 1e8.")],
    space: Annotated[
        str, typer.Option(help="What a page becomes: text-384, bge-m3, qwen3-vl-2b, qwen3-vl-8b, gve-7b or colqwen2.")
    ] = "text-384",
    qps: Annotated[float, typer.Option(help="Searches a second.")] = 10.0,
    latency_ms: Annotated[float, typer.Option(help="What one scan of a shard may take.")] = 500.0,
    scanned: Annotated[float, typer.Option(help="Fraction of the rows that a search looks at: 1 for `flat`.")] = 1.0,
    node_ram_gb: Annotated[float, typer.Option(help="Memory of a node.")] = 128.0,
    node_cores: Annotated[int, typer.Option(help="Cores of a node.")] = 16,
    shard_cores: Annotated[int, typer.Option(help="Cores of a shard (`index.threads`).")] = 4,
    replicas: Annotated[int, typer.Option(help="Copies of each shard; 2 survive a lost node.")] = 1,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs that embed; 0: embed on the nodes' cores.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Pages that a GPU embeds at once.")] = 8,
    rl_workers: Annotated[
        int, typer.Option(help="Workers of a `vrag train rl` that searches it; each has its own copy.")
    ] = 0,
    stragglers: Annotated[float, typer.Option(help="Fraction of scans that take ten times as long.")] = 0.01,
    units: Annotated[Path | None, typer.Option(help="JSON file of unit figures with their sources.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compute shards, memory, nodes, load time, ingest hours and storage from unit figures measured or given."""
    from vrag_ray.planning.memory_plan import embedding_phase, searching_bytes
    from vrag_ray.planning.plan import Need
    from vrag_ray.planning.plan import plan as planned
    from vrag_ray.planning.units import SPACES, read_units
    from vrag_ray.types import VragError

    if space not in SPACES:
        raise VragError(f"there is no space {space}: choose one of {', '.join(SPACES)}")
    figures = read_units(units)
    if gpus:
        figures = with_changes(figures, {"pages_per_gpu_s": figures.on_gpu(SPACES[space])})
    need = Need(
        pages=pages,
        space=SPACES[space],
        qps=qps,
        latency_s=latency_ms / 1e3,
        scanned=scanned,
        node_memory_bytes=node_ram_gb * 1e9,
        node_cores=node_cores,
        shard_cores=shard_cores,
        gpus=gpus,
        replicas=replicas,
        rl_workers=rl_workers,
    )
    embedder = need.space.embedder
    embedding_bytes = embedding_phase(embedder, batch).total if embedder else None
    rl_gpu_bytes = searching_bytes([embedder]) if embedder else 0.0
    made = planned(need, figures)
    median, slowest = _waits(made.shards, replicas, made.scan_s, qps, stragglers)
    if as_json:
        result = {
            **asdict(made),
            "embedding_bytes": embedding_bytes,
            "rl_gpu_bytes": rl_gpu_bytes if rl_workers else 0.0,
            "p50_s": median,
            "p99_s": slowest,
            "units": figures.model_dump(),
        }
        typer.echo(json.dumps(result))
        return
    unknown = "not known: nobody measured this embedder there; give --gpus, and pages_per_gpu_s in --units"
    ingest = unknown if made.ingest_s is None else _hours(made.ingest_s)
    training = (
        f", {made.training_s:,.0f} s of it to train its inverted file (ivf_sq, computed)" if made.training_s else ""
    )
    lines = [
        ("rows", f"{made.rows:,.0f}, {need.space.dims} dimensions ({need.space.source})"),
        ("shards", f"{made.shards:,}, {replicas} {'copy' if replicas == 1 else 'copies'} of each"),
        ("memory", f"{made.memory_bytes / 1e9:,.1f} GB of vectors, ids and filters"),
        ("nodes", f"{made.nodes:,} of {node_ram_gb:g} GB and {node_cores} cores; follows from {made.bound_by}"),
        ("cores", f"{made.search_cores:,.1f} busy at {qps:g} searches/s"),
        ("a scan", f"{made.scan_s * 1e3:,.0f} ms in a shard"),
        ("waits", f"{median * 1e3:,.0f} ms in the middle, {slowest * 1e3:,.0f} ms for one in a hundred (simulated)"),
        ("start", f"{made.load_s:,.0f} s until a shard that starts anew answers{training}"),
        ("storage", f"{made.disk_bytes / 1e9:,.1f} GB"),
        ("ingest", ingest),
    ]
    if embedding_bytes is not None:
        lines.append(
            ("embedder", f"{embedding_bytes / 1e9:,.1f} GB of a GPU for {batch} pages of {embedder} at once (computed)")
        )
    if rl_workers:
        on_gpu = f", and on each worker's GPU {rl_gpu_bytes / 1e9:,.1f} GB of {embedder} (computed)" if embedder else ""
        lines.append(
            (
                "training",
                f"{made.rl_memory_bytes / 1e9:,.1f} GB of main memory for {rl_workers} copies, one a worker, beside "
                f"the above{on_gpu}",
            )
        )
    for name, text in lines:
        typer.echo(f"{name:8} {text}")
    typer.echo("\nFrom these figures (replace them with --units):")
    for name, figure in figures:
        if figure is not None:
            typer.echo(f"  {name:24} {figure.value:>18,.3f}  {figure.source}")


def _waits(shards: int, replicas: int, scan_s: float, qps: float, stragglers: float) -> tuple[float, float]:
    import numpy as np

    from vrag_ray.planning.tail import FanOutModel, simulate
    from vrag_ray.types import VragError

    # A shard's scan takes all of its cores: it serves one search at a time. Enough searches for the tail, and few
    # enough events for thousands of shards.
    searches = max(500, min(20_000, 2_000_000 // shards))
    model = FanOutModel(
        qps, shards, replicas, scan_s, is_exponential=False, stragglers=stragglers, straggler_factor=10.0
    )
    if shards > MOST_SHARDS:
        raise VragError(
            f"{shards:,} shards are more than the {MOST_SHARDS:,} whose waits are simulated: give fewer --pages, more "
            "--latency-ms, --shard-cores or --node-ram-gb, or a smaller part of the rows with --scanned"
        )
    if not 0 <= stragglers <= 1:
        raise VragError(f"stragglers is {stragglers:g}: give a part of the scans, 0 to 1")
    if model.busy >= 1:
        raise VragError(
            f"with {stragglers:g} of the scans ten times as long a shard is busy for {model.busy:.2f} of the time, and "
            "searches would wait ever longer: give more --replicas"
        )
    median, slowest = np.percentile(simulate(model, searches, seed=0), [50, 99])
    return float(median), float(slowest)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours" if seconds >= 3600 else f"{seconds / 60:,.1f} minutes"
