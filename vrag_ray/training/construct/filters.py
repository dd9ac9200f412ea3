"""Which constructed runs are worth learning from, and in which mix. Pure functions of what the runs did."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import Field

from vrag_ray.agent.events import (
    BudgetEvent,
    CropEvent,
    ErrorEvent,
    MemorizeEvent,
    SearchDoneEvent,
    SearchEvent,
)
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import Section
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.questions.grounding import grounding_scores
from vrag_ray.training.rewards.reward import well_formed
from vrag_ray.types import PassageKind

Visible = set[str]


class StructureLimits(Section):
    """What a run must keep to. Areas are shares of the whole page, margins included."""

    min_steps: int = Field(default=2, ge=1)
    max_steps: int = Field(default=10, ge=1)
    """The protocol ``graph`` takes two steps a search, ``tags`` one."""
    min_crop_area: float = Field(default=0.001, ge=0, le=1)
    max_crop_area: float = Field(default=0.5, gt=0, le=1)
    min_box_recall: float = Field(default=0.0, ge=0, le=1)
    """Share of the question's gold boxes that the elements cited by the answer must meet; 0 demands nothing. A question
    without gold boxes meets it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run looks like: how many replies it took, and which kinds of action."""

    uid: str
    steps: int
    actions: tuple[str, ...]


def refusal(record: RunRecord, limits: StructureLimits, gold: Sequence[GoldPlace] = ()) -> str:
    """Why nothing should be learnt from a run, in words; "" where all is in order. ``gold`` is that of its question."""
    if not well_formed(record):
        return f"not a search and an answer of its own: {record.status}"
    if record.corrections:
        return "a reply was refused"
    if any(isinstance(event, ErrorEvent) for event in record.events):
        return "something failed on the way"
    if not limits.min_steps <= record.steps <= limits.max_steps:
        return f"{record.steps} steps"
    bad_crop = _bad_crop(record, limits)
    if bad_crop:
        return bad_crop
    scores = grounding_scores(record, gold) if limits.min_box_recall else None
    return "too few gold boxes cited" if scores is not None and scores.recall < limits.min_box_recall else ""


def _bad_crop(record: RunRecord, limits: StructureLimits) -> str:
    fresh: Visible = set()
    remembered: Visible = set()
    for event in record.events:
        if isinstance(event, SearchDoneEvent):
            fresh |= {item.information_id for item in event.results if item.kind is not PassageKind.TEXT}
        elif isinstance(event, MemorizeEvent):
            # Every search but the first is preceded by one, in ``tags`` too: a search that brings nothing new leaves
            # nothing to crop, although older pictures stand further up in the chat.
            fresh = set()
        elif isinstance(event, BudgetEvent):
            remembered = {f"{picture.node_id}#{picture.index + 1}" for picture in event.kept}
        elif isinstance(event, CropEvent):
            if event.source_id not in fresh | remembered:
                return "a crop of what was not in view"
            x0, y0, x1, y1 = event.place.bbox or (0.0, 0.0, 1.0, 1.0)
            area = (x1 - x0) * (y1 - y0)
            if not limits.min_crop_area <= area <= limits.max_crop_area:
                return "a crop of nearly nothing" if area < limits.min_crop_area else "a crop of nearly everything"
            fresh.add(event.place.information_id)
    return ""


def shape_of(uid: str, record: RunRecord) -> Shape:
    """``actions`` are the kinds that occurred, sorted."""
    kinds = {"search": SearchEvent, "crop": CropEvent, "memorize": MemorizeEvent}
    actions = [name for name, kind in kinds.items() if any(isinstance(event, kind) for event in record.events)]
    return Shape(uid, record.steps, tuple(sorted(actions)))


def balanced(shapes: Iterable[Shape], total: int | None = None) -> tuple[str, ...]:
    """At most ``total`` uids, as even as can be over step counts and, within a step count, over mixes of actions.

    Step counts take turns, and so do the mixes of one step count: none is ahead of another by more than one run, unless
    the other has no more runs. Which runs of a mix are taken depends on their uids alone, not on the order in which
    they come. Without ``total`` all are taken.
    """
    mixes: dict[int, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for shape in shapes:
        mixes[shape.steps][shape.actions].append(shape.uid)
    lines = [
        _by_turns([sorted(uids, key=_drawn) for _, uids in sorted(mixes[steps].items())]) for steps in sorted(mixes)
    ]
    every = _by_turns(lines)
    return tuple(every if total is None else every[:total])


def _by_turns(lines: Sequence[Sequence[str]]) -> list[str]:
    """The first of each line, then the second of each, and so on to the end of the longest."""
    longest = max(map(len, lines), default=0)
    return [line[place] for place in range(longest) for line in lines if place < len(line)]


def _drawn(uid: str) -> str:
    return hashlib.sha256(uid.encode()).hexdigest()
