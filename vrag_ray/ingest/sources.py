"""What to ingest: paths, patterns, URIs and manifests that the user gave, as files with a stable uri each."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from vrag_ray.corpus.formats.media.sidecar_names import films_of
from vrag_ray.corpus.sniff import SUFFIXES, Format
from vrag_ray.ingest.object_store import is_remote, listed
from vrag_ray.ingest.parquet.layout import ROWS_TOGETHER, SUFFIX, RowRange, row_ranges
from vrag_ray.types import Meta, VragError
from vrag_ray.types.file_names import given_path, listed_names, path_of, shown_name

MOST_FILES_OF_A_GROUP = ROWS_TOGETHER
GROUPS_PER_READER = 8
FOOTERS_AT_ONCE = 16
SIDECAR_SUFFIXES = frozenset(suffix for suffix, format_ in SUFFIXES.items() if format_ is Format.SUBTITLES)
STYLE_SHEET = ".css"
"""The suffix of what is read with the web page that names it."""
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Source:
    """One file: where its bytes are (a path, or a URI of an object store), the uri that names it in the collection, its
    display name, and the metadata of it alone.

    With ``rows``, that part of a Parquet file: a document each. ``error`` says why nothing can be taken from the file.
    """

    path: Path | str
    uri: str
    name: str
    meta: Meta = field(default_factory=dict)
    rows: RowRange | None = None
    error: str = ""
    sidecars: tuple[str, ...] = ()
    """Where the files with its subtitles are, as ``path`` is."""
    folder: str = ""
    """The folder of this machine in which pictures that it shows may lie; empty where none are looked for."""
    walked: bool = False
    """Whether all of that folder is ingested, its pictures too."""

    @property
    def documents(self) -> int:
        return 1 if self.rows is None else self.rows.count


class LeftOut(StrEnum):
    """Why something in a folder is not ingested: the end of a sentence that counts and names such."""

    KIND = "of a kind that is not read"
    HIDDEN = "hidden"
    LINKED = "a link to a folder, which is not followed: name it to take in what is there"
    DANGLING = "a link to nothing"
    SPECIAL = "no regular file (a pipe, a socket or a device)"
    CLOSED = "a folder that cannot be opened"
    COLLECTION = "a collection of vrag_ray, not read again"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that was walked. ``uri`` ends in a slash; ``shown`` is as it was given.

    ``present`` has the URIs of all its files where they are objects of a store; of a folder of this machine it is
    None, and each file is looked for. ``is_empty``: nothing at all is in it.
    """

    uri: str
    shown: str
    is_empty: bool
    present: frozenset[str] | None = None


@dataclass
class Listing:
    """The files to ingest, the folders that were walked, and what is left out of them, by reason."""

    sources: list[Source] = field(default_factory=list)
    folders: list[Folder] = field(default_factory=list)
    left_out: list[tuple[LeftOut, str]] = field(default_factory=list)

    def notices(self) -> list[str]:
        """What is left out, in words: each reason with how many and the first few names."""
        by_reason = ((reason, [name for why, name in self.left_out if why is reason]) for reason in LeftOut)
        return [
            f"left out {listed_names(names)}: {'it is' if len(names) == 1 else 'each is'} {reason}"
            for reason, names in by_reason
            if names
        ]


def list_sources(paths: Sequence[str | Path | Source], content_column: str | None = None) -> Listing:
    """The files to ingest, folders walked in sorted order, and what of the folders is left out.

    A path may be a file, a folder, a pattern (``papers/**/*.pdf``), a ``file:`` URI, or a URI of an object store
    (``s3://bucket/folder``). Names that are not UTF-8 are percent-encoded, as in the URIs.
    Hidden files and folders are left out. A file named directly is always taken, whatever its suffix. A Parquet file
    is taken by its rows, whose documents are in ``content_column``, or in a column found by name and type; a ``Source``
    is taken as it is. Subtitles beside a video are taken with it, whether they were given or not.

    Raises VragError for a path that does not exist and where no given file can be read. Folders may hold nothing to
    ingest: see ``nothing_listed``.
    """
    listing = Listing()
    sources: dict[str, Source] = {}
    tables: dict[str, Source] = {}
    for item in paths:
        if isinstance(item, Source):
            listed_sources = [item]
        elif isinstance(item, str) and is_remote(item):
            listed_sources = _remote(item, listing)
        else:
            listed_sources = _local(given_path(str(item)), listing)
        sources.update((source.uri, source) for source in listed_sources)
        if not isinstance(item, Source):
            tables.update((source.uri, source) for source in listed_sources if _suffix(source.name) == SUFFIX)
    sources = with_sidecars(sources)
    listing.sources = list(_by_rows(sources, tables, content_column))
    problems = [source.error for source in listing.sources]
    if problems and all(problems):
        raise nothing_in(paths, problems[0])
    return listing


