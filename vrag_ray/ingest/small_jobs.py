"""A few files without actors: the same stages, called one after another in this process.

Starting the actors of a graph takes some ten CPU seconds, which a note, a handful of slides or files that are known
already are not worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from vrag_ray.config import Settings
from vrag_ray.ingest.graph import Job, Rows, decoded_tasks
from vrag_ray.ingest.plan import PlannedRange, cost_of, task_from_json, waits
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import Source
from vrag_ray.ingest.stages import Decode
from vrag_ray.types import DocumentKind, Meta

MOST_FILES = 16
MOST_PAGES = 48
"""Pages' worth of work: about five seconds with their vectors, the time in which a graph would start."""
MOST_BYTES = 2_000_000
"""Larger ones hold scans, which take long to read."""


def is_small(sources: Sequence[Source], settings: Settings) -> bool:
    """Whether so few files may be done here. With a configured number of actors, actors do them.

    They do rows of a Parquet file that are large together too: this process is not to hold them.
    """
    few = sum(source.documents for source in sources) <= MOST_FILES
    light = sum(source.rows.size_bytes for source in sources if source.rows is not None) <= MOST_BYTES
    return few and light and settings.ingest.concurrency is None


def decoded_few(sources: Sequence[Source], meta: Meta, job: Job) -> Iterator[Rows]:
    """Blocks of decoded units of at most ``MOST_FILES`` files; by a graph where they turn out to be much work.

    What takes long comes last.
    """
    with closing(Register(job.root, job.settings, job.committed, job.board)) as register:
        made = [task for made in register({"sources": [group_json(sources, meta)]}) for task in made["task"]]
    read = [(task, task_from_json(task)) for task in made]
    corpus = job.settings.corpus
    late = [task for task, ranges in read if waits(ranges, corpus)]
    tasks = [task for task, ranges in read if not waits(ranges, corpus)] + late
    if _is_much([planned for _, ranges in read for planned in ranges], job.settings):
        return decoded_tasks(tasks, job, any_slow=bool(late))
    return _decoded_here(tasks, job)


def _is_much(ranges: Sequence[PlannedRange], settings: Settings) -> bool:
    pending = [planned for planned in ranges if planned.start < planned.stop]
    plans = {part.plan.doc_id: part.plan for part in pending}.values()
    return (
        any(plan.kind is DocumentKind.VIDEO for plan in plans)
        or sum(plan.size_bytes for plan in plans) > MOST_BYTES
        or sum(cost_of(part, settings.corpus) for part in pending) > MOST_PAGES
    )


def _decoded_here(tasks: Sequence[str], job: Job) -> Iterator[Rows]:
    with closing(Decode(job.root, job.settings, job.board)) as decode:
        for task in tasks:
            yield list(decode({"task": task}))
