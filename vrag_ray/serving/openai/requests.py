"""Request bodies as OpenAI's clients send them. Names that are not listed are ignored: clients send many."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from vrag_ray.client.schemas import CollectionChoice
from vrag_ray.serving.openai.models import POLICY
from vrag_ray.types import InvalidError
from vrag_ray.types.filters import SearchFilter

MOST_TOKENS = 1 << 20
MOST_TOOLS = 128
MOST_INPUTS = 2048
"""Texts of one embeddings request, OpenAI's own limit."""


class Incoming(BaseModel):
    """Fields that are not declared are ignored. Null is no value, where a field need not have one."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_no_value(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = cls.model_fields
        needed = {field.alias or name for name, field in fields.items() if field.is_required()}
        return {name: item for name, item in value.items() if item is not None or name in needed}


class Body(Incoming):
    """A whole request. Text that is no Unicode (half of a surrogate pair, as a cut emoji leaves it) is refused here."""

    @model_validator(mode="before")
    @classmethod
    def _is_unicode(cls, value: object) -> object:
        broken = _broken_text(value)
        if broken is not None:
            raise InvalidError(
                f"{broken}: the text has half of a surrogate pair, which is no Unicode: cut texts between characters",
                param=broken,
            )
        return value


def _broken_text(body: object) -> str | None:
    """Where in a JSON value a text stands that UTF-8 cannot write; None where there is none. No recursion: a body may
    be nested as deep as it likes."""
    waiting: list[tuple[str, object]] = [("", body)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                return place
            continue
        inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        waiting.extend((f"{place}.{name}" if place else str(name), item) for name, item in inner)
    return None


def _positive(value: object) -> object:
    """Clients write "no limit" and "no value" as 0 or -1."""
    return None if isinstance(value, int | float) and value <= 0 else value


def _natural(value: object) -> object:
    return None if isinstance(value, int) and value < 0 else value


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


def _or_nothing(value: object) -> object:
    return "" if value is None else value


def _or_no_arguments(value: object) -> object:
    return "{}" if value is None else value


def _switch(value: object) -> object:
    """Whether to think, as Anthropic's clients and LiteLLM write it; ``adaptive`` leaves it to the model."""
    match value:
        case {"type": "enabled" | "disabled" | "adaptive" | "auto" as kind}:
            return {"enabled": True, "disabled": False}.get(kind)
        case _:
            return value


def _url(value: object) -> object:
    """A URL that stands where an object with a URL belongs."""
    return {"url": value} if isinstance(value, str) else value


def listed(value: object) -> object:
    """A single string as a list of it, null as an empty list."""
    return [] if value is None else [value] if isinstance(value, str) else value


def _parts(value: object) -> object:
    """A content in short form, which is a bare string, in its long form; parts under other names of the same."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [_part(part) for part in value] if isinstance(value, list) else listed(value)


def _part(value: object) -> object:
    """Thoughts of an earlier reply are nobody's to read, and are replaced by no words, as the places of parts count."""
    match value:
        case {"type": "input_text" | "output_text", "text": text} | {"type": "refusal", "refusal": text}:
            return {"type": "text", "text": text}
        case {"type": "thinking" | "redacted_thinking" | "reasoning"}:
            return _NO_WORDS
        case _:
            return value


_NO_WORDS = {"type": "text", "text": ""}


def _can_be_read(part: object) -> bool:
    match _part(part):
        case {"type": "text"} | {"type": "image_url", "image_url": str() | {"url": str()}}:
            return True
        case {"type": "file", "file": {"file_id": str(file_id)}}:
            return bool(file_id)
        case _:
            return False


def _as_role(value: object) -> object:
    """What older clients call a result."""
    return "tool" if value == "function" else value


def _call(value: object) -> object:
    """A call of a tool that takes a text, as one of a function; arguments that came as an object, as JSON text."""
    match value:
        case {"custom": {"name": name, "input": text}, **more}:
            return {"id": more.get("id"), "function": {"name": name, "arguments": text}}
        case {"function": {"name": name, "arguments": dict(arguments)}, **more}:
            return {"id": more.get("id"), "function": {"name": name, "arguments": json.dumps(arguments)}}
        case _:
            return value


def _name_of(tool: object) -> str | None:
    match tool:
        case {"function": {"name": str(name)}}:
            return name
        case _:
            return None


