"""The three actor stages of the graph. Each handles its own bad input, because Ray Data's unit of failure is a block.

What travels between them, heavy columns dropped where they were last used:
``Register``: a source → rows of ``plan`` (JSON) and one ``start``/``stop`` range each; file bytes never travel.
``Decode``: a range → one row a unit: ``plan``, ``unit``, ``error``, ``passages`` (JSON without text) and ``texts``.
``Embed``: the same plus ``vectors``, one fp16 byte string a window, empty where the window has no vector.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from vrag_ray.config import Settings
from vrag_ray.corpus.model import DecodeError, DecodeOptions, WorkItem
from vrag_ray.corpus.passages import passages_of
from vrag_ray.corpus.sandbox.isolate import decode_isolating, failed_unit
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.embedding.base import Content, EmbedError
from vrag_ray.embedding.registry import load_embedder
from vrag_ray.index.storage.errors import StorageError, StorageFault, fault_of, storage_faults
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import passage_to_json
from vrag_ray.ingest.plan import Committed, DocumentPlan, work_items

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.actor import ActorHandle

NO_UNIT = -1
"""The ``unit`` of a row that only carries a plan, for a document with nothing to decode."""


class Register:
    """A source file → its blob in the collection, its plan, and its ranges that are still to be decoded."""

    def __init__(
        self, root: str, settings: Settings, embedder_id: str, committed: Committed, board: ActorHandle
    ) -> None:
        self._files = CollectionFiles(root)
        self._settings, self._embedder_id, self._committed = settings, embedder_id, committed
        self._options = DecodeOptions.from_config(settings.corpus)
        self._sandbox = Sandbox(settings.corpus.limits)
        self._board, self._worker = board, uuid4().hex

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> Iterator[dict[str, list[str | int]]]:
        """``batch`` has one row: a map over batches, unlike one over rows, is joined with the repartition after it."""
        began = time.perf_counter()
        row = {name: str(column[0]) for name, column in batch.items()}
        try:
            with storage_faults(self._files.root, f"taking in {row['name']}"):
                plan = self._plan(row)
        except StorageError as error:
            # In a row, since an exception in a stage would reach the driver as a stack trace of Ray's.
            plan = DocumentPlan(uri=row["uri"], name=row["name"], fault=error.failure.as_dict())
        done = self._committed.units.get(plan.doc_id, {})
        items = (
            []
            if plan.skipped or plan.error or plan.fault
            else list(work_items(plan, done, self._settings.corpus.pages_per_item))
        )
        pending = sum(item.stop - item.start for item in items)
        prior = {str(unit): error for unit, error in done.items() if error}
        plan = replace(plan, pending=pending, prior_errors=prior)
        self._board.add.remote("register", self._worker, pending, time.perf_counter() - began, plan.uri)
        text = plan.to_json()
        if not items:
            yield {"plan": [text], "start": [0], "stop": [0]}
        for item in items:
            yield {"plan": [text], "start": [item.start], "stop": [item.stop]}

    def _plan(self, row: Mapping[str, str]) -> DocumentPlan:
        """Everything about the file short of decoding it; a file that cannot be read gets a plan with its error."""
        plan = DocumentPlan(uri=row["uri"], name=row["name"], meta=json.loads(row["meta"]))
        limit_mb = self._settings.corpus.limits.max_file_mb
        try:
            size = Path(row["path"]).stat().st_size
            if size > limit_mb << 20:
                return replace(plan, error=f"{plan.name} has {size >> 20} MB, over the limit of {limit_mb} MB")
            if size == 0:
                return replace(plan, error=f"{plan.name} is empty")
            doc_id, size = self._files.add_blob(Path(row["path"]))
        except OSError as error:
            if fault_of(error) is StorageFault.TOO_MANY_FILES:
                raise
            return replace(plan, error=f"{plan.name} cannot be read: {error.strerror or error}")
        plan = replace(plan, doc_id=doc_id, size_bytes=size)
        if self._committed.finished.get(doc_id) == self._embedder_id:
            return replace(plan, skipped=True)
        try:
            probe = self._sandbox.probe(self._files.local_path(f"blobs/{doc_id}"), plan.name, self._options)
        except DecodeError as error:
            return replace(plan, error=str(error))
        meta = {**probe.meta, **plan.meta}
        return replace(plan, kind=probe.kind, units=probe.units, title=probe.title, meta=meta)


class Decode:
    """A range of units → one row a unit, in a killable child. A unit that cannot be read has an error and no text."""

    def __init__(self, root: str, settings: Settings, board: ActorHandle) -> None:
        self._files = CollectionFiles(root)
        self._config = settings.corpus
        self._options = DecodeOptions.from_config(settings.corpus)
        self._sandbox = Sandbox(settings.corpus.limits)
        self._board, self._worker = board, uuid4().hex

    def __call__(self, row: Mapping[str, str | int]) -> Iterator[dict[str, object]]:
        began = time.perf_counter()
        plan = DocumentPlan.from_json(str(row["plan"]))
        item = WorkItem(plan.doc_id, plan.kind, int(row["start"]), int(row["stop"]), plan.name)
        if item.start == item.stop:
            yield {"plan": row["plan"], "unit": NO_UNIT, "error": "", "passages": "[]", "texts": list[str]()}
            return
        try:
            with storage_faults(self._files.root, f"reading {plan.name} from it"):
                path = self._files.local_path(f"blobs/{plan.doc_id}")
                units = decode_isolating(self._sandbox, path, item, self._options)
        except StorageError as error:
            text = replace(plan, fault=error.failure.as_dict()).to_json()
            yield {"plan": text, "unit": NO_UNIT, "error": "", "passages": "[]", "texts": list[str]()}
            return
        except (DecodeError, OSError) as error:
            units = [failed_unit(item, unit, self._options, str(error)) for unit in range(item.start, item.stop)]
        self._board.add.remote("decode", self._worker, len(units), time.perf_counter() - began, plan.uri)
        for unit in units:
            passages = passages_of(plan.doc_id, unit, self._config, plan.meta)
            yield {
                "plan": row["plan"],
                "unit": unit.unit,
                "error": unit.error,
                "passages": json.dumps([passage_to_json(passage) for passage in passages]),
                "texts": [passage.text for passage in passages],
            }


class Embed:
    """Windows → vectors, a block at a time, so that one call sees windows of many pages and can sort them.

    A text that the embedder refuses has none, and ``unembedded`` says why: it is found by its words all the same.
    """

    def __init__(self, settings: Settings, board: ActorHandle) -> None:
        self._embedder = load_embedder(settings.embedder).embedder
        self._batch = settings.embedder.batch_windows
        self._board, self._worker = board, uuid4().hex
        board.embedder_ready.remote()

    def __call__(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        began = time.perf_counter()
        texts: list[list[str]] = batch["texts"].to_pylist()
        wanted = [text for unit in texts for text in unit if text.strip()]
        found = self._vectors(wanted)
        column: list[list[bytes]] = []
        refusals: list[str] = []
        for unit in texts:
            vectors = [next(found) if self._embedder and text.strip() else b"" for text in unit]
            refusals.append(next((str(vector) for vector in vectors if isinstance(vector, EmbedError)), ""))
            column.append([b"" if isinstance(vector, EmbedError) else vector for vector in vectors])
        pages = sum(unit != NO_UNIT for unit in batch["unit"].to_pylist())
        self._board.add.remote("embed", self._worker, pages, time.perf_counter() - began)
        batch = batch.append_column("unembedded", pa.array(refusals, pa.string()))
        return batch.append_column("vectors", pa.array(column, pa.list_(pa.large_binary())))

    def _vectors(self, texts: Sequence[str]) -> Iterator[bytes | EmbedError]:
        """The vector of each text in half precision, or why it has none; nothing without an embedder."""
        if self._embedder is None:
            return
        for start in range(0, len(texts), self._batch):
            contents = [Content(text) for text in texts[start : start + self._batch]]
            for one in self._embedder.embed_passages(contents):
                yield one if isinstance(one, EmbedError) else one.vectors[0].astype(np.float16).tobytes()
