"""A run's events in words, for clients that show a model's thoughts. Pure."""

from __future__ import annotations

from vrag_ray.agent.events import (
    CorrectionEvent,
    CropEvent,
    ErrorEvent,
    Event,
    MaxStepsEvent,
    MemorizeEvent,
    Place,
    PruneEvent,
    SearchDoneEvent,
    SearchEvent,
    ThinkEvent,
)

MOST_RESULTS = 5


class Narrator:
    """Thoughts as they are; everything else on a line of its own. Replies in the making are left out: they may fail."""

    def __init__(self) -> None:
        self._in_line = False
        self._step = 0

    def told(self, event: Event) -> str:
        """What to add to the reasoning; empty for an event without a word for the reader."""
        if isinstance(event, ThinkEvent):
            begin = "\n" if self._in_line and event.step != self._step else ""
            self._in_line, self._step = not event.content.endswith("\n"), event.step
            return begin + event.content
        line = _line(event)
        if not line:
            return ""
        begin = "\n" if self._in_line else ""
        self._in_line = False
        return f"{begin}{line}\n"


def _line(event: Event) -> str:
    line = ""
    match event:
        case SearchEvent():
            line = f"Search: {event.query}"
        case SearchDoneEvent():
            line = "Found: " + ("; ".join(where(place) for place in event.results[:MOST_RESULTS]) or "nothing")
        case CropEvent():
            line = f"Look closer: {where(event.place)}"
        case MemorizeEvent():
            kept = f"{len(event.items)} item{'' if len(event.items) == 1 else 's'}"
            line = f"Memorise: {event.summary} ({kept})" if event.summary else f"Memorise: {kept}"
        case PruneEvent():
            line = f"Leave out of view: {len(event.dropped)} remembered"
        case CorrectionEvent():
            line = f"Correction: {event.message}"
        case ErrorEvent():
            line = f"Trouble: {event.message}"
        case MaxStepsEvent():
            line = f"All {event.max_steps} steps are used up."
    return line


def where(place: Place) -> str:
    """Title, and the page or the seconds."""
    if place.page is not None:
        return f"{place.title}, page {place.page}"
    if place.t_start is not None and place.t_end is not None:
        return f"{place.title}, {place.t_start:.1f}-{place.t_end:.1f} s"
    return place.title
