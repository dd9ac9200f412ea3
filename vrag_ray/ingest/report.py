"""What ingest tells its caller while it runs and at the end."""

from __future__ import annotations

from dataclasses import dataclass

from vrag_ray.types import VragError


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Pages that have left one stage, and how many it makes a second while it is working."""

    name: str
    pages: int
    pages_per_s: float


@dataclass(frozen=True, slots=True)
class FileProgress:
    """Pages of one file that are decoded, of those that are to be. A file that is known already has none to do."""

    uri: str
    done_pages: int
    total_pages: int


@dataclass(frozen=True, slots=True)
class Progress:
    """``done_pages`` are committed; ``total_pages`` are known so far and final once all files are registered.

    ``by_file`` has the files that are registered, unless there are too many of them to look at. ``spaces`` names the
    vector spaces that are being filled, once all files are read: ``done_pages`` and ``total_pages`` are passages then.
    """

    files: int
    total_files: int
    done_pages: int
    total_pages: int
    pages_per_s: float
    eta_s: float | None
    stages: tuple[StageProgress, ...]
    by_file: tuple[FileProgress, ...] = ()
    spaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileError:
    """A file, or pages of it, that could not be read, and why. ``uri`` names the file."""

    uri: str
    error: str


@dataclass(frozen=True, slots=True)
class FileNotice:
    """What of a file was left out or was guessed. ``uri`` names the file; a notice is no error.

    ``known``: an earlier run has reported it, and the file has not changed since. ``other`` is the uri of a second file
    that the notice names, from which the name of the first is to differ.
    """

    uri: str
    notice: str
    known: bool = False
    other: str = ""


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A document of the collection whose file is in none of the folders that it was in. ``removed``: by this run.

    ``folder`` is set where all documents of that folder are gone at once, as where a disk is not mounted: no run
    removes such.
    """

    uri: str
    doc_id: str
    removed: bool = False
    folder: str = ""


@dataclass(frozen=True, slots=True)
class SpaceReport:
    """``embedded`` passages of this run; ``failed`` names those of this run that could not be embedded, and why.

    ``passages`` and ``bytes_per_passage`` (on disk) are of the whole space. ``bottleneck`` names the stage that was
    busy for the largest part of the time. ``skipped`` says why the space was left as it is; "" where it was filled.
    """

    name: str
    embedder_id: str = ""
    embedded: int = 0
    failed: tuple[FileError, ...] = ()
    passages: int = 0
    bytes_per_passage: float = 0.0
    seconds: float = 0.0
    bottleneck: str = ""
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome. A document of which nothing could be read is only in ``failed``, also when an earlier run met it.

    ``skipped`` counts files that the collection had under their names, ``duplicates`` those of the same bytes as
    another file, which share its document, and ``renamed`` documents whose only file has another name now.

    ``pages`` counts pages, pictures, clips and text pieces decoded in this run.

    ``startup_s`` is the part of ``seconds`` before the processes that decode were ready.
    """

    added: int
    skipped: int
    replaced: int
    failed: tuple[FileError, ...]
    pages: int
    windows: int
    seconds: float
    startup_s: float
    version: int
    doc_ids: tuple[str, ...]
    """Documents of the given files, in the order they were finished; skipped ones included."""
    notices: tuple[str, ...] = ()
    bottleneck: str = ""
    """The stage that was busy for the largest part of the time, in words."""
    duplicates: int = 0
    renamed: int = 0
    file_notices: tuple[FileNotice, ...] = ()
    gone: tuple[GoneFile, ...] = ()
    spaces: tuple[SpaceReport, ...] = ()
    """What was added to the vector spaces."""


def unforeseen(name: str, error: Exception) -> str:
    """The error of a file on which this program itself failed."""
    if isinstance(error, VragError):
        return f"{name}: {error}"
    return (
        f"{name} could not be taken in because of a fault in vrag_ray ({type(error).__name__}): please report it with "
        "the lines that the log has of it; the next ingest reads the file again by itself"
    )
