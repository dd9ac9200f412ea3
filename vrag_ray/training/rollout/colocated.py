"""A vLLM engine inside the training process: it shares the trainer's device, sleeps while the trainer works, and takes
new weights from the trainer's memory.

The engine's steps run on the event loop's own thread, between the turns of the runs that wait for it: requests come
and go while others are under way, and nothing waits for the slowest run.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, replace
from time import time
from typing import TYPE_CHECKING

from pydantic import ValidationError

from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.policies.llm.chat_model import BANNED_LOGIT, ModelLostError, TokenDelta, TokenRequest
from vrag_ray.policies.llm.vllm_reply import ReplyOutputs
from vrag_ray.policies.llm.vllm_setup import CPU_ENVIRONMENT, ENVIRONMENT, quieten
from vrag_ray.training.config import EngineConfig
from vrag_ray.training.rollout.rendered_prompts import RenderedPrompts
from vrag_ray.types import Completion, VragError
from vrag_ray.types.errors import validation_message

if TYPE_CHECKING:
    from torch import Tensor
    from vllm import LLM, SamplingParams
    from vllm.v1.engine.llm_engine import LLMEngine

INCOMPLETE = "\ufffd"


@dataclass(slots=True)
class _Waiting:
    reply: ReplyOutputs
    done: asyncio.Future[None]


class ColocatedEngine:
    """Implements ``RolloutBackend``. Not thread-safe: one event loop uses it.

    States: awake, or asleep (``sleep``) until ``wake``; after a sleep that dropped the weights a reply is refused until
    ``load_weights`` has brought new ones. ``version`` names the weights that speak.
    """

    def __init__(self, model: str, config: EngineConfig, *, temperature: float, distributed: bool, seed: int) -> None:
        """``distributed``: torch.distributed is up, with one engine a rank. ``temperature`` is that of all replies."""
        on_cpu = not config.gpu
        environment = ENVIRONMENT | (CPU_ENVIRONMENT if on_cpu else {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"})
        for name, value in environment.items():
            os.environ.setdefault(name, value)
        quieten()
        from vllm import LLM

        arguments: dict[str, object] = {
            "model": model,
            "dtype": config.dtype,
            "max_model_len": config.max_model_len,
            "max_num_seqs": config.max_num_seqs,
            "max_num_batched_tokens": max(config.max_model_len, config.max_batched_tokens),
            "limit_mm_per_prompt": {"image": config.max_images, "video": 0},
            "enforce_eager": config.enforce_eager,
            "enable_prefix_caching": True,
            "gpu_memory_utilization": config.gpu_memory_utilization,
            "enable_sleep_mode": config.gpu,
            # Of the distribution that is sampled from, so that they are the trainer's at every temperature.
            "logprobs_mode": "processed_logprobs",
            "disable_log_stats": True,
            "seed": seed,
        }
        if on_cpu:
            # vLLM 0.32 winds a seeded request's generator back after a part of a prompt, which a CPU's cannot do.
            arguments["enable_chunked_prefill"] = False
        if distributed:
            arguments["distributed_executor_backend"] = "external_launcher"
        # The engine takes its share of what is free when it starts.
        release_cached_memory()
        make: Callable[..., LLM] = LLM
        try:
            self._llm = make(**(arguments | config.engine_args))
        except ValueError as error:
            # Those of pydantic cannot be pickled, so that Ray Train would report that instead.
            first = error.errors()[0] if isinstance(error, ValidationError) else {"msg": str(error)}
            raise VragError(f"vLLM refuses {model} with rollout.engine as it is: {validation_message(first)}") from None
        self._engine: LLMEngine = self._llm.llm_engine
        self._prompts = RenderedPrompts(self._engine.renderer)
        # Both families have it, vLLM's protocol has not.
        backend = getattr(self._llm.get_tokenizer(), "backend_tokenizer")  # noqa: B009
        self._decode: Callable[..., str] = backend.decode
        self._temperature = temperature
        self._max_images = config.max_images
        self._sleeps = config.gpu
        self._waiting: dict[str, _Waiting] = {}
        self._pump: asyncio.Task[None] | None = None
        self._number = 0
        self._asleep = False
        self._without_weights = False
        self.version = "0"

    async def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        """As ``TokenModel.generate``; all tokens come in one delta. Closing the generator ends the generation."""
        if self._asleep or self._without_weights:
            raise VragError("the engine sleeps, or has no weights since it slept: wake it and load weights first")
        if len(request.images) > self._max_images:
            raise PromptRefusedError(
                f"the prompt has {len(request.images)} pictures and the engine takes {self._max_images}: raise "
                "rollout.engine.max_images or lower agent.memory_top_k"
            )
        request_id = self._add(request)
        entry = _Waiting(ReplyOutputs(), asyncio.get_running_loop().create_future())
        self._waiting[request_id] = entry
        if self._pump is None:
            self._pump = asyncio.create_task(self._run_engine())
        try:
            await entry.done
            yield entry.reply.tokens
            whole = replace(entry.reply.whole(), weights=self.version)
            yield whole if request.sampling.stop else replace(whole, text=self._text_of(whole.token_ids))
        finally:
            if self._waiting.pop(request_id, None) is not None:
                self._engine.abort_request([request_id])

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        """Speak with ``weights`` (all of them, by the names of the checkpoint, tied ones too) from now on.

        No reply may be in progress. Everything that old weights computed is forgotten.
        """
        if self._waiting:
            raise VragError(f"{len(self._waiting)} replies are in progress: weights change between rollouts")
        if self._asleep and self._without_weights:
            # Old weights and new ones are never there together: first the place for them, and last that of the cache.
            release_cached_memory()
            self._llm.wake_up(tags=["weights"])
        self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
        self._forget()
        self._without_weights = False
        self.version = version

    async def sleep(self) -> bool:
        """Give the device's memory to the trainer: weights and caches are dropped. A CPU has nothing to give.

        No reply may be in progress.
        """
        if self._sleeps and not self._asleep:
            if self._waiting:
                raise VragError(f"{len(self._waiting)} replies are in progress: the engine sleeps between rollouts")
            self._llm.sleep(level=2)
            self._asleep = self._without_weights = True
        return self._asleep

    async def wake(self) -> None:
        """Take the memory back after ``load_weights``."""
        if self._without_weights:
            raise VragError("the engine slept and has no weights: load weights before it wakes")
        if self._asleep:
            # Weights that are spread over the ranks were gathered one by one to be handed over.
            release_cached_memory()
            self._llm.wake_up(tags=["kv_cache"])
            self._asleep = False

    async def close(self) -> None:
        """The engine goes with its process."""

    def _text_of(self, ids: tuple[int, ...]) -> str:
        """A reply in words, as vLLM would have put it together token by token.

        It keeps the bytes of a character that is not whole to itself, and so they are left out at the end.
        """
        return self._decode(ids, skip_special_tokens=True).rstrip(INCOMPLETE)

    def _forget(self) -> None:
        if not self._llm.reset_prefix_cache():
            raise VragError("the engine kept its prefix cache: the old weights would speak in the next rollout")
        self._llm.reset_mm_cache()
        self._engine.reset_encoder_cache()
        self._prompts.forget()

    def _add(self, request: TokenRequest) -> str:
        from vllm.exceptions import VLLMClientError

        self._number += 1
        request_id = str(self._number)
        try:
            prompt = self._prompts.rendered(request)
            self._engine.add_request(request_id, prompt, self._parameters(request), arrival_time=time())
        except (ValueError, VLLMClientError) as error:
            raise PromptRefusedError(
                f"the engine cannot take a prompt of {len(request.prompt_ids)} text tokens and {len(request.images)} "
                f"pictures: {error}. Raise rollout.engine.max_model_len, or lower the agent's budgets."
            ) from error
        return request_id

    def _parameters(self, request: TokenRequest) -> SamplingParams:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        # Nothing else is cut off the distribution: what the trainer scores must be what was sampled from.
        return SamplingParams(
            max_tokens=request.sampling.max_tokens,
            temperature=self._temperature if request.sampling.temperature is None else request.sampling.temperature,
            top_p=1.0,
            top_k=0,
            seed=request.sampling.seed,
            stop=list(request.sampling.stop),
            logit_bias=dict.fromkeys(request.sampling.banned_token_ids, BANNED_LOGIT) or None,
            logprobs=0,
            # Nobody reads along, and words are needed token by token only to be found among them.
            detokenize=bool(request.sampling.stop),
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    async def _run_engine(self) -> None:
        """Step while anybody waits; after each step the others on the event loop go on. A fault of the engine is
        everybody's whose reply is not whole.
        """
        try:
            while self._waiting:
                for output in self._engine.step():
                    self._receive(output)
                await asyncio.sleep(0)
        except Exception as error:
            for entry in self._waiting.values():
                if not entry.done.done():
                    entry.done.set_exception(ModelLostError(f"the engine failed: {error}"))
            raise
        finally:
            self._pump = None

    def _receive(self, output: object) -> None:
        """Add an output to its reply, and wake the caller that waits for it once it is whole."""
        from vllm import RequestOutput

        assert isinstance(output, RequestOutput)
        entry = self._waiting.get(output.request_id)
        if entry is None:
            return
        entry.reply.add(output)
        if output.finished and not entry.done.done():
            entry.done.set_result(None)


def release_cached_memory() -> None:
    """Give back what torch keeps of freed tensors for its next ones: the engine maps memory that is free to all.

    Cycles of Python objects may hold tensors, hence the collection before it. Without a GPU there is nothing to give.
    """
    import torch

    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
