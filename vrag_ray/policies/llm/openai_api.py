"""Any server that speaks OpenAI's chat completions: a hosted model, vLLM's own server, or another gateway of ours."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Delta, FunctionCall, ImagePart, Message, Part, Role, TextPart
from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.config import OpenAiConfig, ReplyConstraint
from vrag_ray.policies.llm.chat_model import ChatRequest, ModelBusyError, ModelDownError, ModelLostError
from vrag_ray.policies.llm.endpoint_quirks import KNOWN_SERVERS, Refusal, SentFields, calls_notice, server_at
from vrag_ray.policies.llm.function_calls import has_calls, in_fields, in_words
from vrag_ray.policies.llm.reply_reader import EndpointError, NoChatCompletionError, ReplyReader, UnfinishedError
from vrag_ray.types import Completion, VragError
from vrag_ray.types.loopback import direct_mounts

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError, AsyncOpenAI, AsyncStream

logger = logging.getLogger(__name__)
SERVER_ERRORS = 500
OF_THE_REQUEST = (400, 413, 422)
"""A refusal that another request may avoid: a prompt too long, a picture too large."""
TOO_LARGE = 413
TOO_MANY = 429
LOADING_POLL_S = 1.0
PROBE_TIMEOUT_S = 10.0
"""Of the question whose models a server has."""
NO_KEY = "EMPTY"
"""Sent where no key is set: private servers need none, and the SDK insists on a key."""
DRAIN_S = 1.0
"""For what is left of a body whose reply is over: read to its end, its connection can be used again."""
MOVED = (301, 302, 303)
"""Redirects after which a client fetches a page in place of a post."""
REDIRECTED = "x-redirected-to"


class OpenAiModel:
    """``ChatModel`` over HTTP. Before the first token the SDK retries with back-off; after it the reply is lost.

    A field that the endpoint refuses by name is left out or renamed, from then on, and ``Completion.notices`` say so.
    """

    def __init__(self, config: OpenAiConfig, sent_fields: SentFields | None = None) -> None:
        """``sent_fields`` is what is known already of the fields that the endpoint takes."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self._config = config
        self._constraint = config.constraint
        self._server = server_at(config.base_url)
        self._sent_fields = sent_fields or SentFields(config.model)
        # Made here and not at the first request: importing the SDK takes a second, in which no other run would move.
        self._client = AsyncOpenAI(
            base_url=config.base_url,
            api_key=config.api_key or os.environ.get(config.api_key_env) or NO_KEY,
            timeout=config.timeout_s,
            max_retries=config.retries,
            http_client=DefaultAsyncHttpxClient(
                event_hooks={"response": [_settle]}, mounts=direct_mounts(config.base_url)
            ),
        )

    async def aclose(self) -> None:
        """Close its connections, in the event loop that used them."""
        await self._client.close()

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        """Raises ``VragError`` when the server refuses: ``PromptRefusedError`` where the prompt is too long or has too
        many pictures, ``ModelDownError`` where it would refuse any request; ``ModelLostError`` when it is lost in
        mid-reply.
        """
        import httpx2
        import openai

        self._check_pictures(request.messages)
        reader = ReplyReader()
        began = False
        try:
            stream, notices = await self._opened(request)
            began = True
            async with stream:
                body = stream.response.aiter_bytes()
                async for data in body:
                    for delta in reader.feed(data):
                        yield delta
                    if reader.is_done:
                        await _drain(body)
                        break
                for delta in reader.end():
                    yield delta
        except openai.APIStatusError as error:
            raise self._refused(_refusal(error), error.response.headers, request) from error
        except EndpointError as error:
            refusal = error.refusal
            if error.whole or refusal.is_too_long or refusal.is_blind:
                raise self._refused(refusal, {}, request) from error
            raise ModelLostError(f"{self._name} broke off: {refusal.words}") from error
        except NoChatCompletionError as error:
            raise ModelDownError(f"{self._name} sends no chat completion: {error}: check openai.base_url") from error
        except UnfinishedError as error:
            words = f": {error}" if str(error) else ""
            raise ModelLostError(f"{self._name} ended its stream in mid-reply{words}") from error
        except (openai.APIConnectionError, httpx2.RequestError) as error:
            if began:
                raise ModelLostError(f"{self._name} was lost in mid-reply ({type(error).__name__})") from error
            raise ModelDownError(
                f"{self._name} cannot be reached ({type(error).__name__}): check openai.base_url"
            ) from error
        if reader.refusal:
            raise VragError(f"{self._name} declines to answer: {reader.refusal}")
        yield reader.completion(self._name, notices)

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
            self._constraint = await _constraint_of(self._client)
        return self._constraint

    async def _opened(self, request: ChatRequest) -> tuple[AsyncStream[object], tuple[str, ...]]:
        """The reply, begun, and what there is to say of the fields that the endpoint did not take. The pieces of the
        stream are not read by the SDK, whose types refuse what many servers send."""
        from openai import APIStatusError, AsyncStream
        from pydantic_core import to_json

        fields = self._fields(request, await self._constraint_for(request))
        # Pictures make bodies of megabytes. Encoding one would hold every other run up: it is left to a thread.
        fields["messages"] = await asyncio.to_thread(wire_messages, self._messages(request))
        renamed: list[str] = []
        patient_until = time.monotonic() + self._config.timeout_s
        while True:
            sent, dropped = self._sent_fields.fitted(fields)
            body = await asyncio.to_thread(to_json, sent)
            try:
                stream = await self._client.post(
                    "/chat/completions",
                    cast_to=object,
                    content=body,
                    options={"headers": {"Content-Type": "application/json"}},
                    stream=True,
                    stream_cls=AsyncStream[object],
                )
            except APIStatusError as error:
                refusal = _refusal(error)
                if refusal.is_loading and time.monotonic() < patient_until:
                    await asyncio.sleep(LOADING_POLL_S)
                    continue
                learnt = self._sent_fields.learn(refusal, sent) if error.status_code in OF_THE_REQUEST else None
                if learnt is None:
                    raise
                logger.warning("%s refuses a part of the request: %s", self._name, refusal.words)
                renamed.extend(learnt)
                if self._sent_fields.no_calls and has_calls(request.messages):
                    fields["messages"] = await asyncio.to_thread(wire_messages, self._messages(request))
            else:
                refused = self._sent_fields.no_calls if has_calls(request.messages) else ""
                in_text = (calls_notice(self._config.model, refused),) if refused else ()
                return stream, (*renamed, *dropped, *in_text)

    def _messages(self, request: ChatRequest) -> Sequence[Message]:
        """With earlier calls in fields of their own where the endpoint takes these, and knows the functions."""
        if not has_calls(request.messages):
            return request.messages
        native = in_fields(request.messages) if request.tools and not self._sent_fields.no_calls else None
        return in_words(request.messages) if native is None else native

    def _refused(self, refusal: Refusal, headers: Mapping[str, str], request: ChatRequest) -> VragError:
        """What a refusal means to the caller."""
        if REDIRECTED in headers:
            return ModelDownError(
                f"{self._name} redirects ({refusal.status}) to {headers[REDIRECTED]}: check openai.base_url"
            )
        words = refusal.words or "it gives no reason"
        if refusal.is_blind and any(
            isinstance(part, ImagePart) for message in request.messages for part in message.parts
        ):
            return PromptRefusedError(
                f"{self._name} takes no pictures ({words}): set openai.max_images to 0 and agent.evidence to text"
            )
        message = f"{self._name} refuses ({refusal.status}): {words}"
        if refusal.status == TOO_MANY:
            return ModelBusyError(message, _retry_after_s(headers.get("retry-after", "")))
        kind: type[VragError] = ModelDownError if refusal.status not in OF_THE_REQUEST else VragError
        if refusal.is_too_long or refusal.status == TOO_LARGE:
            kind = PromptRefusedError
        return kind(message)

    def _fields(self, request: ChatRequest, constraint: ReplyConstraint) -> dict[str, object]:
        """All of the request's body but its messages."""
        config, sampling = self._config, request.sampling
        thinking = config.thinking if request.thinking is None else request.thinking
        body: dict[str, object] = {
            "model": request.adapter or config.model,
            self._server.limit: sampling.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": config.temperature if sampling.temperature is None else sampling.temperature,
            "top_p": config.top_p if sampling.top_p is None else sampling.top_p,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "tools": [_function(tool.name, tool.description, tool.parameters) for tool in request.tools] or None,
        }
        if request.form is not None and request.tools:
            body["tool_choice"] = "required"
        elif request.form is not None:
            body |= _constraint_fields(constraint, request.form)
        if thinking is not None:
            body |= self._server.thinking[thinking]
        return {name: value for name, value in body.items() if value is not None}


