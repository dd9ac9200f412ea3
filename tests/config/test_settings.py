"""Settings that went away are refused with the reason, wherever they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.config import load_settings
from vrag_ray.types import VragError


def test_the_constant_of_the_former_rank_fusion_is_refused_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("index: {rrf_k: 60}\n")
    with pytest.raises(VragError, match=r"vrag\.yaml is wrong at index: .*rrf_k has no use any more.*delete it"):
        load_settings(path)


def test_the_constant_of_the_former_rank_fusion_is_refused_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VRAG_INDEX__RRF_K", "60")
    with pytest.raises(VragError, match=r"\(environment\) is wrong at index: .*rrf_k has no use any more"):
        load_settings()


def test_one_language_model_is_configured_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("vllm: {model: org/seer}\n")
    assert load_settings(path).language_model == load_settings(path).vllm
    monkeypatch.setenv("VRAG_OPENAI__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("VRAG_OPENAI__MODEL", "qwen")
    with pytest.raises(VragError, match=r"both openai \(qwen\) and vllm \(org/seer\) name the language model: set one"):
        load_settings(path)
    endpoint = load_settings().language_model
    assert endpoint is not None and endpoint.model == "qwen"
