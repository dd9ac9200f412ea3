"""Any server that speaks OpenAI's chat completions: a hosted model, vLLM's own server, or another gateway of ours."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Delta, ImagePart, Message, Part, TextPart
from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.config import OpenAiConfig, ReplyConstraint
from vrag_ray.policies.llm.chat_model import ChatRequest, ModelDownError, ModelLostError
from vrag_ray.policies.llm.reply_constraint import constraint_fields, constraint_of
from vrag_ray.types import Completion, VragError

if TYPE_CHECKING:
    from openai import APIStatusError
    from openai.types.chat import ChatCompletionChunk

OF_THE_REQUEST = (400, 413, 422)
"""A refusal that another request may avoid: a prompt too long, a picture too large."""
TOO_LARGE = 413
TOO_LONG = ("context_length_exceeded", "maximum context length")
"""How endpoints say that a prompt is too long: OpenAI's code, and vLLM's words."""
NO_KEY = "EMPTY"
"""Sent where no key is set: servers of one's own want none, and the SDK insists on one."""


@dataclass(slots=True)
class _Heard:
    """What came so far of one reply."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, list[str]] = field(default_factory=dict)
    finish: str = ""
    usage: dict[str, int] = field(default_factory=dict)

    def completion(self) -> Completion:
        """Function calls become the text that the protocols read: one form, whichever way the model called."""
        calls = [f"<tool_call>{_call_json(parts)}</tool_call>" for _, parts in sorted(self.calls.items())]
        return Completion(
            text="".join([*self.text, *calls]),
            reasoning="".join(self.reasoning),
            finish="length" if self.finish == "length" else "stop",
            usage=self.usage,
        )


class OpenAiModel:
    """``ChatModel`` over HTTP. Before the first token the SDK retries with back-off; after it the reply is lost."""

    def __init__(self, config: OpenAiConfig) -> None:
        from openai import AsyncOpenAI

        self._config = config
        self._constraint = config.constraint
        # Made here and not at the first request: importing the SDK takes a second, in which no other run would move.
        self._client = AsyncOpenAI(
            base_url=config.base_url,
            api_key=config.api_key or os.environ.get(config.api_key_env) or NO_KEY,
            timeout=config.timeout_s,
            max_retries=config.retries,
        )

    async def aclose(self) -> None:
        """Close its connections, in the event loop that used them."""
        await self._client.close()

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        """Raises ``VragError`` when the server refuses: ``PromptRefusedError`` where the prompt is too long or has too
        many pictures, ``ModelDownError`` where it would refuse any request; ``ModelLostError`` when it is lost in
        mid-reply.
        """
        import httpx
        import openai

        self._check_pictures(request.messages)
        heard = _Heard()
        began = False
        try:
            async with aclosing(self._chunks(request)) as chunks:
                async for chunk in chunks:
                    began = True
                    delta = _take(chunk, heard)
                    if delta is not None:
                        yield delta
        except openai.APIStatusError as error:
            raise _kind(error)(f"{self._name} refuses ({error.status_code}): {_reason(error)}") from error
        except (openai.APIConnectionError, httpx.TransportError) as error:
            if began:
                raise ModelLostError(f"{self._name} was lost in mid-reply ({type(error).__name__})") from error
            raise ModelDownError(
                f"{self._name} cannot be reached ({type(error).__name__}): check openai.base_url"
            ) from error
        except openai.APIError as error:
            raise ModelLostError(f"{self._name} broke off: {error.message}") from error
        if not heard.finish:
            raise ModelLostError(f"{self._name} ended its stream in mid-reply")
        yield heard.completion()

    @property
    def _name(self) -> str:
        return f"model {self._config.model}"

    def _check_pictures(self, messages: Sequence[Message]) -> None:
        count = sum(isinstance(part, ImagePart) for message in messages for part in message.parts)
        if count > self._config.max_images:
            raise PromptRefusedError(
                f"the prompt has {count} pictures and {self._name} takes {self._config.max_images}: send fewer, or "
                "raise openai.max_images"
            )

    async def _constraint_for(self, request: ChatRequest) -> ReplyConstraint:
        if request.form is not None and self._constraint is ReplyConstraint.AUTO:
            self._constraint = await constraint_of(self._client)
        return self._constraint

    async def _chunks(self, request: ChatRequest) -> AsyncGenerator[ChatCompletionChunk]:
        from openai import AsyncStream
        from openai.types.chat import ChatCompletionChunk

        # Pictures make bodies of megabytes. Encoding one would hold every other run up, so it is left to a thread.
        body = await asyncio.to_thread(self._body, request, await self._constraint_for(request))
        stream = await self._client.post(
            "/chat/completions",
            cast_to=ChatCompletionChunk,
            content=body,
            options={"headers": {"Content-Type": "application/json"}},
            stream=True,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )
        async with stream:
            async for chunk in stream:
                yield chunk

    def _body(self, request: ChatRequest, constraint: ReplyConstraint) -> bytes:
        from pydantic_core import to_json

        config, sampling = self._config, request.sampling
        thinking = config.thinking if request.thinking is None else request.thinking
        body: dict[str, object] = {
            "model": request.adapter or config.model,
            "messages": wire_messages(request.messages),
            "max_tokens": sampling.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": config.temperature if sampling.temperature is None else sampling.temperature,
            "top_p": config.top_p if sampling.top_p is None else sampling.top_p,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "tools": [_function(tool.name, tool.description, tool.parameters) for tool in request.tools] or None,
        }
        if request.form is not None:
            body |= constraint_fields(constraint, request.form)
        if thinking is not None:
            # DashScope reads the first, vLLM the second.
            body |= {"enable_thinking": thinking, "chat_template_kwargs": {"enable_thinking": thinking}}
        return to_json({name: value for name, value in body.items() if value is not None})


def wire_messages(messages: Sequence[Message]) -> list[dict[str, object]]:
    """In OpenAI's form."""
    wire: list[dict[str, object]] = []
    for message in messages:
        plain = len(message.parts) == 1 and isinstance(message.parts[0], TextPart)
        content = message.text if plain else [_wire_part(part) for part in message.parts]
        wire.append({"role": message.role.value, "content": content})
    return wire