def nothing_in(paths: Sequence[str | Path | Source], reason: str = "") -> VragError:
    """That ``paths`` have nothing to ingest, and why: no known kind, unless ``reason`` is given."""
    given = shown_name(", ".join(str(path) for path in paths))
    return VragError(f"nothing to ingest in {given}: {reason or _known_kinds()}")


def nothing_listed(paths: Sequence[str | Path | Source], listing: Listing) -> VragError:
    """That the folders of ``listing`` have nothing to ingest, and what of them is left out."""
    is_of_kind = not listing.left_out or any(reason is LeftOut.KIND for reason, _ in listing.left_out)
    return nothing_in(paths, "; ".join([*listing.notices(), *([_known_kinds()] if is_of_kind else [])]))


def _known_kinds() -> str:
    return f"known are {' '.join(sorted((*SUFFIXES, SUFFIX)))}"


def with_sidecars(sources: dict[str, Source]) -> dict[str, Source]:
    """``sources`` by uri: each video with the subtitles beside it, as ``film.en.srt`` of ``film.mp4``.

    They are no documents of their own then. On an object store those that were given are beside it.
    """
    beside: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    folders: set[Path] = set()
    for source in sources.values():
        folder = source.uri.rpartition("/")[0]
        if _suffix(source.name) in SIDECAR_SUFFIXES:
            beside[folder].append((source.name, str(source.path), source.uri))
        elif isinstance(source.path, Path) and _is_media(source.name) and source.path.parent not in folders:
            folders.add(source.path.parent)
            files = (file for file in source.path.parent.iterdir() if _suffix(file.name) in SIDECAR_SUFFIXES)
            beside[folder] += [
                (shown_name(file.name), str(file), file.absolute().as_uri()) for file in files if file.is_file()
            ]
    films: dict[str, dict[str, str]] = defaultdict(dict)
    """By folder, the names of its videos by uri."""
    for uri, source in sources.items():
        if _is_media(source.name) and (folder := uri.rpartition("/")[0]) in beside:
            films[folder][uri] = source.name
    taken: set[str] = set()
    own: dict[str, dict[str, None]] = defaultdict(dict)
    for folder, named in films.items():
        for name, place, uri in sorted(set(beside[folder])):
            shown_by = films_of(name, tuple(named.values()))
            taken |= {uri} if shown_by else set()
            for film in (film for film, film_name in named.items() if film_name in shown_by):
                own[film][place] = None
    return {
        uri: replace(source, sidecars=tuple(own[uri])) if uri in own else source
        for uri, source in sources.items()
        if uri not in taken
    }


def is_missing(path: str) -> bool:
    """Whether nothing is at ``path``, as far as this machine alone can tell: patterns and URIs may lead somewhere."""
    return not is_remote(path) and not _PATTERN & set(path) and not given_path(path).exists()


def file_source(file: Path, meta: Meta | None = None) -> Source:
    """A file of this machine, named by its absolute path."""
    return Source(file.absolute(), file.absolute().as_uri(), shown_name(file.name), meta or {})


def grouped(sources: Sequence[Source], readers: int) -> list[Sequence[Source]]:
    """Neighbours that one call registers together: few calls for many small files, and work for every reader."""
    documents = sum(source.documents for source in sources)
    size = max(1, min(MOST_FILES_OF_A_GROUP, math.ceil(documents / (readers * GROUPS_PER_READER))))
    groups: list[Sequence[Source]] = []
    group: list[Source] = []
    for source in sources:
        group.append(source)
        if sum(part.documents for part in group) >= size:
            groups.append(group)
            group = []
    return [*groups, group] if group else groups


def _by_rows(sources: dict[str, Source], tables: dict[str, Source], content_column: str | None) -> Iterator[Source]:
    """``sources``, with the ranges of its rows in place of each of ``tables``."""

    def parts(table: Source) -> list[Source]:
        try:
            ranges = row_ranges(table.path, table.name, content_column)
        except VragError as error:
            # Of this file alone, as with any other that is broken.
            return [replace(table, error=str(error))]
        return [replace(table, rows=rows) for rows in ranges]

    # On an object store each footer is a few round trips, and a data set may have hundreds of files.
    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
        by_table = dict(zip(tables, pool.map(parts, tables.values()), strict=True))
    for uri, source in sources.items():
        yield from by_table.get(uri, [source])


