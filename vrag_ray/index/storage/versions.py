"""Versions of a collection: one small immutable record pins all tables, so that a reader sees one moment.

Lance versions each table by itself; the record is what makes a set of them a collection version. It is written
last, by an exclusive create, and is the only thing a reader starts from.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from vrag_ray.index.storage.file_checksums import file_hash
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.types import VragError

_FOLDER = "versions"


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """``number`` counts from 1; the two table versions are Lance's; ``created_at`` is ISO 8601 UTC.

    ``spaces`` are the vector spaces. Records from before texts were one have none called ``text``.
    """

    number: int
    passages_version: int
    documents_version: int
    documents: int
    passages: int
    created_at: str
    note: str
    spaces: tuple[SpaceRecord, ...] = ()
    texts_dropped: bool = False
    """Whether vectors of texts that stand in the passages count no more (``texts_before_spaces``)."""

    @classmethod
    def from_json(cls, data: bytes) -> VersionRecord:
        values = json.loads(data)
        spaces = tuple(SpaceRecord(**space) for space in values.pop("spaces", ()))
        return cls(**values, spaces=spaces)


def write_version(files: CollectionFiles, record: VersionRecord) -> None:
    values = asdict(record)
    if not record.texts_dropped:
        # Older programs know no such name.
        del values["texts_dropped"]
    data = json.dumps(values, sort_keys=True).encode()
    files.write(f"{_FOLDER}/{record.number:08d}-{file_hash(data)}.json", data)


def list_versions(files: CollectionFiles) -> list[VersionRecord]:
    """All readable records, oldest first. A damaged one is left out here and named by ``damaged_versions``."""
    return [VersionRecord.from_json(data) for name, data in _records(files) if _is_sound(name, data)]


def damaged_versions(files: CollectionFiles) -> list[str]:
    return [name for name, data in _records(files) if not _is_sound(name, data)]


def find_version(files: CollectionFiles, number: int | None) -> VersionRecord | None:
    """The record of that number, or the newest. None for an empty collection; VragError for an unknown number."""
    names = files.list(_FOLDER)
    if number is None:
        if not names:
            return None
        name = names[-1]
    else:
        matching = [name for name in names if name.startswith(f"{_FOLDER}/{number:08d}-")]
        if not matching:
            raise VragError(f"the collection has no version {number}: `vrag versions` lists what there is")
        name = matching[0]
    data = files.read(name)
    if not _is_sound(name, data):
        raise VragError(f"the version record {name} is damaged: run `vrag verify`; an older version can be opened")
    return VersionRecord.from_json(data)


def latest_number(files: CollectionFiles) -> int:
    """The newest version's number without reading it; 0 for an empty collection. Cheap enough to poll."""
    names = files.list(_FOLDER)
    return int(names[-1].rsplit("/", 1)[-1].split("-", 1)[0]) if names else 0


def _records(files: CollectionFiles) -> list[tuple[str, bytes]]:
    return [(name, files.read(name)) for name in files.list(_FOLDER)]


def _is_sound(name: str, data: bytes) -> bool:
    return name.rsplit("-", 1)[-1].removesuffix(".json") == file_hash(data)
