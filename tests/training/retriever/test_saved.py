"""A trained folder, opened by its embedder, gives the vectors of training: prompts, pixels and scored tokens.

The trainer prepares its inputs with the models' own processors and the embedders by their own recipes, so each test
holds one to the other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

pytest.importorskip("transformers", reason="NO TRANSFORMERS: retrievers are not trained here")
from tests.support.retriever_material import LATE, config_of, contents_of, retriever_of, seen
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, Embedding
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.training.retriever.config import RetrieverConfig, Scored
from vrag_ray.training.retriever.inputs import Form
from vrag_ray.training.retriever.model import Retriever, load_processor
from vrag_ray.training.retriever.recipe import write_embedding_file
from vrag_ray.training.trainer.weights import save, whole_weights


def saved(config: RetrieverConfig, folder: Path) -> tuple[Retriever, Form, Embedder]:
    """What is trained, and the embedder of what a run leaves in its ``final/``."""
    retriever, form = retriever_of(config)
    begun = config.model.path
    processor = load_processor(config, begun, given=begun)
    save(retriever.model, processor, whole_weights(retriever.model), folder)
    write_embedding_file(folder, retriever.model.config, processor, config, begun)
    return retriever, form, space_embedder(SpaceConfig(model=str(folder), device="cpu"))


def assert_agree(retriever: Retriever, form: Form, embedder: Embedder) -> None:
    words = [*contents_of(4), Content(text="表 2023")]
    for contents, queries in ((words, True), (seen(3), False)):
        with torch.no_grad():
            trained = retriever(form.inputs(contents, queries=queries))[0]
        embed = embedder.embed_queries if queries else embedder.embed_passages
        for row, embedded in enumerate(embed(contents)):
            assert isinstance(embedded, Embedding), embedded
            expected = trained.values[row][trained.scored[row]].numpy()
            np.testing.assert_allclose(in_order(embedded.vectors), in_order(expected), atol=1e-5, rtol=0)


def in_order(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Embedders give patches before other tokens, which changes no MaxSim: sorted by the first two values."""
    return vectors[np.lexsort((vectors[:, 1], vectors[:, 0]))]


@pytest.mark.parametrize("score", list(Scored))
def test_late_vectors_are_those_of_training(score: Scored, model: Path, tmp_path: Path) -> None:
    late = LATE.model_copy(update={"score": score})
    assert_agree(*saved(config_of(model, late=late), tmp_path))


def test_single_vectors_are_those_of_training(folder: Path, tmp_path: Path) -> None:
    assert_agree(*saved(config_of(folder, late=None), tmp_path))


def test_single_vectors_with_instructions_of_ones_own_are_those_of_training(qwen3: Path, tmp_path: Path) -> None:
    config = config_of(qwen3, late=None, query_instruction="Find the mosaic", passage_instruction="A mosaic")
    assert_agree(*saved(config, tmp_path))
