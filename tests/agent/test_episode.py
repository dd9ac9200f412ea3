"""Episodes: whatever a policy writes, the run goes by its rules and comes to an end."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.agent_pages import Shelf, library
from tests.support.library_script import ANSWER, KEEP, SEARCH
from tests.support.scripted_agent import Script, run_to_end
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.episode import NOTHING_LEARNT, Episode
from vrag_ray.agent.events import (
    AnswerEvent,
    BudgetEvent,
    CorrectionEvent,
    CropEvent,
    ErrorEvent,
    FoundItem,
    MemorizeEvent,
    PruneEvent,
    RunStatus,
    SearchDoneEvent,
)
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Say
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import holds_centre
from vrag_ray.types import Completion, VragError


def corrections(events: object) -> list[str]:
    assert isinstance(events, list)
    return [event.message for event in events if isinstance(event, CorrectionEvent)]


def test_search_memorise_answer_leaves_a_graph_and_a_citation() -> None:
    policy = Script(SEARCH, KEEP, ANSWER)
    run, events = run_to_end(policy, library())
    record = run.record()
    kinds = [event.kind for event in events if event.kind != "usage"]
    assert kinds == ["start", "search", "search_done", "read", "memorize", "budget", "answer"]
    assert [node.id for node in record.graph.nodes] == ["root", "a", "answer"]
    assert record.status is RunStatus.ANSWERED
    assert record.citations[0].quote == "North 12 15 18"
    assert record.citations[0].title == "Annual report"
    assert record.citations[0].page == 1
    assert record.citations[0].node_id == "a"
    assert (record.steps, record.corrections, record.usage) == (3, 0, {"completion_tokens": 6})
    assert [prompt.steps_left for prompt in policy.prompts] == [12, 11, 10]
    assert policy.prompts[1].observation is not None
    assert policy.prompts[2].observation is None
    assert len(policy.prompts[2].history) == 1


def test_a_crop_covers_whole_words_and_can_be_cropped_again() -> None:
    first = Crop(information_id="Picture 1", bbox=(80, 210, 720, 270))
    second = Crop(information_id="Picture 2", bbox=(0, 0, 500, 1000))
    keep = SummarizeAndMemorize(
        summarize="", memorize=(MemorizeEntry(information_id="Picture 3", is_useful=True, priority_score=5),)
    )
    policy = Script(SEARCH, first, second, keep, ANSWER)
    run, events = run_to_end(policy, library())
    crops = [event for event in events if isinstance(event, CropEvent)]
    assert [(crop.source_id, crop.place.information_id) for crop in crops] == [
        ("Picture 1", "Picture 2"),
        ("Picture 2", "Picture 3"),
    ]
    assert "2022" in crops[0].text
    assert "2023" not in crops[1].text
    assert run.record().citations[0].bbox == crops[1].place.bbox
    seen = policy.prompts[3].observation
    assert seen is not None
    inner, outer = seen.find("Picture 3"), seen.find("Picture 2")
    assert inner is not None
    assert outer is not None
    assert inner.region is not None
    assert all(holds_centre(inner.region, word.box) for word in inner.words)
    for word in inner.words:
        assert inner.region.union(word.box) == inner.region


def test_a_remembered_picture_can_be_cropped() -> None:
    closer = Crop(information_id="a#1", bbox=(0, 0, 500, 500))
    run, events = run_to_end(
        Script(SEARCH, KEEP, closer, AddAnswerNode(parent_ids=("a",), answer="x", citations=("a#2",))), library()
    )
    assert run.record().corrections == 0
    assert run.record().citations[0].bbox == pytest.approx((0.0, 0.0, 0.52, 0.51))  # 0.51 would cut a word
    assert [event.place.information_id for event in events if isinstance(event, CropEvent)] == ["a#2"]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ([KEEP], "nothing to memorise"),
        ([SEARCH, SEARCH.model_copy(update={"id": "b", "query": "other"})], "first memorise"),
        ([SEARCH, KEEP, SEARCH.model_copy(update={"id": "b"})], "made already"),
        ([AddSearchNode(id="a", parent_ids=("b",), query="x")], "does not exist"),
        ([AddSearchNode(id="a", parent_ids=("a",), query="x")], "own parent"),
        ([AddSearchNode(id="a", parent_ids=("root",), query=" ")], "empty query"),
        ([Crop(information_id="Picture 9", bbox=(1, 2, 3, 4))], "no 'Picture 9' to crop"),
        ([SEARCH, Crop(information_id="Picture 1", bbox=(5, 5, 5, 9))], "no area"),
        (
            [
                SEARCH.model_copy(update={"query": "oiled hulls"}),
                Crop(information_id="Text 1", bbox=(1, 2, 3, 4)),
            ],
            "is text",
        ),
        (
            [SEARCH, KEEP.model_copy(update={"memorize": (MemorizeEntry(information_id="Text 7", is_useful=True),)})],
            "no 'Text 7'",
        ),
        ([AddAnswerNode(parent_ids=("root",), answer=" ")], "answer is empty"),
        ([AddAnswerNode(parent_ids=("z",), answer="x")], "does not exist"),
        ([AddAnswerNode(parent_ids=("root",), answer="x", citations=("a#1",))], "names nothing"),
        (["no call at all"], "no tool call"),
    ],
)
def test_a_wrong_action_gets_a_correction_and_changes_nothing(script: list[str | Action], says: str) -> None:
    policy = Script(*script, AddAnswerNode(parent_ids=("root",), answer="enough", abstain=True))
    run, events = run_to_end(policy, library())
    assert [says in message for message in corrections(list(events))] == [True]
    assert says in policy.prompts[-1].correction
    before = policy.prompts[len(script) - 1].graph
    assert policy.prompts[len(script)].graph == before
    assert run.record().corrections == 1


def test_a_title_that_is_taken_or_missing_names_a_new_node() -> None:
    again = SEARCH.model_copy(update={"query": "oak hulls"})
    third = AddSearchNode(query="boats sold to the museum in spring")
    policy = Script(SEARCH, KEEP, again, SummarizeAndMemorize(summarize=""), third, AddAnswerNode(answer="15"))
    run, _ = run_to_end(policy, library())
    assert run.record().corrections == 0
    nodes = [(node.id, node.parents) for node in run.record().graph.nodes[1:]]
    assert nodes == [
        ("a", ("root",)),
        ("a 2", ("root",)),
        ("boats sold to the museum in", ("a 2",)),
        ("answer", ("boats sold to the museum in",)),
    ]


def test_a_search_that_found_nothing_needs_no_memorise() -> None:
    nothing = AddSearchNode(id="n", parent_ids=("root",), query="zeppelin")
    policy = Script(nothing, SEARCH, KEEP, AddAnswerNode(parent_ids=("a",), answer="15"))
    run, _ = run_to_end(policy, library())
    assert run.record().corrections == 0
    assert run.record().graph.node("n").summary == NOTHING_LEARNT


@pytest.mark.parametrize("label", ["picture 1", "Picture_1", "[Picture 1]", "a#1", "#1"])
def test_a_result_is_known_by_its_label_or_by_its_number(label: str) -> None:
    keep = SummarizeAndMemorize(memorize=(MemorizeEntry(information_id=label),))
    run, _ = run_to_end(Script(SEARCH, keep, AddAnswerNode(parent_ids=("a",), answer="15")), library())
    assert run.record().corrections == 0
    assert len(run.record().graph.node("a").items) == 1


def test_a_quote_under_the_wrong_label_is_remembered_where_it_stands_and_once() -> None:
    oil = SEARCH.model_copy(update={"query": "oak hulls oiled spring units sold by region"})
    first, *others = [item.information_id for item in _items_of(oil)]
    quote = "Oak hulls are oiled every spring."
    entries = tuple(MemorizeEntry(information_id=name, priority_score=2, quote=quote) for name in (first, *others))
    keep = SummarizeAndMemorize(summarize="", memorize=entries)
    run, events = run_to_end(Script(oil, keep, AddAnswerNode(parent_ids=("a",), answer="in spring")), library())
    assert [item.quote for item in run.record().graph.node("a").items] == [quote]
    [memorized] = [event for event in events if isinstance(event, MemorizeEvent)]
    assert len(memorized.notes) == len(entries) - 1 and all("stands in" in note for note in memorized.notes)


def _items_of(search: AddSearchNode) -> tuple[FoundItem, ...]:
    _, events = run_to_end(Script(search, AddAnswerNode(answer="x")), library())
    return next(event.results for event in events if isinstance(event, SearchDoneEvent))


def test_a_reply_that_was_cut_off_is_answered_with_the_reason() -> None:
    class Cut(Script):
        async def complete(self, prompt: Prompt, say: Say) -> Completion:
            return replace(await super().complete(prompt, say), finish="length")

    policy = Cut('<tool_call>{"name": "add_search', AddAnswerNode(answer="x"))
    run_to_end(policy, library())
    assert "cut off after 2048 tokens" in policy.prompts[1].correction


def test_a_quote_that_does_not_stand_on_the_page_is_left_out_with_a_notice() -> None:
    lie = KEEP.model_copy(
        update={"memorize": (MemorizeEntry(information_id="Picture 1", is_useful=True, quote="North 99"),)}
    )
    run, events = run_to_end(Script(SEARCH, lie, ANSWER), library())
    memorised = next(event for event in events if isinstance(event, MemorizeEvent))
    assert run.record().citations[0].quote == ""
    assert "does not stand" in memorised.notes[0]


def test_a_search_answered_directly_still_becomes_a_node_with_its_evidence() -> None:
    run, _ = run_to_end(Script(SEARCH, AddAnswerNode(parent_ids=("a",), answer="15")), library())
    assert run.record().graph.node("a").items
    assert {citation.node_id for citation in run.record().citations} == {"a"}
    named = AddAnswerNode(parent_ids=("a",), answer="15 [1]", citations=("picture 1",))
    run, _ = run_to_end(Script(SEARCH, named), library())
    assert len(run.record().graph.node("a").items) == 1


def test_the_last_step_forces_an_end() -> None:
    policy = Script(SEARCH, KEEP, "thinking about it")
    run, events = run_to_end(policy, library(), config=AgentConfig(max_steps=4))
    assert policy.prompts[-1].must_answer
    assert [event.kind for event in events][-3:] == ["correction", "max_steps", "answer"]
    assert run.record().status is RunStatus.MAX_STEPS
    assert run.record().citations[0].node_id == "a"


def test_an_action_other_than_an_answer_is_refused_on_the_last_step() -> None:
    source = library()
    run, events = run_to_end(Script("hm", SEARCH), source, config=AgentConfig(max_steps=2))
    assert source.queries == []
    assert "last step" in corrections(list(events))[-1]
    assert run.record().status is RunStatus.MAX_STEPS


def test_an_answer_of_the_last_step_is_given_without_references_that_name_nothing() -> None:
    named = AddAnswerNode(parent_ids=("nowhere",), answer="15 [1]", citations=("a#9",))
    run, events = run_to_end(Script(SEARCH, KEEP, named), library(), config=AgentConfig(max_steps=3))
    record = run.record()
    assert (record.status, record.answer) == (RunStatus.ANSWERED, "15")
    assert {citation.node_id for citation in record.citations} == {"a"}
    assert any("a#9" in notice or "nowhere" in notice for notice in record.notices)
    assert len(corrections(list(events))) == record.corrections == 1


def test_missing_shards_and_unread_pages_are_named_in_the_answer() -> None:
    source = library()
    source.shards, source.broken_pages = (2, 3), {source.hits[0].passage.doc_id}
    run, events = run_to_end(Script(SEARCH, KEEP, ANSWER), source)
    done = next(event for event in events if isinstance(event, SearchDoneEvent))
    assert (done.shards_ok, done.shards_total, done.collection_version) == (2, 3, 7)
    answer = events[-1]
    assert isinstance(answer, AnswerEvent)
    assert any("2 of 3 shards" in notice for notice in answer.notices)
    assert any("page 1 of Annual report could not be read: the decoder was killed" in n for n in answer.notices)
    assert run.record().notices == answer.notices


def test_when_no_search_can_be_made_the_run_is_an_error_not_an_answer() -> None:
    source = Shelf(broken_search="the retriever is down")
    give_up = AddAnswerNode(parent_ids=("root",), answer="nothing found", abstain=True)
    nothing = SummarizeAndMemorize(summarize="nothing")
    run, events = run_to_end(Script(SEARCH, nothing, give_up), source)
    last = events[-1]
    assert isinstance(last, ErrorEvent)
    assert last.terminal
    assert "the retriever is down" in last.message
    assert run.record().status is RunStatus.ERROR
    assert run.record().answer == ""


def test_weaker_pictures_are_pruned_and_the_pixels_shared_out() -> None:
    source = library()
    keep_all = KEEP.model_copy(
        update={
            "memorize": tuple(
                MemorizeEntry(information_id=f"Picture {n}", is_useful=True, priority_score=n) for n in (1, 2)
            )
        }
    )
    source.add("Other page", [], text="units region boats too")
    _, events = run_to_end(Script(SEARCH, keep_all, ANSWER), source, config=AgentConfig(memory_top_k=1))
    budget = next(event for event in events if isinstance(event, BudgetEvent))
    assert [(allotment.node_id, allotment.index, allotment.pixels) for allotment in budget.kept] == [
        ("a", 1, 5 * 256 * 32 * 32)
    ]
    assert [event.dropped[0].index for event in events if isinstance(event, PruneEvent)] == [0]


def test_feeding_an_unrequested_value_is_refused() -> None:
    episode = Episode("q?", AgentConfig(), GraphProtocol())
    with pytest.raises(VragError, match="waits for NeedCompletion"):
        episode.search_failed("x")
    with pytest.raises(VragError, match="not for 0 pages"):
        episode.read(())


def test_an_empty_question_is_refused() -> None:
    with pytest.raises(VragError, match="empty"):
        Episode(" \n", AgentConfig(), GraphProtocol())


NAMES = st.sampled_from(
    ["root", "a", "b", "answer", "a#1", "Picture 1", "Text 1", "Video 1", "Picture 4", "", "\ud800"]
)
NUMBERS = st.floats(-10, 1200)


def _render(action: Action) -> str:
    return json.dumps({"name": action.name, "arguments": dict(action)}, default=dict)


ACTIONS = st.one_of(
    st.builds(
        AddSearchNode.model_construct,
        name=st.just("add_search_node"),
        id=NAMES,
        parent_ids=st.lists(NAMES, max_size=2),
        query=st.sampled_from(["boat", "crane", "oil", ""]),
    ),
    st.builds(
        SummarizeAndMemorize,
        summarize=st.text(max_size=5),
        memorize=st.lists(
            st.builds(
                MemorizeEntry,
                information_id=st.sampled_from(["Picture 1", "Video 1", "Text 1"]),
                is_useful=st.booleans(),
                key_timestamp=st.lists(NUMBERS, max_size=2).map(tuple),
            ),
            max_size=3,
        ).map(tuple),
    ),
    st.builds(
        Crop,
        information_id=st.sampled_from(["Picture 1", "Picture 4", "Video 1", "Text 1", "a#1"]),
        bbox=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    ),
    st.builds(
        AddAnswerNode,
        parent_ids=st.just(("root",)),
        answer=st.sampled_from(["", "x"]),
        citations=st.lists(st.sampled_from(["a#1", "Picture 1"]), max_size=1).map(tuple),
    ),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(ACTIONS.map(_render), st.text(max_size=40)), min_size=1, max_size=9), st.integers(2, 9))
def test_any_replies_lead_to_events_and_the_run_ends_within_its_budget(replies: list[str], max_steps: int) -> None:
    run, events = run_to_end(Script(*replies), library(), config=AgentConfig(max_steps=max_steps))
    endings = [event for event in events if isinstance(event, AnswerEvent) or getattr(event, "terminal", False)]
    assert endings == [events[-1]]
    assert 1 <= run.record().steps <= max_steps
    assert [event.seq for event in events] == list(range(len(events)))
    assert type(run.record()).from_json(run.record().to_json()) == run.record()
