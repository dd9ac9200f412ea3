"""Which passages a run embeds, and what its stages read of them.

The caller's process holds the manifest, some 150 bytes a passage, whatever the texts are; the stages read the rest from
the collection, a block at a time, as it was when the manifest was made.
"""

from __future__ import annotations

from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.corpus.model import HAS_PICTURE
from vrag_ray.corpus.passages import BLANK
from vrag_ray.embedding.base import Modality
from vrag_ray.index.storage.document_list import read_rows
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import CorruptionError, meta_from_json, quoted
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest.spaces.material import PLACE_COLUMNS, Material, material_of, place_to_json
from vrag_ray.types import Document, PassageKind

if TYPE_CHECKING:
    import pyarrow as pa

_NOTHING = -1
_HAS_WORDS = r"regexp_like(text, '\S')"
_COLUMNS = {"unit": "unit", "window": "window", "kind": "kind", "meta": "meta", "has_words": _HAS_WORDS}


def manifest_of(writer: CollectionWriter, spaces: Mapping[str, AbstractCollection[Modality]]) -> pa.Table:
    """The passages that ``spaces`` lack and whose modalities they take: ``id``, ``material`` and ``spaces`` (names).

    Ordered by document, unit and window, so that pages of one file are drawn one after another.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    documents = pa.array(sorted(writer.documents), pa.string())
    schema = pa.schema([("document", pa.int32()), ("unit", pa.int32()), ("window", pa.int32()), ("id", pa.string()),
                        ("material", pa.int8()), ("space", pa.int8())])  # fmt: skip
    parts = [schema.empty_table()]
    for number, (space, modalities) in enumerate(spaces.items()):
        # Only words come in windows: of a picture the first stands for all.
        where = f"window = 0 OR {_HAS_WORDS}" if Modality.TEXT in modalities else "window = 0"
        for batch in writer.unembedded(space, _COLUMNS, where):
            rows = {name: batch.column(name) for name in ("unit", "window", "id")}
            rows["document"] = pc.index_in(batch.column("doc_id"), value_set=documents)
            rows["material"] = _materials(batch, modalities)
            rows["space"] = pa.repeat(pa.scalar(number, pa.int8()), batch.num_rows)
            parts.append(pa.table(rows).filter(rows["material"].is_valid()).select(schema.names))
    order = ("document", "unit", "window", "material", "id", "space")
    rows = pa.concat_tables(parts).sort_by([(name, "ascending") for name in order]).combine_chunks()
    starts = np.flatnonzero(_differs_from_previous(rows, ("id", "material")))
    names = pa.array(list(spaces), pa.string()).take(rows["space"].combine_chunks())
    passages = rows.take(starts)
    return pa.table(
        {
            "id": passages["id"],
            "material": pa.array([str(material) for material in Material]).take(passages["material"].combine_chunks()),
            "spaces": pa.ListArray.from_arrays(pa.array([*starts, rows.num_rows], pa.int32()), names),
        }
    )


def _differs_from_previous(rows: pa.Table, columns: Sequence[str]) -> NDArray[np.bool_]:
    """Whether a row differs in one of these columns from the row before it; the first row does."""
    import pyarrow.compute as pc

    differs = np.zeros(rows.num_rows, np.bool_)
    differs[:1] = True
    for name in columns:
        column = rows[name]
        differs[1:] |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy()
    return differs


def _materials(batch: pa.RecordBatch, modalities: AbstractCollection[Modality]) -> pa.Array:
    """What of each passage an embedder of these modalities takes, as its number; null where that is nothing."""
    import pyarrow as pa

    kinds, metas = (batch.column(name).dictionary_encode() for name in ("kind", "meta"))
    pairs = kinds.indices.to_numpy().astype(np.int64) * len(metas.dictionary) + metas.indices.to_numpy()
    distinct, pair_of = np.unique(pairs, return_inverse=True)
    first, other = np.empty(len(distinct), np.int8), np.empty(len(distinct), np.int8)
    for n, pair in enumerate(distinct.tolist()):
        kind, meta = divmod(pair, len(metas.dictionary))
        passage = PassageKind(kinds.dictionary[kind].as_py()), meta_from_json(metas.dictionary[meta].as_py())
        first[n], other[n] = (_number(_material(*passage, window, modalities)) for window in (0, 1))
    numbers = np.where(batch.column("window").to_numpy() == 0, first[pair_of], other[pair_of])
    has_words = batch.column("has_words").to_numpy(zero_copy_only=False)
    return pa.array(numbers, mask=(numbers == _NOTHING) | ((numbers == _number(Material.TEXT)) & ~has_words))


def _material(
    kind: PassageKind, meta: Mapping[str, object], window: int, modalities: AbstractCollection[Modality]
) -> Material | None:
    # A clip of a sound recording is its words.
    material = material_of(kind if meta.get(HAS_PICTURE, True) else PassageKind.TEXT, window, modalities)
    return None if material is not Material.TEXT and meta.get(BLANK) else material


def _number(material: Material | None) -> int:
    return _NOTHING if material is None else list(Material).index(material)


@dataclass(frozen=True, slots=True)
class CollectionState:
    """A collection as a manifest was made from it: versions of Lance's tables."""

    root: str
    passages: int
    documents: int

    @classmethod
    def of(cls, writer: CollectionWriter) -> CollectionState:
        passages, documents = writer.table_versions
        return cls(writer.files.root, passages, documents)


