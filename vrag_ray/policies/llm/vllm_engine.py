"""One vLLM engine in this process's care: chats or token ids in, streamed replies out, new weights while it runs.

Only names that vLLM 0.32 and 0.33 share are used. vLLM keeps its scheduler and model in a child process.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Delta
from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.config import VllmConfig
from vrag_ray.policies.llm.chat_model import (
    BANNED_LOGIT,
    ChatRequest,
    Checkpoint,
    ModelLostError,
    Sampling,
    TokenDelta,
    TokenRequest,
)
from vrag_ray.policies.llm.vllm_prompt import ChatFormat, ModelPrompt, pictures
from vrag_ray.policies.llm.vllm_reply import Piece, ReplyOutputs
from vrag_ray.policies.llm.vllm_setup import engine_arguments, prepare_process
from vrag_ray.policies.llm.vllm_weights import checked_folder
from vrag_ray.types import Completion, VragError

if TYPE_CHECKING:
    from vllm import RequestOutput, SamplingParams, TokensPrompt
    from vllm.lora.request import LoRARequest
    from vllm.sampling_params import StructuredOutputsParams

FIRST_WEIGHTS = "default"
"""vLLM's own version name of the weights that an engine starts with."""


class VllmEngine:
    """Implements ``ChatModel``. Make it inside a running event loop; that takes from half a minute to some minutes."""

    def __init__(self, config: VllmConfig) -> None:
        prepare_process(config)
        from vllm.lora.request import LoRARequest
        from vllm.v1.engine.async_llm import AsyncLLM

        self.config = config
        self.weights = FIRST_WEIGHTS
        self._broken = ""
        self._reloading = asyncio.Lock()
        self._loads: set[asyncio.Task[None]] = set()
        self._engine = AsyncLLM.from_engine_args(engine_arguments(config))
        self._format = ChatFormat(config.model)
        self._defaults: dict[str, object] = self._engine.model_config.get_diff_sampling_param()
        self._adapters: dict[str, LoRARequest] = {
            name: LoRARequest(name, number, folder)
            for number, (name, folder) in enumerate(sorted(config.adapters.items()), start=1)
        }

    @property
    def shows_tools(self) -> bool:
        """Whether the model's chat template tells it of ``ChatRequest.tools``; otherwise they are left out."""
        return self._format.shows_tools

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        """As ``ChatModel.chat``. Thoughts stay in the text, between the model's own tags."""
        prompt = await asyncio.to_thread(self._format.prompt, request)
        if prompt.opening:
            yield Delta(content=prompt.opening)
        held = _held(request.form, opened=bool(prompt.opening)) if request.form is not None else None
        async with aclosing(self._reply(prompt, request.sampling, request.adapter, held)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    yield replace(piece, text=prompt.opening + piece.text)
                elif piece.text:
                    yield Delta(content=piece.text)

    async def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        """Tokens as they come and, last, the whole ``Completion``. Errors and closing are those of ``chat``."""
        prompt = ModelPrompt(request.prompt_ids, await asyncio.to_thread(pictures, request.images))
        async with aclosing(self._reply(prompt, request.sampling, request.adapter)) as pieces:
            async for piece in pieces:
                yield piece if isinstance(piece, Completion) else piece.tokens

    async def load_weights(self, weights: Checkpoint) -> None:
        """Speak with ``weights`` from now on.

        Requests wait meanwhile; none is dropped. A reply in progress goes on with the new weights, its context
        computed anew, and its ``Completion.weights`` names both versions. A source that is no checkpoint is refused
        and changes nothing; one that the model cannot take leaves the engine unusable, and ``check_health`` says so.
        """
        if not weights.version or "+" in weights.version:
            raise VragError(
                f"the weights version {weights.version!r} must be non-empty and without '+', which joins versions"
            )
        await self._apart(self._load_weights(weights, only_first=False))

    async def catch_up(self, weights: Checkpoint) -> None:
        """As ``load_weights``, where the engine still has the weights that it began with; else nothing."""
        if self.weights == FIRST_WEIGHTS:
            await self._apart(self._load_weights(weights, only_first=True))

    async def check_health(self) -> None:
        """Raises ModelLostError when no reply can be had any more."""
        from vllm.v1.engine.exceptions import EngineDeadError

        self._raise_if_broken()
        try:
            await self._engine.check_health()
        except EngineDeadError as error:
            raise self._lost("died") from error

    def shutdown(self) -> None:
        """End the engine's child process."""
        self._engine.shutdown()

    async def _apart(self, load: Coroutine[None, None, None]) -> None:
        """Wait for ``load``, which goes on without its caller: cancelled half-way, it would leave the engine paused."""
        task = asyncio.create_task(load)
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)
        await asyncio.shield(task)

    async def _load_weights(self, weights: Checkpoint, *, only_first: bool) -> None:
        async with self._reloading:
            if only_first and self.weights != FIRST_WEIGHTS:
                # Newer ones came while this waited for its turn.
                return
            await self._reload(weights)

    async def _reload(self, weights: Checkpoint) -> None:
        from vllm.v1.engine.exceptions import EngineDeadError

        async with checked_folder(weights.source, self.config.model) as folder:
            self._raise_if_broken()
            await self._engine.pause_generation(mode="keep", clear_cache=False)
            try:
                await self._engine.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
                # The caches of what the old weights computed. Decoded pictures stay: they do not depend on weights,
                # and forgetting them while requests arrive would lose those requests.
                await self._engine.reset_prefix_cache(reset_running_requests=True)
                await self._engine.reset_encoder_cache()
                await self._engine.update_weight_version(weights.version)
            except Exception as error:
                self._broken = f"the weights in {weights.source} do not fit {self.config.served_name}: {error}"
                with suppress(EngineDeadError):
                    await self._engine.pause_generation(mode="abort", clear_cache=False)
                raise VragError(self._broken) from error
            self.weights = weights.version
            await self._engine.resume_generation()

    async def _reply(
        self, prompt: ModelPrompt, sampling: Sampling, adapter: str, held: StructuredOutputsParams | None = None
    ) -> AsyncGenerator[Piece | Completion]:
        from vllm.exceptions import VLLMClientError, VLLMError
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        self._raise_if_broken()
        lora = self._adapter(adapter)
        reply = ReplyOutputs()
        try:
            async with aclosing(self._outputs(prompt, self._parameters(sampling, held), lora)) as outputs:
                async for output in outputs:
                    piece = reply.add(output)
                    if output.outputs[0].finish_reason in ("abort", "error"):
                        raise self._lost("gave up the reply")
                    yield piece
            yield reply.whole()
        except EngineDeadError as error:
            raise self._lost("died") from error
        except (VLLMClientError, EngineGenerateError) as error:
            reason = error.__cause__ or error
            raise PromptRefusedError(
                f"{self.config.served_name} cannot take a prompt of {len(prompt.ids)} text tokens and "
                f"{len(prompt.pictures)} pictures (vllm.max_model_len is {self.config.max_model_len} tokens): {reason} "
                "Send less text, fewer or smaller pictures, or raise vllm.max_model_len."
            ) from error
        except VLLMError as error:
            raise self._lost(f"gave up the reply ({error})") from error

    async def _outputs(
        self, prompt: ModelPrompt, parameters: SamplingParams, lora: LoRARequest | None
    ) -> AsyncGenerator[RequestOutput]:
        """The outputs of one request.

        vLLM sends its engine a picture once and then only its hash. A prompt that is refused after its pictures were
        read leaves hashes the engine never got the pictures of: it gives up the next prompt that has one and forgets
        the hash, so that the same prompt, sent again, brings its pictures along.
        """
        for last_try in (not prompt.pictures, True):
            request_id = uuid.uuid4().hex
            answered = lacking = False
            try:
                async for output in self._engine.generate(
                    self._model_input(prompt), parameters, request_id, lora_request=lora
                ):
                    lacking = not (last_try or answered) and output.outputs[0].finish_reason == "error"
                    if not lacking:
                        answered = True
                        yield output
            finally:
                await self._engine.abort(request_id)
            if not lacking:
                return

    def _model_input(self, prompt: ModelPrompt) -> TokensPrompt:
        from vllm import TokensPrompt

        if len(prompt.pictures) > self.config.max_images:
            raise PromptRefusedError(
                f"the prompt has {len(prompt.pictures)} pictures and {self.config.served_name} takes "
                f"{self.config.max_images}: send fewer, or raise vllm.max_images"
            )
        tokens = TokensPrompt(prompt_token_ids=list(prompt.ids))
        if prompt.pictures:
            tokens["multi_modal_data"] = {"image": list(prompt.pictures)}
        return tokens

    def _parameters(self, sampling: Sampling, held: StructuredOutputsParams | None) -> SamplingParams:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        own = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
        chosen = self._defaults | {name: value for name, value in own.items() if value is not None}
        chosen |= {"max_tokens": sampling.max_tokens, "stop": list(sampling.stop)}
        if sampling.banned_token_ids:
            chosen["logit_bias"] = dict.fromkeys(sampling.banned_token_ids, BANNED_LOGIT)
        if held is not None:
            chosen["structured_outputs"] = held
        make: Callable[..., SamplingParams] = SamplingParams
        return make(**chosen, logprobs=0, output_kind=RequestOutputKind.DELTA)

    def _adapter(self, name: str) -> LoRARequest | None:
        if name and name not in self._adapters:
            known = ", ".join(self._adapters) or "none"
            raise VragError(f"{self.config.served_name} has no adapter {name!r}; it has: {known} (vllm.adapters)")
        return self._adapters.get(name)

    def _raise_if_broken(self) -> None:
        if self._broken:
            raise ModelLostError(f"{self._broken}; this replica is being replaced, another try may help")

    def _lost(self, what: str) -> ModelLostError:
        return ModelLostError(f"the engine of {self.config.served_name} {what}: another try may help")


def _held(form: ReplyForm, *, opened: bool) -> StructuredOutputsParams:
    """What vLLM holds a reply to. ``opened``: the prompt has opened the thoughts already."""
    from vllm.sampling_params import StructuredOutputsParams

    if form.rules:
        return StructuredOutputsParams(grammar=form.grammar(opened=opened))
    return StructuredOutputsParams(json=form.schema_json)
