"""What can never work is refused when it is built where that is known there, and named by ``/readyz`` otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.planted import plant
from vrag_ray.config import Settings, VllmConfig
from vrag_ray.serving.app import build
from vrag_ray.serving.deployments.policy import failed_start, gpu_shortage
from vrag_ray.types import VragError

ENDPOINT = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}


def _settings(folder: Path, **values: object) -> Settings:
    plant(folder / "c", {"a": ["red apple"]})
    return Settings.model_validate({"collection": str(folder / "c"), "serving": {"auth": "loopback"}, **values})


def test_a_key_whose_variable_is_not_set_is_refused_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HARBOUR_KEY", raising=False)
    settings = _settings(tmp_path, openai={**ENDPOINT, "api_key_env": "HARBOUR_KEY"})
    with pytest.raises(VragError, match=r"names the variable HARBOUR_KEY, which is not set .* leave api_key_env out"):
        build(settings)
    monkeypatch.setenv("HARBOUR_KEY", "secret")
    assert build(settings)


def test_an_endpoint_that_takes_no_key_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert build(_settings(tmp_path, openai=ENDPOINT))


@pytest.mark.parametrize("family", [None, "qwen2_5_vl"])
def test_a_model_folder_that_does_not_exist_is_refused_without_asking_a_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str | None
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_: pytest.fail("a hub was asked"))
    agent = {} if family is None else {"family": family}
    with pytest.raises(VragError, match=r"vllm\.model: the folder tiny-model does not exist"):
        build(_settings(tmp_path, vllm={"model": "tiny-model", "num_gpus": 0}, agent=agent))


@pytest.mark.parametrize(
    ("config", "gpus", "expected"),
    [
        ({}, [0.0, 0.0], "the cluster has no GPU, and a replica takes 1 "),
        ({}, [], "the cluster has no GPU"),
        ({"tensor_parallel": 4}, [2.0, 1.0], "has 3 GPUs on 2 nodes, and a replica takes 1 for each of 4 ranks"),
        ({"num_gpus": 2}, [1.0, 1.0], "has 2 GPUs on 2 nodes, and a replica takes 2 "),
        ({"tensor_parallel": 4}, [2.0, 2.0], ""),
        ({"num_gpus": 0.1, "tensor_parallel": 10}, [1.0], ""),
        ({"num_gpus": 0}, [0.0], ""),
    ],
)
def test_a_cluster_without_the_gpus_of_a_replica_is_reported(
    config: dict[str, float], gpus: list[float], expected: str
):
    shortage = gpu_shortage(VllmConfig.model_validate({"model": "org/name", **config}), gpus)
    assert expected in shortage
    assert bool(shortage) == bool(expected)


def test_the_fault_of_a_start_is_reported_without_its_stack_trace():
    message = (
        "Failed to update the deployments ['Policy'].\nThe deployment failed to start 3 times in a row. Error:\n"
        'ray::ServeReplica:vrag:Policy.initialize_and_get_metadata()\n  File "policy.py", line 1, in __init__\n'
        "vrag_ray.types.errors.VragError: vllm.model: the folder /models/m does not exist on this machine\n\n"
    )
    assert failed_start(message) == "vllm.model: the folder /models/m does not exist on this machine"
    assert failed_start("") == failed_start("Deployment 'Policy' has 1 replica that has taken more than 30s") == ""
