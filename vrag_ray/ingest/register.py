"""The first stage of the graph: sources become blobs of the collection, and plans of what is to be decoded."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import TypedDict
from urllib.parse import quote
from uuid import uuid4

from vrag_ray.config import OfficeUse, Settings
from vrag_ray.corpus.formats.attachments import ATTACHMENTS
from vrag_ray.corpus.formats.references import MARKDOWN_SUFFIXES
from vrag_ray.corpus.model import DecodeError, DecodeOptions, Probe, WorkItem, with_name
from vrag_ray.corpus.passages import LONGEST_NOTICE
from vrag_ray.corpus.sandbox.isolate import with_remedy
from vrag_ray.corpus.sandbox.office import CONVERTED, OfficeConverter, installed_office
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.corpus.sniff import HEAD_BYTES, OFFICE_REMEDIES, SUFFIXES, Format, fitting_name, may_be_office
from vrag_ray.index.storage.errors import StorageError, StorageFault, fault_of, storage_faults
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.ingest.object_store import is_remote, local_copy, size_of
from vrag_ray.ingest.parquet.layout import RowRange
from vrag_ray.ingest.parquet.rows import row_documents
from vrag_ray.ingest.pictures import pictures_of
from vrag_ray.ingest.plan import (
    SIDECARS,
    STYLES,
    Committed,
    DocumentPlan,
    decode_tasks,
    pages_file,
    pages_of_item,
    planned_ranges,
    sidecar_files,
    takes_long,
    task_to_json,
    work_items,
)
from vrag_ray.ingest.progress import Board, Work
from vrag_ray.ingest.report import unforeseen
from vrag_ray.ingest.sources import MOST_FILES_OF_A_GROUP, Source
from vrag_ray.ingest.web_styles import with_local_sheets
from vrag_ray.types import Meta, MetaValue
from vrag_ray.types.file_names import shown_name

log = logging.getLogger("vrag_ray.ingest")

DEEPEST = 3
"""A message in a message in a message: what is attached to that is left out, with a notice."""
MOST_ATTACHED = 1000
"""Documents inside one file."""
ATTACHED_TO = "attached_to"
"""The metadata name under which a document names the document that it was found in."""

Original = str | bytes | OSError
"""Where a document's file is (a path, or a URI of an object store), or its bytes, or why there are none."""


class SourceRow(TypedDict):
    """A ``Source`` as JSON, with the user's metadata."""

    path: str
    uri: str
    name: str
    meta: dict[str, MetaValue]
    rows: dict[str, int | str] | None
    error: str
    sidecars: Sequence[str]
    folder: str
    walked: bool


def group_json(group: Sequence[Source], meta: Meta) -> str:
    """The input of one call of ``Register``; ``meta`` is the metadata of all."""
    rows = [
        SourceRow(
            path=str(source.path),
            uri=source.uri,
            name=source.name,
            meta={**meta, **source.meta},
            rows=asdict(source.rows) if source.rows is not None else None,
            error=source.error,
            sidecars=source.sidecars,
            folder=source.folder,
            walked=source.walked,
        )
        for source in group
    ]
    return json.dumps(rows)


