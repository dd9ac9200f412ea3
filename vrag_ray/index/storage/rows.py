"""The two tables of a collection: their schemas, and rows to nouns and back.

The columns ``vector`` and ``embedder_id`` of passages are empty: they held the vectors of texts before texts were a
space (``texts_before_spaces``), and stay for the sums over them.

Every row carries xxh3-64 sums, because Lance does not notice a flipped byte by itself: ``checksum`` over what a
shard loads (verified at every load), ``content_checksum`` over the rest (verified for every hit that is returned).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import xxhash

from vrag_ray.corpus.passages import PAGE_COUNT, PAGE_LABEL
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.types import (
    Box,
    Cue,
    Document,
    DocumentKind,
    DocumentStatus,
    Locator,
    Meta,
    Passage,
    PassageKind,
    VragError,
    Word,
)

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, object]


class AbsentError(VragError):
    """A collection that was opened is no longer in its place, as on a volume that is not mounted."""

    status = 503
    type = "server_error"
    code = "storage_unavailable"


class CorruptionError(VragError):
    """Bytes on disk are not what was written; nothing that a caller sends can mend it."""

    status = 500
    type = "server_error"
    code = "damaged"


PASSAGE_COLUMNS = (
    "id", "doc_id", "kind", "unit", "page", "t_start", "t_end", "span_start", "span_end",
    "window", "text", "box", "terms", "words", "vector", "embedder_id", "meta",
)  # fmt: skip
DOCUMENT_COLUMNS = (
    "doc_id", "uris", "title", "kind", "status", "units", "size_bytes", "embedder_id", "added_at", "error", "meta",
)  # fmt: skip
READ_AGAIN = "(being read again)"
"""In a document's column ``embedder_id``, which is empty otherwise: ``Document.read_again``."""
NOTICES_KEY = "vrag.notices"
"""Under this name the notices of a document stand in its metadata column, as a list: a reader of plain values passes it
over, so that older programs read newer collections."""
SHARD_COLUMNS = ("id", "doc_id", "kind", "embedder_id", "meta", "vector")
CONTENT_COLUMNS = tuple(c for c in PASSAGE_COLUMNS if c not in SHARD_COLUMNS or c == "id")
HIT_COLUMNS = [*CONTENT_COLUMNS, "doc_id", "kind", "meta", "content_checksum"]


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as ingest commits it: with its document unit.

    ``names`` are the title of its document and the words of its file's name: a search finds the passage by them too.
    """

    passage: Passage
    unit: int
    names: str = ""


def quoted(values: Iterable[str]) -> str:
    """As a list of SQL strings, for a condition of Lance's."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def passage_schema() -> pa.Schema:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {
        "unit": pa.int32(), "page": pa.int32(), "t_start": pa.float64(), "t_end": pa.float64(),
        "span_start": pa.int64(), "span_end": pa.int64(), "window": pa.int32(),
        "text": pa.large_string(), "terms": pa.large_string(), "words": pa.large_string(), "vector": pa.large_binary(),
    }  # fmt: skip
    fields = [(name, types.get(name, pa.string())) for name in PASSAGE_COLUMNS]
    return pa.schema([*fields, ("checksum", pa.uint64()), ("content_checksum", pa.uint64())])


def document_schema() -> pa.Schema:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {"uris": pa.list_(pa.string()), "units": pa.int32(), "size_bytes": pa.int64()}
    return pa.schema([(name, types.get(name, pa.string())) for name in DOCUMENT_COLUMNS] + [("checksum", pa.uint64())])


def shard_checksum(passage_id: str, doc_id: str, kind: str, embedder_id: str, meta: str, vector: bytes | None) -> int:
    """xxh3-64 of what a shard loaded of a passage when its vector stood in its row."""
    mark = "-" if vector is None else "+"
    head = "\x1f".join((passage_id, doc_id, kind, embedder_id, meta, mark)).encode()
    return int(xxhash.xxh3_64_intdigest(head + (vector or b"")))


def row_checksum(row: Row, columns: Sequence[str]) -> int:
    """xxh3-64 over the named columns, each with its name, presence and length, in order."""
    digest = xxhash.xxh3_64()
    for column in columns:
        value = row[column]
        data = b"" if value is None else json.dumps(value).encode()
        digest.update(f"{column}:{'none' if value is None else len(data)}:".encode())
        digest.update(data)
    return int(digest.intdigest())