Thinking = Annotated[bool | None, BeforeValidator(_switch)]


class TextContent(Incoming):
    """Words."""

    type: Literal["text"]
    text: Annotated[str, BeforeValidator(_or_nothing)]


class ImageUrl(Incoming):
    """``data:image/…;base64,…`` or the id of a document; see ``references``."""

    url: str


class ImageContent(Incoming):
    """A picture to look at."""

    type: Literal["image_url"]
    image_url: Annotated[ImageUrl, BeforeValidator(_url)]


class FileReference(Incoming):
    """A document of the collection."""

    file_id: str

    @model_validator(mode="before")
    @classmethod
    def _has_an_id(cls, value: object) -> object:
        if isinstance(value, Mapping) and "file_data" in value and not value.get("file_id"):
            raise ValueError("a chat takes no bytes of a file: send it to /v1/documents, and its file_id here")
        return value


class FileContent(Incoming):
    """The same as a picture whose URL is the id."""

    type: Literal["file"]
    file: FileReference


ContentPart = Annotated[TextContent | ImageContent | FileContent, Field(discriminator="type")]


class FunctionCall(Incoming):
    """A function and its arguments, which are JSON text."""

    name: str
    arguments: Annotated[str, BeforeValidator(_or_no_arguments)]


class PastCall(Incoming):
    """A call that the assistant made earlier."""

    id: Annotated[str, BeforeValidator(_or_nothing)] = ""
    function: FunctionCall


class ChatMessage(Incoming):
    """One message. ``content`` may come as a string or null and is a list of parts here."""

    role: Annotated[Literal["system", "developer", "user", "assistant", "tool"], BeforeValidator(_as_role)]
    content: Annotated[list[ContentPart], BeforeValidator(_parts)] = []
    tool_calls: Annotated[list[Annotated[PastCall, BeforeValidator(_call)]], BeforeValidator(listed)] = []
    tool_call_id: Annotated[str, BeforeValidator(_or_nothing)] = ""
    """Of a tool's message: the id of the call whose result it is."""

    @property
    def text(self) -> str:
        """The words alone."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextContent) and part.text)


class Function(Incoming):
    """The description of a function for the model. ``parameters`` is a JSON schema."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    description: str = ""
    parameters: dict[str, JsonValue] = {}


def _tool(value: object) -> object:
    """A tool by its function alone; one of another kind, as a search of the web, by nothing."""
    if not isinstance(value, Mapping):
        return value
    is_function = value.get("type", "function" if "function" in value else "") == "function"
    return {"function": value.get("function") or {}} if is_function else {}


class Tool(Incoming):
    """What a model may call: a function, or what this server does not have, with None here."""

    function: Function | None = None


class NamedFunction(Incoming):
    name: str


class FunctionChoice(Incoming):
    """The function that the model must call."""

    type: Literal["function"]
    function: NamedFunction


class StreamOptions(Incoming):
    """``include_usage``: one more chunk with the usage and no choices, before the end."""

    include_usage: bool = False


class JsonSchema(Incoming):
    """``schema`` is the JSON schema of the whole reply."""

    name: str = "reply"
    description: str = ""
    schema_: dict[str, JsonValue] = Field(default={}, alias="schema")


