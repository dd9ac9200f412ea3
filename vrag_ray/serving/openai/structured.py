"""Replies as JSON of a caller's schema, or as a call of a caller's function: the model is held to the schema where its
server can do that, what it says is checked here, and it gets one turn to mend what is wrong."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import JsonValue

from vrag_ray.agent.chat import Message, Role, TextPart
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.policies.llm.chat_model import ChatRequest, Sampling
from vrag_ray.serving.contract import ModelPart
from vrag_ray.serving.errors import UpstreamError
from vrag_ray.serving.openai.reasoning_parser import Piece
from vrag_ray.serving.openai.reply_sources import Ending, model_reply, usage_of
from vrag_ray.serving.openai.requests import ChatCompletionRequest, FunctionChoice
from vrag_ray.serving.openai.responses import AssistantMessage, CalledFunction, ToolCall
from vrag_ray.types import Completion, InvalidError
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

INSTRUCTION = (
    "Put the answer into JSON of the schema below. Use only what the answer says, in its words and figures; where it "
    "does not say what a field needs, use the field's empty value. Reply with the JSON alone."
)
LONGEST_PROBLEM = 300
_VALUES = frozenset({"const", "default", "enum", "examples"})
"""Keywords of a schema that hold values, not schemas."""


@dataclass(frozen=True, slots=True)
class ReplySchema:
    """``schema`` is the JSON schema of the reply. ``functions`` are the names that it may call; where there are none,
    the reply is the JSON itself. Of a single function the JSON is its arguments; of several it has ``name`` and
    ``arguments``. ``param`` is the field of the request that asks for it."""

    schema: Mapping[str, JsonValue]
    param: str
    functions: tuple[str, ...] = ()

    def call(self, text: str) -> ToolCall:
        """The call that the JSON ``text`` is."""
        name, arguments = self.functions[0], text
        if len(self.functions) > 1:
            value = json.loads(text)
            name, arguments = value["name"], json.dumps(value["arguments"], ensure_ascii=False)
        return ToolCall(id=f"call_{uuid.uuid4().hex[:24]}", function=CalledFunction(name=name, arguments=arguments))


def reply_schema(body: ChatCompletionRequest) -> ReplySchema | None:
    """The schema that ``body`` holds its reply to; None for words. Raises InvalidError for what is no JSON schema,
    and where a function has to be called that the request does not have."""
    schema = _of_functions(body) or _of_format(body)
    if schema is not None:
        _check_schema(schema)
    return schema


def _of_format(body: ChatCompletionRequest) -> ReplySchema | None:
    schema = body.response_format.schema_of_reply if body.response_format is not None else None
    return None if schema is None else ReplySchema(schema, "response_format")


def _of_functions(body: ChatCompletionRequest) -> ReplySchema | None:
    choice = body.tool_choice
    if choice is None or choice in ("auto", "none"):
        return None
    functions = body.called_functions
    if isinstance(choice, FunctionChoice):
        functions = [function for function in functions if function.name == choice.function.name]
    if not functions:
        raise InvalidError("tool_choice: the request has no such function in its tools", param="tool_choice")
    schemas = [function.parameters or {"type": "object"} for function in functions]
    schema: Mapping[str, JsonValue] = schemas[0]
    if len(functions) > 1:
        calls: list[JsonValue] = [_call_schema(function.name, function.parameters) for function in functions]
        schema = {"anyOf": calls}
    return ReplySchema(schema, "tool_choice", tuple(function.name for function in functions))


def _call_schema(name: str, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": {"name": {"enum": [name]}, "arguments": dict(parameters) or {"type": "object"}},
        "required": ["name", "arguments"],
    }


async def answer_as_json(
    run: AsyncGenerator[Piece | Ending], model: ModelPart, schema: ReplySchema, question: str
) -> AsyncGenerator[Piece | Ending]:
    """The reply of a run with its answer put into JSON by the language model. Marks have no place in it: all citations
    stand at its end."""
    async with aclosing(run) as pieces:
        async for piece in pieces:
            if isinstance(piece, Piece):
                yield piece
                continue
            text = f"Question: {question}\n\nAnswer: {piece.message.content}"
            request = ChatRequest(
                messages=(_message(Role.SYSTEM, _instruction(INSTRUCTION, schema)), _message(Role.USER, text)),
                sampling=Sampling(temperature=0.0),
            )
            whole = await _filled(model, request, schema)
            end = _ended(whole, schema)
            length = len(end.message.content or "")
            marks = tuple(mark.at(length, length) for mark in piece.message.annotations or ())
            notices = (*(piece.message.notices or ()), *(end.message.notices or ())) or None
            message = with_changes(
                end.message, {"annotations": marks, "evidence": piece.message.evidence, "notices": notices}
            )
            yield Ending(message, end.finish, piece.usage.plus(end.usage), piece.weights)


async def call_of(model: ModelPart, request: ChatRequest, schema: ReplySchema) -> AsyncGenerator[Piece | Ending]:
    """The bare model's reply to ``request``, which has to be a call of one of the functions of ``schema``."""
    names = ", ".join(schema.functions)
    rule = _message(Role.SYSTEM, _instruction(f"Call {names}: reply with the JSON of the call alone.", schema))
    request = replace(request, messages=(rule, *request.messages), tools=())
    yield Piece()
    yield _ended(await _filled(model, request, schema), schema)


