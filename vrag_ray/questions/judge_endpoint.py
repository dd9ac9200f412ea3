"""The endpoint of a model that judges: whole replies of any OpenAI-compatible server, several at a time."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Message, Role
from vrag_ray.config import OpenAiConfig
from vrag_ray.policies.llm.endpoint_quirks import Refusal, SentFields, server_at
from vrag_ray.policies.llm.openai_api import NO_KEY, wire_messages
from vrag_ray.policies.llm.reply_reader import EndpointError, NoChatCompletionError, ReplyReader, UnfinishedError
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.loopback import direct_mounts

if TYPE_CHECKING:
    from httpx2 import Request

logger = logging.getLogger(__name__)
MAX_TOKENS = 1024
"""Of one reply: a verdict takes eight, a model that reasons before it takes more."""
CONNECT_S = 5.0
"""Until an endpoint has taken a connection."""
SHOWN_CHARS = 200


class JudgeError(VragError):
    """There is no verdict: the endpoint refuses, cannot be reached or does not answer in time."""


class JudgeEndpoint:
    """``concurrency`` requests on the wire. Belongs to one event loop.

    ``role`` is what the model is called in messages. ``calls`` are requested replies; ``retries`` requests made again
    because one was refused for the moment or got lost.
    """

    def __init__(self, endpoint: OpenAiConfig, *, concurrency: int, role: str = "judge") -> None:
        import openai

        self._role = role
        self._endpoint = endpoint
        self._fields = SentFields(endpoint.model)
        self._room = asyncio.Semaphore(concurrency)
        self._requests = 0
        self.calls = 0
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or os.environ.get(endpoint.api_key_env) or NO_KEY,
            # An endpoint may take its time to reply, but none to be connected to.
            timeout=openai.Timeout(endpoint.timeout_s, connect=min(CONNECT_S, endpoint.timeout_s)),
            max_retries=endpoint.retries,
            http_client=openai.DefaultAsyncHttpxClient(
                event_hooks={"request": [self._sent]}, mounts=direct_mounts(endpoint.base_url)
            ),
        )

    @property
    def model(self) -> str:
        return self._endpoint.model

    @property
    def retries(self) -> int:
        return max(0, self._requests - self.calls)

    async def aclose(self) -> None:
        await self._client.close()

    async def reply(self, messages: Sequence[Message]) -> str:
        """The words of one reply; none of a reply that was cut off or has another form than a chat completion. Raises
        JudgeError where there is none to be had."""
        import openai

        self.calls += 1
        try:
            async with self._room:
                body = await self._posted(self.body(messages))
        except openai.OpenAIError as error:
            reason = " ".join(str(error).split())[:SHOWN_CHARS]
            raise JudgeError(
                f"{self._role} {self._endpoint.model} at {self._endpoint.base_url} cannot be called "
                f"({type(error).__name__}): {reason}"
            ) from error
        reader = ReplyReader()
        try:
            # The pieces are all in the completion.
            _ = [*reader.feed(body.encode()), *reader.end()]
        except (EndpointError, NoChatCompletionError, UnfinishedError) as error:
            logger.warning("%s %s replied with no chat completion: %s", self._role, self.model, error)
            return ""
        whole = reader.completion(f"{self._role} {self.model}", ())
        return "" if whole.finish == "length" else whole.text

    async def _posted(self, request: Mapping[str, object]) -> str:
        """The body of the reply to ``request``, without the fields that the endpoint refuses by name."""
        import openai

        while True:
            body, _ = self._fields.fitted(request)
            try:
                return await self._client.post("/chat/completions", cast_to=str, body=body)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                refusal = Refusal.of(error.status_code, error.response.text)
                if self._fields.learn(refusal, body) is None:
                    raise
                logger.warning("%s %s refuses a field: %s", self._role, self.model, refusal.words)

    def body(self, messages: Sequence[Message]) -> dict[str, object]:
        """Of the request, sampling included: what a reply is known by."""
        own = self._endpoint
        body: dict[str, object] = {
            "model": own.model,
            "messages": wire_messages(tuple(messages)),
            "max_tokens": MAX_TOKENS,
            "temperature": 0.0 if own.temperature is None else own.temperature,
        }
        if own.top_p is not None:
            body["top_p"] = own.top_p
        if own.thinking is not None:
            body |= server_at(own.base_url).thinking[own.thinking]
        return body

    async def _sent(self, request: Request) -> None:  # noqa: ARG002  the signature is httpx2's
        self._requests += 1


async def check_endpoint(endpoint: OpenAiConfig, setting: str) -> str:
    """Have the model at ``endpoint`` reply once, before there is a run that needs it; a line for people.

    Raises JudgeError, with the remedy, in seconds where nothing is there. ``setting`` is what names the endpoint.
    """
    async with aclosing(JudgeEndpoint(with_one_retry(endpoint), concurrency=1, role=setting)) as replies:
        try:
            await replies.reply((Message.of(Role.USER, "Reply with the word ready."),))
        except JudgeError as error:
            raise unreachable(error, endpoint, setting) from error
    return f"the {setting} {endpoint.model} at {endpoint.base_url} replies"


def with_one_retry(endpoint: OpenAiConfig) -> OpenAiConfig:
    """``endpoint`` with at most one further attempt a request."""
    return with_changes(endpoint, {"retries": min(endpoint.retries, 1)})


def unreachable(error: JudgeError, endpoint: OpenAiConfig, setting: str) -> JudgeError:
    """``error`` with its remedy."""
    return JudgeError(
        f"{error}. Start the endpoint, or correct {setting}.base_url, {setting}.model or the key in the environment "
        f"variable {endpoint.api_key_env}"
    )
