"""What is reserved and what vLLM receives, without an engine."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from tests.support.tiny_vllm import needs_vllm, save_adapter
from vrag_ray.config import Settings, VllmConfig
from vrag_ray.policies.llm.vllm_setup import CPU_ENVIRONMENT, engine_arguments, prepare_process, quieten
from vrag_ray.serving.deployments.policy import policy_deployment, with_absolute_folders
from vrag_ray.types import VragError


def test_one_gpu_is_reserved_by_the_replica_and_several_by_a_placement_group_of_one_bundle_each():
    deployment = policy_deployment(Settings(vllm=VllmConfig(model="m", num_cpus=2, max_num_seqs=7, replicas=3)))
    assert deployment.ray_actor_options == {"num_cpus": 2.0, "num_gpus": 1.0}
    assert (deployment.name, deployment.num_replicas, deployment.max_ongoing_requests) == ("Policy", 3, 7)
    two = policy_deployment(Settings(vllm=VllmConfig(model="m", num_cpus=2, tensor_parallel=2)))
    assert two.ray_actor_options == {"num_cpus": 2.0, "num_gpus": 0}
    assert two._replica_config.placement_group_bundles == [{"CPU": 2.0, "GPU": 1.0}] * 2


def test_without_a_model_the_settings_say_what_to_set():
    with pytest.raises(VragError, match=r"set vllm\.model"):
        policy_deployment(Settings())


def test_folders_are_the_same_for_every_process_and_hub_ids_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    config = with_absolute_folders(VllmConfig(model="mine", adapters={"a": "mine", "b": "owner/name"}))
    assert config.model == str(tmp_path / "mine")
    assert config.adapters == {"a": str(tmp_path / "mine"), "b": "owner/name"}


def test_what_the_user_set_in_the_environment_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "environ", {"VLLM_CPU_KVCACHE_SPACE": "9"})
    prepare_process(VllmConfig(model="m", num_gpus=1))
    assert not set(os.environ) & (set(CPU_ENVIRONMENT) - {"VLLM_CPU_KVCACHE_SPACE"})
    prepare_process(VllmConfig(model="m", num_gpus=0))
    assert os.environ["VLLM_CPU_KVCACHE_SPACE"] == "9"
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert os.environ["TORCH_COMPILE_DISABLE"] == "1"


class TestEngineArguments:
    pytestmark = needs_vllm

    def test_an_argument_that_this_vllm_has_not_is_named(self):
        with pytest.raises(VragError, match=r"vllm\.engine_args: this vLLM has no argument blocksize"):
            engine_arguments(VllmConfig(model="m", engine_args={"blocksize": 32}))

    def test_own_arguments_win(self, tmp_path: Path):
        own = VllmConfig(model=str(tmp_path), engine_args={"enable_prefix_caching": False})
        assert engine_arguments(VllmConfig(model=str(tmp_path))).enable_prefix_caching
        assert not engine_arguments(own).enable_prefix_caching

    def test_the_largest_adapter_decides_the_rank(self, tmp_path: Path):
        for name, rank in (("small", 4), ("large", 48)):
            save_adapter(tmp_path / name, seed=0)
            (tmp_path / name / "adapter_config.json").write_text(json.dumps({"r": rank}))
        adapters = {name: str(tmp_path / name) for name in ("small", "large")}
        arguments = engine_arguments(VllmConfig(model=str(tmp_path), adapters=adapters))
        assert (arguments.enable_lora, arguments.max_loras, arguments.max_lora_rank) == (True, 2, 64)
        with pytest.raises(VragError, match=r"vllm\.adapters: lost names .*lost, which holds no LoRA adapter"):
            engine_arguments(VllmConfig(model=str(tmp_path), adapters={"lost": str(tmp_path / "lost")}))


def test_settings_without_meaning_for_vllm_are_not_passed_and_others_are() -> None:
    quieten()
    quieten()
    layers, cores = "vllm.model_executor.model_loader.reload.layerwise", "vllm.v1.worker.cpu_worker"

    def is_reported(logger: str, text: str) -> bool:
        return bool(logging.getLogger(logger).filter(logging.makeLogRecord({"name": logger, "msg": text})))

    assert not is_reported(layers, "MRotaryEmbedding: Failed to load weights")
    assert is_reported(layers, "QKVParallelLinear: Failed to load weights")
    assert not is_reported(
        cores, "CPU backend doesn't allow to use `torch.set_num_threads` after the thread binding, skip it."
    )
    assert is_reported(cores, "libtcmalloc is not found in LD_PRELOAD.")
    assert len(logging.getLogger(layers).filters) == 1
