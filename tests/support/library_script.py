"""A script over the library of ``agent_pages``: search for the table of sales, memorise it, answer with it."""

from __future__ import annotations

from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize

SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="North units region")
KEEP = SummarizeAndMemorize(
    summarize="the table",
    memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4, quote="North 12 15 18"),),
)
ANSWER = AddAnswerNode(parent_ids=("a",), answer="15 [1]", citations=("a#1",))
