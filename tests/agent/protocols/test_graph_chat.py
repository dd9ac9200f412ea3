"""The ``graph`` protocol with a model that sees: what it is shown, when, and in how many pixels."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.agent_pages import Shelf, library, put
from tests.support.scripted_agent import Watcher, pictures_in, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import Message, Role
from vrag_ray.agent.events import BudgetEvent, CorrectionEvent, CropEvent, PruneEvent, RunStatus
from vrag_ray.agent.memory.energy import energies, pixel_budgets, strongest
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.graph_chat import ANSWER_NOW
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.types import FamilyName, PassageKind

SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region")
KEEP = SummarizeAndMemorize(
    summarize="North sold 15", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4),)
)
ANSWER = AddAnswerNode(parent_ids=("a",), answer="15 [1]", citations=("a#1",))


def roles(chat: tuple[Message, ...]) -> list[Role]:
    return [message.role for message in chat]


def test_the_context_is_rebuilt_from_the_graph_after_a_memorise() -> None:
    policy = Watcher(SEARCH, KEEP, ANSWER)
    run_to_end(policy, library())
    first, after_search, rebuilt = policy.chats
    assert roles(first) == [Role.SYSTEM, Role.USER]
    assert roles(after_search) == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER]
    assert after_search[:2] == first, "earlier messages must not change, or no server can reuse it"
    assert "Picture 1 (Annual report, page 1)" in after_search[-1].text
    assert roles(rebuilt) == [Role.SYSTEM, Role.USER]
    memory = rebuilt[1].text
    graph = json.loads(memory[memory.index("[{") : memory.index("\nRemembered")])
    assert [node["id"] for node in graph] == ["root", "a"]
    assert graph[1]["summary"] == "North sold 15"
    assert list(graph[1]["items"]) == ["a#1"]
    assert "Remembered a#1:" in memory


@pytest.mark.parametrize("family", list(FamilyName))
def test_budgets_resize_what_is_remembered_to_whole_patches(family: FamilyName) -> None:
    protocol = GraphProtocol(family=FAMILIES[family])
    policy = Watcher(SEARCH, KEEP, ANSWER, protocol=protocol)
    config = AgentConfig(memory_pixels=100_000)
    _, events = run_to_end(policy, library(), config=config)
    patch = FAMILIES[family].patch
    [(width, height)] = pictures_in(policy.chats[2])
    assert width * height <= 100_000
    assert width % patch == height % patch == 0
    [(full_width, full_height)] = pictures_in(policy.chats[1])[:1]
    assert full_width * full_height <= protocol.picture_pixels
    [budget] = [event for event in events if isinstance(event, BudgetEvent)]
    assert budget.tokens_before == full_width * full_height // patch**2
    assert budget.tokens_after == width * height // patch**2


def test_only_the_strongest_pictures_stay_in_view_each_within_its_share() -> None:
    shelf = Shelf()
    for number in range(4):
        shelf.add(f"page {number}", put(50, 50, f"topic{number} harbour"))
    turns: list[AddSearchNode | SummarizeAndMemorize | AddAnswerNode] = []
    for number, priority in enumerate((5, 1, 3, 4)):
        turns.append(AddSearchNode(id=f"n{number}", parent_ids=("root",), query=f"topic{number}"))
        entry = MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=priority)
        turns.append(SummarizeAndMemorize(summarize="", memorize=(entry,)))
    config = AgentConfig(memory_top_k=2, memory_pixels=400_000, max_steps=20)
    policy = Watcher(*turns, AddAnswerNode(parent_ids=("n0",), answer="x"))
    run, events = run_to_end(policy, shelf, config=config)
    graph = run.record().graph
    allotments = pixel_budgets(strongest(energies(policy.prompts[-1].graph, decay=0.1, feedback=0.3), 2), 400_000)
    sizes = pictures_in(policy.chats[-1])
    shares = {(allotment.node_id, allotment.index): allotment.pixels for allotment in allotments}
    assert len(sizes) == 2
    in_order = [shares[node.id, 0] for node in graph.nodes if (node.id, 0) in shares]
    assert all(w * h <= pixels for (w, h), pixels in zip(sizes, in_order, strict=True))
    dropped = [
        (item.node_id, item.index) for event in events if isinstance(event, PruneEvent) for item in event.dropped
    ]
    assert set(dropped) == {(node.id, 0) for node in graph.nodes if node.items} - set(shares)


def test_a_clip_is_shown_in_stamped_frames_and_the_nearest_ones_are_kept() -> None:
    keep = SummarizeAndMemorize(
        summarize="",
        memorize=(
            MemorizeEntry(information_id="Video 1", is_useful=True, priority_score=5, key_timestamp=(11.9, 12.2, 99)),
        ),
    )
    policy = Watcher(AddSearchNode(id="v", parent_ids=("root",), query="crane lifts keel mast boat film"), keep, ANSWER)
    run, _ = run_to_end(policy, library(), config=AgentConfig(search_top_k=1))
    seen = policy.chats[1][-1].text
    assert "Video 1 (Launch film" in seen
    assert seen.count("seconds>") == 30
    assert "<0.5 seconds>" in seen and "<29.5 seconds>" in seen
    node = run.record().graph.node("v")
    assert [item.t_frame for item in node.items] == [11.5, 12.5, 29.5]
    assert len(pictures_in(policy.chats[2])) == 3


def test_a_frame_of_a_video_is_cropped_by_its_time() -> None:
    search = AddSearchNode(id="v", parent_ids=("root",), query="crane lifts keel mast boat film")
    vague = Crop(information_id="Video 1", bbox=(0, 0, 500, 500))
    exact = Crop(information_id="Video 1", bbox=(0, 0, 500, 500), timestamp=12.4)
    policy = Watcher(search, vague, exact, ANSWER)
    _, events = run_to_end(policy, library(), config=AgentConfig(search_top_k=1))
    [correction, *_] = [event.message for event in events if isinstance(event, CorrectionEvent)]
    assert "timestamp" in correction
    assert policy.prompts[3].turns[-1].shown[0].t_frame == 12.5
    assert len(pictures_in(policy.chats[3])) == 31


@pytest.mark.parametrize("family", list(FamilyName))
def test_a_remembered_picture_is_cropped_in_the_frame_in_which_it_is_in_view(family: FamilyName) -> None:
    probe = Watcher(SEARCH, KEEP, ANSWER, protocol=GraphProtocol(family=FAMILIES[family]))
    run_to_end(probe, library())
    [(width, height)] = pictures_in(probe.chats[2])
    right_half = (width / 2, 0, width, height) if family is FamilyName.QWEN2_5_VL else (500, 0, 1000, 1000)
    crop = Crop(information_id="a#1", bbox=right_half)
    policy = Watcher(SEARCH, KEEP, crop, ANSWER, protocol=GraphProtocol(family=FAMILIES[family]))
    run, events = run_to_end(policy, library())
    [event] = [event for event in events if isinstance(event, CropEvent)]
    assert event.place.bbox is not None
    assert event.place.bbox[0] == pytest.approx(0.49, abs=0.03)
    assert event.place.bbox[2] == 1.0
    items = run.record().graph.node("a").items
    assert [item.box is None for item in items] == [True, False]
    assert "remembered as a#2" in policy.chats[3][-1].text


def test_a_crop_has_more_pixels_of_its_part_than_the_page_had() -> None:
    crop = Crop(information_id="Picture 1", bbox=(0, 0, 300, 300))
    policy = Watcher(SEARCH, crop, KEEP, ANSWER)
    run_to_end(policy, library(), config=AgentConfig(search_top_k=1))
    (page_width, _), (crop_width, _) = pictures_in(policy.chats[2])
    assert crop_width > 0.9 * page_width


def test_a_page_that_cannot_be_drawn_is_replaced_by_words_and_a_notice() -> None:
    shelf = library()
    shelf.broken_pages = {hit.passage.doc_id for hit in shelf.hits if hit.passage.kind is PassageKind.PAGE}
    policy = Watcher(SEARCH, KEEP, ANSWER)
    run, _ = run_to_end(policy, shelf, config=AgentConfig(search_top_k=1))
    assert pictures_in(policy.chats[1]) == []
    assert "not to be seen" in policy.chats[1][-1].text
    assert any("could not be shown" in notice for notice in run.record().notices)


def test_a_search_answered_directly_still_becomes_a_node() -> None:
    answer = AddAnswerNode(parent_ids=("a",), answer="15 [1]", citations=("Picture 1",))
    run, _ = run_to_end(Watcher(SEARCH, answer), library())
    record = run.record()
    assert [node.id for node in record.graph.nodes] == ["root", "a", "answer"]
    assert record.citations[0].node_id == "a"


def test_the_last_step_asks_for_the_answer() -> None:
    policy = Watcher(SEARCH, KEEP)
    run, _ = run_to_end(policy, library(), config=AgentConfig(max_steps=3))
    assert [ANSWER_NOW in chat[-1].text for chat in policy.chats] == [False, False, True]
    assert run.record().status is RunStatus.MAX_STEPS


def test_a_spent_token_budget_leaves_one_step_for_the_answer() -> None:
    policy = Watcher(SEARCH, KEEP, ANSWER)
    run, _ = run_to_end(policy, library(), config=AgentConfig(token_budget=4))
    assert [prompt.steps_left for prompt in policy.prompts] == [12, 11, 1]
    assert run.record().status is RunStatus.ANSWERED


def test_every_tool_is_described_by_a_schema_of_its_arguments() -> None:
    tools = {tool.name: json.loads(tool.parameters) for tool in GraphProtocol().tools}
    assert list(tools) == ["add_search_node", "summarize_and_memorize", "crop", "add_answer_node"]
    assert tools["crop"]["properties"]["bbox"]["minItems"] == 4
    watcher = Watcher(ANSWER)
    run_to_end(watcher, library())
    assert all(name in watcher.chats[0][0].text for name in tools)


calls = [GraphProtocol().render(action) for action in (SEARCH, KEEP, ANSWER)]
noise = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            *calls,
            '<tool_call>{"name": "crop", "arguments": {"information_id": "Picture 1", "bbox": [1, 2, 900, 800]}}',
            '<tool_call>{"name": "crop", "arguments": {"information_id": "a#1", "bbox": [5, 5, 5, 5]}}</tool_call>',
            '{"name": "add_search_node", "arguments": {"id": "a", "parent_ids": ["nobody"], "query": "boat"}}',
            '<tool_call>{"name": "summarize_and_memorize", "arguments": {"summarize": 3}}</tool_call>',
        ]
    ),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(noise, min_size=1, max_size=7))
def test_whatever_a_model_writes_the_run_ends_within_its_budget(lines: list[str]) -> None:
    policy = Watcher(*lines)
    run, events = run_to_end(policy, library(), config=AgentConfig(max_steps=8))
    assert run.record().steps <= 8
    assert events[-1].kind == "answer"
    assert run.record().graph.answer is not None
