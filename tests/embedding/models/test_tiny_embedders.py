"""The stand-ins of the published models are folders that the models' own classes load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import tiny_embedders as tiny

BUILDERS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "qwen3_vl": (tiny.tiny_qwen3_vl_embedding, "Qwen3VLModel"),
    "qwen2_5_vl": (tiny.tiny_gve, "Qwen2_5_VLModel"),
    "xlm-roberta": (tiny.tiny_bge_m3, "XLMRobertaModel"),
    "siglip2": (tiny.tiny_siglip2, "Siglip2Model"),
    "siglip": (tiny.tiny_siglip, "SiglipModel"),
    "colqwen2": (tiny.tiny_colqwen2, "ColQwen2ForRetrieval"),
    "colpali": (tiny.tiny_colpali, "ColPaliForRetrieval"),
    "colmodernvbert": (tiny.tiny_colmodernvbert, "ColModernVBertForRetrieval"),
}


@pytest.mark.parametrize("model_type", BUILDERS)
def test_the_models_own_class_loads_every_weight_of_the_folder(model_type: str, tmp_path: Path) -> None:
    import transformers

    build, class_name = BUILDERS[model_type]
    folder = build(tmp_path / "model")
    model, report = getattr(transformers, class_name).from_pretrained(folder, output_loading_info=True)
    assert model.config.model_type == model_type
    assert not report["missing_keys"]
    assert set(report["unexpected_keys"]) <= {"lm_head.weight"}
    assert transformers.AutoProcessor.from_pretrained(folder) is not None


def test_one_seed_writes_one_set_of_weights(tmp_path: Path) -> None:
    files = [
        tiny.tiny_colqwen2(tmp_path / str(place), seed) / "model.safetensors" for place, seed in enumerate((3, 3, 4))
    ]
    first, same, other = (file.read_bytes() for file in files)
    assert first == same != other
