"""A few files without actors: the same stages, called one after another in this process.

Starting the actors of a graph takes some ten CPU seconds, which a note, a handful of slides or files that are known
already are not worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from vrag_ray.config import Settings
from vrag_ray.ingest.graph import Job, Rows, embedded_tasks
from vrag_ray.ingest.plan import PlannedRange, cost_of, task_from_json, waits
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import Source
from vrag_ray.ingest.stages import NO_UNIT, Decode, Embed
from vrag_ray.types import DocumentKind, Meta

MOST_FILES = 16
MOST_PAGES = 48
"""Pages' worth of decoding and embedding: about five seconds, the time in which a graph would start."""
MOST_BYTES = 2_000_000
"""Larger ones hold scans, which take longer to read than to embed."""


def is_small(sources: Sequence[Source], settings: Settings) -> bool:
    """Whether so few files may be done here. Whoever sets the number of actors, or gives them a GPU, gets actors.

    So do rows of a Parquet file that are large together: this process is not to hold them.
    """
    few = sum(source.documents for source in sources) <= MOST_FILES
    light = sum(source.rows.size_bytes for source in sources if source.rows is not None) <= MOST_BYTES
    return few and light and settings.ingest.concurrency is None and not settings.ingest.num_gpus


def embedded_few(sources: Sequence[Source], meta: Meta, job: Job) -> Iterator[Rows]:
    """Blocks of embedded units of at most ``MOST_FILES`` files; by a graph where they turn out to be much work.

    What takes long comes last.
    """
    with closing(Register(job.root, job.settings, job.embedder_id, job.committed, job.board)) as register:
        made = [task for made in register({"sources": [group_json(sources, meta)]}) for task in made["task"]]
    read = [(task, task_from_json(task)) for task in made]
    corpus = job.settings.corpus
    late = [task for task, ranges in read if waits(ranges, corpus)]
    tasks = [task for task, ranges in read if not waits(ranges, corpus)] + late
    if _is_much([planned for _, ranges in read for planned in ranges], job.settings):
        return embedded_tasks(tasks, job, any_slow=bool(late))
    return _embedded_here(tasks, job)


def _is_much(ranges: Sequence[PlannedRange], settings: Settings) -> bool:
    pending = [planned for planned in ranges if planned.start < planned.stop]
    plans = {part.plan.doc_id: part.plan for part in pending}.values()
    return (
        any(plan.kind is DocumentKind.VIDEO for plan in plans)
        or sum(plan.size_bytes for plan in plans) > MOST_BYTES
        or sum(cost_of(part, settings.corpus) for part in pending) > MOST_PAGES
    )


def _embedded_here(tasks: Sequence[str], job: Job) -> Iterator[Rows]:
    import pyarrow as pa

    embed: Embed | None = None
    with closing(Decode(job.root, job.settings, job.board)) as decode:
        for task in tasks:
            rows = list(decode({"task": task}))
            if all(row["unit"] == NO_UNIT for row in rows):
                # Files that are known need no model.
                yield rows
                continue
            embed = embed or Embed(job.settings, job.board)
            yield embed(pa.Table.from_pylist(rows)).to_pylist()
