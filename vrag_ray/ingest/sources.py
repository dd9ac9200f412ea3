"""What to ingest: paths the user gave, as files with a stable uri each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.corpus.sniff import SUFFIXES
from vrag_ray.types import VragError


@dataclass(frozen=True, slots=True)
class Source:
    """One file: where its bytes are, the uri that names it in the collection, and its display name."""

    path: Path
    uri: str
    name: str


def list_sources(paths: Sequence[str | Path | Source]) -> tuple[list[Source], list[Path]]:
    """The files to ingest, folders walked in sorted order, and the files in folders left out for their suffix.

    Hidden files and folders are left out. A file named directly is always taken, whatever its suffix. Raises
    VragError for a path that does not exist and when nothing is left.
    """
    sources: dict[str, Source] = {}
    ignored: list[Path] = []
    for item in paths:
        if isinstance(item, Source):
            sources[item.uri] = item
            continue
        path = Path(item).expanduser()
        if path.is_file():
            found = [path]
        elif path.is_dir():
            files = [p for p in sorted(path.rglob("*")) if p.is_file() and not _is_hidden(p, path)]
            found = [p for p in files if p.suffix.lower() in SUFFIXES]
            ignored += [p for p in files if p.suffix.lower() not in SUFFIXES]
        else:
            raise VragError(f"{item} does not exist: give files or folders to ingest")
        for file in found:
            source = Source(file.absolute(), file.absolute().as_uri(), file.name)
            sources[source.uri] = source
    if not sources:
        raise VragError(
            f"nothing to ingest in {', '.join(str(p) for p in paths)}: known are {' '.join(sorted(SUFFIXES))}"
        )
    return list(sources.values()), ignored


def _is_hidden(path: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(below).parts)