class ResponseFormat(Incoming):
    """What the reply is: words, any JSON object, or JSON of a schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _has_a_schema(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("response_format json_schema needs the field json_schema with a schema")
        return self

    @property
    def schema_of_reply(self) -> dict[str, JsonValue] | None:
        """The JSON schema that the reply has to meet; None for words."""
        if self.json_schema is not None and self.type == "json_schema":
            return self.json_schema.schema_
        return {"type": "object"} if self.type == "json_object" else None


def _is_of_user(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "user"


def _readable(message: object) -> object:
    """A message whose parts are all of types that are read; others have become parts without words."""
    match message:
        case {"content": list(parts), **others}:
            return {**others, "content": [part if _can_be_read(part) else _NO_WORDS for part in parts]}
        case _:
            return message


class ChatCompletionRequest(Body):
    """``POST /v1/chat/completions``. The last five fields are this server's own (``extra_body`` in the SDK)."""

    model: str = Field(min_length=1, max_length=256)
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[Annotated[int, Field(le=MOST_TOKENS)] | None, BeforeValidator(_positive)] = None
    max_completion_tokens: Annotated[Annotated[int, Field(le=MOST_TOKENS)] | None, BeforeValidator(_positive)] = None
    temperature: float | None = Field(default=None, ge=0)
    top_p: Annotated[Annotated[float, Field(le=1)] | None, BeforeValidator(_positive)] = None
    seed: Annotated[Annotated[int, Field(lt=1 << 63)] | None, BeforeValidator(_natural)] = None
    stop: Annotated[list[str], BeforeValidator(listed), Field(max_length=16)] = []
    tools: Annotated[
        list[Annotated[Tool, BeforeValidator(_tool)]], BeforeValidator(listed), Field(max_length=MOST_TOOLS)
    ] = []
    functions: object = None
    """What older clients send for ``tools``: read by nothing here, and agents say so."""
    tool_choice: Literal["auto", "none", "required"] | FunctionChoice | None = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    response_format: ResponseFormat | None = None
    user: Annotated[Annotated[str, Field(max_length=512)] | None, BeforeValidator(_as_text)] = None
    max_steps: int | None = Field(default=None, ge=2, le=100)
    top_k: int | None = Field(default=None, ge=1, le=50)
    """Hits of one search of an agent."""
    collection: CollectionChoice = None
    """What an agent searches, as in ``RunRequest``."""
    filter: SearchFilter | None = None
    thinking: Thinking = None
    """The model's own thinking phase: on, off, or as the server has it."""

    @field_validator("max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop", "user", mode="wrap")
    @classmethod
    def _without_effect(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
        """What agents do not look at cannot be wrong for them."""
        try:
            return handler(value)
        except ValidationError:
            if info.data.get("model") == POLICY:
                raise
            return cls.model_fields[info.field_name or ""].default

    @model_validator(mode="before")
    @classmethod
    def _tools_without_effect(cls, value: object) -> object:
        """Agents leave out tools that they need not call, whatever is in them, and say so."""
        if not isinstance(value, Mapping) or value.get("model") == POLICY:
            return value
        tools = value.get("tools")
        if not isinstance(tools, list) or value.get("tool_choice") not in (None, "auto", "none"):
            return value
        return {**value, "tools": [{} if isinstance(tool, Mapping) else tool for tool in tools[:MOST_TOOLS]]}

    @model_validator(mode="before")
    @classmethod
    def _earlier_messages(cls, value: object) -> object:
        """Agents read no more than the words and documents of messages before the question: what else is there, as
        sound, must not end the chat."""
        if not isinstance(value, Mapping) or value.get("model") == POLICY:
            return value
        messages = value.get("messages")
        if not isinstance(messages, list):
            return value
        last = max((place for place, each in enumerate(messages) if _is_of_user(each)), default=0)
        return {**value, "messages": [*map(_readable, messages[:last]), *messages[last:]]}

    @model_validator(mode="before")
    @classmethod
    def _allowed_tools(cls, value: object) -> object:
        """A choice among some of the tools, as a choice among all where there are no others."""
        match value:
            case {
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(allowed)}},
                "tools": list(tools),
                **others,
            }:
                names = {_name_of(tool) for tool in allowed}
                return {**others, "tools": [tool for tool in tools if _name_of(tool) in names], "tool_choice": mode}
            case _:
                return value

    @property
    def called_functions(self) -> list[Function]:
        """The functions among ``tools``."""
        return [tool.function for tool in self.tools if tool.function is not None]


class EmbeddingsRequest(Body):
    """``POST /v1/embeddings``. ``input`` may come as one string and is a list here.

    ``input_type`` is this server's own: whether the texts are searched for or searched in.
    """

    @field_validator("input", mode="before")
    @classmethod
    def _is_text(cls, value: object) -> object:
        first = value[0] if isinstance(value, list) and value else None
        if isinstance(first, int | list):
            raise ValueError(  # noqa: TRY004  pydantic reports no TypeError
                "token ids are of another model's tokenizer: send texts (LangChain's OpenAIEmbeddings does with "
                "check_embedding_ctx_length=False)"
            )
        return value

    model: str = Field(min_length=1, max_length=256)
    input: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(listed),
        Field(min_length=1, max_length=MOST_INPUTS),
    ]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)
    input_type: Literal["query", "passage"] = "passage"
