"""What vLLM must know before it starts: the process's environment and the engine's arguments."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.config import VllmConfig
from vrag_ray.policies.llm.model_family import model_facts
from vrag_ray.policies.llm.prompt_limits import context_of
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from vllm import AsyncEngineArgs

ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    # One prompt at a time is encoded: to hand it to other threads only costs (85 instead of 65 microseconds).
    "TOKENIZERS_PARALLELISM": "false",
}
CPU_ENVIRONMENT = {
    # Model and scheduler in one child process: with 1, vLLM puts a third process between them on a CPU.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # Ray decides which cores a replica has; vLLM would pin its threads to the first ones.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # No warm-up and no compilation, which cost minutes on few cores.
    "VLLM_CPU_CI_ENV": "1",
    # The sampler's functions are compiled all the same where they are first used: log-probs take 12 s and a C++
    # compiler then, and no reply is faster for it.
    "TORCH_COMPILE_DISABLE": "1",
}
NOISE = {
    "vllm.v1.worker.cpu_worker": re.compile("doesn't allow to use `torch.set_num_threads`"),
    "vllm.model_executor.model_loader.reload.layerwise": re.compile(
        r"^(FusedMMInputNorm|M?RotaryEmbedding): Failed to load"
    ),
}
"""Warnings by logger that mean nothing and come with every picture or every change of weights: vLLM keeps its own count
of threads, and a layer whose only tensors are computed finds none in a checkpoint."""
LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The values that vLLM takes for ``max_lora_rank``."""


PROMPTS_CACHED = 2


def quieten() -> None:
    """Let vLLM say once what it has to say. May be called again."""
    for name, noise in NOISE.items():
        logging.getLogger(name).addFilter(_Without(noise))


@dataclass(frozen=True, slots=True)
class _Without(logging.Filter):
    noise: re.Pattern[str]

    def filter(self, record: logging.LogRecord) -> bool:
        return self.noise.search(record.getMessage()) is None


def prepare_process(config: VllmConfig) -> None:
    """Set what vLLM reads from the environment, under what the user has set there."""
    quieten()
    environment = dict(ENVIRONMENT)
    if config.num_gpus == 0:
        environment |= CPU_ENVIRONMENT | {"VLLM_CPU_KVCACHE_SPACE": str(_cache_gib(config))}
    for name, value in environment.items():
        os.environ.setdefault(name, value)


def _cache_gib(config: VllmConfig) -> int:
    """Memory on the CPU for keys and values: two prompts as long as the context, and 1 GiB at least."""
    each = model_facts(config.model, fetch=False).cache_bytes or 0
    return max(1, -(-PROMPTS_CACHED * each * context_of(config.max_model_len, config.engine_args) // 2**30))


def engine_arguments(config: VllmConfig) -> AsyncEngineArgs:
    """What vLLM is started with; ``config.engine_args`` wins. Imports vLLM, so the process must be prepared."""
    from vllm import AsyncEngineArgs

    unknown = sorted(set(config.engine_args) - {field.name for field in fields(AsyncEngineArgs)})
    if unknown:
        raise VragError(f"vllm.engine_args: this vLLM has no argument {', '.join(unknown)}")
    arguments: dict[str, object] = {
        "model": config.model,
        "served_model_name": config.served_name,
        "dtype": config.dtype,
        "max_model_len": config.max_model_len,
        "max_num_seqs": config.max_num_seqs,
        "tensor_parallel_size": config.tensor_parallel,
        "gpu_memory_utilization": config.gpu_memory_utilization,
        "enforce_eager": config.enforce_eager,
        "enable_prefix_caching": True,
    }
    if config.max_images:
        arguments["limit_mm_per_prompt"] = {"image": config.max_images, "video": 0}
    else:
        # Of a model that sees, the eyes are then not even loaded; for a model without eyes, this has no effect.
        arguments["language_model_only"] = True
    if config.tensor_parallel > 1 and config.num_gpus > 0:
        # Ranks as Ray actors, because only they can take the GPUs of the replica's placement group.
        arguments["distributed_executor_backend"] = "ray"
    if config.adapters:
        rank = max(_rank(name, Path(folder)) for name, folder in config.adapters.items())
        arguments |= {"enable_lora": True, "max_loras": len(config.adapters), "max_lora_rank": rank}
    # The values are checked by vLLM itself, whose argument types differ from release to release.
    make: Callable[..., AsyncEngineArgs] = AsyncEngineArgs
    return make(**(arguments | config.engine_args))


def _rank(name: str, folder: Path) -> int:
    """The least rank that vLLM offers and the adapter fits."""
    try:
        rank = int(json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))["r"])
        return min(allowed for allowed in LORA_RANKS if allowed >= rank)
    except (OSError, ValueError, KeyError) as error:
        raise VragError(
            f"vllm.adapters: {name} names {folder}, which holds no LoRA adapter up to rank {LORA_RANKS[-1]}: {error}"
        ) from error
