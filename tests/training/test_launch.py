"""What is checked before Ray starts anything; whole runs are in ``tests/e2e/learning``."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import pytest

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
def test_an_install_that_cannot_train_says_what_to_install():
    with pytest.raises(VragError, match=r"training needs vllm: install vrag-ray\[cpu\] or vrag-ray\[gpu\]"):
        train_rl(RLConfig.model_validate(RL), pytest.fail)
    with pytest.raises(VragError, match="training needs vllm"):
        train_sft(SFTConfig.model_validate(SFT), pytest.fail)