def _local(path: Path, listing: Listing) -> list[Source]:
    if path.is_file():
        return [_alone(path)]
    if path.is_dir():
        if _is_collection(path):
            listing.left_out.append((LeftOut.COLLECTION, shown_name(str(path))))
            return []
        root = str(path.absolute())
        return [replace(file_source(file), folder=root, walked=True) for file in _walked(path, listing)]
    if _PATTERN & set(str(path)):
        matching = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        files = [file for file in matching if file.is_file()]
        # Folders are in the way of a pattern for files: only a link may be meant to lead to some.
        left_out = sorted((why, file) for file in matching if (why := _why_no_file(file)) is not None)
        listing.left_out += [(why, shown_name(str(file))) for why, file in left_out]
        if files:
            return [_alone(file) for file in files]
        raise VragError("; ".join([f"no file matches {shown_name(str(path))}", *listing.notices()]))
    if path.exists():
        raise VragError(f"{shown_name(str(path))} is neither a file nor a folder: give files or folders to ingest")
    raise VragError(f"{shown_name(str(path))} does not exist: give files or folders to ingest")


def _why_no_file(path: Path) -> LeftOut | None:
    """Why what is at ``path`` is not taken; None for files and folders."""
    if path.is_dir():
        return LeftOut.LINKED if path.is_symlink() else None
    if path.is_file():
        return None
    return LeftOut.DANGLING if path.is_symlink() else LeftOut.SPECIAL


def _alone(file: Path) -> Source:
    """A file that was given itself: what it shows may lie beside it."""
    return replace(file_source(file), folder=str(file.absolute().parent))


def _walked(root: Path, listing: Listing) -> list[Path]:
    """The files below ``root`` that are of a known kind, sorted; what else is there goes to ``listing``."""
    files: list[Path] = []
    is_empty, left_out = True, list[tuple[LeftOut, Path]]()

    def closed(error: OSError) -> None:
        left_out.append((LeftOut.CLOSED, path_of(str(error.filename))))

    for place, folders, names in os.walk(root, onerror=closed):
        for name in (*folders, *names):
            path = Path(place, name)
            is_folder = path.is_dir()
            if name.startswith("."):
                left_out.append((LeftOut.HIDDEN, path))
            elif (why := _why_no_file(path)) is not None:
                left_out.append((why, path))
            elif is_folder and _is_collection(path):
                left_out.append((LeftOut.COLLECTION, path))
            elif path.is_file():
                if _is_known(name):
                    files.append(path)
                elif _suffix(name) != STYLE_SHEET:
                    left_out.append((LeftOut.KIND, path))
            is_empty &= is_folder and not path.is_symlink()
        folders[:] = [name for name in folders if not (name.startswith(".") or _is_collection(Path(place, name)))]
    listing.left_out += [(reason, shown_name(str(path.relative_to(root)))) for reason, path in sorted(left_out)]
    listing.folders.append(Folder(f"{root.absolute().as_uri()}/", shown_name(str(root)), is_empty))
    return sorted(files)


def _is_collection(folder: Path) -> bool:
    return all((folder / part).is_dir() for part in ("passages.lance", "documents.lance", "versions"))


def _remote(uri: str, listing: Listing) -> list[Source]:
    files, is_file = listed(uri)
    if is_file:
        return [Source(source.location, source.uri, source.name) for source in files]
    taken: list[Source] = []
    for source in files:
        if any(part.startswith(".") for part in PurePosixPath(source.below).parts):
            listing.left_out.append((LeftOut.HIDDEN, source.below))
        elif not _is_known(source.name):
            listing.left_out.append((LeftOut.KIND, source.below))
        else:
            taken.append(Source(source.location, source.uri, source.name))
    folder = f"{uri.partition('?')[0].rstrip('/')}/"
    listing.folders.append(Folder(folder, uri, not files, frozenset(source.uri for source in files)))
    return taken


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _is_known(name: str) -> bool:
    return _suffix(name) in SUFFIXES or _suffix(name) == SUFFIX


def _is_media(name: str) -> bool:
    return SUFFIXES.get(_suffix(name)) in {Format.VIDEO, Format.SOUND}
