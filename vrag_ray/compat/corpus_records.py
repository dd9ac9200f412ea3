"""The record list of a collection as the original's search engine keeps one: a JSON line for each thing it can find.

A record's ``file_path`` leads to a file of its ``type``: pages of a PDF are therefore drawn into picture files.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.client.search_records import RECORD_TYPES
from vrag_ray.config import CorpusConfig
from vrag_ray.corpus.model import DecodeOptions
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.index.storage.collection import Collection
from vrag_ray.questions.rows import DataError, json_lines
from vrag_ray.types import Document, DocumentKind, NotFoundError, Passage, PassageKind, VragError
from vrag_ray.types.redaction import public_uri

PAGE_DPI = 200.0
"""What the original's converter draws pages with."""
PAGE_FOLDER = "pages"
MAX_PAGE_PIXELS = 16_000_000


class CorpusRecord(BaseModel):
    """One page, picture, clip or piece of text. ``unit`` is its name in the collection.

    ``uid`` is the row's own one for a row of a ``.jsonl`` file, ``unit`` else. ``content`` is all of a text's words and
    None for what is looked at. A video is the whole file; ``t_start`` and ``t_end`` (seconds) bound the clip.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    uid: str
    type: str
    file_path: str
    content: str | None = None
    page: int | None = None
    t_start: float | None = None
    t_end: float | None = None
    unit: str

    def as_json(self) -> dict[str, object]:
        return self.model_dump(mode="json", exclude_none=True)


def unit_of(passage: Passage) -> str:
    """The name of the page, picture, clip or piece that ``passage`` is a window of."""
    return passage.id.rpartition(":")[0]


def page_name(name: str, page: int) -> str:
    """File name of a page of ``name`` as a picture, as the original's converter writes it."""
    return f"{PurePath(name).stem}_{page}.jpg"


def list_name(model_name: str) -> str:
    """File name of the record list of an engine with that model."""
    return f"{model_name.replace('/', '_').replace('-', '_')}_file_data_list.jsonl"


def corpus_records(collection: Collection, config: CorpusConfig, page_folder: Path) -> Iterator[CorpusRecord]:
    """A record of everything in ``collection`` that a search can return, by document; pages are drawn into
    ``page_folder``.

    A page that is there already is not drawn again: its folder is named by the document's bytes.
    """
    options = DecodeOptions.from_config(config)
    with Sandbox(config.limits) as sandbox:
        for passage in collection.first_windows():
            document = collection.document(passage.doc_id)
            blob = collection.blob_path(passage.doc_id)
            path, content = _original(document, blob), None
            if passage.kind is PassageKind.TEXT:
                format_ = str(document.meta.get("format", ""))
                content = sandbox.page_text(blob, document.kind, passage.locator, options, format_=format_).text
            elif document.kind is DocumentKind.PDF and passage.locator.page is not None:
                name = page_name(public_uri(document.uri).rpartition("/")[2], passage.locator.page)
                path = page_folder.absolute() / document.doc_id[:16] / name
                if not path.exists():
                    png = sandbox.render(
                        collection.pages_path(passage.doc_id),
                        document.kind,
                        passage.locator,
                        dpi=PAGE_DPI,
                        box=None,
                        max_pixels=MAX_PAGE_PIXELS,
                    )
                    _write(path, _jpeg(png))
            unit = unit_of(passage)
            yield CorpusRecord(
                uid=str(passage.meta.get("uid", unit)),
                type=RECORD_TYPES[passage.kind],
                file_path=str(path),
                content=content,
                page=passage.locator.page if document.kind is DocumentKind.PDF else None,
                t_start=passage.locator.t_start,
                t_end=passage.locator.t_end,
                unit=unit,
            )


def write_records(path: Path, records: Sequence[CorpusRecord]) -> None:
    """All or nothing. Raises VragError where the folder cannot be written."""
    lines = [json.dumps(record.as_json(), ensure_ascii=False) + "\n" for record in records]
    _write(path, "".join(lines).encode())


def read_records(path: Path) -> list[CorpusRecord]:
    """The inverse of ``write_records``. Raises NotFoundError without the file, VragError for a line that is none."""
    if not path.is_file():
        raise NotFoundError(
            f"{path.parent} has no {path.name}: build_index writes it, with the engine's own model name"
        )
    try:
        return [CorpusRecord.model_validate(row) for row in json_lines(path)]
    except (DataError, ValidationError) as error:
        raise VragError(f"{path} holds a line that is no record: call build_index again") from error


def _original(document: Document, blob: Path) -> Path:
    """The file that was ingested where it still is, else the collection's copy of its bytes."""
    parts = urlsplit(document.uri)
    path = Path(url2pathname(parts.path))
    return path if parts.scheme == "file" and path.is_file() else blob


def _jpeg(png: bytes) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".writing-{os.getpid()}-{path.name}")
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        raise VragError(f"cannot write {path}: {error.strerror or error}") from error
