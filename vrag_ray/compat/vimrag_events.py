"""A VimRAG run as the dicts that the original yields, and the sample that it fills in."""

from __future__ import annotations

from collections.abc import Generator, Iterator, MutableMapping

from vrag_ray.agent.events import (
    AnswerEvent,
    ErrorEvent,
    Event,
    MaxStepsEvent,
    MemorizeEvent,
    RunStatus,
    SearchDoneEvent,
)
from vrag_ray.agent.memory.graph import MemoryGraph, MemoryNode, NodeKind
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.hits import search_hit
from vrag_ray.client.search_records import SearchColumns, search_columns
from vrag_ray.compat.http_agent import Happening
from vrag_ray.compat.observers import ModelCall, ModelReply, SearchHits
from vrag_ray.policies.llm.openai_api import wire_messages

Json = dict[str, object]
ANSWERS = (RunStatus.ANSWERED, RunStatus.ABSTAINED)
"""The model's own answer; other endings are events of ``max_steps`` or ``error``."""


class VimragEvents:
    """Reads the happenings of one run and fills ``sample`` in at its end. ``gateway`` is the base URL of its files."""

    def __init__(self, sample: MutableMapping[str, object], gateway: str) -> None:
        self._sample = sample
        self._gateway = gateway
        self._results: list[SearchColumns] = []
        self._call: ModelCall | None = None
        self._chats: list[tuple[ModelCall, str]] = []
        self._reply: str | None = None
        self._answer: AnswerEvent | None = None

    def read(self, happenings: Generator[Happening]) -> Iterator[Json]:
        """One dict an event. An answer comes last, once the sample is whole."""
        for happened in happenings:
            if isinstance(happened, SearchHits):
                self._results.append(search_columns([search_hit(hit) for hit in happened.hits], self._gateway))
            elif isinstance(happened, ModelCall):
                self._call, self._reply = happened, None
            elif isinstance(happened, ModelReply):
                self._reply = happened.completion.text
            elif isinstance(happened, RunRecord):
                self._fill_in(happened)
                if self._answer is not None:
                    yield {**_as_dict(self._answer), "content": self._answer.answer, "sample": self._sample}
            elif isinstance(happened, AnswerEvent):
                self._end_chat()
                self._answer = happened if happened.status in ANSWERS else None
            else:
                if isinstance(happened, MemorizeEvent):
                    self._end_chat()
                yield self._fields_of(happened)

    def _fields_of(self, event: Event) -> Json:
        fields = _as_dict(event)
        if isinstance(event, SearchDoneEvent):
            fields |= {"results": _json(self._results[-1]), "items": fields["results"]}
        elif isinstance(event, ErrorEvent):
            fields["content"] = event.message
        elif isinstance(event, MaxStepsEvent):
            fields["content"] = f"no answer within {event.max_steps} steps"
        return fields

    def _end_chat(self) -> None:
        """The context is about to be built anew: what the model read and wrote so far is one part of the run."""
        if self._call is not None and self._reply is not None:
            self._chats.append((self._call, self._reply))
            self._call = None

    def _fill_in(self, record: RunRecord) -> None:
        self._sample.update(
            record.model_dump(mode="json", include={"citations", "sentences", "status", "usage", "steps", "notices"})
        )
        self._sample["trajectory"] = [
            [*wire_messages(call.messages), {"role": "assistant", "content": reply}] for call, reply in self._chats
        ]
        self._sample["search_results"] = [_json(columns) for columns in self._results]
        self._sample["graph"] = graph_nodes(record.graph)
        self._sample["memory_graph"] = record.graph.model_dump(mode="json")
        if self._answer is not None:
            self._sample["generate"] = self._answer.answer
            # Replies that were acted upon before the answer.
            self._sample["generate_times"] = max(0, record.steps - record.corrections - 1)


def graph_nodes(graph: MemoryGraph) -> list[Json]:
    """The nodes in order of creation, in the original's form, with our ``kind``, ``items`` and the answer's words."""
    return [_graph_node(node) for node in graph.nodes]


def _graph_node(node: MemoryNode) -> Json:
    node_event: Json = {
        "id": node.id,
        "parent_ids": list(node.parents),
        "kind": str(node.kind),
        "query": node.query,
        "summary": node.summary,
        "items": [item.model_dump(mode="json") for item in node.items],
    }
    if node.kind is NodeKind.ROOT:
        node_event |= {"name": "Question", "content": node.query}
    return node_event


def _as_dict(event: Event) -> Json:
    return {"event": event.kind, "type": event.kind, **event.model_dump(mode="json", exclude={"kind"})}


def _json(columns: SearchColumns) -> Json:
    return columns.model_dump(mode="json", exclude_none=True)