def _ended(whole: Completion, schema: ReplySchema) -> Ending:
    notices = whole.notices or None
    if schema.functions:
        message = AssistantMessage(tool_calls=(schema.call(whole.text),), notices=notices)
        return Ending(message, "tool_calls", usage_of(whole.usage), whole.weights)
    return Ending(AssistantMessage(content=whole.text, notices=notices), "stop", usage_of(whole.usage), whole.weights)


async def _filled(model: ModelPart, request: ChatRequest, schema: ReplySchema) -> Completion:
    """The model's reply, whose text is JSON of the schema; the usage is that of all turns. Raises UpstreamError where
    the second turn is no such JSON either, and NotReadyError where the model is lost."""
    request = replace(request, thinking=False, form=ReplyForm("", schema.schema))
    usage: Counter[str] = Counter()
    problem = ""
    for _ in range(2):
        async with model_reply(model, request) as pieces:
            *_, whole = [piece async for piece in pieces]
        assert isinstance(whole, Completion)
        usage.update(whole.usage)
        text = _json_in(whole.text)
        problem = await asyncio.to_thread(_problem, text, schema.schema)
        if not problem:
            return replace(whole, text=text, usage=dict(usage))
        again = f"That reply is not valid: {problem}. Reply with valid JSON alone."
        request = replace(
            request, messages=(*request.messages, _message(Role.ASSISTANT, whole.text), _message(Role.USER, again))
        )
    raise UpstreamError(f"{schema.param}: the model's reply is not JSON of the schema: {problem}", param=schema.param)


def _instruction(rule: str, schema: ReplySchema) -> str:
    return f"{rule}\n\nJSON schema:\n{json.dumps(schema.schema, ensure_ascii=False)}"


def _message(role: Role, text: str) -> Message:
    return Message(role, (TextPart(text),))


def _json_in(text: str) -> str:
    """The JSON of a reply: without thoughts before it, and without the fence that some models put around it."""
    text = text.rpartition("</think>")[2].strip()
    if text.startswith("```"):
        text = text.split("\n", 1)[-1].rsplit("```", 1)[0]
    return text.strip()


def _problem(text: str, schema: Mapping[str, JsonValue]) -> str:
    """What is wrong with ``text`` as JSON of ``schema``, in words; "" where nothing is."""
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        value = json.loads(text)
    except ValueError as error:
        return f"it is no JSON ({error})"
    try:
        worst = best_match(_validator(schema).iter_errors(value))
    except Unresolvable as missing:
        return f"the schema refers to {missing.ref}, which it does not hold"
    except RecursionError:
        return "the schema refers to itself without end"
    return "" if worst is None else f"{worst.json_path}: {worst.message}"[:LONGEST_PROBLEM]


def _check_schema(schema: ReplySchema) -> None:
    from jsonschema.exceptions import SchemaError

    try:
        _validator({}).check_schema(schema.schema)
    except SchemaError as error:
        raise InvalidError(
            f"{schema.param}: this is no JSON schema: {error.message[:LONGEST_PROBLEM]}", param=schema.param
        ) from error
    if missing := _missing_reference(schema.schema):
        raise InvalidError(
            f"{schema.param}: the schema refers to {missing[:LONGEST_PROBLEM]!r}, which it does not hold, and nothing "
            "is fetched: put that part under $defs",
            param=schema.param,
        )


def _missing_reference(schema: Mapping[str, JsonValue]) -> str:
    """The first reference of ``schema`` to what is not in it; "" where there is none."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resolver = Registry[JsonValue]().resolver_with_root(DRAFT202012.create_resource(dict(schema)))
    waiting: list[JsonValue] = [dict(schema)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += [value for name, value in part.items() if name not in _VALUES]
            reference = part.get("$ref")
            if isinstance(reference, str):
                try:
                    resolver.lookup(reference)
                except Unresolvable:
                    return reference
    return ""


def _validator(schema: Mapping[str, JsonValue]) -> Draft202012Validator:
    """Fetches nothing that a schema refers to, and runs none of its regular expressions, which may take for ever: the
    model's server holds the reply to those."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend
    from referencing import Registry

    plain = extend(Draft202012Validator, {"pattern": None, "patternProperties": None})
    validator: Draft202012Validator = plain(schema, registry=Registry())
    return validator
