"""Request bodies as OpenAI's clients send them. Names that are not listed are ignored: clients send many."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from vrag_ray.client.schemas import CollectionChoice
from vrag_ray.types.filters import SearchFilter

MOST_TOKENS = 1 << 20
MOST_INPUTS = 2048
"""Texts of one embeddings request, OpenAI's own limit."""


class _Incoming(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


def _listed(value: object) -> object:
    """A single string as a list of it, null as an empty list."""
    return [] if value is None else [value] if isinstance(value, str) else value


def _parts(value: object) -> object:
    """A content in short form, which is a bare string, in its long form."""
    return [{"type": "text", "text": value}] if isinstance(value, str) else _listed(value)


class TextContent(_Incoming):
    """Words."""

    type: Literal["text"]
    text: str


class ImageUrl(_Incoming):
    """``data:image/…;base64,…`` or the id of a document; see ``references``."""

    url: str


class ImageContent(_Incoming):
    """A picture to look at."""

    type: Literal["image_url"]
    image_url: ImageUrl


class FileReference(_Incoming):
    """A document of the collection."""

    file_id: str


class FileContent(_Incoming):
    """The same as a picture whose URL is the id."""

    type: Literal["file"]
    file: FileReference


ContentPart = Annotated[TextContent | ImageContent | FileContent, Field(discriminator="type")]


class FunctionCall(_Incoming):
    """A function and its arguments, which are JSON text."""

    name: str
    arguments: str


class PastCall(_Incoming):
    """A call that the assistant made earlier."""

    function: FunctionCall


class ChatMessage(_Incoming):
    """One message. ``content`` may come as a string or null and is a list of parts here."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[list[ContentPart], BeforeValidator(_parts)] = []
    tool_calls: Annotated[list[PastCall], BeforeValidator(_listed)] = []

    @property
    def text(self) -> str:
        """The words alone."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextContent))


class Function(_Incoming):
    """What the model is told of a function. ``parameters`` is a JSON schema."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    description: str = ""
    parameters: dict[str, JsonValue] = {}


class FunctionTool(_Incoming):
    """A function that the model may call."""

    type: Literal["function"]
    function: Function


class StreamOptions(_Incoming):
    """``include_usage``: one more chunk with the usage and no choices, before the end."""

    include_usage: bool = False


class ResponseFormat(_Incoming):
    """Only plain text: nothing here could hold a model to a schema."""

    type: Literal["text"]


class ChatCompletionRequest(_Incoming):
    """``POST /v1/chat/completions``. The last five fields are this server's own (``extra_body`` in the SDK)."""

    model: str = Field(min_length=1, max_length=256)
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    stop: Annotated[list[str], BeforeValidator(_listed), Field(max_length=16)] = []
    tools: Annotated[list[FunctionTool], BeforeValidator(_listed), Field(max_length=128)] = []
    tool_choice: Literal["auto", "none"] | None = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    response_format: ResponseFormat | None = None
    user: str | None = Field(default=None, max_length=512)
    max_steps: int | None = Field(default=None, ge=2, le=100)
    top_k: int | None = Field(default=None, ge=1, le=50)
    """Hits of one search of an agent."""
    collection: CollectionChoice = None
    """What an agent searches, as in ``RunRequest``."""
    filter: SearchFilter | None = None
    thinking: bool | None = None
    """The model's own thinking phase: on, off, or as the server has it."""


class EmbeddingsRequest(_Incoming):
    """``POST /v1/embeddings``. ``input`` may come as one string and is a list here.

    ``input_type`` is this server's own: whether the texts are searched for or searched in.
    """

    model: str = Field(min_length=1, max_length=256)
    input: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(_listed),
        Field(min_length=1, max_length=MOST_INPUTS),
    ]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)
    input_type: Literal["query", "passage"] = "passage"
