"""Settings of training: what is refused, where, and what is derived."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from tests.support.training_configs import RL, SFT
from vrag_ray.questions.grounding import GroundingMeasure
from vrag_ray.training.algorithms.algorithm import Credit
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.config import RLConfig, SFTConfig, TrainConfig, load_training, preset_values, presets
from vrag_ray.training.rewards.grader import VRAG_RL_WEIGHTS
from vrag_ray.training.rewards.reward import RewardWeights
from vrag_ray.types import VragError


def rl(**values: object) -> RLConfig:
    return RLConfig.model_validate(RL | values)


def test_what_is_dumped_for_the_workers_is_read_as_the_same_configuration():
    config = rl(algorithm=ALGORITHMS["dapo"].model_dump(), rollout={"questions": 4, "group": 2}, seed=3)
    assert RLConfig.model_validate(config.model_dump(mode="json")) == config
    sft = SFTConfig.model_validate(SFT | {"optimizer": {"schedule": "cosine", "betas": [0.9, 0.98]}})
    assert SFTConfig.model_validate(sft.model_dump(mode="json")) == sft


def test_cited_elements_weigh_nothing_unless_a_configuration_says_so():
    assert rl().reward.weights == VRAG_RL_WEIGHTS
    assert [preset_values(name).get("reward", {}).get("grounding", 0.0) for name in presets()] == [0.0] * len(presets())
    shares = {"answer": 0.5, "retrieval": 0.2, "format": 0.1, "grounding": 0.2}
    graded = rl(reward=shares | {"grounding_measure": "recall"}).reward
    assert graded.weights == RewardWeights(0.5, 0.2, 0.1, 0.2)
    assert graded.grounding_measure is GroundingMeasure.RECALL


SPELLED = {"ratio": "token", "clip_low": 0.2, "clip_high": 0.2, "credit": "segments"}


def test_an_algorithm_is_named_spelled_out_or_a_function():
    assert rl(algorithm=SPELLED).recipe.credit is Credit.SEGMENTS
    own = rl(algorithm="vrag_ray.training.algorithms.gspo:assign_segments")
    assert RLConfig.model_validate(own.model_dump(mode="json")) == own
    assert own.recipe == ALGORITHMS["gspo"].model_copy(update={"credit": own.algorithm})
    assert rl().recipe == ALGORITHMS["ggpo"]
    assert rl(algorithm="grpo").recipe == ALGORITHMS["grpo"]
    own = ALGORITHMS["gspo"].model_copy(update={"clip_low": 0.1})
    assert rl(algorithm=own.model_dump()).recipe == own


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"algorithm": "ppo"}, "algorithm is 'ppo'; use grpo, .*ggpo.* or package.module:function"),
        ({"algorithm": "nowhere.at_all:f"}, "algorithm is 'nowhere.at_all:f', but nowhere.at_all does not import"),
        ({"algorithm": {**SPELLED, "credit": "mine"}}, "there is no credit 'mine': choose from trajectory, "),
        ({"algorithm": {**SPELLED, "credit": "os:nothing"}}, "algorithm.credit is 'os:nothing', but os has no nothing"),
        ({"algorithm": ALGORITHMS["gspo"].model_dump() | {"clip": 0.2}}, "clip"),
        ({"algorithm": ALGORITHMS["gspo"].model_dump() | {"cited_elements": True}}, "needs a credit that masks"),
        ({"steps": 0}, "greater than or equal to 1"),
        ({"name": ""}, "at least 1 character"),
        ({"rollout": {"questions": 3}, "workers": {"count": 2}}, "questions 3 cannot be shared by 2 workers"),
        ({"rollout": {"questions": 2, "group": 3}, "minibatches": 4}, "cannot be cut into 4 minibatches"),
        ({"rollout": {"group": 1}}, r"rollout\.group 1 teaches nothing with the credit ggpo, .*: give 2 or more"),
        ({"rollout": {"group": 1}, "algorithm": "grpo"}, "teaches nothing with the credit trajectory"),
        ({"validation": "held-out.jsonl"}, r"held-out\.jsonl would never be run: set validation_every"),
        ({"validation_every": 5}, "validation_every 5 needs validation, a file of questions"),
        ({"name": "../x"}, r"name is '\.\./x': give the name of one folder"),
        ({"name": ".."}, "give the name of one folder"),
        ({"model": {"path": "m", "gpu": True}}, r"model\.gpu is true and workers\.gpu is not"),
        ({"rollout": {"engine": {"gpu": True}}}, r"rollout\.engine\.gpu is true and workers\.gpu is not"),
        ({"workers": {"gpu": True}}, r"nothing would use the GPUs: set model\.gpu or rollout\.engine\.gpu"),
        ({"model": {"path": "m", "dtype": "fp16"}}, "'float32', 'bfloat16' or 'float16'"),
        ({"rollout": {"engine": {"dtype": "half"}}}, "'float32', 'bfloat16' or 'float16'"),
        ({"optimizer": {"betas": [0.9, 1.5]}}, "less than 1"),
        ({"rollout": {"temperature": 0.0}}, "greater than 0"),
        ({"optimizer": {"schedule": "linear"}}, "'constant' or 'cosine'"),
        ({"model": {"path": "m", "rank": 8}}, "rank"),
        ({"reward": {"grounding": 0.2}}, r"grounding 0\.2\) must be at least 0 and sum to 1"),
        ({"reward": {"answer": 0.9, "grounding": -0.2}}, "must be at least 0 and sum to 1"),
        ({"reward": {"answer": 0.5}}, "must be at least 0 and sum to 1"),
        ({"reward": {"grounding_measure": "iou"}}, "'recall', 'precision' or 'f1'"),
        ({"reward": {"overlong": {"weight": 0.5}}}, "give reward.overlong.reply or reward.overlong.run"),
        ({"reward": {"overlong": {"run": {"max_tokens": 8, "cache": 9}}}}, "cache 9 is more than max_tokens 8"),
        (
            {"reward": {"overlong": {"reply": {"max_tokens": 2560, "cache": 512}}}},
            r"begins at 2048 tokens, and no reply has more than rollout\.max_reply_tokens 2048: lower max_tokens",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(values: dict[str, object], message: str):
    with pytest.raises(ValidationError, match=message):
        rl(**values)


def test_runs_that_are_compared_with_other_groups_may_be_alone_in_theirs():
    alone = {"questions": 8, "group": 1}
    assert rl(rollout=alone, algorithm="progress").rollout.group == 1
    assert rl(rollout=alone, algorithm="vrag_ray.training.algorithms.gspo:assign_segments").rollout.group == 1


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("name: [", RLConfig, r"cannot read the configuration .*run\.yaml"),
        ("- a list", RLConfig, r"run\.yaml must be a mapping"),
        ("name: x\nmodel: {path: m}\n", SFTConfig, r"run\.yaml is wrong at trajectories: Field required"),
        ("name: x\nmodel: {dtype: float32}\n", SFTConfig, r"run\.yaml is wrong at model\.path: Field required"),
        ("name: x\nmodel: {path: m}\ntrajectories: t\nbatch: none", SFTConfig, r"is wrong at batch: .*integer"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_the_place(text: str, kind: type[TrainConfig], message: str, tmp_path: Path):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=message):
        load_training(path, kind)


def test_a_file_that_is_missing_is_named(tmp_path: Path):
    with pytest.raises(VragError, match=r"cannot read the configuration .*nowhere\.yaml"):
        load_training(tmp_path / "nowhere.yaml", SFTConfig)


def test_the_former_name_of_the_environment_is_read_with_a_notice(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path, values = tmp_path / "run.yaml", dict(RL)
    values["world"] = values.pop("environment")
    path.write_text(yaml.safe_dump({"preset": "lora-24gb", **values}))
    assert load_training(path, RLConfig).environment.collection == "pages"
    assert "world is called environment now" in caplog.text
    path.write_text(yaml.safe_dump(RL | values))
    with pytest.raises(VragError, match=r"both environment and world"):
        load_training(path, RLConfig)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"validation_every": 5}, r"needs validation \(a file\) or validation_share"),
        ({"validation_share": 0.1}, "and validation_every, the steps between"),
        ({"validation": "held-out", "validation_share": 0.1, "validation_every": 5}, "give one of them"),
        ({"validation_share": 1.0, "validation_every": 5}, "less than 1"),
    ],
)
def test_what_is_held_out_from_imitation_is_measured(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SFTConfig.model_validate(SFT | values)
