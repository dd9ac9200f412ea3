"""The plan for one file: which document it is, and which page ranges are still to be decoded."""

from __future__ import annotations

import json
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import groupby

from vrag_ray.corpus.model import WorkItem
from vrag_ray.types import DocumentKind


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """What travels with every row of a document, so that the end of the graph can finish it. JSON both ways.

    ``pending`` counts the units this run will decode; ``prior_errors`` are those of units that an earlier,
    interrupted run committed. ``doc_id`` is empty when the file could not even be read.
    """

    uri: str
    name: str
    doc_id: str = ""
    kind: DocumentKind = DocumentKind.TEXT
    size_bytes: int = 0
    units: int = 0
    title: str = ""
    meta: dict[str, str | int | float | bool] = field(default_factory=dict)
    pending: int = 0
    prior_errors: dict[str, str] = field(default_factory=dict)
    skipped: bool = False
    error: str = ""
    fault: dict[str, str | int | bool | None] | None = None
    """A ``StorageFailure`` in JSON: not the file is at fault, and the run ends with it."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DocumentPlan:
        values = json.loads(text)
        return cls(**(values | {"kind": DocumentKind(values["kind"])}))


@dataclass(frozen=True, slots=True)
class Committed:
    """What the collection holds already: finished documents by embedder, and units of unfinished ones."""

    finished: dict[str, str]
    """Embedder id by document id, of the documents that need no second look."""
    units: dict[str, dict[int, str]]
    """Of documents without a row: error (or "") by unit, for the embedder in use."""


def work_items(plan: DocumentPlan, done: AbstractCollection[int], pages_per_item: int) -> Iterable[WorkItem]:
    """The units not yet ``done``, in ranges that do not cross a multiple of ``pages_per_item``.

    Ranges are aligned and committed whole, so that a resumed run embeds the very batches of an uninterrupted one
    and ends with the same bytes. Only where ``pages_per_item`` was another then, a part of a range is done.
    """
    for first in range(0, plan.units, pages_per_item):
        missing = [unit for unit in range(first, min(first + pages_per_item, plan.units)) if unit not in done]
        for _, run in groupby(enumerate(missing), key=lambda pair: pair[1] - pair[0]):
            units = [unit for _, unit in run]
            yield WorkItem(plan.doc_id, plan.kind, units[0], units[-1] + 1, plan.name)
