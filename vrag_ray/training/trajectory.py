"""What a rollout leaves behind: every reply with the tokens and pictures it was sampled from, and how the run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vrag_ray.agent.events import (
    AnswerEvent,
    CorrectionEvent,
    CropEvent,
    Event,
    MemorizeEvent,
    RunStatus,
    SearchEvent,
)
from vrag_ray.agent.memory.graph import ANSWER_ID
from vrag_ray.agent.record import RunRecord
from vrag_ray.training.rewards.reward import Reward


@dataclass(frozen=True, slots=True)
class Call:
    """One reply of the policy, exactly as it was sampled.

    ``prompt_ids`` is the prompt as the model read it: each picture's image token once for every visual token.
    ``images`` are the pictures as PNG, in order. ``completion_ids`` ends with the end-of-turn token unless the reply
    was cut off (``finish`` ``length``). ``logprobs`` are the sampler's, one a completion token; empty for an expert.
    ``weights`` names the version of the weights that spoke.
    """

    prompt_ids: tuple[int, ...]
    images: tuple[bytes, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...] = ()
    text: str = ""
    finish: str = "stop"
    weights: str = ""

    @property
    def tokens(self) -> int:
        return len(self.prompt_ids) + len(self.completion_ids)


@dataclass(frozen=True, slots=True)
class Segment:
    """The calls of one node of the memory graph, in order; ``node`` is None for a reply that was refused."""

    node: str | None
    calls: tuple[Call, ...]

    @property
    def completion_tokens(self) -> int:
        return sum(len(call.completion_ids) for call in self.calls)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run of one question. ``sample`` numbers the runs of its group, from 0.

    ``nodes`` has the node of each call. ``found``: by search node whose results held gold pages,
    the numbers of those (from 0) among the ``gold`` ones of the question; ``cited``: the same of search nodes from
    which the answer cites an element that meets a gold box. ``kind`` and ``data_source`` are those of the example.
    """

    uid: str
    sample: int
    calls: tuple[Call, ...]
    nodes: tuple[str | None, ...]
    record: RunRecord
    reward: Reward
    found: Mapping[str, frozenset[int]] = field(default_factory=dict)
    gold: int = 0
    kind: str = ""
    data_source: str = ""
    cited: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def engine_limited(self) -> bool:
        """Whether the engine's limits cut the run short: it has no grade (``UNGRADED``), and teaches nothing."""
        return self.record.engine_limited

    @property
    def valuable(self) -> frozenset[str]:
        """The search nodes whose results held a gold page: GGPO's R_val."""
        return frozenset(self.found)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """One for each node, in the order of its first call; every refused reply is one of its own."""
        by_node: dict[str | int, list[Call]] = {}
        for number, (node, call) in enumerate(zip(self.nodes, self.calls, strict=True)):
            by_node.setdefault(number if node is None else node, []).append(call)
        return tuple(Segment(node if isinstance(node, str) else None, tuple(calls)) for node, calls in by_node.items())

    @property
    def parents(self) -> Mapping[str, Sequence[str]]:
        """The memory graph as the policy declared it: parents by node, in order of creation."""
        return {node.id: list(node.parents) for node in self.record.graph.nodes}

    @property
    def answer_id(self) -> str | None:
        """The node of an answer that the policy gave itself."""
        return ANSWER_ID if ANSWER_ID in self.nodes else None


def nodes_of_calls(events: Sequence[Event], calls: int) -> tuple[str | None, ...]:
    """The node of each of the first ``calls`` replies, from the events of the run.

    ``step`` of an event counts replies from 1. A reply that was refused, and one that the run did not live to use,
    belongs to none.
    """
    nodes: list[str | None] = [None] * calls
    for event in events:
        place = event.step - 1
        if not 0 <= place < calls:
            continue
        if isinstance(event, CorrectionEvent):
            nodes[place] = None
        elif isinstance(event, SearchEvent | CropEvent):
            nodes[place] = event.node_id
        elif isinstance(event, MemorizeEvent) and nodes[place] is None:
            # A search or an answer may settle the node before it: the reply is then for the new one.
            nodes[place] = event.node_id
        elif isinstance(event, AnswerEvent) and event.status in (RunStatus.ANSWERED, RunStatus.ABSTAINED):
            # In any other case the run answered in the policy's place: its last reply stays what it was.
            nodes[place] = ANSWER_ID
    return tuple(nodes)
