"""The manifest of a run: every passage that a space lacks and its embedder takes, one row each."""

from __future__ import annotations

from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vrag_ray.corpus.model import HAS_PICTURE
from vrag_ray.corpus.passages import BLANK
from vrag_ray.embedding.base import Modality
from vrag_ray.index.storage.rows import meta_from_json
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest.spaces.material import Material, material_of, place_to_json
from vrag_ray.types import PassageKind

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("kind", "unit", "window", "text", "meta", "page", "t_start", "t_end", "span_start", "span_end")


def manifest_of(writer: CollectionWriter, spaces: Mapping[str, AbstractCollection[Modality]]) -> pa.Table:
    """Rows ordered by document and unit, with the spaces (of those whose modalities are given) that want them.

    Columns: ``id``, ``doc_id``, ``blob`` (that it is drawn from), ``kind``, ``document_kind``, ``name``,
    ``place`` (JSON), ``material``, ``text`` (only where words are embedded), ``meta`` (JSON) and ``spaces``.
    """
    import pyarrow as pa

    rows: dict[tuple[str, Material], dict[str, object]] = {}
    orders: dict[tuple[str, Material], tuple[str, int, int]] = {}
    for space, modalities in spaces.items():
        # Only words come in windows: of a picture the first stands for all.
        where = "" if Modality.TEXT in modalities else "window = 0"
        for batch in writer.unembedded(space, _COLUMNS, where):
            for row in batch.to_pylist():
                # A clip of a sound recording is its words.
                has_picture = meta_from_json(row["meta"]).get(HAS_PICTURE, True)
                kind = PassageKind(row["kind"]) if has_picture else PassageKind.TEXT
                material = material_of(kind, row["window"], modalities)
                if material is None or (material is Material.TEXT and not row["text"].strip()):
                    continue
                if material is not Material.TEXT and meta_from_json(row["meta"]).get(BLANK):
                    continue
                key = (row["id"], material)
                if key not in rows:
                    document = writer.documents[row["doc_id"]]
                    orders[key] = (row["doc_id"], row["unit"], row["window"])
                    rows[key] = {
                        "id": row["id"],
                        "doc_id": row["doc_id"],
                        "blob": document.pages_blob,
                        "kind": row["kind"],
                        "document_kind": str(document.kind),
                        "name": document.title,
                        "place": place_to_json(row),
                        "material": str(material),
                        "text": row["text"] if material is Material.TEXT else "",
                        "meta": row["meta"],
                        "spaces": [],
                    }
                named = rows[key]["spaces"]
                assert isinstance(named, list)
                # While texts are embedded anew, a passage stands there twice.
                if space not in named:
                    named.append(space)
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("id", "doc_id", "blob", "kind", "document_kind")),
            *((name, pa.string()) for name in ("name", "place", "material")),
            ("text", pa.large_string()),
            ("meta", pa.string()),
            ("spaces", pa.list_(pa.string())),
        ]
    )
    return pa.Table.from_pylist([rows[key] for key in sorted(rows, key=orders.__getitem__)], schema=schema)
