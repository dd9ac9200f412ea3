"""The RayJobs start programs that are in the image, with arguments that they take."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

import pytest
import typer

from tests.deploy.containerfile import WORKDIR
from tests.deploy.pods import pod_templates
from tests.deploy.rendering import KUBERAY, only
from tests.support.command_line import arguments_of, assert_taken
from tests.support.paths import ROOT
from vrag_ray.training.config import RLConfig, load_training

JOBS = ("ingest", "train")


def entrypoint(folder: str) -> tuple[PurePosixPath, list[str]]:
    program, script, *arguments = shlex.split(only(folder, "RayJob")["spec"]["entrypoint"])
    assert program == "python"
    return PurePosixPath(script), arguments


@pytest.mark.parametrize("folder", JOBS)
def test_the_entrypoint_is_in_the_image_and_takes_its_arguments(folder: str, monkeypatch: pytest.MonkeyPatch):
    script, given = entrypoint(folder)
    job = ROOT / script.relative_to(WORKDIR)
    assert job.parent == ROOT / "jobs"
    assert_taken(arguments_of(job, given, monkeypatch))


@pytest.mark.parametrize("wrong", [["--colection", "x"], ["/shared/documents", "--strct"]])
def test_an_argument_that_ingest_does_not_take_is_found(wrong: list[str], monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(typer.TyperException):
        assert_taken(arguments_of(ROOT / "jobs" / "ingest.py", wrong, monkeypatch))


def test_the_training_config_is_one_and_is_mounted_where_the_entrypoint_looks():
    _, given = entrypoint("train")
    config_path = PurePosixPath(given[given.index("--config") + 1])
    [head] = [pod for pod in pod_templates("train") if pod.role == "head"]
    [mount] = [
        container
        for container in head.containers[0]["volumeMounts"]
        if container["mountPath"] == str(config_path.parent)
    ]
    [volume] = [candidate for candidate in head.spec["volumes"] if candidate["name"] == mount["name"]]
    settings = only("train", "ConfigMap")
    assert volume["configMap"]["name"] == settings["metadata"]["name"]
    assert config_path.name in settings["data"]
    config = load_training(KUBERAY / "train" / config_path.name, RLConfig)
    # Relative paths would be folders of the pod that happens to run the driver.
    assert config.storage.startswith("/shared/")
    assert str(config.examples).startswith("/shared/")


def test_ingest_and_training_work_on_the_collection_of_the_service():
    collection = only("shared", "ConfigMap")["data"]["VRAG_COLLECTION"]
    _, given = entrypoint("ingest")
    assert not {"-c", "--collection"} & set(given)
    assert load_training(KUBERAY / "train" / "train.yaml", RLConfig).environment.collection == collection


@pytest.mark.parametrize("folder", JOBS)
def test_a_job_ends_with_its_cluster_and_is_tried_again(folder: str):
    spec = only(folder, "RayJob")["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["backoffLimit"] > 0
    assert spec["preRunningDeadlineSeconds"] >= 600
    # A Job's pod may not be restarted without end.
    assert spec["submitterPodTemplate"]["spec"]["restartPolicy"] == "Never"
    # KubeRay sets the command of the first container where it has none.
    [submitter] = spec["submitterPodTemplate"]["spec"]["containers"]
    assert not {"command", "args"} & set(submitter)
