"""Files of an object store as sources: listed by ``pyarrow.fs``, and copied here one by one when they are read.

Credentials come from the environment alone. Options may follow the URI (``?endpoint_override=…&region=…``); they do not
become part of a document's name.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from vrag_ray.types import VragError

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """``location`` opens it, options included; ``uri`` names it; ``below`` is its path below what was listed."""

    location: str
    uri: str
    name: str
    below: str


def is_remote(place: str) -> bool:
    return "://" in place and not place.startswith("file://")


def listed(uri: str) -> tuple[list[RemoteFile], bool]:
    """The files at or below ``uri``, sorted, and whether it is a file itself. Raises VragError, naming ``uri``."""
    from pyarrow import fs

    parts = urlsplit(uri)
    options = f"?{parts.query}" if parts.query else ""
    try:
        store, root = fs.FileSystem.from_uri(uri)
        info = store.get_file_info(root)
        if info.type == fs.FileType.NotFound:
            raise VragError(f"{uri} does not exist: give files or folders to ingest")
        is_file = info.type == fs.FileType.File
        listing = [info] if is_file else store.get_file_info(fs.FileSelector(root, recursive=True))
    except (OSError, ValueError) as error:
        raise VragError(f"{uri} cannot be listed: {error}") from error
    names = sorted(info.path for info in listing if info.type == fs.FileType.File)
    return [
        RemoteFile(
            location=f"{parts.scheme}://{name}{options}",
            uri=f"{parts.scheme}://{name}",
            name=name.rsplit("/", 1)[-1],
            below=name.removeprefix(root).lstrip("/"),
        )
        for name in names
    ], is_file


def size_of(location: str) -> int:
    """In bytes. Raises OSError where there is no such file."""
    from pyarrow import fs

    store, path = fs.FileSystem.from_uri(location)
    info = store.get_file_info(path)
    if info.type != fs.FileType.File:
        raise FileNotFoundError(2, "it does not exist any longer")
    return int(info.size)


@contextmanager
def local_copy(location: str) -> Iterator[Path]:
    """A temporary file with the bytes at ``location``. Raises OSError where they cannot be read."""
    from pyarrow import fs

    store, path = fs.FileSystem.from_uri(location)
    with tempfile.TemporaryDirectory(prefix="vrag-") as folder:
        copy = Path(folder) / "copy"
        with store.open_input_stream(path) as reader, copy.open("wb") as writer:
            shutil.copyfileobj(reader, writer, _CHUNK)
        yield copy
