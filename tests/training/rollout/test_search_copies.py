"""What a training run says of the shards and embedders that its workers open for themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support import tiny_embedders as tiny
from tests.support.planted_spaces import PLANTED, fill
from vrag_ray.config import IndexConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Residence
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.training.rollout.search_copies import EmbedderCopy, SearchCopy, copies_line, search_copy


def copy_of(root: Path, index: IndexConfig) -> tuple[SearchCopy, float]:
    """Of a real retriever; and the bytes that its indexes have by their own count."""

    async def run() -> tuple[SearchCopy, float]:
        settings = Settings(collection=str(root), spaces={"text": PLANTED}, index=index)
        retriever = await ShardedRetriever.start_local(settings)
        try:
            held = sum(shard.size * shard.bytes_per_passage for shard in retriever.status().shards)
            return search_copy(retriever, index), held
        finally:
            await retriever.close()

    return asyncio.run(run())


def test_a_copy_has_every_space_and_every_replica(tmp_path: Path) -> None:
    fill(tmp_path / "c")
    copy, held = copy_of(tmp_path / "c", IndexConfig(replicas=2, threads=1))
    assert held > 0
    assert (copy.shards, copy.nbytes) == (2, 2 * held)
    assert [embedder.space for embedder in copy.embedders] == ["text", "late", "mean"]
    # The planted ones are a user's factories: they do not say where they lie.
    assert {embedder.residence for embedder in copy.embedders} == {None}


def test_a_loaded_model_says_where_its_weights_lie_and_how_large_they_are(tmp_path: Path) -> None:
    from transformers import ColQwen2ForRetrieval

    folder = tiny.tiny_colqwen2(tmp_path / "colqwen2")
    embedder = space_embedder(SpaceConfig(model=str(folder), device="cpu", dtype="bfloat16"))
    parameters = sum(weight.numel() for weight in ColQwen2ForRetrieval.from_pretrained(folder).parameters())
    assert getattr(embedder, "residence") == Residence("cpu", 2 * parameters)  # noqa: B009  no member of Embedder


@pytest.mark.parametrize("workers", [1, 8])
def test_the_line_counts_copies_and_bytes_of_all_workers(workers: int) -> None:
    text = EmbedderCopy("text", "minilm/1", Residence("cpu", 90_000_000))
    pages = EmbedderCopy("pages", "qwen/1", Residence("cuda", 4_250_000_000))
    line = copies_line([SearchCopy(4, 310e6, 0.0, (text, pages))] * workers)
    opened = {1: "the worker opens", 8: "each of 8 workers opens"}[workers]
    assert line == (
        f"searches: {opened} the collection and its embedders for itself: {4 * workers} shards of "
        f"{0.31 * workers:.2f} GB in main memory; the embedder of text (minilm/1) {workers} times, "
        f"{0.09 * workers:.2f} GB in main memory; the embedder of pages (qwen/1) {workers} times, "
        f"{4.25 * workers:.2f} GB on the GPU of its worker, which trainer and engine use too"
    )


def test_an_embedder_of_unknown_size_is_counted_all_the_same() -> None:
    line = copies_line([SearchCopy(1, 5e6, 0.5, (EmbedderCopy("own", "mine/1", None),))] * 2)
    assert "2 shards of 0.01 GB with 0.5 GPU each" in line
    assert line.endswith("the embedder of own (mine/1) 2 times, of a size that it does not say")
