"""The JSON of the HTTP interface, once: the gateway sends and reads these models, and so does the client.

A run's record and its events are not repeated here: they are ``vrag_ray.agent.driver.RunRecord`` and
``vrag_ray.agent.events.Event``, sent as they are.
"""

from __future__ import annotations

import base64
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from vrag_ray.config import EvidenceForm
from vrag_ray.types import HYBRID, DocumentKind, DocumentStatus, MetaValue, PassageKind
from vrag_ray.types import Query as SearchQuery
from vrag_ray.types.elements import ElementKind
from vrag_ray.types.filters import SearchFilter

MAX_PICTURE_BYTES = 8 << 20
"""Of one picture in a data URL, decoded."""
MAX_PICTURE_URL = MAX_PICTURE_BYTES * 4 // 3 * 78 // 76 + 64
"""Characters of such a URL, with the line breaks that ``base64`` writes."""
RUN_ID = r"^[A-Za-z0-9_-]{8,64}$"
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4096)]
CollectionName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
CollectionChoice = CollectionName | Annotated[list[CollectionName], Field(min_length=1, max_length=64)] | None
"""One collection by its name, several that are searched as one, ``*`` for all; None: the service's main one."""


def collection_names(choice: CollectionChoice) -> tuple[str, ...]:
    """The names that were chosen, none for the main collection."""
    return () if choice is None else (choice,) if isinstance(choice, str) else tuple(choice)


def data_url(picture: bytes) -> str:
    """An image file as a request carries it; its format is detected when it is decoded."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


class Request(BaseModel):
    """A request body: unknown names are refused, so that a typo is not a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ResponseBody(BaseModel):
    """A reply body: unknown names are ignored, so that an older client can read a newer server."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class SearchRequest(Request):
    """``POST /v1/search``: ``queries``, or one query of words, of a picture, or of both."""

    query: Query | None = None
    picture: str | None = Field(default=None, max_length=MAX_PICTURE_URL, repr=False)
    """To look for what looks like it, as ``data:image/…;base64,…``, of any format that ingest reads."""
    queries: list[Query] | None = Field(default=None, max_length=256, validate_default=True)
    top_k: int = Field(default=3, ge=1, le=100)
    mode: str = Field(default=HYBRID, min_length=1, max_length=32)
    """``hybrid``, or one leg: ``lexical``, ``text``, or the name of a vector space that the collection has."""
    collection: CollectionChoice = None
    """What to search: see ``CollectionChoice``."""
    filter: SearchFilter | None = None

    @field_validator("queries")
    @classmethod
    def _query_or_queries(cls, queries: list[str] | None, info: ValidationInfo) -> list[str] | None:
        # `query` is absent from the data when it failed its own check: that error stands alone.
        if "query" not in info.data or "picture" not in info.data:
            return queries
        has_content = info.data["query"] is not None or info.data["picture"] is not None
        if queries is None and not has_content:
            raise ValueError("give a query, a picture, or queries")
        if queries is not None and has_content:
            raise ValueError("give queries alone, or one query with or without a picture")
        if queries is not None and not queries:
            raise ValueError("queries is empty: give at least one")
        return queries

    def queries_with(self, picture: bytes | None) -> list[str | SearchQuery]:
        """The queries to answer, in the order of ``SearchResponse.results``; ``picture`` is the request's, decoded."""
        if self.queries is not None:
            return list(self.queries)
        return [SearchQuery(self.query or "", picture)]


class SearchHit(ResponseBody):
    """One result. ``bbox`` is (x0, y0, x1, y1) in fractions of the page, origin top left: around the lines of ``text``,
    None for plain text, clips and text whose place is not known.

    ``region`` is where on the page the query was seen, in the same fractions, as far as a leg of late interaction can
    tell. ``scores`` has each leg's own score, and in hybrid search that of the ``title``. ``duplicate_of`` is the
    passage of an earlier result that looks the same. ``page`` is 1-based; ``label`` is what the document calls it, of
    ``pages``, where that is another name, and ``section`` the titles of its outline that the page stands under.
    ``t_start`` and ``t_end`` are seconds, ``span_start`` and ``span_end`` characters of a text.
    ``image_url`` is a path of the same server and is None where there is nothing to show (text files). ``score`` orders
    the results of one query and compares with no other query's: that of the leg, see ``mode``, or a share in 0..1
    (``hybrid``).
    """

    passage_id: str
    doc_id: str
    title: str
    uri: str
    kind: PassageKind
    page: int | None = None
    label: str = ""
    pages: int = 0
    section: str = ""
    t_start: float | None = None
    t_end: float | None = None
    span_start: int | None = None
    span_end: int | None = None
    score: float
    text: str
    bbox: tuple[float, float, float, float] | None = None
    region: tuple[float, float, float, float] | None = None
    scores: dict[str, float] = {}
    duplicate_of: str = ""
    image_url: str | None = None
    collection: str = ""
    """The collection that it was found in."""


