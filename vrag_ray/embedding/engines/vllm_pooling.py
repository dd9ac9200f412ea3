"""The same vectors by vLLM's pooling runner: continuous batches, for throughput on GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import EmbedError, Modality, Residence
from vrag_ray.embedding.engines.engine import Prepared
from vrag_ray.embedding.models.architecture import Architecture, Prompt, TokenVectors, VllmPlan, as_array
from vrag_ray.embedding.models.qwen_vl import frames_array
from vrag_ray.embedding.runtime import chosen_device, chosen_dtype
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from vllm import LLM, PoolingRequestOutput
    from vllm.outputs import PoolingOutput

ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    # Engine and model in this process: one embedding actor is one process, and a class registered here is found.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
CPU_ENVIRONMENT = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_CI_ENV": "1"}
"""As served models have it (``policies/llm/vllm_setup.py``): cores are Ray's to give, and no warm-up of minutes."""
GPU_SHARE = 0.9
"""Of a whole card that the space has to itself; a space with ``num_gpus`` below 1 takes that share."""
MIN_BATCHED_TOKENS = 8192


class VllmEngine:
    """vLLM's engine in this process. Prompts, pictures and pixel limits are those of the transformers engine, and so
    is the id: the vectors agree to a cosine of 0.9999 (tests/vllm/test_pooling.py)."""

    def __init__(self, architecture: Architecture, config: SpaceConfig) -> None:
        plan = architecture.vllm_plan()
        if plan is None:
            raise VragError(
                f"vLLM has no class whose vectors are those of {architecture.source.name} ({architecture.kind}): set "
                "`engine: transformers`"
            )
        self._architecture = architecture
        self._plan = plan
        self.lacks = plan.lacks
        self.residence: Residence | None = None
        self._device = chosen_device(config.device)
        self._llm = _started(architecture, plan, config, self._device)

    def prepare(self, prompts: Sequence[Prompt]) -> Prepared:
        return Prepared(prompts)

    def run(self, prepared: Prepared) -> list[TokenVectors | EmbedError]:
        """A prompt that vLLM's processor refuses fails alone, as with transformers."""
        requests = [self._request(prompt) for prompt in prepared.prompts]
        try:
            return [*self._run(requests)]
        except ValueError as error:
            if len(requests) == 1:
                return [EmbedError(f"vLLM refuses it: {error}")]
        return [result for prompt in prepared.prompts for result in self.run(Prepared([prompt]))]

    def _run(self, requests: Sequence[Mapping[str, object]]) -> list[TokenVectors]:
        encode: Callable[..., list[PoolingRequestOutput[PoolingOutput]]] = self._llm.encode
        outputs = encode(list(requests), pooling_task=self._plan.task, use_tqdm=False)
        return [self._vectors(output) for output in outputs]

    def _vectors(self, output: PoolingRequestOutput[PoolingOutput]) -> TokenVectors:
        data: torch.Tensor = output.outputs.data
        vectors = np.atleast_2d(as_array(data))
        ids = tuple(output.prompt_token_ids) if self._architecture.multi_vector else ()
        return TokenVectors(ids, vectors)

    def _request(self, prompt: Prompt) -> Mapping[str, object]:
        request: dict[str, object] = {"prompt": prompt.text}
        media: dict[str, object] = {}
        if prompt.picture is not None:
            media["image"] = prompt.picture
        if prompt.frames:
            clip = dict(self._architecture.clip_metadata(prompt.times)) | {"do_sample_frames": False}
            media["video"] = [(frames_array(prompt.frames), clip)]
        if media:
            request["multi_modal_data"] = media
            request["mm_processor_kwargs"] = dict(self._plan.processor_arguments)
        return request


def _started(architecture: Architecture, plan: VllmPlan, config: SpaceConfig, device: str) -> LLM:
    for name, value in (ENVIRONMENT | (CPU_ENVIRONMENT if device == "cpu" else {})).items():
        os.environ.setdefault(name, value)
    from vllm import LLM, ModelRegistry
    from vllm.config import PoolerConfig

    source = architecture.source
    arguments: dict[str, object] = {
        "model": str(source.folder),
        "runner": "pooling",
        "dtype": str(chosen_dtype(config.dtype, device)).removeprefix("torch."),
        "pooler_config": PoolerConfig(task=plan.task, seq_pooling_type=plan.pooling),
        "max_model_len": plan.max_tokens,
        "max_num_seqs": config.batch_size,
        "max_num_batched_tokens": max(plan.max_tokens, MIN_BATCHED_TOKENS),
        "enable_prefix_caching": False,
        "enforce_eager": device == "cpu",
        "disable_log_stats": True,
        "seed": 0,
    }
    if plan.sees:
        arguments["limit_mm_per_prompt"] = {"image": 1, "video": int(Modality.CLIP in plan.sees)}
        arguments["mm_processor_kwargs"] = dict(plan.processor_arguments)
    if device == "cuda":
        share = config.num_gpus or 1.0
        arguments["gpu_memory_utilization"] = share if share < 1 else GPU_SHARE
    for name, path in plan.classes.items():
        ModelRegistry.register_model(name, path)
    if plan.config is not None:
        arguments["hf_overrides"] = plan.config
    make: Callable[..., LLM] = LLM
    try:
        return make(**arguments)
    except (ValueError, RuntimeError, OSError, LookupError, AttributeError, TypeError) as error:
        raise VragError(
            f"vLLM cannot load {source.name} from {source.folder}: {error}; try `engine: transformers`"
        ) from error