class Register:
    """Sources → their blobs in the collection, their plans, and their ranges that are still to be decoded."""

    def __init__(self, root: str, settings: Settings, committed: Committed, board: Board) -> None:
        self._files = CollectionFiles(root)
        self._settings, self._committed = settings, committed
        self._options = DecodeOptions.from_config(settings.corpus)
        self._sandbox = Sandbox(settings.corpus.limits)
        program = installed_office() if settings.corpus.office is OfficeUse.AUTO else None
        self._office = OfficeConverter(program, settings.corpus.limits) if program is not None else None
        self._board, self._worker = board, uuid4().hex

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> Iterator[dict[str, list[str]]]:
        """``batch`` has one row: a map over batches, unlike one over rows, is joined with the repartition after it.

        A row group of a Parquet file may have any number of documents: their tasks leave as they are made.
        """
        sources: list[SourceRow] = json.loads(str(batch["sources"][0]))
        planned = (
            planned
            for source in sources
            for plan, original in _documents(source)
            for planned in self._with_attached(plan, original, source)
        )
        while True:
            began = time.perf_counter()
            together = list(islice(planned, MOST_FILES_OF_A_GROUP))
            if not together:
                return
            ranges = [planned_range for plan, items in together for planned_range in planned_ranges(plan, items)]
            pages = {plan.uri: plan.pending for plan, _ in together}
            slow = sum(plan.pending for plan, _ in together if takes_long(plan, self._settings.corpus))
            busy_s = time.perf_counter() - began
            self._board.add(Work("register", self._worker, sum(pages.values()), busy_s, pages, slow))
            yield {"task": [task_to_json(task) for task in decode_tasks(ranges, self._settings.corpus)]}

    def close(self) -> None:
        """End the decoding child. In an actor, the actor's end does that."""
        self._sandbox.close()
        if self._office is not None:
            self._office.close()

    def _with_attached(
        self, plan: DocumentPlan, original: Original, source: SourceRow
    ) -> Iterator[tuple[DocumentPlan, list[WorkItem]]]:
        """A document and all that is attached to it, or to that: each is planned as a file of its own."""
        meta, count = plan.meta, 0
        waiting: deque[tuple[DocumentPlan, Original, int]] = deque([(plan, original, 0)])
        with ExitStack() as stack:
            folder: Path | None = None
            while waiting:
                plan, original, depth = waiting.popleft()
                plan, items = self._planned(plan, original, _folder_of(source) if depth == 0 else None)
                plan, pictures = self._with_pictures(plan, source if depth == 0 else None)
                for name, path in pictures.items():
                    waiting.append((_picture(plan, name, meta), str(path), depth + 1))
                    count += 1
                holds = plan.doc_id in self._committed.containers if plan.skipped else ATTACHMENTS in plan.meta
                if not holds or plan.error or plan.fault:
                    yield plan, items
                    continue
                if depth == DEEPEST or count >= MOST_ATTACHED:
                    reason = "it is nested too deeply" if depth == DEEPEST else f"more than {MOST_ATTACHED} in one file"
                    yield replace(plan, notices=[*plan.notices, f"its attachments are left out: {reason}"]), items
                    continue
                yield plan, items
                # In files: a message may hold more than this process has memory for.
                folder = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vrag-")))
                for inner, content in self._attached(plan, meta, folder):
                    waiting.append((inner, content, depth + 1))
                    count += 1

    def _with_pictures(self, plan: DocumentPlan, source: SourceRow | None) -> tuple[DocumentPlan, dict[str, Path]]:
        """``plan`` with the notices of the pictures that it shows, and those that are taken with it.

        ``source`` is where it is from, None for what is inside another file.
        """
        targets: Sequence[str] = plan.pictures
        if plan.skipped and plan.doc_id in self._committed.containers and _may_show(plan.name):
            # They may have changed, or be missing: a run may have ended between the two.
            path = self._files.local_path(f"blobs/{plan.doc_id}")
            try:
                targets = self._sandbox.probe(path, plan.name, self._options).pictures
            except DecodeError as error:
                log.debug("%s shows pictures no longer: %s", plan.name, error)
        if not targets:
            return plan, {}
        is_file = source is not None and source["rows"] is None and not is_remote(source["path"])
        file = Path(source["path"]) if source is not None and is_file else None
        folder, walked = (source["folder"], source["walked"]) if source is not None else ("", False)
        pictures = pictures_of(targets, file, folder, walked=walked)
        if plan.skipped:
            # Its notices stand in its row.
            return plan, pictures.taken
        meta = plan.meta
        if pictures.are_named and not walked:
            meta = {**meta, ATTACHMENTS: int(meta.get(ATTACHMENTS, 0)) + len(pictures.taken)}
        notices = [*plan.notices, *(notice[:LONGEST_NOTICE] for notice in pictures.notices)]
        return replace(plan, pictures=[], meta=meta, notices=notices), pictures.taken

    def _attached(self, plan: DocumentPlan, meta: Meta, folder: Path) -> Iterator[tuple[DocumentPlan, Original]]:
        """What is attached to a document, written into ``folder``; ``meta`` is the user's metadata of the document."""
        path = self._files.local_path(f"blobs/{plan.doc_id}")
        names: Counter[str] = Counter()
        try:
            for name, content in self._sandbox.attachments(path, plan.name, self._options):
                names[name] += 1
                place = quote(name, safe="") + (f"&{names[name]}" if names[name] > 1 else "")
                inner = DocumentPlan(
                    f"{plan.uri}{'/' if '#' in plan.uri else '#'}attachment={place}",
                    fitting_name(name, content[:HEAD_BYTES], is_text=False),
                    title=f"{name} (attached to {plan.name})",
                    meta={**meta, ATTACHED_TO: plan.name},
                )
                file = folder / uuid4().hex
                file.write_bytes(content)
                yield inner, str(file)
        except DecodeError as error:
            # The document itself has been read: this is the loss of what is attached to it.
            yield DocumentPlan(f"{plan.uri}#attachments", plan.name, error=with_remedy(error)), b""

    def _planned(
        self, plan: DocumentPlan, original: Original, folder: Path | None
    ) -> tuple[DocumentPlan, list[WorkItem]]:
        try:
            with storage_faults(self._files.root, f"taking in {plan.name}"):
                plan = self._plan(plan, original, folder)
        except StorageError as error:
            # In a row, since an exception in a stage would reach the driver as a stack trace of Ray's.
            plan = replace(plan, fault=error.failure.as_dict())
        except Exception as error:
            # A fault of this program: it costs this file, and the next run, perhaps of a mended program, tries again.
            log.exception("taking in %s failed", plan.name)
            plan = replace(plan, error=unforeseen(plan.name, error), transient=True)
        if plan.skipped or plan.error or plan.fault:
            return plan, []
        done = self._committed.done(plan.doc_id, plan.units)
        items = list(work_items(plan, done, pages_of_item(plan, self._settings.corpus)))
        pending = sum(item.stop - item.start for item in items)
        prior = {str(unit): error for unit, error in done.items() if error}
        return replace(plan, pending=pending, prior_errors=prior), items

    def _plan(self, plan: DocumentPlan, original: Original, folder: Path | None) -> DocumentPlan:
        """Everything about the document short of decoding it; one that cannot be read gets a plan with its error.

        ``folder`` is the one in which style sheets of a web page may lie.
        """
        if plan.error:
            return plan
        try:
            size = _size(original)
            if refusal := self._refusal(size):
                return replace(plan, error=f"{plan.name} {refusal}", is_empty=not size)
            with _file(original) as path:
                doc_id, size = self._files.add_blob(path)
                styled, styles, unstyled = self._styled(path, folder)
            sidecars = {name: self._blob(place) for name, place in plan.sidecars.items()}
        except OSError as error:
            if fault_of(error) is StorageFault.TOO_MANY_FILES:
                raise
            return replace(plan, error=f"{plan.name} cannot be read: {error.strerror or error}")
        mark = styles or ", ".join(f"{name} ({blob[:12]})" for name, blob in sidecars.items())
        meta = {**plan.meta, **({STYLES if styles else SIDECARS: mark} if mark else {})}
        plan = replace(plan, doc_id=doc_id, size_bytes=size, sidecars=sidecars, meta=meta, pages=styled)
        if doc_id in self._committed.finished and self._committed.sidecars.get(doc_id, "") == mark:
            return replace(plan, skipped=True)
        plan = replace(plan, notices=[*plan.notices, *unstyled])
        try:
            plan, probe = self._probed(plan)
        except DecodeError as error:
            return replace(plan, error=with_remedy(error), transient=error.transient)
        meta = {**probe.meta, **plan.meta}
        title = plan.title or probe.title
        notices = [notice[:LONGEST_NOTICE] for notice in (*plan.notices, *probe.notices)]
        pictures = list(probe.pictures)
        return replace(
            plan,
            kind=probe.kind,
            units=probe.units,
            title=title,
            meta=meta,
            notices=notices,
            pictures=pictures,
            scans=probe.scans,
        )

    def _probed(self, plan: DocumentPlan) -> tuple[DocumentPlan, Probe]:
        """``plan`` with the file that its units are read from, and what that is. Raises DecodeError."""
        if plan.pages:
            try:
                return plan, self._sandbox.probe(pages_file(plan, self._files), plan.name, self._options)
            except DecodeError as error:
                log.debug("%s is read without its style sheets: %s", plan.name, error)
                left_out = "its style sheets are left out: it cannot be read with them"
                plan = replace(plan, pages="", notices=[*plan.notices, left_out])
        path = self._files.local_path(f"blobs/{plan.doc_id}")
        plan = self._converted(plan, path)
        pages = pages_file(plan, self._files) if plan.pages else None
        probe = self._sandbox.probe(path, plan.name, self._options, sidecar_files(plan, self._files), pages)
        return plan, probe

    def _converted(self, plan: DocumentPlan, path: Path) -> DocumentPlan:
        """``plan`` with the blobs that LibreOffice makes of an office file, where it is there. Raises DecodeError."""
        if self._office is None or not may_be_office(path):
            return plan
        format_ = self._sandbox.format_of(path, plan.name)
        if format_ not in CONVERTED:
            return plan
        try:
            with self._office.converted(path, format_) as made:
                pages = self._files.add_blob(made.pages)[0]
                if made.slides is not None:
                    slides = self._files.add_blob(made.slides)[0]
                else:
                    slides = plan.doc_id if format_ is Format.PPTX else ""
        except DecodeError as error:
            if format_ in OFFICE_REMEDIES:
                raise with_name(error, plan.name) from error
            # MuPDF reads these too, and says that their pages are not their own.
            return replace(plan, notices=[*plan.notices, str(error)])
        return replace(plan, pages=pages, slides=slides)

    def _styled(self, file: Path, folder: Path | None) -> tuple[str, str, list[str]]:
        """The blob of a web page with the rules of the style sheets beside it, and what names them, "" where there are
        none; and notices of sheets that cannot be read."""
        page, names, notices = with_local_sheets(file, folder) if folder is not None else (b"", "", [])
        if not page:
            return "", "", notices
        with _file(page) as path:
            blob = self._files.add_blob(path)[0]
        return blob, f"{names} ({blob[:12]})", notices

    def _blob(self, place: str) -> str:
        """The blob with the bytes of a file."""
        with _file(place) as path:
            return self._files.add_blob(path)[0]

    def _refusal(self, size: int) -> str:
        limit_mb = self._settings.corpus.limits.max_file_mb
        if size > limit_mb << 20:
            return f"has {size >> 20} MB, over the limit of {limit_mb} MB: split it or raise corpus.limits.max_file_mb"
        return "" if size else "is empty: get it again, or leave it out"


