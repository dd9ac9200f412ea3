"""What the gateway needs of the parts behind it. The HTTP layer knows this and nothing of Ray."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    Feedback,
    IngestJob,
    PageElements,
    RatedRun,
    RunRequest,
    RunsPage,
    RunSummary,
)
from vrag_ray.types import Box, Meta, Query, SearchAnswer
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vrag_ray.agent.chat import Delta, QuestionPicture
    from vrag_ray.policies.llm.chat_model import ChatRequest
    from vrag_ray.types import Completion


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One event of a run as it is sent and stored. ``seq`` is the SSE id; ``data`` is one JSON object."""

    seq: int
    kind: str
    data: str


@dataclass(frozen=True, slots=True)
class RetrieverState:
    """How the retriever of one collection stands. ``why`` is set when it is not ``ready``; the rest is 0 then.

    ``collection`` is the name that requests call it. ``embedder_id`` is empty where search is lexical
    only; ``notices`` say why. ``legs`` are the modes that requests may name, besides ``hybrid``; ``heatmaps`` says
    whether one of them tells where on a page a query is seen.
    """

    ready: bool
    collection: str
    why: str = ""
    version: int = 0
    profile: str = ""
    shards_ok: int = 0
    shards_total: int = 0
    documents: int = 0
    notices: tuple[str, ...] = ()
    embedder_id: str = ""
    legs: tuple[str, ...] = ()
    heatmaps: bool = False


Queries = Sequence[str | Query]
"""Of one caller."""


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What searches that travel together have in common. ``collections`` by name, ``*`` for all; none: the main
    collection."""

    top_k: int
    mode: str
    filter: SearchFilter | None
    collections: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        chosen = None if self.filter is None else self.filter.model_dump_json()
        return self.top_k, self.mode, chosen, self.collections


@dataclass(frozen=True, slots=True)
class ProfiledAnswer:
    """A search's answer, and ``profile``: in words, what made the evidence."""

    answer: SearchAnswer
    profile: str


@dataclass(frozen=True, slots=True)
class AgentState:
    """How many runs are live, and how many ended in which way since their replicas started; of all replicas."""

    active: int
    finished: Mapping[str, int] = field(default_factory=dict)
    loop_lag_p99_s: float = 0.0
    """Seconds by which 99 of 100 wake-ups of the slowest replica's event loop were late at most, in the last minute."""


@dataclass(frozen=True, slots=True)
class ServedAgents:
    """The agents that requests may name, and ``default``, which answers where a request names none."""

    names: tuple[str, ...]
    default: str


@dataclass(frozen=True, slots=True)
class FetchedRun:
    """A run as ``GET /v1/runs/{id}`` answers it: JSON of the record, or of a summary while it is ``live``."""

    live: bool
    body: str


@dataclass(frozen=True, slots=True)
class Original:
    """The stored bytes of a document, described."""

    doc_id: str
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One file of a multipart request, already on disk under a name that this service chose."""

    path: Path
    name: str
    doc_id: str


class SearchPart(Protocol):
    """Searching the collections, and the embedder they are searched with."""

    async def search(self, queries: Queries, scope: SearchScope) -> ProfiledAnswer:
        """Raises VragError for names and modes that there are not, and for collections that do not compare."""
        ...

    async def embed(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        """L2-normalised vectors, shape ``(len(texts), dim)``. Raises VragError where there is no embedder."""
        ...

    async def heat(self, query: str, doc_id: str, page: int) -> NDArray[np.float32]:
        """Where ``query`` is seen on a page, [rows, columns]. Raises NotFoundError where no leg can tell."""
        ...

    async def states(self) -> tuple[RetrieverState, ...]:
        """One for each collection, the main one first."""
        ...


class RunPart(Protocol):
    """Runs of agents, under way and finished, and what readers thought of them."""

    async def state(self) -> AgentState: ...

    async def start(self, request: RunRequest, picture: QuestionPicture | None = None) -> str:
        """The id of the run: a new id, or ``request.run_id`` where that run exists with the same question.

        ``picture`` is the one of ``request``, decoded; ``request`` itself comes without it.
        """
        ...

    def events(self, run_id: str, after: int) -> AsyncIterator[LoggedEvent]:
        """Every event above ``after``, until the run ends."""
        ...

    async def summary(self, run_id: str) -> RunSummary: ...
    async def fetch(self, run_id: str) -> FetchedRun: ...
    async def list_runs(self, limit: int) -> RunsPage: ...
    async def cancel(self, run_id: str) -> FetchedRun: ...

    async def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        """Raises NotFoundError for a run that is not here, ConflictError for one that goes on."""
        ...

    async def rating(self, run_id: str) -> RatedRun:
        """Raises NotFoundError for a run that is not here or that nobody rated."""
        ...

    async def rated(self) -> list[RatedRun]: ...


class ModelPart(Protocol):
    """The language model, and the agents that this service offers because of it."""

    async def ready(self) -> bool:
        """False where no model belongs to this service. Raises VragError for one that is not ready."""
        ...

    async def agents(self) -> ServedAgents:
        """The agents that requests may name; without a language model, those that need one are not among them."""
        ...

    def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        """As ``ChatModel.chat``, by the bare language model. Raises InvalidError where there is none."""
        ...


class DocumentPart(Protocol):
    """Documents, their pages as pictures, and uploads on their way into the collection."""

    async def ready(self) -> None:
        """Raises VragError where the collection cannot be read."""
        ...

    async def list_documents(self, limit: int, offset: int, collection: str = "") -> DocumentsPage:
        """Of one collection, by default of the main collection. Raises InvalidError where there is no such
        collection."""
        ...

    async def document_info(self, doc_id: str) -> DocumentInfo: ...

    async def delete_document(self, doc_id: str, collection: str = "") -> DocumentDeleted:
        """Raises ConflictError where several collections have it and none is named."""
        ...

    async def page_png(self, doc_id: str, page: int, dpi: float, box: Box | None) -> bytes: ...
    async def page_elements(self, doc_id: str, page: int) -> PageElements: ...
    async def frame_elements(self, doc_id: str, t: float) -> PageElements: ...
    async def frame_png(self, doc_id: str, t: float) -> bytes: ...
    async def original(self, doc_id: str) -> Original: ...

    def original_bytes(self, doc_id: str, start: int, stop: int) -> AsyncIterator[bytes]:
        """The half-open byte range of the original, in chunks."""
        ...

    async def submit(
        self, job_id: str, files: Sequence[UploadedFile], meta: Meta, collection: str = ""
    ) -> IngestJob: ...
    async def job(self, job_id: str) -> IngestJob: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts behind the gateway. Every method may raise VragError."""

    search: SearchPart
    runs: RunPart
    model: ModelPart
    documents: DocumentPart
