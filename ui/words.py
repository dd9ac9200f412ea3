"""Places, times and events in words, as the app shows them. Pure; the result is plain text, not Markdown."""

from __future__ import annotations

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import (
    AnswerEvent,
    CropEvent,
    Event,
    MemorizeEvent,
    Place,
    PruneEvent,
    ReadEvent,
    RunStatus,
    SearchEvent,
)
from vrag_ray.agent.memory.graph import MemoryItem
from vrag_ray.types import named_page

OUTCOMES = {
    RunStatus.ABSTAINED: "No answer: the evidence is too weak",
    RunStatus.MAX_STEPS: "No answer: out of steps",
    RunStatus.DEADLINE: "No answer: out of time",
    RunStatus.ERROR: "The run failed",
    RunStatus.CANCELLED: "Stopped",
}


def clock(seconds: float) -> str:
    """``1:02.5`` for 62.5 seconds."""
    minutes, rest = divmod(max(0.0, seconds), 60)
    return f"{int(minutes)}:{rest:04.1f}"


def where(place: Place | Citation) -> str:
    """``page 4`` or ``1:00.0 to 1:12.5``."""
    return _where(place.page, place.t_start, place.t_end, named=(place.label, place.pages))


def where_item(item: MemoryItem) -> str:
    moment = item.t_frame if item.t_frame is not None else item.locator.t_start
    named = (item.locator.label, item.locator.pages)
    return _where(item.locator.page, moment, item.locator.t_end, named=named)


def step_title(events: tuple[Event, ...]) -> str:
    """What a step did, by the first of its events that says so."""
    return next((title for event in events if (title := _title(event))), "Think")


def _title(event: Event) -> str:
    title = ""
    match event:
        case SearchEvent():
            title = f"Search: {event.query}"
        case CropEvent():
            title = f"Look closer: {event.place.title}, {where(event.place)}"
        case MemorizeEvent():
            title = "Remember" if event.items else "Remember: nothing useful"
        case PruneEvent():
            title = "Prune memory"
        case ReadEvent():
            title = "Read"
        case AnswerEvent():
            title = {RunStatus.ANSWERED: "Answer", RunStatus.ABSTAINED: "Abstain"}.get(event.status, "End")
        case _:
            pass
    return title


def _where(page: int | None, start: float | None, end: float | None, *, named: tuple[str, int]) -> str:
    if page is not None:
        return named_page(page, *named)
    if start is not None and end is not None and end > start:
        return f"{clock(start)} to {clock(end)}"
    return clock(start) if start is not None else "text"
