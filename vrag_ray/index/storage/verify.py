"""Find any flipped byte of a collection: blobs by their name, files by their seals, rows by their sums."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.index.storage.collection import FORMAT, MARKER, Collection
from vrag_ray.index.storage.file_checksums import check_seals
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import document_is_sound, passage_is_sound
from vrag_ray.index.storage.spaces import unsound_ids
from vrag_ray.index.storage.versions import damaged_versions
from vrag_ray.types import NotFoundError, document_id


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Names are relative to the collection. ``unsealed`` is what an interrupted ingest left: not a damage.

    ``rows`` is 0 when damaged files made reading them pointless.
    """

    damaged: tuple[str, ...]
    missing: tuple[str, ...]
    damaged_rows: tuple[str, ...]
    unsealed: tuple[str, ...]
    blobs: int
    rows: int

    @property
    def is_sound(self) -> bool:
        return not (self.damaged or self.missing or self.damaged_rows)


def verify(root: str | Path) -> VerifyReport:
    """Read every byte below ``root`` once. Raises NotFoundError where there is no collection."""
    files = CollectionFiles(str(root))
    if not files.exists(MARKER) and not files.list("versions"):
        raise NotFoundError(f"{root} is not a collection")
    blobs = files.list("blobs")
    damaged = [name for name in blobs if document_id(files.read(name)) != name.removeprefix("blobs/")]
    if not files.exists(MARKER) or files.read(MARKER) != json.dumps(FORMAT).encode():
        damaged.append(MARKER)
    seals = check_seals(files)
    damaged += [*seals.damaged, *damaged_versions(files)]
    missing, bad_rows, rows = list(seals.missing), list[str](), 0
    # A damaged file can make Lance abort while it reads, so rows are read only below sound files.
    if not damaged and not missing:
        collection = Collection.open(root)
        if collection.record is not None:
            rows, bad_rows = _check_rows(collection)
            if not bad_rows:
                names = {
                    name
                    for document in collection.documents()
                    for name in (document.doc_id, document.pages_blob, document.notes_blob or document.doc_id)
                }
                expected = {f"blobs/{name}" for name in names}
                missing = sorted(expected - set(blobs))
    return VerifyReport(tuple(damaged), tuple(missing), tuple(bad_rows), seals.unsealed, len(blobs), rows)


def _check_rows(collection: Collection) -> tuple[int, list[str]]:
    rows, bad = 0, list[str]()
    for name, key, is_sound in (("passages", "id", passage_is_sound), ("documents", "doc_id", document_is_sound)):
        for batch in collection.table(name).to_batches():
            for row in batch.to_pylist():
                rows += 1
                if not is_sound(row):
                    bad.append(f"{name}:{row[key]}")
    for space in collection.record.spaces if collection.record is not None else ():
        for batch in collection.space_table(space.name).to_batches():
            rows += batch.num_rows
            bad += [f"{space.name}:{passage_id}" for passage_id in unsound_ids(batch)]
    return rows, bad
