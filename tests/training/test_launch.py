"""What is checked before Ray starts anything; whole runs are in ``tests/e2e/learning``."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tests.support.object_store import Bucket
from tests.training.test_config import RL, SFT
from vrag_ray.training.config import RLConfig, SFTConfig
from vrag_ray.training.launch import train_rl, train_sft
from vrag_ray.types import VragError


@pytest.fixture
def without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the base install."""
    known = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "vllm" else known(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)


@pytest.mark.usefixtures("without_vllm")
def test_reinforcement_needs_vllm_and_says_what_to_install():
    with pytest.raises(VragError, match=r"training needs vllm: install vrag-ray\[cpu\] or vrag-ray\[gpu\]"):
        train_rl(RLConfig.model_validate(RL), pytest.fail)


@pytest.mark.usefixtures("without_vllm")
def test_imitation_needs_no_vllm_but_its_data():
    with pytest.raises(VragError, match=r"trajectories: there is no expert"):
        train_sft(SFTConfig.model_validate(SFT), pytest.fail)


def test_what_is_missing_or_cannot_work_is_found_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: Bucket
):
    def refused(**values: object) -> str:
        with pytest.raises(VragError) as caught:
            train_rl(RLConfig.model_validate(RL | values), pytest.fail)
        return str(caught.value)

    monkeypatch.chdir(tmp_path)
    assert "world.collection: there is no pages in" in refused()
    (tmp_path / "pages").mkdir()
    assert "pages is not a collection: `vrag ingest" in refused()
    assert list((tmp_path / "pages").iterdir()) == []
    monkeypatch.setattr("vrag_ray.training.launch._collection", str)
    assert "examples: there is no questions.jsonl in" in refused()
    (tmp_path / "questions.jsonl").touch()
    assert "validation: there is no held-out.jsonl in" in refused(validation="held-out.jsonl")
    assert "model.path: there is no ~/model".replace("~", str(Path.home())) in refused(model={"path": "~/model"})
    assert "reward.judge_cache: a URI with a password" in refused(reward={"judge_cache": "s3://a:b@c/d"})
    served = {"served": {"model": "that of the run"}}
    assert "rollout.served loads the model from a folder" in refused(
        model={"path": bucket.uri("model")}, rollout=served
    )
