"""Clips and pages of a harbour, and what a run over them says: searches, and times of a clip to remember."""

from __future__ import annotations

from tests.support.agent_pages import Shelf, prose
from vrag_ray.agent.actions import AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.types import Locator, PassageKind

SECONDS = 60.0


def films(count: int, pages: int = 0) -> Shelf:
    """Clips of a minute, 32 frames each, and pages; any search for the word harbour finds them all."""
    shelf = Shelf()
    for number in range(pages):
        shelf.add(f"Page {number}", prose(50, f"harbour harbour page {number}"))
    for number in range(count):
        where = Locator(t_start=0.0, t_end=SECONDS)
        shelf.add(f"Film {number}", text=f"harbour film {number}", kind=PassageKind.CLIP, locator=where)
    return shelf


def search(name: str, parent: str = "root") -> AddSearchNode:
    return AddSearchNode(id=name, parent_ids=(parent,), query=f"harbour {name}")


def keep(*stamps: float) -> SummarizeAndMemorize:
    entry = MemorizeEntry(information_id="Video 1", is_useful=True, priority_score=5, key_timestamp=stamps)
    return SummarizeAndMemorize(summarize="seen", memorize=(entry,))
