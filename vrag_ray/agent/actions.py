"""What a policy can do. Every wire protocol parses to these, and the episode knows nothing else."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _as_list(value: object) -> object:
    """Models write a lone value where a list of one is meant."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (str, int, float)) else value


def _second(value: object) -> object:
    """Models copy a frame's whole stamp, ``<12.0 seconds>``, where its number is meant."""
    match = _NUMBER.search(value) if isinstance(value, str) else None
    return match[0] if match is not None else value


def _numbers(value: object) -> object:
    """Models write ``[12]``, ``"12-15"`` or ``"12, 14"`` where a list of numbers is meant."""
    values = value if isinstance(value, list | tuple) else (value,)
    numbers: list[object] = []
    for entry in values:
        if not isinstance(entry, str):
            numbers += [] if entry is None else [entry]
            continue
        for first, last in _RANGE.findall(entry):
            numbers += range(int(first), min(int(last or first), int(first) + MOST_OF_A_RANGE) + 1)
    return numbers


MOST_OF_A_RANGE = 200
"""Elements of one range in a reply."""
_RANGE = re.compile(r"(\d{1,6})(?:\s*[-\u2013]\s*(\d{1,6}))?")
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
Strings = Annotated[tuple[str, ...], BeforeValidator(_as_list)]
Numbers = Annotated[tuple[int, ...], BeforeValidator(_numbers)]
Seconds = Annotated[tuple[Annotated[float, BeforeValidator(_second)], ...], BeforeValidator(_as_list)]


class _Action(BaseModel):
    # Unknown arguments are ignored: models add some, and refusing them would cost a step.
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class AddSearchNode(_Action):
    """Search for ``query`` and open a node for what is found.

    An empty ``id`` is made from the query, empty ``parent_ids`` mean the node added last.
    """

    name: Literal["add_search_node"] = "add_search_node"
    id: str = ""
    parent_ids: Strings = ()
    query: str


class MemorizeEntry(_Action):
    """The verdict on one sighting. ``quote`` must stand in it word for word; ``elements`` are numbers of its elements,
    where it is shown with them."""

    information_id: str
    is_useful: bool = True
    priority_score: int = Field(default=1, ge=1, le=5)
    key_timestamp: Seconds = ()
    quote: str = ""
    elements: Numbers = ()


class SummarizeAndMemorize(_Action):
    """Close the open node: what was learnt, and what is worth keeping."""

    name: Literal["summarize_and_memorize"] = "summarize_and_memorize"
    summarize: str = ""
    memorize: tuple[MemorizeEntry, ...] = ()


class Crop(_Action):
    """Look closer at ``bbox`` of a sighting (``Picture 1``) or of a remembered item (``<node id>#<number>``).

    ``bbox`` is in the numbers of the protocol's codec, relative to the picture named; an empty ``information_id`` is
    the picture shown last. ``timestamp`` (seconds) names the frame of a video.
    """

    name: Literal["crop"] = "crop"
    information_id: str = ""
    bbox: tuple[float, float, float, float]
    timestamp: float | None = None


class AddAnswerNode(_Action):
    """End the run. ``citations`` names sightings or remembered items, in the order of their numbers in the answer."""

    name: Literal["add_answer_node"] = "add_answer_node"
    parent_ids: Strings = ()
    answer: str
    citations: Strings = ()
    abstain: bool = False


Action = Annotated[AddSearchNode | SummarizeAndMemorize | Crop | AddAnswerNode, Field(discriminator="name")]
