"""From a conversation to a request to the bare language model."""

from __future__ import annotations

import json
from dataclasses import replace

from vrag_ray.agent.chat import FunctionCall, ImagePart, Message, Part, Role, TextPart, Tool
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.policies.llm.chat_model import ChatRequest, Sampling
from vrag_ray.serving.openai.images import Pictures
from vrag_ray.serving.openai.models import POLICY
from vrag_ray.serving.openai.references import referenced
from vrag_ray.serving.openai.requests import ChatCompletionRequest, ChatMessage, TextContent
from vrag_ray.types import InvalidError

MAX_PICTURES = 32
MOST_TEMPERATURE = 2.0
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "tool": Role.TOOL,
    "assistant": Role.ASSISTANT,
}


async def chat_request(body: ChatCompletionRequest, pictures: Pictures) -> ChatRequest:
    """Raises InvalidError, naming the field, and NotFoundError for a document that is not there."""
    count = sum(not isinstance(part, TextContent) for message in body.messages for part in message.content)
    if count > MAX_PICTURES:
        raise InvalidError(f"messages: {count} pictures are more than the limit of {MAX_PICTURES}", param="messages")
    if body.temperature is not None and body.temperature > MOST_TEMPERATURE:
        raise InvalidError(f"temperature: use 0 to {MOST_TEMPERATURE:g}", param="temperature")
    if body.model == POLICY and len(body.called_functions) < len(body.tools):
        raise InvalidError("tools: the language model calls functions alone: leave other tools out", param="tools")
    schema = body.response_format.schema_of_reply if body.response_format is not None else None
    limit = body.max_completion_tokens or body.max_tokens
    sampling = Sampling(temperature=body.temperature, top_p=body.top_p, seed=body.seed, stop=tuple(body.stop))
    is_strict = body.model == POLICY
    return ChatRequest(
        messages=tuple(
            [await _message(message, number, pictures, is_strict) for number, message in enumerate(body.messages)]
        ),
        sampling=sampling if limit is None else replace(sampling, max_tokens=limit),
        tools=() if body.tool_choice == "none" else tuple(_tools(body)),
        # Thoughts are no JSON.
        thinking=False if schema is not None and body.thinking is None else body.thinking,
        session=body.user or "",
        form=ReplyForm("", schema) if schema is not None else None,
    )


def _tools(body: ChatCompletionRequest) -> list[Tool]:
    functions = body.called_functions
    return [Tool(tool.name, tool.description, json.dumps(tool.parameters)) for tool in functions]


async def _message(message: ChatMessage, number: int, pictures: Pictures, is_strict: bool) -> Message:
    """A picture that cannot be had ends the request where ``is_strict``; a title can do without it."""
    parts: list[Part] = []
    for index, part in enumerate(message.content):
        if isinstance(part, TextContent):
            parts.append(TextPart(part.text))
        else:
            where = f"messages.{number}.content.{index}"
            try:
                parts.append(ImagePart(await pictures.png(referenced(part, where), where)))
            except InvalidError:
                if is_strict:
                    raise
    calls = tuple(FunctionCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls)
    return Message(_ROLES[message.role], tuple(parts) or (TextPart(""),), calls, message.tool_call_id)
