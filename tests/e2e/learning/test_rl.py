"""Reinforcement learning on Ray Train with colocated and with served vLLM, and a kill in mid-step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest
import torch
import yaml

from tests.support.documented_training import environment_of_a_user
from tests.support.learning_place import SOURCES, Place, alike, metrics, pixels_of, weights
from tests.support.learning_scorers import KILLED, earned_until_killed
from tests.support.learning_sizes import GROUP, RUNS_A_WORKER, STEPS, WORKERS
from tests.support.object_store import Bucket
from tests.support.patience import HANGS_AFTER_S
from tests.support.tiny_vllm import needs_vllm
from vrag_ray.cluster import left_running
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.training.config import RLConfig
from vrag_ray.training.launch import train_rl
from vrag_ray.training.rollout.trajectory_store import read_trajectories
from vrag_ray.training.run.checkpoints import checkpoints
from vrag_ray.training.run.storage import RunStorage

pytestmark = needs_vllm
GAP = 1e-4


@pytest.fixture(scope="module")
def trained(place: Place, tuned: Path) -> Path:
    """The folder of a run on two workers that nothing disturbed."""
    lines: list[str] = []
    final = train_rl(place.rl(tuned / "final"), lines.append)
    assert lines[0] == f"everything of this run: {place.root / 'runs/rl'}"
    assert lines[1].startswith(f"searches: each of {WORKERS} workers opens the collection and its embedders for itself")
    assert "in main memory" in lines[1]
    assert [line.split(":")[0] for line in lines[2:]] == [f"step {step}/{STEPS}" for step in (0, 1, 2, 3, 3)]
    return Path(final).parent


def steps_of(folder: Path) -> list[dict[str, float]]:
    return [line for line in metrics(folder) if "update/loss" in line]


def test_sampler_and_trainer_agree_before_and_after_every_update(trained: Path) -> None:
    steps = steps_of(trained)
    assert [line["step"] for line in steps] == list(range(1, STEPS + 1))
    for line in steps:
        assert line["update/tokens"] > 100, "the gap is that of many tokens"
        assert line["parity/gap_max"] <= GAP
        assert line["update/grad_norm"] > 0
    last = metrics(trained)[-1]
    assert last["step"] == STEPS
    assert 0 < last["validation/parity/gap_max"] <= GAP, "with the weights of the last update"


def test_validation_tells_success_and_reward_of_each_set_and_both_make_up_the_whole(trained: Path) -> None:
    validations = [line for line in metrics(trained) if "validation/reward/mean" in line]
    assert [line["step"] for line in validations] == [0, STEPS]
    for line in validations:
        measured = {name for name in line if name.startswith("validation/success/")}
        assert measured == {f"validation/success/{source}" for source in SOURCES}
        for whole, part in (("reward/success", "success"), ("reward/mean", "mean_reward")):
            parts = [line[f"validation/{part}/{source}"] for source in SOURCES]
            # Both sets have as many questions.
            assert sum(parts) / len(parts) == pytest.approx(line[f"validation/{whole}"])
    read = [run for path in (trained / "rollouts").glob("*-rank-0.parquet") for run in read_trajectories(path)]
    assert {run.data_source for run in read} == {""}, "training questions name none"


def test_runs_take_several_turns_and_look_at_pictures(trained: Path) -> None:
    for line in steps_of(trained):
        assert line["run/turns"] > 2
        assert line["run/searches"] > 0.5
        assert line["run/pictures"] > 0


def test_every_run_can_be_read_again_as_it_was_sampled(place: Place, trained: Path) -> None:
    pixels = pixels_of(place)
    for step in range(1, STEPS + 1):
        shares = [
            list(read_trajectories(trained / f"rollouts/step-{step:06d}-rank-{rank}.parquet"))
            for rank in range(WORKERS)
        ]
        assert [len(share) for share in shares] == [RUNS_A_WORKER] * WORKERS
        assert not {run.uid for run in shares[0]} & {run.uid for run in shares[1]}
        calls = [call for share in shares for run in share for call in run.calls]
        assert all(len(call.logprobs) == len(call.completion_ids) > 0 for call in calls)
        assert {call.weights for call in calls} == {str(step - 1)}
        seeing = [call for call in calls if call.images]
        assert seeing
        for call in seeing:
            assert (
                pixels.expand_image_tokens(narrow(call.prompt_ids, pixels.image_token_id), call.images)
                == call.prompt_ids
            )


def narrow(ids: Sequence[int], image: int) -> tuple[int, ...]:
    """With one token for each picture: other tokens stand between any two."""
    return tuple(token for place, token in enumerate(ids) if token != image or ids[place - 1] != image)


def test_the_trained_model_is_a_plain_folder(place: Place, tuned: Path, trained: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForImageTextToText

    saved, begun = weights(trained / "final"), weights(tuned / "final")
    assert sum(not torch.equal(saved[name], begun[name]) for name in saved) > len(saved) / 2
    AutoModelForImageTextToText.from_pretrained(str(trained / "final"), dtype=torch.float32).save_pretrained(tmp_path)
    assert alike(weights(tmp_path), saved)
    assert alike(weights(max(trained.glob("checkpoint_*/"))), saved)
    assert ChatFormat(str(trained / "final")).reply_tokens("red")


def timeless(line: dict[str, float]) -> dict[str, float]:
    """Without what depends on the machine's mood: times, and the sampler's last bits."""
    return {name: value for name, value in line.items() if not {"seconds", "speed", "parity"} & set(name.split("/"))}


# Quick forms: those of ``test_sft::test_a_killed_worker_is_replaced_and_the_run_ends_with_the_same_bits``.
@pytest.mark.exhaustive
def test_a_run_whose_worker_was_killed_in_mid_step_ends_as_if_nothing_had_happened(
    place: Place, tuned: Path, trained: Path
) -> None:
    config = place.rl(
        tuned / "final",
        name="rl-killed",
        workers={"count": WORKERS, "max_failures": 1},
        reward={"scorer": f"{earned_until_killed.__module__}:earned_until_killed"},
    )
    again = Path(train_rl(config, lambda line: None)).parent
    assert (again / KILLED).exists()
    assert [timeless(line) for line in metrics(again)] == [timeless(line) for line in metrics(trained)]
    assert alike(weights(again / "final"), weights(trained / "final"))


def questions_of(folder: Path) -> list[list[str]]:
    """By step, which questions taught."""
    return [
        [run.uid for run in read_trajectories(file)] for file in sorted(folder.glob("rollouts/step-*-rank-0.parquet"))
    ]


def killed_after(step: int, config: RLConfig, folder: Path) -> None:
    """Start the command on ``config``, and kill its process with signal 9 once it has reported ``step``."""
    (folder / "run.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    command = [sys.executable, "-m", "vrag_ray.cli", "train", "rl", "--config", "run.yaml"]
    with subprocess.Popen(
        command, cwd=folder, env=environment_of_a_user(folder / "home"), stdout=PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        assert any(line.startswith(f"step {step}/") for line in driver.stdout)
        below = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
    for left in left_running(below, HANGS_AFTER_S):
        left.kill()


# Quick forms: ``training/test_rl::test_dynamic_sampling_passes_over_no_question`` with doubles of ranks and runs.
@pytest.mark.exhaustive
def test_a_dapo_run_whose_command_was_killed_goes_on_at_its_place_in_the_questions(
    place: Place, tuned: Path, tmp_path: Path
) -> None:
    own = {
        "algorithm": "dapo",
        # Right or wrong and nothing else, so that runs of a question often earn the same.
        "reward": {"scorer": "exact_match", "answer": 1.0, "retrieval": 0.0, "format": 0.0},
        "rollout": place.rl(tuned).rollout.model_dump(mode="json") | {"questions": 2, "group": 2},
        "workers": {"count": 1},
        "validation": "",
        "validation_every": 0,
        "steps": 4,
    }
    whole = Path(train_rl(place.rl(tuned / "final", name="dapo", **own), lambda line: None)).parent
    config = place.rl(tuned / "final", name="dapo-killed", **own)
    killed_after(2, config, tmp_path)
    folder = place.root / "runs/dapo-killed"
    last = checkpoints(RunStorage(config.storage, config.name))[-1]
    saved = torch.load(folder / last / "trainer.pt", weights_only=True)
    done, cursor = int(saved["optimizer"]["done"]), int(saved["cursor"])
    assert done >= 2
    least = done * config.rollout.questions
    assert least < cursor < least * (1 + config.rollout.refill), "some questions taught nothing, and made room"
    lines: list[str] = []
    train_rl(config, lines.append)
    assert any(line.startswith(f"step {done + 1}/4") for line in lines)
    assert not any(line.startswith(f"step {done}/4") for line in lines)
    assert questions_of(folder) == questions_of(whole)
    assert [timeless(line) for line in metrics(folder)] == [timeless(line) for line in metrics(whole)]
    assert alike(weights(folder / "final"), weights(whole / "final"))


# Quick form: ``training/run/test_folder`` in an object store, ``trainer/test_lora``.
@pytest.mark.exhaustive
def test_adapters_learn_from_what_a_served_policy_says_and_all_of_it_is_in_an_object_store(
    place: Place, tuned: Path, bucket: Bucket, tmp_path: Path
) -> None:
    config = place.rl(
        tuned / "final",
        name="served",
        storage=bucket.uri("runs"),
        examples=bucket.upload(place.root / "world", "world").replace("/world?", "/world/train.jsonl?"),
        model={"path": str(tuned / "final"), "lora_rank": 4, "tokens_per_batch": 2048},
        workers={"count": 1},
        steps=2,
        rollout={
            "questions": 2,
            "group": GROUP,
            "max_reply_tokens": 48,
            "served": {
                "model": "that of the run",
                "dtype": "float32",
                "max_model_len": 1024,
                "max_num_seqs": 16,
                "max_images": 8,
                "num_gpus": 0,
                "num_cpus": 0.5,
                "enforce_eager": True,
                "engine_args": {"block_size": 32},
            },
        },
    )
    lines: list[str] = []
    assert train_rl(config, lines.append) == bucket.uri("runs/served/final")
    assert lines[1].startswith("searches: ")
    assert [line.split(":")[0] for line in lines[2:]] == [f"step {step}/2" for step in (0, 1, 2, 2)]
    written = bucket.files("runs/served")
    assert not any(name.startswith("serving/") and name != "serving/" for name in written), (
        "weights handed over are not left behind"
    )
    assert {"README.md", "config.yaml", "metrics.jsonl", "progress.log"} < set(written)
    assert sum(name.endswith("/trainer.pt") for name in written) == 2, "checkpoints"
    assert any(name.startswith("tensorboard/") for name in written)
    folder = bucket.download("runs/served", tmp_path)
    steps = steps_of(folder)
    assert [line["step"] for line in steps] == [1, 2]
    assert all(0 < line["parity/gap_max"] <= GAP for line in steps), "the replicas speak with the merged adapters"
    assert {call.weights for run in read_trajectories(folder / "rollouts") for call in run.calls} == {"0", "1"}
    begun, saved = weights(tuned / "final"), weights(folder / "final")
    changed = {
        name.rpartition(".layers.")[2].partition(".")[2] for name in saved if not torch.equal(saved[name], begun[name])
    }
    assert changed
    assert all("_proj" in name for name in changed), "adapters alone have learnt, and they are merged"