def passages_table(stored: Iterable[StoredPassage]) -> pa.Table:
    import pyarrow as pa

    rows = [_passage_row(item) for item in stored]
    return pa.Table.from_pylist(rows, schema=passage_schema())


def documents_table(documents: Iterable[Document]) -> pa.Table:
    import pyarrow as pa

    rows = [_document_row(document) for document in documents]
    return pa.Table.from_pylist(rows, schema=document_schema())


def passage_is_sound(row: Row) -> bool:
    """Whether both sums of a whole passage row fit."""
    vector = row["vector"]
    shard = shard_checksum(
        _str(row["id"]), _str(row["doc_id"]), _str(row["kind"]), _str(row["embedder_id"]), _str(row["meta"]),
        vector if isinstance(vector, bytes) else None,
    )  # fmt: skip
    return row["checksum"] == shard and row["content_checksum"] == row_checksum(row, CONTENT_COLUMNS)


def document_is_sound(row: Row) -> bool:
    return row["checksum"] == row_checksum(row, DOCUMENT_COLUMNS)


def _passage_row(item: StoredPassage) -> dict[str, object]:
    passage, locator = item.passage, item.passage.locator
    row: dict[str, object] = {
        "id": passage.id,
        "doc_id": passage.doc_id,
        "kind": str(passage.kind),
        "unit": item.unit,
        "page": locator.page,
        "t_start": locator.t_start,
        "t_end": locator.t_end,
        "span_start": locator.span_start,
        "span_end": locator.span_end,
        "window": passage.window,
        "text": passage.text,
        "box": _box_to_json(passage.box),
        # A passage without words of its own is not found by those of its document.
        "terms": " ".join(index_terms(f"{item.names}\n{passage.text}" if passage.text else "")),
        "words": _words_to_json(passage),
        "vector": None,
        "embedder_id": "",
        "meta": meta_to_json(passage.meta),
    }
    row["checksum"] = shard_checksum(
        passage.id, passage.doc_id, str(passage.kind), "", meta_to_json(passage.meta), None
    )
    row["content_checksum"] = row_checksum(row, CONTENT_COLUMNS)
    return row


def _document_row(document: Document) -> dict[str, object]:
    row: dict[str, object] = {
        "doc_id": document.doc_id,
        "uris": list(document.uris),
        "title": document.title,
        "kind": str(document.kind),
        "status": str(document.status),
        "units": document.units,
        "size_bytes": document.size_bytes,
        "embedder_id": READ_AGAIN if document.read_again else "",
        "added_at": document.added_at,
        "error": document.error,
        "meta": meta_to_json(document.meta, document.notices),
    }
    row["checksum"] = row_checksum(row, DOCUMENT_COLUMNS)
    return row


def passage_from_row(row: Row) -> Passage:
    """The passage of a row read with ``HIT_COLUMNS``. Raises CorruptionError when its sum does not fit."""
    if row["content_checksum"] != row_checksum(row, CONTENT_COLUMNS):
        raise CorruptionError(
            f"passage {row['id']} is damaged on disk: run `vrag verify`, then ingest its document again"
        )
    meta = meta_from_json(_str(row["meta"]))
    words, cues, shots = _words_from_json(_str(row["words"]))
    return Passage(
        id=_str(row["id"]),
        doc_id=_str(row["doc_id"]),
        kind=PassageKind(_str(row["kind"])),
        locator=Locator(
            page=_int_or_none(row["page"]),
            t_start=_float_or_none(row["t_start"]),
            t_end=_float_or_none(row["t_end"]),
            span_start=_int_or_none(row["span_start"]),
            span_end=_int_or_none(row["span_end"]),
            label=_str(meta.get(PAGE_LABEL)),
            pages=_int(meta.get(PAGE_COUNT)),
        ),
        window=_int(row["window"]),
        text=_str(row["text"]),
        box=_box_from_json(row["box"]),
        words=words,
        cues=cues,
        shots=shots,
        meta=meta,
    )


def passage_to_json(passage: Passage) -> dict[str, object]:
    """All but the text, which travels in a column of its own until it has been embedded."""
    return {
        "id": passage.id,
        "doc_id": passage.doc_id,
        "kind": str(passage.kind),
        "locator": asdict(passage.locator),
        "window": passage.window,
        "box": _box_to_json(passage.box),
        "words": _words_to_json(passage),
        "meta": dict(passage.meta),
    }


