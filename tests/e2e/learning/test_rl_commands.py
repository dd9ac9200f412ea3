"""The documented commands of reinforcement learning, word for word, from the command line and as a job."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.cluster import ray_cluster
from tests.support.documented_training import documented, environment_of_a_user, run
from tests.support.judge_stub import JudgeStub, compares, judge_stub
from tests.support.learning_place import Place, metrics
from tests.support.paths import ROOT
from tests.support.tiny_vllm import needs_vllm
from vrag_ray.questions.files import save_examples

pytestmark = [*needs_vllm, pytest.mark.exhaustive]
WRITTEN = {"README.md", "config.yaml", "metrics.jsonl", "progress.log", "tensorboard", "rollouts", "final"}


@pytest.fixture
def project(tmp_path: Path, place: Place, tuned: Path) -> Path:
    """The folder of a user: the jobs, a model that has imitated, questions, and a collection."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "jobs", project / "jobs")
    shutil.copytree(tuned / "final", project / "model")
    shutil.copytree(place.root / "collection", project / "my-collection")
    save_examples(project / "questions.jsonl", place.mosaic.train[:2])
    return project


def configure(project: Path, place: Place, judge: JudgeStub) -> None:
    """As on the page, with relative places and for this machine."""
    config = {
        "name": "my-agent",
        "storage": "runs",
        "model": {"path": "model", "freeze_vision": False, "tokens_per_batch": 2048},
        "environment": place.environment.model_dump(mode="json") | {"collection": "my-collection"},
        "examples": "questions.jsonl",
        "reward": {
            "scorer": "judge",
            "judge": {"base_url": judge.base_url, "model": "stub"},
            "judge_cache": "verdicts",
        },
        "rollout": {
            "questions": 2,
            "group": 2,
            "max_reply_tokens": 48,
            "engine": {"max_model_len": 1024, "max_num_seqs": 16, "max_batched_tokens": 2048, "max_images": 8},
        },
        "algorithm": "ggpo",
        "steps": 1,
    }
    (project / "run.yaml").write_text(yaml.safe_dump(config))


def check(folder: Path, lines: list[str]) -> None:
    assert f"everything of this run: {folder}" in lines
    assert any(line.startswith("step 1/1: reward ") for line in lines)
    assert f"trained model: {folder / 'final'}" in lines
    assert {file.name for file in folder.iterdir()} >= WRITTEN
    assert (folder / "final/model.safetensors").exists()
    assert [line["step"] for line in metrics(folder)] == [1]


# Quick form: ``training/test_launch`` (places of the run, of its inputs and of the verdicts), ``test_rl`` (the step).
def test_vrag_train_rl_does_what_the_page_says(project: Path, place: Place, tmp_path: Path) -> None:
    with judge_stub(compares) as judge:
        configure(project, place, judge)
        lines = run(documented("vrag train rl --config run.yaml"), project, environment_of_a_user(tmp_path / "home"))
        calls = len(judge.requests)
    check(project / "runs/my-agent", lines)
    assert calls > 0
    assert list((project / "verdicts").rglob("*"))


# Quick form: the same; ``training/run/test_submitted_paths`` for what is relative in a job.
def test_the_job_does_what_the_page_says(project: Path, place: Place, tmp_path: Path) -> None:
    environment = environment_of_a_user(tmp_path / "home")
    with judge_stub(compares) as judge, ray_cluster(environment) as cluster:
        configure(project, place, judge)
        environment |= {"RAY_API_SERVER_ADDRESS": cluster.jobs, "RAY_ADDRESS": cluster.address}
        job = documented("ray job submit --working-dir . -- python jobs/train_rl.py")
        lines = run(job, project, environment)
        calls = len(judge.requests)
    results = tmp_path / "home/ray_results"
    check(results / "runs/my-agent", lines)
    assert calls > 0
    assert list((results / "verdicts").rglob("*"))
    assert not (project / "runs").exists()
