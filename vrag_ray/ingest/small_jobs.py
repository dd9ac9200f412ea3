"""A few files without actors: the same stages, called one after another in this process.

Starting Ray and the actors of a graph takes some fifteen seconds on two cores, which a folder of notes, a report or
files that are known already are not worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import PurePath

from vrag_ray.config import Settings
from vrag_ray.corpus.sandbox.office import CONVERTED
from vrag_ray.corpus.sniff import SUFFIXES
from vrag_ray.ingest.graph import Job, Rows, decoded_tasks
from vrag_ray.ingest.plan import PlannedRange, task_from_json, waits
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import Source
from vrag_ray.ingest.stages import Decode
from vrag_ray.types import DocumentKind, Meta

MOST_FILES = 256
FILES_OF_AN_OFFICE_FILE = 16
"""As long takes the registration of a file that LibreOffice lays out."""
MOST_PAGES = 256
"""About ten seconds of decoding."""
MOST_LONG_TASKS = 3
"""Of scans and pictures: OCR takes seconds a page."""
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
    if len(late) > MOST_LONG_TASKS or _is_much([planned for _, ranges in read for planned in ranges]):
        return decoded_tasks(tasks, job)
    return _decoded_here(tasks, job)


def _is_much(ranges: Sequence[PlannedRange]) -> bool:
    pending = [planned for planned in ranges if planned.start < planned.stop]
    plans = {part.plan.doc_id: part.plan for part in pending}.values()
    return (
        any(plan.kind is DocumentKind.VIDEO for plan in plans)
        or sum(plan.size_bytes for plan in plans) > MOST_BYTES
        or sum(part.stop - part.start for part in pending) > MOST_PAGES
    )


def _decoded_here(tasks: Sequence[str], job: Job) -> Iterator[Rows]:
    with closing(Decode(job.root, job.settings, job.board)) as decode:
        for task in tasks:
            yield list(decode({"task": task}))
