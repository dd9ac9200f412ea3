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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agent: {max_step: 8}", r"at agent\.max_step: there is no such setting; did you mean agent\.max_steps\?"),
        ("agnt: {max_steps: 8}", r"at agnt: there is no such setting; did you mean agent\?"),
        ("max_steps: 8", r"at max_steps: there is no such setting; did you mean agent\.max_steps\?"),
        ("spaces: {text: {modle: minilm}}", r"did you mean spaces\.text\.model\?"),
        ("agent: {zzz: 1}", r"at agent\.zzz: there is no such setting$"),
    ],
)
def test_a_misspelled_setting_names_the_nearest(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=says):
        load_settings(path)


def test_a_misspelled_setting_of_a_training_names_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "rl.yaml"
    path.write_text("name: a\nexamples: b\nsteps: 1\nenvironment: {colection: c}\nmodel: {path: d}\n")
    with pytest.raises(VragError, match=r"did you mean environment\.collection\?"):
        load_training(path, RLConfig)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("VRAG_AGNT__MAX_STEPS", "VRAG_AGENT__MAX_STEPS"),
        ("VRAG_COLECTION", "VRAG_COLLECTION"),
        ("VRAG_AGENT_MAX_STEPS", "VRAG_AGENT__MAX_STEPS"),
        ("VRAG_GPU", "VRAG_GPUS"),
    ],
)
def test_a_misspelled_variable_names_the_nearest(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    monkeypatch.setenv(name, "5")
    with pytest.raises(VragError, match=rf"the variable {name} is no setting: did you mean {meant}\?"):
        load_settings()


def test_variables_of_other_uses_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {"VRAG_API_KEYS": "a", "VRAG_URL": "b", "VRAG_IMAGE_TAG": "c", "VRAG_SERVING_PORT": "tcp://10.0.0.1:80"}
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    assert load_settings() == load_settings()
    monkeypatch.setenv("VRAG_NOTHING__LIKE_IT", "5")
    with pytest.raises(VragError, match=r"the variable VRAG_NOTHING__LIKE_IT is no setting: docs/settings\.md"):
        load_settings()


@pytest.mark.parametrize(
    "text",
    [
        "corpus: {limits: {memory_mb: 0}}",
        "corpus: {limits: {max_file_mb: -1}}",
        "corpus: {limits: {max_pages: 0}}",
        "corpus: {ocr_dpi: 0}",
        "corpus: {window_words: 20, window_overlap: 20}",
        "agent: {abstain_below: 50}",
        "agent: {deadline_s: 0}",
        "agent: {energy_feedback: -0.1}",
        "serving: {port: 70000}",
        "serving: {max_upload_mb: 0}",
        "index: {threads: 0}",
    ],
)
def test_a_limit_under_which_nothing_works_is_refused_by_its_section(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=rf"wrong at {text.partition(':')[0]}\b.*"):
        load_settings(path)
