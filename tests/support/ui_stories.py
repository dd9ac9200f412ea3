"""Events of runs that never were: one of many searches, for pictures of graphs and their budgets."""

from __future__ import annotations

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import (
    AnswerEvent,
    BudgetEvent,
    ContentEvent,
    CorrectionEvent,
    Event,
    FoundItem,
    ItemRef,
    MemorizeEvent,
    PruneEvent,
    RunStatus,
    SearchDoneEvent,
    SearchEvent,
    StartEvent,
    ThinkEvent,
    UsageEvent,
    stamped,
)
from vrag_ray.agent.memory.energy import Allotment
from vrag_ray.agent.memory.graph import MemoryItem
from vrag_ray.agent.support import Source, checked
from vrag_ray.types import Box, Locator, PassageKind

DOC = "ab" * 32


def item(page: int, *, title: str = "report", box: Box | None = None) -> MemoryItem:
    return MemoryItem(
        doc_id=DOC,
        locator=Locator(page=page),
        kind=PassageKind.PAGE,
        box=box,
        priority=4,
        title=title,
        uri="report.pdf",
    )


def found_item(page: int, title: str = "report") -> FoundItem:
    return FoundItem(
        information_id=f"Picture {page}",
        doc_id=DOC,
        title=title,
        kind=PassageKind.PAGE,
        page=page,
        uri="report.pdf",
        score=0.5,
        text="x",
    )


def citation(number: int, node_id: str, page: int = 1) -> Citation:
    return Citation(
        number=number,
        doc_id=DOC,
        title="report",
        uri="report.pdf",
        kind=PassageKind.PAGE,
        page=page,
        bbox=(0.1, 0.2, 0.4, 0.3),
        quote="a quote",
        score=0.5,
        node_id=node_id,
    )


def story(searches: int = 2, *, run_id: str = "run-0001", title: str = "report", answer: str = "42 [1]") -> list[Event]:
    """``searches`` searches, each below the one before, each remembering a page; the first picture is dropped last."""
    events: list[Event] = [StartEvent(run_id=run_id, question="How many?", agent="vimrag", max_steps=40)]
    parent = "root"
    for number in range(1, searches + 1):
        node = f"n{number}"
        step = 2 * number - 1
        events += [
            ThinkEvent(step=step, content="I should "),
            ThinkEvent(step=step, content="search."),
            UsageEvent(step=step, usage={"prompt_tokens": 100, "completion_tokens": 10}),
            SearchEvent(step=step, node_id=node, parent_ids=(parent,), query=f"query {number}"),
            SearchDoneEvent(
                step=step,
                node_id=node,
                query=f"query {number}",
                results=(found_item(number, title),),
                shards_ok=1,
                shards_total=1,
                collection_version=1,
            ),
            ContentEvent(step=step + 1, content="{"),
            MemorizeEvent(step=step + 1, node_id=node, summary=f"learnt {number}", items=(item(number, title=title),)),
            BudgetEvent(
                step=step + 1,
                total_pixels=1_000_000,
                kept=tuple(
                    Allotment(node_id=f"n{step}", index=0, energy=0.5, pixels=1_000_000 // number)
                    for step in range(1, number + 1)
                ),
                steps_left=40 - step,
            ),
        ]
        parent = node
    last = 2 * searches + 1
    allotments = tuple(
        Allotment(node_id=f"n{step}", index=0, energy=0.5, pixels=10_000) for step in range(2, searches + 1)
    )
    events += [
        CorrectionEvent(step=last, message="give parent_ids", reply="?", count=1),
        PruneEvent(step=last + 1, dropped=(ItemRef(node_id="n1", index=0),)),
        BudgetEvent(step=last + 1, total_pixels=1_000_000, kept=allotments, steps_left=2),
        AnswerEvent(
            step=last + 1,
            answer=answer,
            abstained=False,
            status=RunStatus.ANSWERED,
            citations=(citation(1, f"n{searches}", searches),),
            sentences=checked(answer, {1: Source("Table of units: 42 in all, 40 sold", "42 in all, 40 sold")}),
        ),
    ]
    return [stamped(event, seq, seq / 10) for seq, event in enumerate(events)]
