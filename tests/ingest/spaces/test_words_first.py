"""Words are searched without vectors; a space of ``minilm`` is filled from them later, and no file is read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pymupdf
import pytest

from tests.support import embedder_factories
from tests.support.ingest_material import settings_for
from vrag_ray.config import CorpusConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.index.search.leg_loader import LegLoader
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.search.served_legs import NOT_EMBEDDED, load_legs, notices_of_missing
from vrag_ray.index.shards.row_loader import load_space_rows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest import ingest
from vrag_ray.ingest.spaces import embed_spaces
from vrag_ray.types import VragError

FACTORIES = embedder_factories.__name__
PAPERS = {
    "harbour.txt": "The crane lifts containers from the vessel onto the quay.",
    "kitchen.txt": "Simmer the onions in butter until they are soft.",
}


async def first(settings: Settings, query: str, mode: str) -> str:
    retriever = await ShardedRetriever.start_local(settings)
    try:
        answer = await retriever.search([query], top_k=1, mode=mode)
        return answer.results[0][0].title
    finally:
        await retriever.close()


def test_words_are_searched_before_there_are_vectors_which_then_come_from_the_stored_words(tmp_path: Path) -> None:
    for name, text in PAPERS.items():
        (tmp_path / name).write_text(text)
    lexical = Settings(collection=str(tmp_path / "c"), spaces={"text": SpaceConfig(model="none")})
    assert ingest([tmp_path / name for name in PAPERS], lexical).notices == (
        "lexical search only: spaces.text.model is none",
    )
    assert asyncio.run(first(lexical, "vessel", "lexical")) == "harbour"
    for name in PAPERS:
        (tmp_path / name).unlink()
    settings = Settings(collection=lexical.collection)
    [report] = embed_spaces(settings)
    assert (report.name, report.embedded, report.failed) == ("text", 2, ())
    assert asyncio.run(first(settings, "unloading ships in a port", "text")) == "harbour"
    assert asyncio.run(first(settings, "cooking vegetables", "hybrid")) == "kitchen"
    rows = load_space_rows(Collection.open(settings.collection), "text")
    [alone] = space_embedder(SpaceConfig(model="minilm")).embed_passages([Content(PAPERS["harbour.txt"])])
    assert isinstance(alone, Embedding)
    assert any(np.array_equal(row, alone.vectors[0].astype(np.float16)) for row in rows.vectors)


def test_an_ingest_by_actors_publishes_the_words_before_the_vectors(tmp_path: Path, local_ray: None) -> None:
    (tmp_path / "harbour.txt").write_text(PAPERS["harbour.txt"])
    report = ingest([tmp_path / "harbour.txt"], settings_for(tmp_path / "c", concurrency=1))
    *earlier, whole = (Collection.open(tmp_path / "c", number) for number in range(1, report.version + 1))
    assert [record.passages for record in whole.spaces] == [1]
    words = [version for version in earlier if version.documents() == whole.documents()]
    assert words and all(record.passages == 0 for version in words for record in version.spaces)


def test_an_ingest_that_cannot_embed_keeps_its_words(tmp_path: Path) -> None:
    (tmp_path / "harbour.txt").write_text(PAPERS["harbour.txt"])
    settings = settings_for(tmp_path / "c", embedder=SpaceConfig(model=f"{FACTORIES}:breaking"))
    [notice] = ingest([tmp_path / "harbour.txt"], settings).notices
    assert notice.startswith("lexical search only: filling text stopped: the model is out of order. What was embedded")
    assert [document.title for document in Collection.open(tmp_path / "c").documents()] == ["harbour"]


def test_missing_weights_are_named_although_a_space_has_vectors_of_texts() -> None:
    space = SpaceRecord("words", "t", 1, "m/1", 4, multi_vector=False, traits={"modalities": ["text"]})
    lacking = {"text": "the weights are not here"}
    assert notices_of_missing(lacking, [space]) == [
        "texts are searched by their words only: the weights are not here",
    ]
    assert notices_of_missing({"text": NOT_EMBEDDED}, [space]) == []
    assert notices_of_missing(lacking, []) == ["lexical search only: the weights are not here"]


def test_a_setting_of_other_models_is_refused_by_name() -> None:
    with pytest.raises(VragError, match="minilm takes no dims"):
        space_embedder(SpaceConfig(model="minilm", dims=64))


def test_a_document_without_words_does_not_wait_for_vectors_of_texts(tmp_path: Path) -> None:
    (tmp_path / "harbour.txt").write_text(PAPERS["harbour.txt"])
    document = pymupdf.open()
    document.new_page().draw_rect(pymupdf.Rect(100, 100, 300, 300), fill=(1, 0, 0))
    document.save(tmp_path / "square.pdf")
    settings = Settings(collection=str(tmp_path / "c"), corpus=CorpusConfig(ocr=False))
    assert ingest([tmp_path / "harbour.txt", tmp_path / "square.pdf"], settings).added == 2
    collection = Collection.open(settings.collection)
    assert load_legs(settings, collection, LegLoader()).notices == ()
    with CollectionWriter(settings.collection) as writer:
        writer.spaces.forget_documents([document.doc_id for document in collection.documents()])
        writer.publish("forgotten")
    assert load_legs(settings, Collection.open(settings.collection), LegLoader()).notices == (
        "1 document is not in the vector space text yet: `vrag embed --space text` adds them",
    )


def test_a_gpu_that_minilm_cannot_use_is_refused_by_name(tmp_path: Path, local_ray: None) -> None:
    (tmp_path / "harbour.txt").write_text(PAPERS["harbour.txt"])
    settings = settings_for(tmp_path / "c", embedder=SpaceConfig(model="minilm", num_gpus=1))
    [notice] = ingest([tmp_path / "harbour.txt"], settings).notices
    assert "spaces.text.num_gpus is 1, and minilm has no GPU code: set spaces.text.num_gpus to 0" in notice
