"""Uploaded files on their way to ingest: named safely, written below the service's own folder."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import unicodedata
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vrag_ray.client.contract import FileToUpload, opened_file
from vrag_ray.serving.contract import UploadedFile
from vrag_ray.types import InvalidError, Meta, MetaValue, VragError

_META = TypeAdapter(dict[str, MetaValue])
_MAX_NAME_BYTES = 200
_COPY_BYTES = 1 << 20


def safe_name(given: str) -> str:
    """The last part of a client's file name without anything a file system or a terminal could act on."""
    # Browsers write these, and these alone, so in the header of a part.
    given = given.replace("%22", '"').replace("%0D", "").replace("%0A", "")
    last = unicodedata.normalize("NFC", given).replace("\\", "/").rpartition("/")[2]
    printable = "".join(character for character in last if unicodedata.category(character)[0] != "C")
    cleaned = printable.strip().lstrip(".")
    if not cleaned:
        return "upload"
    stem, dot, suffix = cleaned.rpartition(".")
    if not stem or len(suffix.encode()) > 16:
        stem, dot, suffix = cleaned, "", ""
    room = _MAX_NAME_BYTES - len((dot + suffix).encode())
    return stem.encode()[:room].decode(errors="ignore") + dot + suffix


def parse_meta(text: str | None) -> dict[str, MetaValue]:
    """The ``meta`` field: a JSON object of plain values that every passage of these files gets."""
    if not text:
        return {}
    try:
        meta = _META.validate_python(json.loads(text))
    except (ValueError, ValidationError) as error:
        raise InvalidError("meta must be a JSON object of strings, numbers and booleans", param="meta") from error
    check_meta(meta)
    return meta


def check_meta(meta: Meta) -> None:
    """Raise InvalidError for values that cannot be stored as JSON: the job of an upload waits on disk."""
    for name, value in meta.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidError(f"meta: {name[:80]!r} is no finite number: leave it out or send text", param="meta")
        for text in (name, value):
            try:
                str(text).encode()
            except UnicodeEncodeError as error:
                raise InvalidError(
                    f"meta: {name[:80]!r} has half of a surrogate pair, which is no Unicode: cut texts between "
                    "characters",
                    param="meta",
                ) from error


def save_files(folder: Path, files: Sequence[FileToUpload]) -> list[UploadedFile]:
    """Write each file into a folder of its own below ``folder``, so that equal names do not meet. Blocking.

    Raises VragError for a file that cannot be read.
    """
    saved: list[UploadedFile] = []
    try:
        for number, file in enumerate(files):
            with ExitStack() as stack:
                given, source = opened_file(file, stack)
                name = safe_name(given)
                path = folder / str(number) / name
                path.parent.mkdir(parents=True)
                digest = hashlib.sha256()
                target = stack.enter_context(path.open("wb"))
                while chunk := source.read(_COPY_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
            saved.append(UploadedFile(path, name, digest.hexdigest()))
    except (OSError, VragError):
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return saved