class ReadPassages:
    """Rows of the manifest → the same with ``doc_id``, ``blob`` (that the passage is drawn from), ``kind``,
    ``document_kind``, ``name``, ``place`` (JSON), ``meta`` (JSON) and ``text``, which is empty where no words are
    embedded."""

    def __init__(self, state: CollectionState) -> None:
        import lance

        files = CollectionFiles(state.root)
        self._root = files.root
        self._passages, self._documents = (
            lance.dataset(files.uri(f"{name}.lance"), version=version, storage_options=files.lance_options)
            for name, version in (("passages", state.passages), ("documents", state.documents))
        )
        self._known: dict[str, Document] = {}

    def __call__(self, rows: pa.Table) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = ["id", "doc_id", "kind", "meta", "text", *PLACE_COLUMNS]
        where = f"id IN ({quoted(rows['id'].to_pylist())})"
        with storage_faults(self._root, "reading passages"):
            read = self._passages.to_table(columns=columns, filter=where)
            passages = read.take(_places(rows["id"], read["id"]))
            documents = self._documents_of(passages["doc_id"].to_pylist())
        added = {
            "doc_id": passages["doc_id"],
            "blob": pa.array([document.pages_blob for document in documents], pa.string()),
            "kind": passages["kind"],
            "document_kind": pa.array([str(document.kind) for document in documents], pa.string()),
            "name": pa.array([document.title for document in documents], pa.string()),
            "place": pa.array([place_to_json(row) for row in passages.select(PLACE_COLUMNS).to_pylist()], pa.string()),
            "meta": passages["meta"],
            "text": pc.if_else(pc.equal(rows["material"], str(Material.TEXT)), passages["text"], ""),
        }
        for name, column in added.items():
            rows = rows.append_column(name, column)
        return rows

    def _documents_of(self, doc_ids: Sequence[str]) -> list[Document]:
        missing = set(doc_ids) - self._known.keys()
        if missing:
            # Those of the block before are likely to be needed again, others are not.
            self._known = {doc_id: self._known[doc_id] for doc_id in set(doc_ids) & self._known.keys()}
            self._known |= dict(read_rows(self._documents, missing))
        return [self._known[doc_id] for doc_id in doc_ids]


def _places(ids: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where each id first stands ``among`` others. Raises CorruptionError where it does not."""
    import pyarrow.compute as pc

    places = pc.index_in(ids, value_set=among)
    if places.null_count:
        raise CorruptionError(f"passage {ids.filter(places.is_null())[0]} cannot be read: run `vrag verify`")
    return places