class SearchResponse(ResponseBody):
    """Results per query, in the order of the request, and how complete they are."""

    results: list[list[SearchHit]]
    shards_ok: int
    shards_total: int
    mode: str
    retrieval_profile: str
    """What made the evidence, in words a user may quote, for example the embedder's id or ``lexical only``."""
    collection_version: int
    """Of the first of ``collections``."""
    collections: list[str] = []
    """Those that were searched, by name."""
    notices: list[str] = []
    """What was degraded; a notice about one query of several quotes it."""


class RunRequest(Request):
    """``POST /v1/runs``. Bounds left out are the server's own."""

    question: Query
    agent: str | None = Field(default=None, min_length=1, max_length=64)
    """Who answers; None: the agent that the service begins with, ``default_agent`` of ``GET /v1/models``."""
    max_steps: int | None = Field(default=None, ge=2, le=100)
    top_k: int | None = Field(default=None, ge=1, le=50)
    """Hits of one search."""
    evidence: EvidenceForm | None = None
    """What the model is given of found pages: their picture, their text, or both."""
    picture: str | None = Field(default=None, max_length=MAX_PICTURE_URL, repr=False)
    """That the question is about, as ``data:image/…;base64,…``, of any format that ingest reads."""
    thinking: bool | None = None
    """The model's own thinking phase: on, off, or as the server has it."""
    collection: CollectionChoice = None
    """What to search: see ``CollectionChoice``."""
    filter: SearchFilter | None = None
    deadline_s: float | None = Field(default=None, gt=0, le=3600)
    run_id: str | None = Field(default=None, pattern=RUN_ID)
    """The caller's own id, so that a POST repeated after a lost connection joins the run instead of starting two."""


class RunSummary(ResponseBody):
    """One run in a list, and the body of ``GET /v1/runs/{id}`` (202) while it runs.

    ``status`` is ``running`` or that of ``RunRecord``; ``seconds`` is None while it runs. A stream is resumed after
    ``last_event_id``. ``picture_sha256`` is that of the file of the question's picture, "" where there was none.
    """

    run_id: str
    question: str
    agent: str
    collections: list[str] = []
    """The collections that it searches, by name; none stands for the main one."""
    picture_sha256: str = ""
    status: str
    started_at: str
    """ISO 8601, UTC."""
    seconds: float | None = None
    last_event_id: int = -1


class Rating(StrEnum):
    """What a reader thinks of an answer."""

    UP = "up"
    DOWN = "down"


class Feedback(Request):
    """``PUT /v1/runs/{id}/feedback``. ``answer`` is what would have been right, where the reader knows it."""

    rating: Rating
    comment: str = Field(default="", max_length=4000)
    answer: str = Field(default="", max_length=4000)


class RatedRun(ResponseBody):
    """A run with what a reader said of it. It is kept when the run itself is not any more.

    ``right_answer`` is the reader's, or the run's own where that was liked; empty where nobody knows it. ``file_name``
    and ``pages`` (from 1) are those of the run's first source, where it was liked. ``picture_sha256`` is as in
    ``RunSummary``.
    """

    run_id: str
    question: str
    picture_sha256: str = ""
    agent: str
    rating: Rating
    comment: str
    right_answer: str
    file_name: str = ""
    pages: list[int] = []
    rated_at: str
    """ISO 8601, UTC."""


class RatedRuns(ResponseBody):
    """``GET /v1/feedback``: newest first."""

    runs: list[RatedRun]


class RunsPage(ResponseBody):
    """``GET /v1/runs?limit=``: live runs first, then finished ones, newest first."""

    runs: list[RunSummary]
    total: int


class DocumentInfo(ResponseBody):
    """One document of the collection. ``units`` are pages, clips of a video or pieces of a text."""

    doc_id: str
    uris: list[str]
    title: str
    kind: DocumentKind
    status: DocumentStatus
    units: int
    size_bytes: int
    added_at: str
    error: str = ""
    notices: list[str] = []
    """What of it was left out or guessed; a notice is no error."""
    meta: dict[str, MetaValue] = {}


