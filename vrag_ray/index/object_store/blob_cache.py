"""Originals of an object store on the local disk, named by their SHA-256, up to a limit of bytes."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

MOST_BYTES = 8 << 30
IN_USE_S = 600.0
"""A file read in this time stays, whatever the cache holds: a decoder may be about to open it."""
_CHUNK = 1 << 20


class BrokenBlobError(Exception):
    """What the store gave is not what the name says."""


def cached(sha256: str, open_stream: Callable[[], IO[bytes]], folder: Path | None = None) -> Path:
    """The local file with that content, fetched by ``open_stream`` where it is not there.

    Raises BrokenBlobError where another content came.
    """
    place = folder or Path(tempfile.gettempdir()) / "vrag-blob-cache"
    path = place / sha256
    with suppress(FileNotFoundError):
        # Its time says when it was last read.
        os.utime(path)
        return path
    place.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=place, prefix=".fetching-")
    digest = hashlib.sha256()
    try:
        with os.fdopen(handle, "wb") as target, open_stream() as source:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                target.write(chunk)
        if digest.hexdigest() != sha256:
            raise BrokenBlobError(sha256)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    make_room(place)
    return path


def make_room(folder: Path, most_bytes: int = MOST_BYTES, in_use_s: float = IN_USE_S) -> None:
    """Remove the least recently used files until ``most_bytes`` are left."""
    files = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for used, size, path in sorted(files):
        if total <= most_bytes or time.time() - used < in_use_s:
            return
        path.unlink(missing_ok=True)
        total -= size
