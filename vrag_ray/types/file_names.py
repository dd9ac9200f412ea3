"""Names of files as texts: a file system takes any bytes, a store and a terminal only what is UTF-8."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes, urlsplit

from vrag_ray.types.documents import Document

_FILE = "file:"
_UPLOAD = "upload:"
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def shown_name(name: str) -> str:
    """``name`` or path with every byte that is not UTF-8, and every control character, percent-encoded.

    Python has such a byte in a name as a lone surrogate, which nothing can store, send or print.
    """
    return _UNSHOWABLE.sub(lambda match: quote(_bytes_of(match[0]), safe=""), name)


def names_of(uris: Sequence[str]) -> list[str]:
    """The file name in each of ``uris``, behind as many folders as make it another than all others, where any do."""
    names: dict[str, str] = {}
    left = {uri: _segments(uri) for uri in uris}
    length = 0
    while left:
        length += 1
        ends = {uri: "/".join(place[-length:]) for uri, place in left.items()}
        times = Counter(ends.values())
        names |= {uri: end for uri, end in ends.items() if times[end] == 1 or length >= len(left[uri])}
        left = {uri: place for uri, place in left.items() if uri not in names}
    return [_shown_end(uri, names[uri]) for uri in uris]


def distinct_titles(documents: Sequence[Document]) -> dict[str, str]:
    """By id of ``documents``, which share their title: the title, and behind it the folders that differ or else the
    file names, as in ``report (2023)``. Uploads of the same name stay alike."""
    places = names_of([document.uri for document in documents])
    if len({place.rpartition("/")[2] for place in places}) == 1:
        places = [place.rpartition("/")[0] for place in places]
    return {
        document.doc_id: f"{document.title} ({place})" if place else document.title
        for document, place in zip(documents, places, strict=True)
    }


def listed_names(names: Sequence[str], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _segments(uri: str) -> list[str]:
    """The folders and the name in a URI, as they stand there. An upload has no folder."""
    base, mark, part = uri.partition("#")
    *folders, name = base.removeprefix(_FILE).split("/")
    return [*(folder for folder in folders if folder and not base.startswith(_UPLOAD)), name + mark + part]


def _shown_end(uri: str, end: str) -> str:
    """The end of ``uri``, readable; a row or a part of a file stays at its name as it stands."""
    if not is_file_uri(uri):
        return end
    base, mark, part = end.partition("#")
    return shown_name(os.fsdecode(unquote_to_bytes(base))) + mark + part


def is_file_uri(place: str) -> bool:
    return place.startswith(_FILE)


def expanded(place: str | Path) -> Path:
    """``place`` with a leading ``~`` or ``~user`` as that home; as it is where it exists, or where no such user does:
    Word's lock files begin so."""
    path = Path(place)
    if not str(path).startswith("~") or os.path.lexists(path):
        return path
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def path_of(place: str) -> Path:
    """The path that the user gave, or that a ``file:`` URI names byte by byte."""
    return Path(path_in_uri(place)) if is_file_uri(place) else expanded(place)


def given_path(place: str, base: Path | None = None) -> Path:
    """``path_of`` ``place``, below ``base`` where it is relative; where nothing is there, the file or folder that
    ``shown_name`` shows so: ``t%E9l.csv``."""
    path = (base or Path()) / path_of(place)
    if "%" not in place or os.path.lexists(path):
        return path
    shown = Path(path.anchor)
    for part in path.parts[len(shown.parts) :]:
        shown = _shown_so(shown, part) if "%" in part else shown / part
    return shown if os.path.lexists(shown) else path


def _shown_so(folder: Path, shown: str) -> Path:
    """What is called ``shown`` in ``folder``, else the first whose name is shown so."""
    named = folder / shown
    if os.path.lexists(named):
        return named
    try:
        return next((path for path in sorted(folder.iterdir()) if shown_name(path.name) == shown), named)
    except OSError:
        return named


def path_in_uri(uri: str) -> str:
    """The path in a ``file:`` URI, as ``os`` functions take it."""
    return os.fsdecode(unquote_to_bytes(urlsplit(uri).path))


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Half of a pair that came out of a JSON escape, not out of a file system.
        return text.encode("utf-8", "surrogatepass")
