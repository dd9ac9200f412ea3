"""Policies that record their replies, token by token: the model that is trained, and experts that it learns from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from vrag_ray.agent.chat import Message
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Policy, PromptRefusedError, Say
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.policies.llm.chat_model import ChatRequest, Sampling, TokenDelta, TokenRequest
from vrag_ray.policies.llm.vllm_prompt import images
from vrag_ray.training.rollout.backend import TokenModel
from vrag_ray.training.trajectory import Call
from vrag_ray.types import Completion, VragError

if TYPE_CHECKING:
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat


class ExpandImageTokens(Protocol):
    """Repeats each picture's image token once for every visual token that the picture has."""

    def __call__(self, ids: tuple[int, ...], pngs: tuple[bytes, ...]) -> tuple[int, ...]: ...


Tokens = Callable[[ChatRequest], tuple[tuple[int, ...], str]]
"""``ChatFormat.tokens``: the token ids of a chat, and what it has the assistant say already."""


class SamplingPolicy:
    """One run of the model that is trained. ``calls`` grows with every reply.

    ``sampling`` has no seed: ``seed`` and the number of the reply decide how its tokens are drawn, so that a run can be
    had again from the same weights whatever else the engine does at that time.
    """

    reads_pages = True
    sees_pictures = True

    def __init__(
        self, model: TokenModel, tokens: Tokens, protocol: WireProtocol, sampling: Sampling, seed: str
    ) -> None:
        self.calls: list[Call] = []
        self._model = model
        self._tokens = tokens
        self._protocol = protocol
        self._sampling = sampling
        self._seed = seed

    async def complete(self, prompt: Prompt, say: Say) -> Completion:  # noqa: ARG002  nobody watches a rollout
        messages = self._protocol.messages(prompt)
        ids, opening = self._tokens(ChatRequest(messages))
        pngs = images(messages)
        sampling = replace(self._sampling, seed=derive_seed(self._seed, len(self.calls)))
        read: tuple[int, ...] = ()
        done: Completion | None = None
        async with aclosing(self._model.generate(TokenRequest(ids, pngs, sampling))) as pieces:
            async for piece in pieces:
                if isinstance(piece, TokenDelta):
                    read = read or piece.prompt_ids
                else:
                    done = piece
        if done is None:
            raise VragError("the model broke off before its reply was whole")
        text = opening + done.text
        self.calls.append(Call(read, pngs, done.token_ids, done.logprobs, text, done.finish, done.weights))
        if done.finish == "length" and len(done.token_ids) < sampling.max_tokens:
            # Engines end a reply where the context does; what the policy may say is rollout.max_reply_tokens.
            raise PromptRefusedError(
                f"the context was full after {len(read)} tokens of the prompt and {len(done.token_ids)} of at most "
                f"{sampling.max_tokens} of the reply: raise the engine's max_model_len, or lower the agent's budgets"
            )
        return Completion(text=text, finish=done.finish, weights=done.weights, usage=done.usage)


class ExpertPolicy:
    """One run of another policy, in the tokens with which the model to be trained would have given the same replies."""

    def __init__(
        self, expert: Policy, form: ChatFormat, protocol: WireProtocol, expand_image_tokens: ExpandImageTokens
    ) -> None:
        self.calls: list[Call] = []
        self._expert = expert
        self._form = form
        self._protocol = protocol
        self._widen = expand_image_tokens

    @property
    def reads_pages(self) -> bool:
        return self._expert.reads_pages

    @property
    def sees_pictures(self) -> bool:
        return self._expert.sees_pictures

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        done = await self._expert.complete(prompt, say)
        messages = self._protocol.messages(prompt)
        self.calls.append(replace(call_of(self._form, self._widen, messages, done.text), finish=done.finish))
        return done


def call_of(form: ChatFormat, expand_image_tokens: ExpandImageTokens, messages: Sequence[Message], reply: str) -> Call:
    """``reply`` to ``messages`` as the model of ``form`` would have read and generated it.

    Raises VragError where the model's template refuses the messages.
    """
    ids, opening = form.tokens(ChatRequest(tuple(messages)))
    pngs = images(messages)
    # The tag with which the template opens thoughts is in the prompt already.
    return Call(expand_image_tokens(ids, pngs), pngs, form.reply_tokens(reply.removeprefix(opening)), text=reply)


def derive_seed(*names: str | int) -> int:
    """A number of 31 bits that only ``names`` decide: the seed of what they name."""
    return int.from_bytes(hashlib.sha256("\n".join(map(str, names)).encode()).digest()[:4], "big") >> 1
