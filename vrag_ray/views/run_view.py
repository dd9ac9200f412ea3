"""What a run looks like at any moment of it: events go in, steps and the memory graph come out. Pure.

``RunView`` is a value that ``after`` advances by one event, so that a live run and the replay of an old one are the
same code: the view of moment ``n`` is the view of the first ``n`` events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from vrag_ray.agent.events import (
    AnswerEvent,
    BudgetEvent,
    ContentEvent,
    CorrectionEvent,
    ErrorEvent,
    Event,
    MemorizeEvent,
    PictureRef,
    PruneEvent,
    SearchEvent,
    StartEvent,
    ThinkEvent,
    UsageEvent,
)
from vrag_ray.agent.memory.energy import Allotment
from vrag_ray.agent.memory.graph import ANSWER_ID, ROOT_ID, MemoryGraph, MemoryNode, NodeKind

ItemKey = tuple[str, int]
"""Node id and index (from 0) of a remembered item."""


class StepState(StrEnum):
    """How a step stands."""

    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the policy and what came of it. ``begun`` and ``ended`` are seconds since the run began.

    ``thoughts`` and ``reply`` grow piece by piece; ``events`` are all others, in order.
    """

    number: int
    begun: float
    ended: float
    state: StepState = StepState.RUNNING
    thoughts: str = ""
    reply: str = ""
    events: tuple[Event, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run up to some event. ``graph`` is what the agent remembered by then, ``remembered`` the pixels of its
    pictures.

    ``dropped`` are pictures that were remembered and have no place in the context now. ``answer`` and ``failure`` end
    a run; ``problems`` are errors that did not.
    """

    run_id: str = ""
    question: str = ""
    picture: PictureRef | None = None
    agent: str = ""
    max_steps: int = 0
    steps: tuple[Step, ...] = ()
    graph: MemoryGraph = field(default_factory=lambda: MemoryGraph.start(""))
    remembered: Mapping[ItemKey, Allotment] = field(default_factory=dict)
    dropped: frozenset[ItemKey] = frozenset()
    budget: BudgetEvent | None = None
    answer: AnswerEvent | None = None
    failure: str = ""

    @property
    def over(self) -> bool:
        return self.answer is not None or bool(self.failure)

    @property
    def seconds(self) -> float:
        """Since the run began, at its last event."""
        return self.steps[-1].ended if self.steps else 0.0

    @property
    def usage(self) -> dict[str, int]:
        """What all replies cost together, in the policy's own names."""
        names = dict.fromkeys(name for step in self.steps for name in step.usage)
        return {name: sum(step.usage.get(name, 0) for step in self.steps) for name in names}

    def after(self, event: Event) -> RunView:
        """The view with one more event. Events out of their run's order are a fault of the caller."""
        view = self if isinstance(event, StartEvent) else self._noted(event)
        match event:
            case StartEvent():
                view = replace(
                    view,
                    run_id=event.run_id,
                    question=event.question,
                    picture=event.picture,
                    agent=event.agent,
                    max_steps=event.max_steps,
                    graph=MemoryGraph.start(event.question),
                )
            case SearchEvent():
                graph = view.graph.add_search(event.node_id, event.parent_ids, event.query, may_repeat=True)
                view = replace(view, graph=graph)
            case MemorizeEvent():
                view = replace(view, graph=view.graph.memorize(event.node_id, event.summary, event.items))
            case BudgetEvent():
                allotted = {(picture.node_id, picture.index): picture for picture in event.kept}
                view = replace(view, remembered=allotted, dropped=view.dropped - allotted.keys(), budget=event)
            case PruneEvent():
                gone = {(picture.node_id, picture.index) for picture in event.dropped}
                view = replace(view, dropped=view.dropped | gone)
            case AnswerEvent():
                view = replace(view, answer=event, graph=_answered(view.graph, event))
            case ErrorEvent(terminal=True):
                view = replace(view, failure=event.message)
            case _:
                pass
        return view

    def _noted(self, event: Event) -> RunView:
        """With ``event`` in its step, which it opens if it is the first of it."""
        steps = self.steps
        if not steps or steps[-1].number != event.step:
            if steps and steps[-1].state is StepState.RUNNING:
                steps = (*steps[:-1], replace(steps[-1], state=StepState.DONE))
            begun = steps[-1].ended if steps else 0.0
            steps = (*steps, Step(event.step, begun, event.t))
        last = replace(_within(steps[-1], event), ended=event.t, state=_state(event) or steps[-1].state)
        return replace(self, steps=(*steps[:-1], last))


def view_of(events: Iterable[Event]) -> RunView:
    """The view after all of ``events``."""
    view = RunView()
    for event in events:
        view = view.after(event)
    return view


def moments(events: Sequence[Event]) -> list[int]:
    """Where a replay can stop: how many events stand before each change of the graph, and the whole run at the end."""
    changes = (SearchEvent, MemorizeEvent, BudgetEvent, PruneEvent, AnswerEvent)
    stops = [1, *(at + 1 for at, event in enumerate(events) if isinstance(event, changes)), len(events)]
    return sorted(set(stops)) if events else []


def _within(step: Step, event: Event) -> Step:
    match event:
        case ThinkEvent():
            return replace(step, thoughts=step.thoughts + event.content)
        case ContentEvent():
            return replace(step, reply=step.reply + event.content)
        case UsageEvent():
            added = {name: step.usage.get(name, 0) + count for name, count in event.usage.items()}
            return replace(step, usage={**step.usage, **added})
        case ErrorEvent(terminal=False):
            # The reply began anew: its pieces so far are void.
            return replace(step, thoughts="", reply="", events=(*step.events, event))
        case _:
            return replace(step, events=(*step.events, event))


def _state(event: Event) -> StepState | None:
    """How a step stands after ``event``; None where that changes nothing."""
    match event:
        case AnswerEvent():
            return StepState.DONE
        case ErrorEvent(terminal=True):
            return StepState.FAILED
        case CorrectionEvent():
            return StepState.REFUSED
        case _:
            return None


def _answered(graph: MemoryGraph, event: AnswerEvent) -> MemoryGraph:
    """With the answer below the nodes that it cites; the run's record knows its true parents."""
    known = {node.id for node in graph.nodes}
    parents = tuple(dict.fromkeys(citation.node_id for citation in event.citations if citation.node_id in known))
    node = MemoryNode(id=ANSWER_ID, kind=NodeKind.ANSWER, parents=parents or (ROOT_ID,), summary=event.answer)
    return MemoryGraph(nodes=(*graph.nodes, node))