def passage_from_json(value: Row, text: str) -> Passage:
    locator, meta = value["locator"], value["meta"]
    assert isinstance(locator, dict) and isinstance(meta, dict)
    words, cues, shots = _words_from_json(_str(value["words"]))
    return Passage(
        id=_str(value["id"]),
        doc_id=_str(value["doc_id"]),
        kind=PassageKind(_str(value["kind"])),
        locator=Locator(**locator),
        window=_int(value["window"]),
        text=text,
        box=_box_from_json(value["box"]),
        words=words,
        cues=cues,
        shots=shots,
        meta=meta,
    )


def document_from_row(row: Row) -> Document:
    uris = row["uris"]
    return Document(
        doc_id=_str(row["doc_id"]),
        uris=tuple(str(uri) for uri in uris) if isinstance(uris, list) else (),
        title=_str(row["title"]),
        kind=DocumentKind(_str(row["kind"])),
        status=DocumentStatus(_str(row["status"])),
        units=_int(row["units"]),
        size_bytes=_int(row["size_bytes"]),
        read_again=row["embedder_id"] == READ_AGAIN,
        added_at=_str(row["added_at"]),
        error=_str(row["error"]),
        meta=meta_from_json(_str(row["meta"])),
        notices=_notices(_str(row["meta"])),
    )


def meta_to_json(meta: Meta, notices: Sequence[str] = ()) -> str:
    values = {**meta, NOTICES_KEY: list(notices)} if notices else dict(meta)
    return json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def meta_from_json(text: str) -> Meta:
    value = json.loads(text)
    return {str(name): item for name, item in value.items() if isinstance(item, str | int | float | bool)}


def _notices(meta: str) -> tuple[str, ...]:
    # Most documents have none, and their metadata has been parsed once already.
    value = json.loads(meta).get(NOTICES_KEY) if NOTICES_KEY in meta else None
    return tuple(map(str, value)) if isinstance(value, list) else ()


_SHOT_FIELDS, _CUE_FIELDS, _WRITTEN_FIELDS = 2, 3, 7
"""Of rows of shots, of timed words, and of timed words with a place; those of words with a place alone have 5 or 6."""


def _words_to_json(passage: Passage) -> str:
    """``[[text, x0, y0, x1, y1], …]`` for words, ``[text, start, end]`` for timed ones, with x0, y0, x1, y1 behind that
    for those that are written in the picture, and ``[start, end]`` for shots.

    The turn is the sixth value of a word that is not read from left to right.
    """
    words = [[w.text, *w.box.rounded().as_tuple(), *([w.turn] if w.turn else ())] for w in passage.words]
    cues = [
        [cue.text, round(cue.start, 3), round(cue.end, 3), *(cue.box.rounded().as_tuple() if cue.box else ())]
        for cue in passage.cues
    ]
    shots = [[round(start, 3), round(end, 3)] for start, end in passage.shots]
    return json.dumps([*words, *cues, *shots], ensure_ascii=False, separators=(",", ":"))


_Shots = tuple[tuple[float, float], ...]


def _words_from_json(text: str) -> tuple[tuple[Word, ...], tuple[Cue, ...], _Shots]:
    """Words with a place, timed words, and shots."""
    words: list[Word] = []
    cues: list[Cue] = []
    shots: list[tuple[float, float]] = []
    for row in json.loads(text):
        if len(row) == _SHOT_FIELDS:
            shots.append((float(row[0]), float(row[1])))
        elif len(row) in (_CUE_FIELDS, _WRITTEN_FIELDS):
            content, start, end, *corners = row
            cues.append(Cue(float(start), float(end), str(content), Box(*map(float, corners)) if corners else None))
        else:
            content, x0, y0, x1, y1, *turn = row
            box = Box(float(x0), float(y0), float(x1), float(y1))
            words.append(Word(str(content), box, int(turn[0]) if turn else 0))
    return tuple(words), tuple(cues), tuple(shots)


def _box_to_json(box: Box | None) -> str | None:
    """``[x0, y0, x1, y1]``."""
    return None if box is None else json.dumps(box.rounded().as_tuple(), separators=(",", ":"))


def _box_from_json(text: object) -> Box | None:
    return Box(*json.loads(text)) if isinstance(text, str) else None


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _float_or_none(value: object) -> float | None:
    return float(value) if isinstance(value, float | int) else None
