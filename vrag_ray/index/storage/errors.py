"""What a disk refuses, in words: full, read-only, not permitted, too many open files.

Python and Arrow raise ``OSError`` with an ``errno``; Lance raises ``OSError`` or ``RuntimeError`` whose text ends in
``(os error 28)`` and a path of the machine on which it was built. Both become one ``StorageError`` that names the
collection and says what is committed and what to do.
"""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from vrag_ray.types import VragError

_CODE_IN_TEXT = re.compile(r"\(os error (\d+)\)|\[errno (\d+)\]", re.IGNORECASE)
_MEGABYTE = 1_000_000


class StorageFault(StrEnum):
    """Why the system refused. The value is the middle of a sentence that begins with the collection."""

    FULL = "is on a full disk"
    QUOTA = "has used up the quota of its disk"
    READ_ONLY = "is on a read-only file system"
    DENIED = "does not admit this user"
    TOO_MANY_FILES = "needs more files open than the system allows"

    @property
    def needs_space(self) -> bool:
        return self in (StorageFault.FULL, StorageFault.QUOTA)


_FAULTS = {
    errno.ENOSPC: StorageFault.FULL,
    errno.EDQUOT: StorageFault.QUOTA,
    errno.EROFS: StorageFault.READ_ONLY,
    errno.EACCES: StorageFault.DENIED,
    errno.EPERM: StorageFault.DENIED,
    errno.EMFILE: StorageFault.TOO_MANY_FILES,
    errno.ENFILE: StorageFault.TOO_MANY_FILES,
}


@dataclass(frozen=True, slots=True)
class StorageFailure:
    """One refused operation. JSON both ways, because it also travels in a row of the ingest graph.

    ``doing`` says what was tried (``writing 64 pages``). ``needed_bytes`` estimates what that takes and
    ``waiting_bytes`` what else waits to be written; ``free_bytes`` is what the disk has. None where not known.
    ``kept`` says what stays as it was, ``place`` is the collection's root, or the folder of a service's own files.
    """

    place: str
    fault: StorageFault
    doing: str
    kept: str = ""
    needed_bytes: int | None = None
    waiting_bytes: int | None = None
    free_bytes: int | None = None
    is_collection: bool = True

    def __str__(self) -> str:
        subject = f"the {'collection' if self.is_collection else 'folder'} {self.place} {self.fault}"
        parts = [f"{subject}: {self.doing} failed.", self.kept, self._space(), self._remedy()]
        return " ".join(part for part in parts if part)

    def as_dict(self) -> dict[str, str | int | bool | None]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, str | int | bool | None]) -> StorageFailure:
        return cls(**{**values, "fault": StorageFault(str(values["fault"]))})  # type: ignore[arg-type]

    def _space(self) -> str:
        if not self.fault.needs_space:
            return ""
        free = f"; {_size(self.free_bytes)} are free" if self.free_bytes is not None else ""
        needs = [f"about {_size(self.needed_bytes)} for this step"] if self.needed_bytes is not None else []
        if self.waiting_bytes:
            needs.append(f"up to {_size(self.waiting_bytes)} for the originals of the files not yet done")
        needed = f"Space needed (an estimate): {' and '.join(needs)}" if needs else "Space needed: not known"
        return f"{needed}{free}."

    def _remedy(self) -> str:
        match self.fault:
            case StorageFault.FULL | StorageFault.QUOTA:
                return "Make room and do the same again: it goes on from there."
            case StorageFault.READ_ONLY:
                return "Mount it for writing, or choose another place."
            case StorageFault.DENIED:
                return "Give this user the right to the folder, or choose another place."
            case StorageFault.TOO_MANY_FILES:
                return (
                    f"Raise the limit{_open_files_limit()}, for example with `ulimit -n 65536`, and do the same again."
                )


class StorageError(VragError):
    """The disk refused a read or a write. Nothing that was committed is touched.

    A full disk is 507 Insufficient Storage (RFC 4918); its owner has to mend any other fault too.
    """

    status = 503
    type = "server_error"
    code = "storage_unavailable"

    def __init__(self, failure: StorageFailure) -> None:
        super().__init__(failure)
        self.failure = failure
        if failure.fault.needs_space:
            self.status, self.code = 507, "storage_full"


def fault_of(error: BaseException) -> StorageFault | None:
    """Which of the known faults ``error``, or what it was raised from, is; None for any other error."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, StorageError):
            return seen.failure.fault
        code = seen.errno if isinstance(seen, OSError) else None
        if code is None and (match := _CODE_IN_TEXT.search(str(seen))):
            code = int(match[1] or match[2])
        if code in _FAULTS:
            return _FAULTS[code]
        seen = seen.__cause__
    return None


@contextmanager
def storage_faults(
    place: str,
    doing: str,
    *,
    kept: Callable[[], str] = str,
    needed_bytes: Callable[[], int] | None = None,
    is_collection: bool = True,
) -> Iterator[None]:
    """Raise the known faults of the block as StorageError, and let every other error pass.

    Blocks may stand in one another: the outer one then states what was done and what stays as it was. ``kept`` and
    ``needed_bytes`` are only called after a fault, the latter only where space is what is lacking.
    """
    try:
        yield
    except Exception as error:
        fault = fault_of(error)
        if fault is None:
            raise
        inner = error.failure if isinstance(error, StorageError) else None
        failure = inner or StorageFailure(place, fault, doing, is_collection=is_collection)
        if fault.needs_space:
            needed = _estimate(needed_bytes) if needed_bytes else failure.needed_bytes
            failure = replace(failure, needed_bytes=needed, free_bytes=_free_bytes(place))
        raise StorageError(replace(failure, place=place, doing=doing, kept=kept() or failure.kept)) from error


def _estimate(needed_bytes: Callable[[], int]) -> int | None:
    """An estimate reads the disk that has just refused; without one the message still says the rest."""
    try:
        return needed_bytes()
    except (OSError, ValueError, RuntimeError):
        return None


def _free_bytes(place: str) -> int | None:
    """Free bytes where ``place`` is or would be; None for an object store."""
    if "://" in place:
        return None
    folder = Path(place)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _open_files_limit() -> str:
    if os.name != "posix":
        return ""
    import resource

    return f" (this process may open {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"


def _size(count: int | None) -> str:
    size = count or 0
    return f"{size / _MEGABYTE:.1f} MB" if size >= _MEGABYTE else f"{math.ceil(size / 1000)} kB"
