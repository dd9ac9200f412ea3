"""A few files without actors: the same stages, called one after another in this process.

Starting Ray and the actors of a graph takes some fifteen seconds on two cores, which a folder of notes, a report or
files that are known already are not worth.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import PurePath
from queue import SimpleQueue

from vrag_ray.config import Settings
from vrag_ray.corpus.sandbox.office import CONVERTED
from vrag_ray.corpus.sniff import SUFFIXES
from vrag_ray.ingest.graph import Job, Rows, decoded_tasks
from vrag_ray.ingest.machine import own_readers
from vrag_ray.ingest.plan import PlannedRange, task_from_json, waits
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import Source
from vrag_ray.ingest.stages import Decode
from vrag_ray.types import DocumentKind, Meta

MOST_FILES = 256
FILES_OF_AN_OFFICE_FILE = 16
"""As long takes the registration of a file that LibreOffice lays out."""
MOST_PAGES = 128
"""For each child that decodes: about five seconds."""
MOST_LONG_TASKS = 2
"""For each child, of scans and pictures: OCR takes seconds a page."""
MOST_BYTES = 8_000_000


def is_small(sources: Sequence[Source], settings: Settings) -> bool:
    """Whether so few files may be done here. With a configured number of actors, actors do them.

    They do rows of a Parquet file that are large together too: this process is not to hold them.
    """
    files = sum(source.documents * (FILES_OF_AN_OFFICE_FILE if _is_office(source) else 1) for source in sources)
    light = sum(source.rows.size_bytes for source in sources if source.rows is not None) <= MOST_BYTES
    return files <= MOST_FILES and light and settings.ingest.concurrency is None


def _is_office(source: Source) -> bool:
    return SUFFIXES.get(PurePath(source.name).suffix.lower()) in CONVERTED


def decoded_few(sources: Sequence[Source], meta: Meta, job: Job) -> Generator[Rows]:
    """Blocks of decoded units of at most ``MOST_FILES`` files; by a graph where they turn out to be much work.

    What takes long comes last.
    """
    with closing(Register(job.root, job.settings, job.committed, job.board)) as register:
        made = [task for made in register({"sources": [group_json(sources, meta)]}) for task in made["task"]]
    read = [(task, task_from_json(task)) for task in made]
    corpus = job.settings.corpus
    late = [task for task, ranges in read if waits(ranges, corpus)]
    tasks = [task for task, ranges in read if not waits(ranges, corpus)] + late
    children = own_readers()
    if len(late) > MOST_LONG_TASKS * children or _is_much([part for _, ranges in read for part in ranges], children):
        return decoded_tasks(tasks, job)
    return _decoded_here(tasks, job, children)


def _is_much(ranges: Sequence[PlannedRange], children: int) -> bool:
    pending = [planned for planned in ranges if planned.start < planned.stop]
    plans = {part.plan.doc_id: part.plan for part in pending}.values()
    return (
        any(plan.kind is DocumentKind.VIDEO for plan in plans)
        or sum(plan.size_bytes for plan in plans) > MOST_BYTES
        or sum(part.stop - part.start for part in pending) > MOST_PAGES * children
    )


def _decoded_here(tasks: Sequence[str], job: Job, children: int) -> Generator[Rows]:
    """In the order of the tasks, by several children at once."""
    decoders = [Decode(job.root, job.settings, job.board) for _ in range(min(children, len(tasks)))]
    idle: SimpleQueue[Decode] = SimpleQueue()
    for decode in decoders:
        idle.put(decode)

    def decoded(task: str) -> Rows:
        decode = idle.get()
        try:
            return list(decode({"task": task}))
        finally:
            idle.put(decode)

    with ExitStack() as stack, ThreadPoolExecutor(max(1, len(decoders)), thread_name_prefix="decode") as pool:
        for decode in decoders:
            stack.callback(decode.close)
        try:
            yield from pool.map(decoded, tasks)
        finally:
            for decode in decoders:
                decode.stop()
