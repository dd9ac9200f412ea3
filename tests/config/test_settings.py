"""Settings that went away are refused with the reason, wherever they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.cli.commands.serve import read_serve_config
from vrag_ray.config import load_settings
from vrag_ray.training.config import RLConfig, load_training
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_configuration_is_read_in_every_encoding_that_a_mark_names(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("collection: größe\n", encoding=encoding)
    assert load_settings(path).collection == "größe"


def test_a_configuration_in_another_encoding_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_bytes("collection: x\n# für Anna\n".encode("cp1252"))
    with pytest.raises(VragError, match=r"vrag\.yaml: line 2 is not UTF-8 \(byte 0xfc\): save the file as UTF-8"):
        load_settings(path)
    with pytest.raises(VragError, match=r"vrag\.yaml: line 2 is not UTF-8"):
        load_training(path, RLConfig)
    with pytest.raises(VragError, match=r"vrag\.yaml: line 2 is not UTF-8"):
        read_serve_config(path)


def test_a_key_that_is_given_twice_is_refused_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("agent: {max_steps: 8}\nindex: {shards: 2}\nagent: {deadline_s: 5}\n")
    with pytest.raises(VragError, match=r"vrag\.yaml: the key agent is given twice, in lines 1 and 3"):
        load_settings(path)
    path.write_text("agent:\n  max_steps: 8\n  max_steps: 9\n")
    with pytest.raises(VragError, match="the key max_steps is given twice, in lines 2 and 3"):
        load_settings(path)
