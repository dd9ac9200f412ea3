"""A finished run as one value: JSON both ways, complete enough to be shown, graded and replayed event by event."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import Event, PictureRef, RunStatus, SearchDoneEvent
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.support import CheckedSentence
from vrag_ray.types import VragError
from vrag_ray.types.errors import validation_message


class Timings(BaseModel):
    """Seconds: the whole run, and within it what was spent waiting for the policy, searches and page reads."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    total: float = 0.0
    policy: float = 0.0
    search: float = 0.0
    read: float = 0.0


class RunRecord(BaseModel):
    """What a run did and how it ended. ``answer`` is empty where the run failed (``error``) or was cancelled.

    ``engine_limited``: it failed because its model takes no prompt that long or with that many pictures, although the
    policy had steps and tokens left. That is a fault of the configuration, and says nothing about the policy.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    question: str
    picture: PictureRef | None = None
    agent: str
    status: RunStatus
    answer: str = ""
    abstained: bool = False
    citations: tuple[Citation, ...] = ()
    sentences: tuple[CheckedSentence, ...] = ()
    notices: tuple[str, ...] = ()
    error: str = ""
    engine_limited: bool = False
    graph: MemoryGraph
    steps: int
    corrections: int
    events: tuple[Event, ...]
    timings: Timings
    usage: dict[str, int]

    @classmethod
    def from_json(cls, text: str) -> RunRecord:
        """The inverse of ``to_json``; raises ``VragError`` on text that is not a record."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise VragError(f"not a run record: {where or 'the text'}: {validation_message(first)}") from error

    @property
    def collections(self) -> tuple[str, ...]:
        """Those that its searches covered, each once."""
        searched = (event for event in self.events if isinstance(event, SearchDoneEvent))
        return tuple(dict.fromkeys(name for event in searched for name in event.collections))

    def to_json(self) -> str:
        return self.model_dump_json()
