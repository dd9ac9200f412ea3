"""What happens in a run, as typed values: the same over SSE, in logs, in the UI and in records.

``seq`` counts from 0 within a run and ``t`` is seconds since its start; both are set by the driver. ``step`` counts
the policy's replies. Exactly one ``answer``, or one ``error`` with ``terminal``, ends the events of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.memory.energy import Allotment
from vrag_ray.agent.memory.graph import MemoryItem
from vrag_ray.agent.support import CheckedSentence
from vrag_ray.types import PassageKind
from vrag_ray.types.copies import with_changes


def storable(text: str) -> str:
    """Without lone surrogates, which JSON cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


class RunStatus(StrEnum):
    """How a run ended."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    MAX_STEPS = "max_steps"
    DEADLINE = "deadline"
    ERROR = "error"
    CANCELLED = "cancelled"


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seq: int = 0
    t: float = 0.0
    step: int = 0


class Place(BaseModel):
    """Where something stands. ``bbox`` is in page fractions, None for the whole page.

    ``label`` is what the document calls the page, of ``pages``, where that is not its number.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    information_id: str
    doc_id: str
    title: str
    kind: PassageKind
    page: int | None = None
    label: str = ""
    pages: int = 0
    t_start: float | None = None
    t_end: float | None = None
    bbox: tuple[float, float, float, float] | None = None


class FoundItem(Place):
    """One hit of a search, with the beginning of the passage that matched."""

    uri: str
    score: float
    text: str


class ReadPage(Place):
    """One page whose words were read: how many, or why not."""

    words: int = 0
    characters: int = 0
    error: str = ""


class ItemRef(BaseModel):
    """Item ``index`` (from 0) of memory node ``node_id``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    node_id: str
    index: int


class PictureRef(BaseModel):
    """The picture that a question came with, as records name it: SHA-256 in hex and bytes of the file that was sent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    size: int


class StartEvent(_Event):
    """``picture`` is None for a question in words alone."""

    kind: Literal["start"] = "start"
    run_id: str
    question: str
    agent: str
    max_steps: int
    picture: PictureRef | None = None


class ThinkEvent(_Event):
    """Thoughts, whole or a piece of them as they come: those of one ``step`` put together are its thoughts."""

    kind: Literal["think"] = "think"
    content: str


class ContentEvent(_Event):
    """A piece of a reply as it comes, in the protocol's wire form. The pieces of a step put together are the reply;
    an ``error`` event in between voids those before it, because the reply began anew."""

    kind: Literal["content"] = "content"
    content: str


class SearchEvent(_Event):
    kind: Literal["search"] = "search"
    node_id: str
    parent_ids: tuple[str, ...]
    query: str


class SearchDoneEvent(_Event):
    """``shards_ok`` below ``shards_total`` means that a part of the collection was not searched. ``collections`` are
    those that were searched; ``collection_version`` is that of the first."""

    kind: Literal["search_done"] = "search_done"
    node_id: str
    query: str
    results: tuple[FoundItem, ...]
    shards_ok: int
    shards_total: int
    collection_version: int
    collections: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class ReadEvent(_Event):
    kind: Literal["read"] = "read"
    node_id: str
    pages: tuple[ReadPage, ...]


class CropEvent(_Event):
    """``place`` is the new, closer sighting; ``text`` the words that stand in it."""

    kind: Literal["crop"] = "crop"
    node_id: str
    source_id: str
    place: Place
    text: str


class MemorizeEvent(_Event):
    """``notes`` says what was not taken as given, for example a quote that does not stand on its page."""

    kind: Literal["memorize"] = "memorize"
    node_id: str
    summary: str
    items: tuple[MemoryItem, ...]
    notes: tuple[str, ...] = ()


class PruneEvent(_Event):
    """Remembered pictures that lost their place in the context. They stay in the graph and may come back."""

    kind: Literal["prune"] = "prune"
    dropped: tuple[ItemRef, ...]


class BudgetEvent(_Event):
    """How the pixels of the context are shared out after a memorise.

    ``tokens_before`` is what all remembered pictures cost when they were shown first, ``tokens_after`` what those in
    ``kept`` cost from now on, in visual tokens; both are 0 for a policy that is shown no pictures.
    """

    kind: Literal["budget"] = "budget"
    total_pixels: int
    kept: tuple[Allotment, ...]
    tokens_before: int = 0
    tokens_after: int = 0
    steps_left: int


class UsageEvent(_Event):
    """What one reply cost, in the policy's own names (``prompt_tokens``, …)."""

    kind: Literal["usage"] = "usage"
    usage: Mapping[str, int]


class CorrectionEvent(_Event):
    """A reply that was refused, and the message to the policy. ``count`` is the run's total so far."""

    kind: Literal["correction"] = "correction"
    message: str
    reply: str
    count: int


class ErrorEvent(_Event):
    kind: Literal["error"] = "error"
    message: str
    terminal: bool = False


class MaxStepsEvent(_Event):
    kind: Literal["max_steps"] = "max_steps"
    max_steps: int


class AnswerEvent(_Event):
    """The end of a run. ``notices`` names everything that was degraded on the way; ``sentences`` holds each sentence of
    an answer against what it cites."""

    kind: Literal["answer"] = "answer"
    answer: str
    abstained: bool
    status: RunStatus
    citations: tuple[Citation, ...]
    sentences: tuple[CheckedSentence, ...] = ()
    notices: tuple[str, ...] = ()


Event = Annotated[
    StartEvent
    | ThinkEvent
    | ContentEvent
    | SearchEvent
    | SearchDoneEvent
    | ReadEvent
    | CropEvent
    | MemorizeEvent
    | PruneEvent
    | BudgetEvent
    | UsageEvent
    | CorrectionEvent
    | ErrorEvent
    | MaxStepsEvent
    | AnswerEvent,
    Field(discriminator="kind"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads any event: ``EVENT.validate_json(text)``."""


def stamped(event: Event, seq: int, t: float) -> Event:
    """The same event with its place and time in the run."""
    return with_changes(event, {"seq": seq, "t": t})