def _wire_part(part: Part) -> dict[str, object]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    url = f"data:image/png;base64,{base64.b64encode(part.png).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _function(name: str, description: str, parameters: str) -> dict[str, object]:
    function = {"name": name, "description": description, "parameters": json.loads(parameters)}
    return {"type": "function", "function": function}


def _take(chunk: ChatCompletionChunk, heard: _Heard) -> Delta | None:
    if chunk.usage is not None:
        heard.usage = {
            "prompt_tokens": chunk.usage.prompt_tokens,
            "completion_tokens": chunk.usage.completion_tokens,
        }
        details = chunk.usage.prompt_tokens_details
        if details is not None and details.cached_tokens is not None:
            heard.usage["cached_tokens"] = details.cached_tokens
    if not chunk.choices:
        return None
    choice = chunk.choices[0]
    heard.finish = choice.finish_reason or heard.finish
    for call in choice.delta.tool_calls or ():
        parts = heard.calls.setdefault(call.index, ["", ""])
        if call.function is not None:
            parts[0] += call.function.name or ""
            parts[1] += call.function.arguments or ""
    think, content = _reasoning(choice.delta.model_extra or {}), choice.delta.content or ""
    heard.reasoning.append(think)
    heard.text.append(content)
    return Delta(think, content) if think or content else None


def _reasoning(extra: dict[str, object]) -> str:
    """Servers disagree on the name."""
    found = extra.get("reasoning_content") or extra.get("reasoning")
    return found if isinstance(found, str) else ""


def _call_json(parts: Sequence[str]) -> str:
    name, arguments = parts
    return json.dumps({"name": name, "arguments": arguments or "{}"}, ensure_ascii=False).replace("<", "\\u003c")


def _kind(error: APIStatusError) -> type[VragError]:
    """What a refusal means to who asked."""
    if error.status_code not in OF_THE_REQUEST:
        return ModelDownError
    too_long = error.status_code == TOO_LARGE or any(sign in str(error) for sign in TOO_LONG)
    return PromptRefusedError if too_long else VragError


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:300]
