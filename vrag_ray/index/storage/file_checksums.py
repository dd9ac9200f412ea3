"""Seals: the hash of every file that Lance wrote, kept beside it, so that a flipped byte anywhere is found.

Lance's files never change once written, so each is hashed once, right after the commit that made it. A process
killed between a commit and its seal leaves unsealed files; the next writer checks their rows by row checksum and
seals them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import xxhash

from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.spaces import FOLDER

_TABLES = ("passages.lance", "documents.lance")
_FOLDER = "seals"
_HINT = "_versions/latest_version_hint.json"
_MAX_U64 = 2**64 - 1


def file_hash(data: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(data)


@dataclass(frozen=True, slots=True)
class SealReport:
    """What reading the seals against the files found. Names are relative to the collection."""

    damaged: tuple[str, ...]
    missing: tuple[str, ...]
    unsealed: tuple[str, ...]


def read_seals(files: CollectionFiles) -> tuple[dict[str, str], list[str]]:
    """The sealed hash by file name, and the seal files that are themselves damaged."""
    sealed: dict[str, str] = {}
    damaged: list[str] = []
    for name in files.list(_FOLDER):
        data = files.read(name)
        # A seal file is named by the hash of its own bytes.
        if name.rsplit("-", 1)[-1].removesuffix(".json") != file_hash(data):
            damaged.append(name)
            continue
        sealed.update(json.loads(data))
    return sealed, damaged


class Sealer:
    """Knows what is sealed and seals what is new. One per writer."""

    def __init__(self, files: CollectionFiles) -> None:
        self._files = files
        self._sealed = set(read_seals(files)[0])
        self._next = len(files.list(_FOLDER))

    def unsealed(self, table: str) -> list[str]:
        return [name for name in _immutable_files(self._files, table) if name not in self._sealed]

    def seal(self, table: str) -> None:
        """Record the hashes of every new file of ``table`` in one new seal file.

        A hint that Lance could not write, because the disk was full, is corrected: Lance needs none and reports none.
        """
        present, hint = self._files.list(table), f"{table}/{_HINT}"
        if hint in present and self._files.read(hint) != (sound := _hint_of(present)):
            self._files.write(hint, sound)
        names = [name for name in present if name != hint and name not in self._sealed]
        if not names:
            return
        hashes = {name: file_hash(self._files.read(name)) for name in names}
        data = json.dumps(hashes, sort_keys=True).encode()
        self._files.write(f"{_FOLDER}/{self._next:08d}-{file_hash(data)}.json", data)
        self._next += 1
        self._sealed.update(names)


def check_seals(files: CollectionFiles) -> SealReport:
    sealed, damaged = read_seals(files)
    tables = [*_TABLES, *space_tables(files)]
    present = {name for table in tables for name in _immutable_files(files, table)}
    damaged += [f"{table}/{_HINT}" for table in tables if not _hint_is_sound(files, table)]
    for name in sorted(present & set(sealed)):
        if file_hash(files.read(name)) != sealed[name]:
            damaged.append(name)
    return SealReport(
        damaged=tuple(damaged),
        missing=tuple(sorted(set(sealed) - present)),
        unsealed=tuple(sorted(present - set(sealed))),
    )


def space_tables(files: CollectionFiles) -> list[str]:
    """The folders of all vector spaces there ever were."""
    return sorted({"/".join(name.split("/")[:2]) for name in files.list(FOLDER)})


def _immutable_files(files: CollectionFiles, table: str) -> list[str]:
    """All files of a table but the one that Lance rewrites: its hint of which version is the newest."""
    return [name for name in files.list(table) if not name.endswith(_HINT)]


def _hint_is_sound(files: CollectionFiles, table: str) -> bool:
    """Whether the hint, where there is one, names the newest manifest."""
    hint = f"{table}/{_HINT}"
    return not files.exists(hint) or files.read(hint) == _hint_of(files.list(f"{table}/_versions"))


def _hint_of(names: Sequence[str]) -> bytes:
    """What Lance writes for the newest manifest of ``names``. Manifests are named 2^64-1 minus the version."""
    manifests = [name.rsplit("/", 1)[-1] for name in names if name.endswith(".manifest")]
    newest = max(_MAX_U64 - int(name.removesuffix(".manifest")) for name in manifests)
    return json.dumps({"version": newest}, separators=(",", ":")).encode()