async def _constraint_of(client: AsyncOpenAI) -> ReplyConstraint:
    """What the server takes, by the owner that it names of its models; a JSON schema where it does not say."""
    import openai

    try:
        impatient = client.with_options(timeout=PROBE_TIMEOUT_S, max_retries=0)
        listed: object = (await impatient.models.with_raw_response.list()).http_response.json()
    except (openai.OpenAIError, ValueError):
        return ReplyConstraint.JSON_SCHEMA
    models = listed.get("data") if isinstance(listed, dict) else None
    owners = {model.get("owned_by") for model in models or () if isinstance(model, dict)}
    known = (server.constraint for server in KNOWN_SERVERS if server.owner in owners)
    return next(known, ReplyConstraint.JSON_SCHEMA)


def _constraint_fields(kind: ReplyConstraint, form: ReplyForm) -> Mapping[str, object]:
    """Fields of a chat completion's request; none where the server has no words for ``form``."""
    if not form.rules and kind is not ReplyConstraint.OFF:
        # Of a caller's own schema: each of these servers takes it in OpenAI's field too.
        kind = ReplyConstraint.JSON_SCHEMA
    if kind is ReplyConstraint.GRAMMAR:
        return {"grammar": form.grammar()}
    if kind is ReplyConstraint.STRUCTURED_OUTPUTS:
        return {"structured_outputs": {"grammar": form.grammar()}}
    if kind is ReplyConstraint.JSON_SCHEMA and form.schema is not None:
        schema = {"name": "reply", "schema": form.schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {}


async def _settle(response: Response) -> None:
    """Keep the SDK from repeating what would be refused again: servers answer 500 to a prompt that is too long, and to
    pictures for a model without eyes; and what is repeated here, for as long as a model takes to load. Keep the client
    from following a redirect with a GET, which would drop the request."""
    if response.request.method == "POST" and response.status_code in MOVED and "location" in response.headers:
        response.headers[REDIRECTED] = str(response.request.url.join(response.headers.pop("location")))
    if response.status_code >= SERVER_ERRORS:
        refusal = Refusal.of(response.status_code, (await response.aread()).decode(errors="replace"))
        if refusal.is_too_long or refusal.is_blind or refusal.is_loading:
            response.headers["x-should-retry"] = "false"


def _refusal(error: APIStatusError) -> Refusal:
    return Refusal.of(error.status_code, error.response.text)


async def _drain(body: AsyncIterator[bytes]) -> None:
    import httpx2

    try:
        async with asyncio.timeout(DRAIN_S):
            async for _ in body:
                pass
    except (TimeoutError, httpx2.RequestError):
        logger.debug("a connection is closed whose body goes on behind its reply")


def _retry_after_s(value: str) -> int:
    """Whole seconds, 1 at least, from a number or a date."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return 1
    return max(1, math.ceil(seconds)) if math.isfinite(seconds) else 1


def wire_messages(messages: Sequence[Message]) -> list[dict[str, object]]:
    """In OpenAI's form."""
    wire: list[dict[str, object]] = []
    for message in messages:
        plain = len(message.parts) == 1 and isinstance(message.parts[0], TextPart)
        content = message.text if plain else [_wire_part(part) for part in message.parts]
        sent: dict[str, object] = {"role": message.role.value, "content": content}
        if message.calls:
            sent |= {"content": content or None, "tool_calls": [_call(call) for call in message.calls]}
        if message.role is Role.TOOL:
            # OpenAI's field takes words alone.
            sent |= {"content": message.text, "tool_call_id": message.call_id}
        wire.append(sent)
    return wire


def _call(call: FunctionCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _wire_part(part: Part) -> dict[str, object]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    url = f"data:image/png;base64,{base64.b64encode(part.png).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _function(name: str, description: str, parameters: str) -> dict[str, object]:
    function = {"name": name, "description": description, "parameters": json.loads(parameters)}
    return {"type": "function", "function": function}
