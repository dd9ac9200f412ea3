"""Reply bodies in OpenAI's shapes, with this server's own fields beside them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from vrag_ray.agent.citations import CitedElement
from vrag_ray.agent.support import CheckedSentence
from vrag_ray.types import PassageKind
from vrag_ray.types.copies import with_changes

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class _Outgoing(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Sparse(_Outgoing):
    """Fields without a value are left out: clients add up what the deltas of a stream hold."""

    @model_serializer(mode="wrap")
    def _without_nulls(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        fields: dict[str, object] = handler(self)
        return {name: value for name, value in fields.items() if value is not None}


class CalledFunction(_Outgoing):
    """``arguments`` is JSON text."""

    name: str
    arguments: str


class ToolCall(_Sparse):
    """A function the model wants called. ``index`` is set in streams only."""

    index: int | None = None
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class UrlCitation(_Outgoing):
    """``start_index`` and ``end_index`` are the place of the mark ``[n]`` in the content, in characters."""

    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(_Outgoing):
    """A citation as OpenAI's clients know it."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation

    def at(self, start: int, end: int) -> Annotation:
        """The same citation at another place of the content."""
        moved = with_changes(self.url_citation, {"start_index": start, "end_index": end})
        return Annotation(url_citation=moved)


class Evidence(_Sparse):
    """What a mark ``[number]`` rests on.

    ``page`` counts from 1; ``t_start`` and ``t_end`` are seconds; ``box`` is (x0, y0, x1, y1) in fractions of the page,
    origin top left, ``element`` the paragraph, table or other element around it, ``value_box`` the one figure in it
    that the answer states. ``node`` is the node of the run's memory graph, ``score`` that of the search, ``collection``
    the collection that it is from.
    """

    number: int
    document: str
    title: str
    kind: PassageKind
    page: int | None = None
    t_start: float | None = None
    t_end: float | None = None
    box: tuple[float, float, float, float] | None = None
    element: CitedElement | None = None
    value_box: tuple[float, float, float, float] | None = None
    score: float
    node: str
    quote: str
    url: str
    collection: str = ""


class AssistantMessage(_Sparse):
    """A message of the assistant, or a piece of one."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    annotations: tuple[Annotation, ...] | None = None
    evidence: tuple[Evidence, ...] | None = None
    sentences: tuple[CheckedSentence, ...] | None = None
    """Of an agent's answer: what each cites, and what of it stands in none of that."""
    notices: tuple[str, ...] | None = None
    """What was degraded on the way to an agent's answer, or what the model's server did not take."""


class CachedTokens(_Outgoing):
    """Tokens of the prompt that the model had read before."""

    cached_tokens: int


class Usage(_Sparse):
    """Tokens of all replies that the answer took; zeros where no model spoke."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    prompt_tokens_details: CachedTokens | None = None

    def plus(self, other: Usage) -> Usage:
        """The tokens of both."""
        return with_changes(
            self,
            {
                "prompt_tokens": self.prompt_tokens + other.prompt_tokens,
                "completion_tokens": self.completion_tokens + other.completion_tokens,
                "total_tokens": self.total_tokens + other.total_tokens,
            },
        )


class Message(AssistantMessage):
    """A whole message of the assistant. Its content is null, and not absent, where there is none."""

    @model_serializer(mode="wrap")
    def _with_content(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        fields: dict[str, object] = handler(self)
        return {name: value for name, value in fields.items() if value is not None or name == "content"}


class Choice(_Outgoing):
    index: int = 0
    message: Message
    finish_reason: FinishReason


class ChatCompletion(_Sparse):
    """The reply of ``POST /v1/chat/completions``. ``system_fingerprint`` is the version of the model's weights."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: str | None = None
    choices: tuple[Choice, ...]
    usage: Usage


class ChunkChoice(_Outgoing):
    index: int = 0
    delta: AssistantMessage
    finish_reason: FinishReason | None = None


class ChatCompletionChunk(_Sparse):
    """One event of the stream; ``choices`` is empty in the event with the usage."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str | None = None
    choices: tuple[ChunkChoice, ...]
    usage: Usage | None = None


class Model(_Outgoing):
    """``created`` is not known and therefore 0."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["vrag_ray"] = "vrag_ray"


class ModelList(_Outgoing):
    """``default_agent`` answers a run that names no agent."""

    object: Literal["list"] = "list"
    data: tuple[Model, ...]
    default_agent: str


class Embedding(_Outgoing):
    """Numbers, or the base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(_Outgoing):
    """Words, not tokens: embedders do not tell how they cut a text."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(_Outgoing):
    object: Literal["list"] = "list"
    data: tuple[Embedding, ...]
    model: str
    usage: EmbeddingUsage
