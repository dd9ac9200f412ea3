"""The plan for one file: which document it is, and which page ranges are still to be decoded."""

from __future__ import annotations

import json
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

from vrag_ray.config import CorpusConfig
from vrag_ray.corpus.model import NOTES_NAME, Sidecar, WorkItem
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.types import DocumentKind

SIDECARS = "subtitle_files"
"""The metadata name under which a video says which files beside it its subtitles are from."""
STYLES = "style_files"
"""The same of a web page and the style sheets beside it."""
MOST_FILES_OF_A_TASK = 64
"""Files that have nothing to decode cost a task no page."""
PAGES_OF_A_SCAN = 2
"""Of one task: OCR takes seconds a page, and no reader is to be left alone with the last ones."""
SCAN_SHARE = 0.25
"""Share of the pages of a document that OCR reads, from which on it takes long."""


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """What travels with every row of a document, so that the end of the graph can finish it. JSON both ways.

    ``pending`` counts the units this run will decode; ``prior_errors`` are those of units that an earlier run
    committed. ``doc_id`` is empty when the file could not even be read. ``transient`` says that the machine is the
    reason of ``error``, not the file.
    """

    uri: str
    name: str
    doc_id: str = ""
    kind: DocumentKind = DocumentKind.TEXT
    size_bytes: int = 0
    units: int = 0
    title: str = ""
    meta: dict[str, str | int | float | bool] = field(default_factory=dict)
    scans: int = 0
    """Units that OCR is going to read, as far as that is known before."""
    pending: int = 0
    prior_errors: dict[str, str] = field(default_factory=dict)
    skipped: bool = False
    error: str = ""
    transient: bool = False
    is_empty: bool = False
    """Whether the file has no bytes, which is its ``error``."""
    notices: list[str] = field(default_factory=list)
    """What of the whole document is left out or was guessed: those of single units travel with them."""
    sidecars: dict[str, str] = field(default_factory=dict)
    """Files with the subtitles of a video, by name: where each is, and once it is registered, its blob."""
    pictures: list[str] = field(default_factory=list)
    """What the pictures that it shows are named by, until it is registered."""
    pages: str = ""
    """The blob that its pages are read and drawn from: what LibreOffice made of an office file, or a web page with the
    style sheets beside it."""
    slides: str = ""
    """The blob with the speaker's notes of those pages, where they are slides."""
    fault: dict[str, str | int | bool | None] | None = None
    """A ``StorageFailure`` in JSON: not the file is at fault, and the run ends with it."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DocumentPlan:
        return _plan(json.loads(text))


@dataclass(frozen=True, slots=True)
class Committed:
    """What the collection holds already: finished documents, and units of unfinished ones."""

    finished: frozenset[str]
    """The ids of the documents that need no second look."""
    units: dict[str, dict[int, str]]
    """Of unfinished documents: error (or "") by unit that need not be decoded again."""
    counted: dict[str, int]
    """Of unfinished documents that have a row: how many units it counts."""
    sidecars: dict[str, str] = field(default_factory=dict)
    """By document id, the metadata that names the subtitles or style sheets beside it: with others it is to be read
    again."""

    containers: frozenset[str] = frozenset()
    """Finished documents that hold others, which may be missing: a run may have ended between the two."""

    def done(self, doc_id: str, units: int) -> dict[int, str]:
        """Error (or "") by unit that is committed, of a document that has ``units`` now.

        None where its row counts others: the clips of a video, for example, were of another length then.
        """
        return self.units.get(doc_id, {}) if self.counted.get(doc_id, units) == units else {}


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """Units ``start`` to ``stop`` of a document, by its plan; ``start`` is ``stop`` where nothing is to be decoded."""

    plan: DocumentPlan
    start: int
    stop: int

    @property
    def item(self) -> WorkItem:
        return WorkItem(self.plan.doc_id, self.plan.kind, self.start, self.stop, self.plan.name)


def takes_long(plan: DocumentPlan, config: CorpusConfig) -> bool:
    """Whether a page of the document takes many times as long as text: a clip, or what OCR reads."""
    if plan.kind is DocumentKind.VIDEO:
        return True
    is_picture = plan.kind is DocumentKind.IMAGE or (plan.scans > 0 and plan.scans >= SCAN_SHARE * plan.units)
    return config.ocr and is_picture


def pages_of_item(plan: DocumentPlan, config: CorpusConfig) -> int:
    """How many pages of the document one reader decodes together, at most."""
    is_scan = plan.kind is DocumentKind.PDF and takes_long(plan, config)
    return min(PAGES_OF_A_SCAN, config.pages_per_item) if is_scan else config.pages_per_item


def work_items(plan: DocumentPlan, done: AbstractCollection[int], pages_per_item: int) -> Iterable[WorkItem]:
    """The units not yet ``done``, in ranges that do not cross a multiple of ``pages_per_item``.

    Ranges are aligned and committed whole, so that a resumed run decodes the very ranges of an uninterrupted one.
    Only where ``pages_per_item`` was another then, a part of a range is done.
    """
    for first in range(0, plan.units, pages_per_item):
        missing = [unit for unit in range(first, min(first + pages_per_item, plan.units)) if unit not in done]
        for _, run in groupby(enumerate(missing), key=lambda pair: pair[1] - pair[0]):
            units = [unit for _, unit in run]
            yield WorkItem(plan.doc_id, plan.kind, units[0], units[-1] + 1, plan.name)


def planned_ranges(plan: DocumentPlan, items: Sequence[WorkItem]) -> list[PlannedRange]:
    """One for each item, or the one that only carries the plan of a document with nothing to decode."""
    return [PlannedRange(plan, item.start, item.stop) for item in items] or [PlannedRange(plan, 0, 0)]


def sidecar_files(plan: DocumentPlan, files: CollectionFiles) -> tuple[Sidecar, ...]:
    """The registered subtitles of a video, or the notes of slides, as files of this machine."""
    beside = {**plan.sidecars, **({NOTES_NAME: plan.slides} if plan.slides else {})}
    return tuple(Sidecar(files.local_path(f"blobs/{blob}"), name) for name, blob in beside.items())


def pages_file(plan: DocumentPlan, files: CollectionFiles) -> Path:
    """The file of this machine that the units of a registered document are read from."""
    return files.local_path(f"blobs/{plan.pages or plan.doc_id}")


def decode_tasks(ranges: Iterable[PlannedRange], config: CorpusConfig) -> Iterator[list[PlannedRange]]:
    """Neighbours that one call decodes: ranges of small files together, up to ``pages_per_item`` pages' worth of work.

    What takes long stays alone.
    """
    task: list[PlannedRange] = []
    room = 0
    for planned in ranges:
        cost = cost_of(planned, config)
        if task and (cost > room or len(task) == MOST_FILES_OF_A_TASK):
            yield task
            task = []
        if not task:
            room = config.pages_per_item
        task.append(planned)
        room -= cost
    if task:
        yield task


def cost_of(planned: PlannedRange, config: CorpusConfig) -> int:
    """What decoding it takes, in pages."""
    return max(planned.stop - planned.start, config.pages_per_item if is_long(planned, config) else 0)


def is_long(planned: PlannedRange, config: CorpusConfig) -> bool:
    """Whether decoding it takes long."""
    return planned.start < planned.stop and takes_long(planned.plan, config)


def waits(task: Sequence[PlannedRange], config: CorpusConfig) -> bool:
    """Whether the task is for the end, when everything that is read quickly can be searched already."""
    return any(is_long(part, config) for part in task)


def task_to_json(task: Sequence[PlannedRange]) -> str:
    """A plan once, also where several ranges are of it."""
    plans = {part.plan.uri: part.plan for part in task}
    ranges = [[part.plan.uri, part.start, part.stop] for part in task]
    return json.dumps({"plans": [asdict(plan) for plan in plans.values()], "ranges": ranges})


def task_from_json(text: str) -> list[PlannedRange]:
    values = json.loads(text)
    plans = {plan["uri"]: _plan(plan) for plan in values["plans"]}
    return [PlannedRange(plans[uri], start, stop) for uri, start, stop in values["ranges"]]


def _plan(values: dict[str, object]) -> DocumentPlan:
    return DocumentPlan(**(values | {"kind": DocumentKind(values["kind"])}))  # type: ignore[arg-type]
