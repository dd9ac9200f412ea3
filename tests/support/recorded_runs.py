"""Runs over the library of ``agent_pages`` from given replies, and the actions that they are put together of."""

from __future__ import annotations

from tests.support.agent_pages import library
from tests.support.scripted_agent import Watcher, run_to_end
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import AgentConfig

SALES = AddSearchNode(id="sales", parent_ids=("root",), query="units sold by region")
MUSEUM = AddSearchNode(id="museum", parent_ids=("root",), query="visitors of the boat museum")
KEEP = SummarizeAndMemorize(
    summarize="", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=3),)
)
CLOSER = Crop(information_id="Picture 1", bbox=(10, 10, 200, 200))
ANSWER = AddAnswerNode(parent_ids=("sales",), answer="15")


def record_of(*lines: Action | str, config: AgentConfig | None = None) -> RunRecord:
    run, _ = run_to_end(Watcher(*lines), library(), config=config)
    return run.record()
