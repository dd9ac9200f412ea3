"""Bodies of OpenAI's Responses API, and the chat that each stands for: agents and the model read one form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue

from vrag_ray.client.schemas import CollectionChoice
from vrag_ray.serving.openai.models import POLICY
from vrag_ray.serving.openai.requests import Body, ChatCompletionRequest, Incoming, Thinking, listed
from vrag_ray.types import InvalidError
from vrag_ray.types.filters import SearchFilter


def _items(value: object) -> object:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


class TextOptions(Incoming):
    """How the words of a reply are formed: ``format`` is a ``response_format`` without its inner object."""

    format: dict[str, JsonValue] | None = None


class ResponseRequest(Body):
    """``POST /v1/responses``. The last five fields are this server's own (``extra_body`` in the SDK).

    ``input`` may come as one string. Items and tools are checked when they become a chat.
    """

    model: str = Field(min_length=1, max_length=256)
    input: Annotated[list[dict[str, JsonValue]], BeforeValidator(_items), Field(min_length=1)]
    instructions: str | None = None
    previous_response_id: Annotated[str | None, BeforeValidator(lambda value: value or None)] = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    tools: Annotated[list[dict[str, JsonValue]], BeforeValidator(listed)] = Field(default=[])
    tool_choice: str | dict[str, JsonValue] | None = None
    text: TextOptions | None = None
    metadata: dict[str, str] | None = None
    user: Annotated[str | int | None, Field()] = None
    max_steps: int | None = Field(default=None, ge=2, le=100)
    top_k: int | None = Field(default=None, ge=1, le=50)
    collection: CollectionChoice = None
    filter: SearchFilter | None = None
    thinking: Thinking = None

    def chat(self, earlier: Sequence[Mapping[str, JsonValue]] = ()) -> ChatCompletionRequest:
        """The chat that this asks to go on; ``earlier`` are the messages of the response that it follows.

        Raises InvalidError for an item of a kind that is not known here, and ValidationError as a chat does.
        """
        values = {
            "model": self.model,
            "messages": [message for _, message in self._located(earlier)],
            "stream": self.stream,
            "max_completion_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "tools": [_tool(tool) for tool in self.tools if tool.get("type") == "function"],
            "tool_choice": _choice(self.tool_choice),
            "response_format": _format(self.text),
            "user": self.user,
            "max_steps": self.max_steps,
            "top_k": self.top_k,
            "collection": self.collection,
            "filter": self.filter,
            "thinking": self.thinking,
        }
        return ChatCompletionRequest.model_validate(values)

    def own_place(self, place: Sequence[str], earlier: Sequence[Mapping[str, JsonValue]] = ()) -> list[str]:
        """Where in this body stands what its ``chat`` has at ``place``."""
        match place:
            case ["messages", number, *rest] if number.isdecimal():
                located = self._located(earlier)
                where = located[int(number)][0] if int(number) < len(located) else "input"
                if rest[:3] == ["tool_calls", "0", "function"]:
                    rest = rest[3:]
                elif rest[-2:] == ["image_url", "url"]:
                    rest = rest[:-1]
                return [*where.split("."), *(rest if where.startswith("input.") else [])]
            case ["messages"]:
                return ["input"]
            case ["tools", number, "function", *rest]:
                return ["tools", number, *rest]
            case ["response_format", *rest]:
                return ["text", "format", *rest[rest[:1] == ["json_schema"] :]]
            case ["max_completion_tokens"]:
                return ["max_output_tokens"]
            case _:
                return list(place)

    def _located(self, earlier: Sequence[Mapping[str, JsonValue]]) -> list[tuple[str, Mapping[str, JsonValue]]]:
        """The messages of the chat, each with the place in this body that it comes from."""
        located: list[tuple[str, Mapping[str, JsonValue]]] = []
        if self.instructions:
            located.append(("instructions", {"role": "system", "content": self.instructions}))
        located += [("previous_response_id", message) for message in earlier]
        last = max((place for place, item in enumerate(self.input) if item.get("role") == "user"), default=0)
        for number, item in enumerate(self.input):
            where = f"input.{number}"
            is_strict = self.model == POLICY or number >= last
            located += [(where, message) for message in _messages(item, where, is_strict=is_strict)]
        return located


def _messages(item: Mapping[str, JsonValue], where: str, *, is_strict: bool) -> list[Mapping[str, JsonValue]]:
    """An item of the input as messages of a chat; none for what is of no use to a model here, as the calls of tools
    that OpenAI runs itself. Not ``is_strict``: parts of a message that are not read here become none, too."""
    kind = item.get("type") or "message"
    if kind == "message":
        content = item.get("content")
        parts = (
            [_part(part, f"{where}.content.{place}", is_strict=is_strict) for place, part in enumerate(content)]
            if isinstance(content, list)
            else content
        )
        return [{"role": item.get("role"), "content": parts}]
    if kind == "function_call":
        function: JsonValue = {"name": item.get("name"), "arguments": item.get("arguments")}
        call: JsonValue = {"id": item.get("call_id"), "function": function}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}]
    if kind == "custom_tool_call":
        text: JsonValue = {"name": item.get("name"), "input": item.get("input")}
        custom: JsonValue = {"id": item.get("call_id"), "custom": text}
        return [{"role": "assistant", "content": None, "tool_calls": [custom]}]
    if kind in ("function_call_output", "custom_tool_call_output"):
        return [{"role": "tool", "content": _text(item.get("output")), "tool_call_id": item.get("call_id")}]
    if kind in ("reasoning", "item_reference", "compaction") or re.match(r"mcp_|\w+_call(?:_output)?$", str(kind)):
        return []
    raise InvalidError(f"{where}.type: {str(kind)[:40]!r} is no kind of item that is read here", param=f"{where}.type")


def _part(part: JsonValue, where: str, *, is_strict: bool) -> JsonValue:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": text} | {"type": "refusal", "refusal": text}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)} | {"type": "input_image", "file_id": str(url)}:
            return {"type": "image_url", "image_url": url}
        case {"type": "input_file", "file_id": str(file_id)}:
            return {"type": "file", "file": {"file_id": file_id}}
        case _ if not is_strict:
            return {"type": "text", "text": ""}
        case _:
            raise InvalidError(
                f"{where}: use input_text with text, input_image with image_url, or input_file with file_id",
                param=where,
            )


def _text(output: JsonValue) -> str:
    if isinstance(output, list):
        return "\n".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    return str(output or "")


def _tool(tool: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    return {"type": "function", "function": {name: tool.get(name) for name in ("name", "description", "parameters")}}


def _choice(choice: str | Mapping[str, JsonValue] | None) -> JsonValue:
    if choice is None or isinstance(choice, str):
        return choice
    if choice.get("type") == "allowed_tools":
        tools = choice.get("tools")
        named: list[JsonValue] = (
            [dict(_tool(tool)) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
        )
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode"), "tools": named}}
    if choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    raise InvalidError("tool_choice: use auto, none, required or a function", param="tool_choice")


def _format(text: TextOptions | None) -> JsonValue:
    form = text.format if text is not None else None
    if form is None or form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {name: value for name, value in form.items() if name != "type"}}


ResponseStatus = Literal["completed", "incomplete", "in_progress", "failed", "cancelled"]
