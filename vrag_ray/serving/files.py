"""Small files that must be whole or not there."""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from pathlib import Path


def write_atomically(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace ``path`` so that a reader, or a crash, sees the old text or the new one and nothing between.

    Without ``durable`` that holds for a crash of this process, and not for one of the machine, and costs no wait.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def utc_now() -> str:
    """ISO 8601 with microseconds: runs that start in one millisecond keep their order."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
