"""Names of files as texts: a file system takes any bytes, a store and a terminal only what is UTF-8."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes, urlsplit

_UPLOAD = "upload:"
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def shown_name(name: str) -> str:
    """``name`` or path with every byte that is not UTF-8, and every control character, percent-encoded.

    Python has such a byte in a name as a lone surrogate, which nothing can store, send or print.
    """
    return _UNSHOWABLE.sub(lambda match: quote(_bytes_of(match[0]), safe=""), name)


def names_of(uris: Sequence[str]) -> list[str]:
    """The file name in each of ``uris``, with as many folders before it as tell them apart, as far as folders can."""
    places = [_segments(uri) for uri in uris]
    longest = max(map(len, places), default=1)
    for length in range(1, longest):
        names = ["/".join(place[-length:]) for place in places]
        if len(set(names)) == len(set(uris)):
            return names
    names = ["/".join(place) for place in places]
    return names if len(set(names)) == len(set(uris)) else [place[-1] for place in places]


def listed_names(names: Sequence[str], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _segments(uri: str) -> list[str]:
    """The folders and the name in a URI; a row or a part of a file stays at its name. An upload has no folder."""
    base, mark, part = uri.partition("#")
    path = shown_name(path_in_uri(base)) if is_file_uri(base) else base
    *folders, name = path.split("/")
    return [*([] if base.startswith(_UPLOAD) else folders), name + mark + part]


def is_file_uri(place: str) -> bool:
    return place.startswith("file:")


def path_of(place: str) -> Path:
    """The path that the user gave, or that a ``file:`` URI names byte by byte."""
    return Path(path_in_uri(place)) if is_file_uri(place) else Path(place).expanduser()


def path_in_uri(uri: str) -> str:
    """The path in a ``file:`` URI, as ``os`` functions take it."""
    return os.fsdecode(unquote_to_bytes(urlsplit(uri).path))


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Half of a pair that came out of a JSON escape, not out of a file system.
        return text.encode("utf-8", "surrogatepass")
