"""How a request names collections that are served side by side."""

from __future__ import annotations

import re
from collections.abc import Collection as Names
from collections.abc import Sequence

from vrag_ray.types.errors import InvalidError
from vrag_ray.types.file_names import expanded

_NOT_IN_NAMES = re.compile(r"[/,*?#&]")
_LONGEST = 60
ALL_COLLECTIONS = "*"
"""In place of names: all that are served."""


class UnknownCollectionError(InvalidError):
    """A request names a collection that is not served here; the message lists those that are."""

    param = "collection"


def chosen_names(served: Names[str], names: Sequence[str]) -> tuple[str, ...]:
    """``names`` without repetition; all that are served for ``*``, the first of them for none.

    Raises UnknownCollectionError.
    """
    if ALL_COLLECTIONS in names:
        return tuple(served)
    for name in names:
        if name not in served:
            known = ", ".join(served)
            remedy = f"use {known}, or {ALL_COLLECTIONS} for all" if len(served) > 1 else f"there is {known} alone"
            raise UnknownCollectionError(f"there is no collection {name[:80]!r} here: {remedy}")
    return tuple(dict.fromkeys(names)) or tuple(served)[:1]


def single_name(served: Names[str], name: str) -> str:
    """``name``, or the first that is served for "". Raises UnknownCollectionError."""
    chosen = chosen_names(served, [name] if name else [])
    if len(chosen) > 1:
        raise UnknownCollectionError(f"one collection is meant here, not all: use {', '.join(served)}")
    return chosen[0]


def own_name(root: str) -> str:
    """What a collection is called that was given no name: its folder, or the last part of its URI, without characters
    that separate names or have a meaning in a URL."""
    last = root.partition("?")[0].rstrip("/").rpartition("/")[2] if "://" in root else ""
    return _NOT_IN_NAMES.sub("-", last or expanded(root).absolute().name).strip()[:_LONGEST] or "collection"


def free_name(root: str, taken: Names[str]) -> str:
    """``own_name``, with the name of the folder above or a number where it is taken."""
    name = own_name(root)
    if name in taken:
        whole = root.partition("?")[0] if "://" in root else str(expanded(root).absolute())
        above = whole.rstrip("/").rpartition("/")[0]
        name = f"{own_name(above)}-{name}"[:_LONGEST]
    numbered = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in numbered if name not in taken)
