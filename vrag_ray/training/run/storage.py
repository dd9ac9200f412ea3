"""Where a training run is stored: a local folder or an object store, on the filesystems that Ray Train itself uses.

A place is named by an absolute path or a URI that ``pyarrow.fs`` knows (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``);
``submitted_paths`` makes one of what a configuration says. Object stores cannot append, so there a file that grows is
written anew each time, and folders are made on a local disk and uploaded.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from vrag_ray.types import VragError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

CHUNK_BYTES = 64 << 20
WEIGHTS = frozenset({"safetensors", "bin", "pt", "pth", "gguf", "h5", "msgpack", "onnx"})
"""Suffixes of the files of a model that hold its weights, in whatever form."""


@dataclass(frozen=True, slots=True)
class StagedFolder:
    """A local folder ``path`` whose files get to their place in the run by ``publish``: at once where that is local."""

    path: Path
    publish: Callable[[], None]


class RunStorage:
    """Everything of the run ``name`` in ``storage`` (absolute path or URI); its files are named by relative paths.

    Raises VragError for a storage that no filesystem of this process can open.
    """

    def __init__(self, storage: str, name: str) -> None:
        from pyarrow import fs

        self._fs, base = filesystem(storage)
        self._base = str(PurePosixPath(base) / name)
        self._uri = _below(storage, name)
        self.is_local = isinstance(self._fs, fs.LocalFileSystem)

    def uri(self, name: str = "") -> str:
        """The absolute path or URI of a file or folder of the run, or of the run itself."""
        return _below(self._uri, name) if name else self._uri

    def create(self) -> None:
        """Make the run's folder, so that a place that cannot be written to fails before anything has begun.

        Raises VragError where that is so.
        """
        try:
            self._fs.create_dir(self._base)
        except OSError as error:
            raise VragError(
                f"storage {self._uri} cannot be written: {str(error).rstrip('.')}. Object stores take their "
                "credentials, region and endpoint from the environment of every node"
            ) from error

    def size(self, name: str) -> int:
        """In bytes; 0 where there is no such file."""
        return int(self._fs.get_file_info(self._path(name)).size or 0)

    def read(self, name: str, start: int = 0) -> bytes:
        """A file from byte ``start`` on; nothing where there is none, or no more than that."""
        try:
            with self._fs.open_input_file(self._path(name)) as file:
                if file.size() <= start:
                    return b""
                file.seek(start)
                return bytes(file.read())
        except FileNotFoundError:
            return b""

    def write(self, name: str, data: bytes) -> None:
        """The whole file: a reader never meets half of it."""
        if not self.is_local:
            with self._fs.open_output_stream(self._path(name)) as stream:
                stream.write(data)
            return
        target = Path(self._path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.partial")
        partial.write_bytes(data)
        partial.replace(target)

    def append(self, name: str, data: bytes) -> None:
        """Only one process may append to a file."""
        if self.is_local:
            with Path(self._path(name)).open("ab") as file:
                file.write(data)
        else:
            self.write(name, self.read(name) + data)

    @contextmanager
    def staged(self, name: str) -> Iterator[StagedFolder]:
        """A local folder for the files of folder ``name``, published once more when the block ends without an error."""
        if self.is_local:
            folder = Path(self._path(name))
            folder.mkdir(parents=True, exist_ok=True)
            yield StagedFolder(folder, lambda: None)
            return
        with tempfile.TemporaryDirectory(prefix="vrag-run-") as local:

            def publish() -> None:
                from pyarrow import fs

                # One thread, as Ray Train uploads to S3: Arrow's threads can wait for each other there for good.
                fs.copy_files(
                    local,
                    self._path(name),
                    destination_filesystem=self._fs,
                    chunk_size=CHUNK_BYTES,
                    use_threads=False,
                )

            yield StagedFolder(Path(local), publish)
            publish()

    def listing(self, folder: str = "") -> dict[str, int | None]:
        """What is directly in a folder of the run, or in the run's own: names and sizes, of folders None."""
        from pyarrow import fs

        selector = fs.FileSelector(self._path(folder) if folder else self._base, allow_not_found=True)
        return {str(info.base_name): info.size for info in self._fs.get_file_info(selector)}

    def delete_folder(self, name: str) -> None:
        self._fs.delete_dir(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}"


