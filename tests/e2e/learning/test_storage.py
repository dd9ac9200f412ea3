"""The documented training commands, word for word, with all kinds of storage, and without vLLM where it is not used."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks.mosaic.model import save_mosaic_model
from tests.support.cluster import ray_cluster
from tests.support.documented_training import documented, environment_of_a_user, run
from tests.support.learning_place import metrics
from tests.support.learning_sizes import SHAPE
from tests.support.object_store import Bucket
from tests.support.paths import ROOT
from vrag_ray.training.rollout.trajectory_store import write_calls
from vrag_ray.training.trajectory import Call

WRITTEN = {"README.md", "config.yaml", "metrics.jsonl", "progress.log", "tensorboard", "final"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a user of this code whose installation has no vLLM, and whose home folder is empty."""
    (tmp_path / "without-vllm").mkdir()
    (tmp_path / "without-vllm/sitecustomize.py").write_text('import sys\n\nsys.modules["vllm"] = None\n')
    environment = environment_of_a_user(tmp_path / "home", tmp_path / "without-vllm")
    vllm = subprocess.run([sys.executable, "-c", "import vllm"], env=environment, capture_output=True, check=False)
    assert b"ModuleNotFoundError" in vllm.stderr
    return environment


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a user: the jobs, a configuration, a model and the replies of an expert."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "jobs", project / "jobs")
    save_mosaic_model(project / "model", shape=SHAPE)
    write_calls(project / "expert/calls.parquet", [Call((5, 6, 7), (), (8, 9, first)) for first in range(10, 14)])
    configure(project, storage="runs")
    return project


def configure(project: Path, *, storage: str, model: str = "model", epochs: int = 1) -> None:
    config = {
        "name": "my-agent",
        "storage": storage,
        "model": {"path": model},
        "optimizer": {"lr": 1e-3},
        "trajectories": "expert",
        "epochs": epochs,
    }
    (project / "run.yaml").write_text(yaml.safe_dump(config))


# Quick forms: ``training/run/test_submitted_paths`` and ``test_sft``; the exhaustive documented commands run it too.
@pytest.mark.exhaustive
def test_a_relative_storage_is_in_the_folder_that_the_command_was_given_in(
    project: Path, environment: dict[str, str]
) -> None:
    lines = run(documented("vrag train sft --config run.yaml"), project, environment)
    folder = project / "runs/my-agent"
    assert lines[0] == f"everything of this run: {folder}"
    assert lines[-2].startswith("step 1/1: loss ")
    assert lines[-1] == f"trained model: {folder / 'final'}"
    assert {file.name for file in folder.iterdir()} >= WRITTEN
    assert len(list(folder.glob("checkpoint_*/"))) == 1
    assert [line["step"] for line in metrics(folder)] == [1]
    assert (folder / "final/model.safetensors").exists()
    assert yaml.safe_load((folder / "config.yaml").read_text())["model"]["path"] == str(project / "model")


# Quick forms: ``run/test_submitted_paths`` for jobs, ``run/test_folder`` for object stores.
@pytest.mark.exhaustive
def test_jobs_write_where_later_ones_and_the_command_line_go_on(
    project: Path, environment: dict[str, str], bucket: Bucket, tmp_path: Path
) -> None:
    environment |= {"AWS_ENDPOINT_URL": f"http://{bucket.endpoint}", "AWS_DEFAULT_REGION": "us-east-1"}
    job = documented("ray job submit --working-dir . -- python jobs/train_sft.py")
    with ray_cluster(environment) as cluster:
        environment |= {"RAY_API_SERVER_ADDRESS": cluster.jobs, "RAY_ADDRESS": cluster.address}
        printed = run(job, project, environment)
        folder = tmp_path / "home/ray_results/runs/my-agent"
        assert f"everything of this run: {folder}" in printed
        assert f"trained model: {folder / 'final'}" in printed
        assert {file.name for file in folder.iterdir()} >= WRITTEN
        assert (folder / "final/model.safetensors").exists()

        configure(project, storage=f"s3://{bucket.name}/jobs", model="runs/my-agent/final")
        printed = run(job, project, environment)
        assert f"trained model: s3://{bucket.name}/jobs/my-agent/final" in printed
        assert any(line.startswith("step 1/1: loss ") for line in printed)
        first = bucket.download("jobs/my-agent", tmp_path / "first")
        assert {file.name for file in first.iterdir()} >= WRITTEN
        [begun] = metrics(first)

        configure(
            project,
            storage=f"s3://{bucket.name}/jobs",
            model=f"s3://{bucket.name}/jobs/my-agent/{next(first.glob('checkpoint_*/')).name}",
            epochs=2,
        )
        printed = run(documented("vrag train sft --config run.yaml"), project, environment)
        lines = [line.split(":")[0] for line in printed]
        assert lines == ["everything of this run", "step 1/2", "step 2/2", "trained model"]
        assert printed[1] == "step 1/2: 4 replies to learn from", "it goes on after the step of the checkpoint"
        both = bucket.download("jobs/my-agent", tmp_path / "both")
        assert json.dumps(metrics(both)[0]) == json.dumps(begun), "a step that was not done again is still there"
        assert [line["step"] for line in metrics(both)] == [1, 2]
        assert metrics(both)[1]["sft/loss"] < begun["sft/loss"]
        assert len(list(both.glob("checkpoint_*/"))) == 2
        assert (both / "final/model.safetensors").read_bytes() != (first / "final/model.safetensors").read_bytes()
    astray = [path for path in tmp_path.rglob("*") if re.fullmatch(r"s3:.*", path.name)]
    assert not astray
    assert sorted(file.name for file in project.iterdir()) == ["expert", "jobs", "model", "run.yaml"]
