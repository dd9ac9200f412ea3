"""The Ray Data graph of ingest: register → decode, a pool of actors each, streaming."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.cluster import require_ray
from vrag_ray.config import Settings
from vrag_ray.ingest.machine import ACTOR_CPUS, readers, usable_cpus, usable_memory, without_ray_data_output
from vrag_ray.ingest.plan import Committed
from vrag_ray.ingest.progress import MovingBoard
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import Source, grouped
from vrag_ray.ingest.stages import LATER, Decode
from vrag_ray.types import Meta

if TYPE_CHECKING:
    import ray.data

Rows = Sequence[Mapping[str, object]]
"""One block of the decode stage, as the committer takes it."""

SPLITTING_CPUS = 1.0
"""What the repartition between the two pools may use: one task at a time."""


@dataclass(frozen=True, slots=True)
class Job:
    """What every stage of one ingest needs to know."""

    root: str
    settings: Settings
    committed: Committed
    board: MovingBoard


def decoded_sources(sources: Sequence[Source], meta: Meta, job: Job) -> Generator[Rows]:
    """Blocks of decoded units of many files, registered by actors too.

    What takes long waits until everything else is done, so that it can be searched: a second graph decodes that.
    """
    require_ray()
    import ray.data
    from ray.data import ActorPoolStrategy

    without_ray_data_output()
    # Reading takes longer than hashing and probing.
    registers = max(1, usable_cpus() // 2)
    decoders = readers(usable_cpus(), usable_memory())
    groups = [{"sources": group_json(group, meta)} for group in grouped(sources, registers)]
    files = ray.data.from_items(groups, override_num_blocks=len(groups))
    # The repartition below splits a few rows. Without a limit, Ray Data starts a worker for it on every CPU, and each
    # takes 2.8 CPU seconds to import Ray Data.
    options = files.context.execution_options
    options.resource_limits = options.resource_limits.copy(cpu=ACTOR_CPUS * (registers + decoders) + SPLITTING_CPUS)
    tasks = files.map_batches(
        Register,
        batch_size=1,
        fn_constructor_args=(job.root, job.settings, job.committed, job.board.shared()),
        compute=ActorPoolStrategy(size=min(registers, len(groups))),
        num_cpus=ACTOR_CPUS,
    ).repartition(target_num_rows_per_block=1)
    later: list[str] = []
    for rows in _decoded(tasks, job, decoders=decoders, puts_off=True):
        later += [str(row["plan"]) for row in rows if row["unit"] == LATER]
        if done := [row for row in rows if row["unit"] != LATER]:
            yield done
    if later:
        yield from decoded_tasks(later, job)


def decoded_tasks(tasks: Sequence[str], job: Job) -> Generator[Rows]:
    """Blocks of decoded units of decode tasks that are registered already, about in their order."""
    require_ray()
    import ray.data

    without_ray_data_output()
    rows = ray.data.from_items([{"task": task} for task in tasks], override_num_blocks=len(tasks))
    return _decoded(rows, job, decoders=readers(usable_cpus(), usable_memory()), puts_off=False)


def _decoded(tasks: ray.data.Dataset, job: Job, *, decoders: int, puts_off: bool) -> Generator[Rows]:
    from ray.data import ActorPoolStrategy

    units = tasks.flat_map(
        Decode,
        fn_constructor_args=(job.root, job.settings, job.board.shared(), puts_off),
        compute=ActorPoolStrategy(size=decoders),
        num_cpus=ACTOR_CPUS,
    )
    for block in units.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield block.to_pylist()
