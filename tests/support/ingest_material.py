"""What tests of ingest share: settings with the planted embedder, a PDF of a topic, the content of a collection."""

from __future__ import annotations

from pathlib import Path

import pymupdf

from vrag_ray.config import CorpusConfig, DecodeLimits, IngestConfig, Settings, SpaceConfig
from vrag_ray.index.storage.collection import Collection

PLANTED = SpaceConfig(model="tests.support.planted:make_planted")


def settings_for(root: Path | str, *, embedder: SpaceConfig = PLANTED, **ingest_options: int | bool) -> Settings:
    """Few files are ingested in the test's own process, unless ``concurrency`` asks for actors."""
    return Settings(
        collection=str(root),
        spaces={"text": embedder},
        corpus=CorpusConfig(pages_per_item=4, limits=DecodeLimits(cpu_seconds=30, wall_seconds=120.0)),
        ingest=IngestConfig.model_validate({"commit_pages": 8} | ingest_options),
    )


def make_pdf(path: Path, pages: int, topic: str) -> Path:
    document = pymupdf.open()
    for number in range(1, pages + 1):
        lines = "\n".join(f"{topic} line {line} of page {number}" for line in range(30))
        document.new_page().insert_text((72, 72), lines, fontsize=9)
    document.save(path)
    return path


def content(root: Path) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """All passages with their vectors, and all documents at the newest version, without the time of adding and the sum
    over it."""
    collection = Collection.open(root)
    passages = sorted(collection.table("passages").to_table().to_pylist(), key=lambda row: str(row["id"]))
    vectors: dict[str, bytes] = {}
    if collection.find_space("text") is not None:
        table = collection.space_table("text").to_table(columns=["id", "vectors"])
        vectors = dict(zip(table["id"].to_pylist(), table["vectors"].to_pylist(), strict=True))
    for row in passages:
        row["vector"] = vectors.get(str(row["id"]))
    documents = sorted(collection.table("documents").to_table().to_pylist(), key=lambda row: str(row["doc_id"]))
    for row in documents:
        del row["added_at"], row["checksum"]
    return passages, documents
