"""What transformers reports of the weights of a model that is loaded."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tiny_embedders import tiny_gve, tiny_qwen3_vl_embedding
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.embedding.runtime import head_unreported


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def heard() -> Iterator[list[str]]:
    handler, logger = _Heard(), logging.getLogger("transformers.modeling_utils")
    logger.addHandler(handler)
    yield handler.messages
    logger.removeHandler(handler)


@pytest.mark.parametrize("make", [tiny_qwen3_vl_embedding, tiny_gve])
def test_the_head_that_an_embedder_does_not_need_is_not_reported(tmp_path: Path, make, heard: list[str]) -> None:
    embedder = space_embedder(SpaceConfig(model=str(make(tmp_path))))
    heard.clear()
    assert len(embedder.embed_passages([Content(text="a harbour")])) == 1
    assert heard == []


def test_anything_else_is(heard: list[str]) -> None:
    rows = ["Key | Status |", "---", "lm_head.weight | UNEXPECTED |", "norm.weight    | MISSING    |"]
    with head_unreported():
        logging.getLogger("transformers.modeling_utils").warning("\n".join(rows))
        logging.getLogger("transformers.modeling_utils").warning("the cache is full")
    assert len(heard) == 2
