"""The pictures that a Markdown file or a web page shows: which are taken with it, and the notices of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from vrag_ray.corpus.formats.references import is_held
from vrag_ray.corpus.sniff import PICTURES, SUFFIXES, Format
from vrag_ray.types.file_names import listed_names, shown_name

MOST_PICTURES = 200
"""Of one file."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class PicturesOf:
    """``taken`` has the pictures that become documents with the file, by their names in it; ``notices`` the others.

    ``are_named`` says that it names files at all, also such as are missing now.
    """

    taken: dict[str, Path]
    notices: tuple[str, ...]
    are_named: bool


def pictures_of(targets: Sequence[str], file: Path | None, folder: str, *, walked: bool) -> PicturesOf:
    """What becomes of ``targets``, which ``file`` names.

    ``folder`` is where pictures may lie: the folder that was given, or that of a file that was given; empty
    where nothing beside the file may be looked at. In a folder that was ``walked`` pictures are documents already.
    """
    remote, missing, outside, apart = list[str](), list[str](), list[str](), list[str]()
    taken: dict[str, Path] = {}
    for target in targets:
        if is_held(target):
            continue
        name = unquote(target.partition("#")[0].partition("?")[0]).replace("\\", "/")
        if _SCHEME.match(target):
            (outside if target.lower().startswith("file:") else remote).append(target)
        elif file is None or not folder:
            apart.append(name)
        elif (path := file_inside(file.parent, name, Path(folder))) is None:
            outside.append(name)
        elif not path.is_file():
            missing.append(name)
        elif not walked and _is_picture(name):
            taken[name] = path
    more = list(taken)[MOST_PICTURES:]
    notices = (
        _notice(remote, "at a web address and was not fetched", "at web addresses and were not fetched"),
        _notice(missing, "missing", "missing"),
        _notice(outside, "outside of its folder and left out", "outside of its folder and left out"),
        _notice(apart, "not part of it and left out", "not part of it and left out"),
        _notice(more, f"left out: it has more than {MOST_PICTURES}", f"left out: it has more than {MOST_PICTURES}"),
    )
    return PicturesOf(
        {name: path for name, path in taken.items() if name not in more},
        tuple(filter(None, notices)),
        bool(taken or missing),
    )


def file_inside(parent: Path, name: str, folder: Path) -> Path | None:
    """The file of that name, links followed, where it lies below ``folder``."""
    try:
        path = (parent / name).resolve()
        return path if path.is_relative_to(folder.resolve()) and not name.startswith("/") else None
    except (OSError, ValueError, RuntimeError):
        # Names with a NUL, or too long for the system.
        return None


def _is_picture(name: str) -> bool:
    format_ = SUFFIXES.get(PurePosixPath(name).suffix.lower())
    return format_ in PICTURES or format_ is Format.SVG


def _notice(names: Sequence[str], singular: str, plural: str) -> str:
    if not names:
        return ""
    shown = listed_names([shown_name(name[:_LONGEST_NAME]) for name in names])
    return f"1 picture is {singular}: {shown}" if len(names) == 1 else f"{len(names)} pictures are {plural}: {shown}"
