"""Files of a collection, on a local disk or an object store, by ``pyarrow.fs``.

Only three operations are needed beside Lance's own: read a file, write one atomically, and list a folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vrag_ray.index.object_store.blob_cache import BrokenBlobError, cached
from vrag_ray.index.object_store.claim import WriterClaim
from vrag_ray.index.object_store.location import Location
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.types import VragError
from vrag_ray.types.file_names import expanded, shown_name

if TYPE_CHECKING:
    from pyarrow import fs


CLAIMS = "writing"
_CHUNK = 1 << 20


class CollectionFiles:
    """A root folder (path or object-store URI) and the files below it, named by relative paths."""

    def __init__(self, root: str) -> None:
        from pyarrow import fs

        self.is_local = "://" not in root or root.startswith("file://")
        local_root = expanded(root.removeprefix("file://")).absolute()
        if shown_name(str(local_root)) != str(local_root):
            # Perhaps only on the way there: ``here/../elsewhere``.
            local_root = local_root.resolve()
        self.root = str(local_root) if self.is_local else root
        if shown_name(self.root) != self.root:
            raise VragError(
                f"the collection cannot be in {shown_name(self.root)}: that path is not UTF-8, or has control "
                "characters in it; name another folder with --collection"
            )
        self._location = Location(self.root, {}) if self.is_local else Location.parse(root)
        self._fs: fs.FileSystem
        if self.is_local:
            self._fs, self._base = fs.LocalFileSystem(), self.root
        else:
            try:
                self._fs, self._base = fs.FileSystem.from_uri(self.root)
                self._base = self._base.rstrip("/")
            except (ValueError, OSError) as error:
                raise VragError(f"cannot open the collection {root}: {error}") from error

    def uri(self, name: str) -> str:
        """The form for Lance, together with ``lance_options``."""
        return f"{self._location.base}/{name}"

    @property
    def lance_options(self) -> dict[str, str] | None:
        return self._location.lance_options or None

    def claim(self) -> WriterClaim:
        """Of an object store. Raises ClaimedError where another writer holds one."""
        with storage_faults(self.root, "claiming it for writing"):
            return WriterClaim(self._fs, f"{self._base}/{CLAIMS}")

    def exists(self, name: str) -> bool:
        from pyarrow import fs

        return bool(self._fs.get_file_info(f"{self._base}/{name}").type != fs.FileType.NotFound)

    def size(self, name: str) -> int:
        return int(self._fs.get_file_info(f"{self._base}/{name}").size)

    def read(self, name: str) -> bytes:
        with (
            storage_faults(self.root, f"reading {name}"),
            self._fs.open_input_stream(f"{self._base}/{name}") as stream,
        ):
            return bytes(stream.readall())

    def write(self, name: str, data: bytes) -> None:
        """All or nothing: on a local disk by fsync and rename, on an object store by its atomic put."""
        target = f"{self._base}/{name}"
        with storage_faults(self.root, f"writing {name}", needed_bytes=lambda: len(data)):
            if not self.is_local:
                with self._fs.open_output_stream(target) as stream:
                    stream.write(data)
                return
            path = Path(target)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with _replacing(path) as stream:
                    stream.write(data)
            except OSError as error:
                raise VragError(f"cannot write {path.name} into the collection: {error.strerror or error}") from error

    def add_blob(self, source: Path) -> tuple[str, int]:
        """Copy a file to ``blobs/<sha256>`` unless it is there, whole; its document id and size in bytes.

        Raises OSError where ``source`` cannot be read, StorageError where the collection does not take it.
        """
        doc_id, size = digest_of(source)
        name = f"blobs/{doc_id}"
        with (
            source.open("rb") as reader,
            storage_faults(self.root, f"storing {source.name}", needed_bytes=lambda: size),
        ):
            if self.is_local:
                target = Path(f"{self._base}/{name}")
                if target.exists() and digest_of(target)[0] == doc_id:
                    return doc_id, size
                target.parent.mkdir(parents=True, exist_ok=True)
                with _replacing(target) as writer:
                    shutil.copyfileobj(reader, writer, _CHUNK)
            elif not self.exists(name) or self.size(name) != size:
                with self._fs.open_output_stream(f"{self._base}/{name}") as writer:
                    shutil.copyfileobj(reader, writer, _CHUNK)
        return doc_id, size

    def list(self, folder: str) -> list[str]:
        """Relative names of all files below ``folder``, sorted; interrupted temporary files are left out."""
        from pyarrow import fs

        selector = fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True, recursive=True)
        prefix = len(self._base) + 1
        with storage_faults(self.root, f"listing {folder}"):
            infos = self._fs.get_file_info(selector)
        names = (info.path[prefix:] for info in infos if info.type == fs.FileType.File)
        return sorted(name for name in names if not name.rsplit("/", 1)[-1].startswith(".writing-"))

    def local_path(self, name: str) -> Path:
        """A local file with the content of a blob: the file itself, or a copy in a cache for an object store."""
        if self.is_local:
            return Path(f"{self._base}/{name}")
        with storage_faults(self.root, f"fetching {name}"):
            try:
                return cached(name.rsplit("/", 1)[-1], lambda: self._fs.open_input_stream(f"{self._base}/{name}"))
            except BrokenBlobError:
                raise VragError(f"{name} is damaged in the collection {self.root}: run `vrag verify`") from None


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content takes ``path``'s place, durably, when the block ends without an error."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def digest_of(path: Path) -> tuple[str, int]:
    """The SHA-256 in hex, which names a document, and the number of bytes of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size