@contextmanager
def local_copy(source: str, *, weights: bool = True) -> Iterator[Path]:
    """``source`` as a local path: itself, or for the time of the block a copy of what an object store holds there;
    without ``weights``, of a model only what describes it: its configuration, tokenizer and processor.

    Raises VragError where the object store holds no such file or folder.
    """
    if not is_uri(source):
        yield Path(source)
        return
    from pyarrow import fs

    remote, path = filesystem(source)
    with tempfile.TemporaryDirectory(prefix="vrag-input-") as folder:
        # Its own name, because a suffix tells how a file is to be read, and messages name it.
        copy = Path(folder) / PurePosixPath(path).name
        try:
            if remote.get_file_info(path).type == fs.FileType.Directory:
                copy.mkdir()
            pairs = [(path, str(copy))]
            if not weights:
                inside = remote.get_file_info(fs.FileSelector(path))
                described = [info for info in inside if info.is_file and info.extension not in WEIGHTS]
                pairs = [(info.path, str(copy / info.base_name)) for info in described]
            for there, here in pairs:
                fs.copy_files(there, here, source_filesystem=remote, chunk_size=CHUNK_BYTES)
        except OSError as error:
            raise VragError(f"cannot read {source}: {error}") from error
        yield copy


def digest(place: str) -> str:
    """The size and the SHA-256 of a file, or of all files below a folder, at an absolute path or URI."""
    from pyarrow import fs

    store, path = filesystem(place)
    base = store.get_file_info(path)
    inside = [base] if base.is_file else store.get_file_info(fs.FileSelector(path, recursive=True))
    files = sorted((file for file in inside if file.is_file), key=lambda file: str(file.path))
    whole = hashlib.sha256()
    for file in files:
        with store.open_input_file(file.path) as stream:
            own = hashlib.file_digest(stream, "sha256").hexdigest()
        whole.update(f"{file.path.removeprefix(path)} {own}\n".encode())
    size = sum(int(file.size) for file in files)
    count = "" if base.is_file else f"{len(files)} file{'s' * (len(files) != 1)} of "
    return f"{count}{size} bytes, sha256 {whole.hexdigest()[:16]}"


def filesystem(place: str) -> tuple[FileSystem, str]:
    """The filesystem of an absolute path or URI, and the path on it, as Ray Train finds them.

    Raises VragError where there is none.
    """
    from pyarrow import fs

    try:
        store, path = fs.FileSystem.from_uri(place)
    except (OSError, ValueError) as error:
        raise VragError(
            f"cannot open {place}: {str(error).rstrip('.')}. Give a folder or a URI that pyarrow.fs knows (file:///…, "
            "s3://bucket/…, gs://bucket/…, abfs://…, hdfs://…)"
        ) from error
    return store, path


def has_file(place: str, name: str) -> bool:
    """Whether there is a file ``name`` in the folder at an absolute path or URI.

    Raises VragError for a store that cannot be read.
    """
    store, path = filesystem(place)
    try:
        return bool(store.get_file_info(f"{path}/{name}").is_file)
    except OSError as error:
        raise VragError(f"cannot read {place}: {error}") from error


def is_uri(place: str) -> bool:
    return "://" in place


def _below(place: str, name: str) -> str:
    """A URI may end with options of its filesystem, as in ``s3://bucket/runs?region=eu-west-1``."""
    head, mark, options = place.partition("?") if is_uri(place) else (place, "", "")
    return f"{head.rstrip('/')}/{name}{mark}{options}"