class PageElement(ResponseBody):
    """An element of a page or a clip, as ``vrag_ray.types.elements.Element``. ``bbox``: x0, y0, x1, y1 in fractions of
    the page or the picture."""

    number: int
    kind: ElementKind
    bbox: tuple[float, float, float, float]
    text: str
    section: str = ""
    table: int | None = None
    t_start: float | None = None
    t_end: float | None = None


class PageElements(ResponseBody):
    """``GET /v1/documents/{doc_id}/pages/{n}/elements``: in reading order; ``notes`` are those of a slide's author, and
    ``continuation`` is how the next page goes on with the last paragraph, at most 60 words. And
    ``GET /v1/documents/{doc_id}/frames/{t}/elements``: of the clip from ``t_start`` to ``t_end``, seconds, which has no
    ``page``, in the order in which they begin.

    ``width`` and ``height`` are those of the page or the picture, in points or pixels.
    """

    doc_id: str
    page: int | None
    t_start: float | None = None
    t_end: float | None = None
    width: float
    height: float
    elements: list[PageElement]
    notes: str = ""
    continuation: str = ""


class DocumentsPage(ResponseBody):
    """``GET /v1/documents?collection=&limit=&offset=``: of one collection, by default of the main one."""

    collection: str = ""
    documents: list[DocumentInfo]
    total: int
    collection_version: int


class DocumentDeleted(ResponseBody):
    """``DELETE /v1/documents/{id}``: the first version of the collection without the document."""

    doc_id: str
    collection: str = ""
    collection_version: int


class JobState(StrEnum):
    """Where an ingest job stands; the last two are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class FileProblem(ResponseBody):
    """A file that could not be read, wholly or in part."""

    name: str
    error: str


class FileNotice(ResponseBody):
    """What of a file was left out or guessed; a notice is no error."""

    name: str
    notice: str


class FileState(ResponseBody):
    """How far one file of an upload is: pages that are read, of those that are to be (None until that is known)."""

    name: str
    done_pages: int = 0
    total_pages: int | None = None


class IngestJob(ResponseBody):
    """``POST /v1/documents`` answers 202 with one; ``url`` is the path to poll.

    ``failed`` means that the job itself broke (``error`` says why). Files that could not be decoded are listed in
    ``errors`` of a job that is ``done``.
    """

    job_id: str
    state: JobState
    url: str
    collection: str = ""
    done_pages: int = 0
    total_pages: int | None = None
    pages_per_s: float | None = None
    eta_s: float | None = None
    files: list[FileState] = []
    """In the order of the upload, while the job runs and after it."""
    documents: list[str] = []
    """Ids of the documents that are searchable now, in the order of the upload."""
    errors: list[FileProblem] = []
    notices: list[FileNotice] = []
    error: str = ""
    collection_version: int | None = None

    @property
    def finished(self) -> bool:
        return self.state in (JobState.DONE, JobState.FAILED)


class ModelName(ResponseBody):
    """One of ``ModelNames``."""

    id: str


class ModelNames(ResponseBody):
    """``GET /v1/models``, as far as the client reads it: the names that requests may have."""

    data: list[ModelName]
    default_agent: str = "extractive"
    """Who answers a run that names no agent; a service that does not say so knows no other default."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(model.id for model in self.data)


class PartState(ResponseBody):
    """Whether one part of the server is ready, and if not, why. ``busy``: it did not answer in time, and may only have
    much to do."""

    ready: bool
    why: str = ""
    busy: bool = False


class ServedCollection(ResponseBody):
    """A collection that a service answers from: what requests call it, its version and number of documents.

    ``ready`` is False while it cannot be searched. ``legs`` are the modes of a search that it has, ``hybrid`` left out.
    ``heatmaps``: one of them is of late interaction and tells where on a page a query is seen. ``embedder_id`` is that
    of the texts, empty where search is lexical only.
    """

    name: str
    ready: bool = True
    version: int
    documents: int
    legs: list[str] = []
    heatmaps: bool = False
    embedder_id: str = ""


class Ready(ResponseBody):
    """``GET /readyz``: 200 when ``ready``, 503 otherwise, with the same body.

    ``collection`` is the main one, that is meant where a request names none; it is None while the retriever does not
    answer. ``collections`` are all, the main one first.
    """

    ready: bool
    collection: ServedCollection | None = None
    collections: list[ServedCollection] = []
    parts: dict[str, PartState]


class ErrorDetail(ResponseBody):
    """What was wrong: ``param`` is the field for a 422, ``code`` a stable name for programs."""

    message: str
    type: str
    param: str | None = None
    code: str


class ErrorBody(ResponseBody):
    """The body of every reply that is not a success."""

    error: ErrorDetail
