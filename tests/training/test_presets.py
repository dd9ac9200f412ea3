"""The configurations to start from: each is whole but for what only its user knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vrag_ray.training.config import RLConfig, load_training, preset_config, presets
from vrag_ray.types import VragError

OWN = """\
name: mine
examples: questions.jsonl
steps: 10
model: {path: some/model}
environment: {collection: my-collection}
reward: {judge: {base_url: "http://127.0.0.1:1/v1", model: judge}}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", presets())
def test_every_preset_needs_nothing_but_names_and_places(name: str, tmp_path: Path):
    config = load_training(written(tmp_path, f"preset: {name}\n{OWN}"), RLConfig)
    assert config.name == "mine"
    assert config.model.path == "some/model"
    assert config.made_for == preset_config(name).made_for


@pytest.mark.parametrize("name", presets())
def test_the_machine_that_a_preset_names_is_that_of_its_numbers(name: str, tmp_path: Path):
    config = load_training(written(tmp_path, f"preset: {name}\n{OWN}"), RLConfig)
    if config.model.gpu:
        assert config.made_for.startswith(f"{config.workers.count} GPU")
        [tokens] = re.findall(r"Calls have up to ([\d,]+) tokens", config.made_for)
        assert int(tokens.replace(",", "")) == config.rollout.engine.max_model_len
    else:
        assert config.made_for.startswith("Two cores and ")
        assert config.workers.count * config.workers.threads == 2


def test_the_published_scripts_numbers_are_kept(tmp_path: Path):
    config = load_training(written(tmp_path, f"preset: vrag-7b-grpo\n{OWN}"), RLConfig)
    recipe = config.recipe
    assert (config.rollout.questions, config.rollout.group, config.minibatches) == (32, 5, 5)
    assert (config.optimizer.lr, config.optimizer.warmup_steps, config.optimizer.clip_norm) == (1e-6, 5, 1.0)
    assert (recipe.clip_low, recipe.clip_high, recipe.kl, recipe.entropy) == (0.2, 0.2, 0.01, 0.0)
    assert (config.reward.answer, config.reward.retrieval, config.reward.format) == (0.7, 0.2, 0.1)
    assert config.rollout.max_reply_tokens == 2048
    assert config.environment.agent.max_steps == 5


def test_what_a_file_sets_wins_over_its_preset_name_by_name(tmp_path: Path):
    text = f"preset: lora-24gb\n{OWN}rollout: {{group: 4}}\n"
    config = load_training(written(tmp_path, text), RLConfig)
    assert config.rollout.group == 4
    assert config.rollout.engine.max_model_len == 6144


def test_an_unknown_preset_is_refused_with_the_known_ones(tmp_path: Path):
    with pytest.raises(VragError, match=r"no preset 'big'.*lora-24gb.*vrag-7b-grpo"):
        load_training(written(tmp_path, f"preset: big\n{OWN}"), RLConfig)


def test_a_name_that_is_no_setting_is_refused(tmp_path: Path):
    with pytest.raises(VragError, match=r"run\.yaml is wrong at rollout\.grup"):
        load_training(written(tmp_path, f"{OWN}rollout: {{grup: 4}}\n"), RLConfig)


def test_runs_that_cannot_be_shared_out_are_refused(tmp_path: Path):
    with pytest.raises(VragError, match="cannot be shared by 3 workers"):
        load_training(written(tmp_path, f"{OWN}workers: {{count: 3}}\n"), RLConfig)
