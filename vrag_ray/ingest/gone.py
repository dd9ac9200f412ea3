"""Names of documents whose files are gone: looked for in the folders of a run and, of documents that it met under other
names, where they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath

from vrag_ray.ingest.sources import Folder, Listing
from vrag_ray.types import Document
from vrag_ray.types.file_names import is_file_uri, path_in_uri, shown_name


@dataclass(frozen=True, slots=True)
class Gone:
    """Names that are gone, and the folder of the run in which each was."""

    uris: tuple[str, ...]
    folder: Folder


def gone_names(documents: Iterable[Document], listing: Listing, met: AbstractSet[str]) -> dict[str, Gone]:
    """By document id, those of its uris that lead nowhere any more.

    ``met`` are the uris of this run. A file of this machine counts as gone where the system says that nothing is
    there, not where it cannot tell; an object where the store does not list it; a row of a Parquet file where the file
    is, or where this run has read the whole file without it; a part of another file where that file is gone.

    Of documents that this run met, and of their parts, the other names are looked for too: their folder may be renamed.
    """
    rows = {source.uri for source in listing.sources if source.rows is not None}
    # A file that could not be read to its end has its reason under the name of the rows that are missing.
    rows -= {base for base, _, part in (uri.partition("#") for uri in met) if part.startswith("rows=")}
    files = {source.uri for source in listing.sources}
    documents = list(documents)
    former = {uri for document in documents if not met.isdisjoint(document.uris) for uri in document.uris}
    lost: dict[str, Gone] = {}
    for document in documents:
        gone: dict[str, Folder] = {}
        for uri in document.uris:
            base, _, part = uri.partition("#")
            if uri in met or (base in files and not (part and base in rows)):
                continue
            folder = next((folder for folder in listing.folders if _holds(folder, base)), None)
            if folder is None and base in former:
                folder = _folder_of(base)
            if folder is not None and (base in files or _is_missing(base, folder)):
                gone[uri] = folder
        if gone:
            lost[document.doc_id] = Gone(tuple(gone), next(iter(gone.values())))
    return lost


def documents_in(folder: Folder, documents: Iterable[Document]) -> Iterator[Document]:
    """The documents that have a name in ``folder``."""
    for document in documents:
        if any(_holds(folder, uri.partition("#")[0]) for uri in document.uris):
            yield document


def _folder_of(uri: str) -> Folder | None:
    """The nearest folder that is there around a file of this machine. None where nothing is in it: a disk that is not
    connected leaves such a folder."""
    if not is_file_uri(uri):
        return None
    for folder in Path(path_in_uri(uri)).parents:
        try:
            is_empty = next(folder.iterdir(), None) is None
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
        return None if is_empty else Folder(f"{folder.as_uri()}/", shown_name(str(folder)), is_empty=False)
    return None


def _holds(folder: Folder, uri: str) -> bool:
    if not is_file_uri(uri) or not is_file_uri(folder.uri):
        return uri.startswith(folder.uri)
    # The same folder may have been named by another way round before: ``../papers``.
    return normpath(path_in_uri(uri)).startswith(normpath(path_in_uri(folder.uri)).rstrip("/") + "/")


def _is_missing(uri: str, folder: Folder) -> bool:
    if folder.present is not None:
        return uri not in folder.present
    try:
        Path(path_in_uri(uri)).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        # A folder that may not be entered, a server that does not answer.
        return False
    return False
