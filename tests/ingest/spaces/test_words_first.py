"""Words are searched without vectors; a space of ``minilm`` is filled from them later, and no file is read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from vrag_ray.config import EmbedderConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.search.served_legs import notice_of_texts
from vrag_ray.index.shards.row_loader import load_space_rows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.ingest import ingest
from vrag_ray.ingest.spaces import embed_spaces
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

PAPERS = {
    "harbour.txt": "The crane lifts containers from the vessel onto the quay.",
    "kitchen.txt": "Simmer the onions in butter until they are soft.",
}


async def first(settings: Settings, query: str, mode: str) -> str:
    retriever = await ShardedRetriever.start(settings)
    try:
        answer = await retriever.search([query], top_k=1, mode=mode)
        return answer.results[0][0].title
    finally:
        await retriever.close()


def test_words_are_searched_before_the_space_has_vectors_which_then_comes_from_the_stored_words(
    tmp_path: Path, local_ray: None
) -> None:
    for name, text in PAPERS.items():
        (tmp_path / name).write_text(text)
    settings = Settings(collection=str(tmp_path / "c"), embedder=EmbedderConfig(name="none"), spaces={})
    assert ingest([tmp_path / name for name in PAPERS], settings).notices == (
        "lexical search only: embedder.name is none",
    )
    assert asyncio.run(first(settings, "vessel", "lexical")) == "harbour"
    for name in PAPERS:
        (tmp_path / name).unlink()
    settings = with_changes(settings, {"spaces": {"words": SpaceConfig(model="minilm")}})
    [report] = embed_spaces(settings)
    assert (report.embedded, report.failed) == (2, ())
    # With vectors of texts there is nothing to be said of an embedder that was left out.
    assert ingest([tmp_path], with_changes(settings, {"spaces": {}})).notices == (
        "left out c: it is a collection of vrag_ray, not read again",
    )
    assert asyncio.run(first(settings, "unloading ships in a port", "words")) == "harbour"
    assert asyncio.run(first(settings, "cooking vegetables", "hybrid")) == "kitchen"
    rows = load_space_rows(Collection.open(settings.collection), "words")
    [alone] = space_embedder(SpaceConfig(model="minilm")).embed_passages([Content(PAPERS["harbour.txt"])])
    assert isinstance(alone, Embedding)
    assert any(np.array_equal(row, alone.vectors[0].astype(np.float16)) for row in rows.vectors)


def test_missing_weights_are_named_although_a_space_has_vectors_of_texts() -> None:
    space = SpaceRecord("words", "t", 1, "m/1", 4, multi_vector=False, traits={"modalities": ["text"]})
    lacking = "lexical search only: the weights are not here"
    assert notice_of_texts(lacking, EmbedderConfig(), [space]).endswith("the weights are not here")
    assert notice_of_texts(lacking, EmbedderConfig(name="none"), [space]) == ""
    assert notice_of_texts(lacking, EmbedderConfig(name="none"), []) == lacking


def test_a_setting_of_other_models_is_refused_by_name() -> None:
    with pytest.raises(VragError, match="minilm takes no dims"):
        space_embedder(SpaceConfig(model="minilm", dims=64))