def _documents(source: SourceRow) -> Iterator[tuple[DocumentPlan, Original]]:
    """A file is a document, and so is each row of a range of a Parquet file: what is known of it so far, its bytes."""
    uri, name, meta = source["uri"], source["name"], source["meta"]
    if source["rows"] is None:
        sidecars = {shown_name(PurePath(place).name): place for place in source["sidecars"]}
        yield DocumentPlan(uri, name, meta=meta, error=source["error"], sidecars=sidecars), source["path"]
        return
    rows = RowRange(**source["rows"])  # type: ignore[arg-type]
    for row in row_documents(source["path"], uri, name, rows):
        yield DocumentPlan(row.uri, row.name, title=row.title, meta={**meta, **row.meta}), row.content


def _folder_of(source: SourceRow) -> Path | None:
    """The folder in which what a file shows may lie; None where nothing beside it is looked at."""
    is_file = source["rows"] is None and not is_remote(source["path"])
    return Path(source["folder"]) if is_file and source["folder"] else None


def _may_show(name: str) -> bool:
    suffix = PurePath(name).suffix.lower()
    return suffix in MARKDOWN_SUFFIXES or SUFFIXES.get(suffix) is Format.HTML


def _picture(plan: DocumentPlan, name: str, meta: Meta) -> DocumentPlan:
    """The document of a picture that another one shows; ``meta`` is the user's metadata of that."""
    shown = shown_name(PurePath(name).name)
    return DocumentPlan(
        f"{plan.uri}#attachment={quote(name, safe='')}",
        shown,
        title=f"{shown} (shown in {plan.name})",
        meta={**meta, ATTACHED_TO: plan.name},
    )


def _size(original: Original) -> int:
    """In bytes. Raises OSError where there are none to be had."""
    if isinstance(original, OSError):
        raise original
    if isinstance(original, bytes):
        return len(original)
    return size_of(original) if is_remote(original) else Path(original).stat().st_size


@contextmanager
def _file(original: Original) -> Iterator[Path]:
    """A file of this machine with those bytes, for as long as the block runs."""
    if isinstance(original, OSError):
        raise original
    if isinstance(original, bytes):
        with tempfile.NamedTemporaryFile(prefix="vrag-") as stream:
            stream.write(original)
            stream.flush()
            yield Path(stream.name)
    elif is_remote(original):
        with local_copy(original) as path:
            yield path
    else:
        yield Path(original)
