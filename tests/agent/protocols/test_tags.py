"""The ``tags`` protocol: the wire form of the released checkpoint, and what the original left open."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.agent_pages import Shelf, library, put
from tests.support.scripted_agent import Watcher, pictures_in, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, Crop
from vrag_ray.agent.chat import ImagePart, Role
from vrag_ray.agent.episode import ALL_SEEN, NOTHING_FOUND
from vrag_ray.agent.events import CorrectionEvent, CropEvent, RunStatus, SearchDoneEvent
from vrag_ray.agent.protocols.tags import ANSWER_NOW, TagsProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import CROP_MARGIN
from vrag_ray.types import PassageKind

TAGS = TagsProtocol()
AREA = 28 * 28
SEARCH = "<think>look it up</think>\n<search>units sold by region</search>"
ANSWER = "<think>seen</think><answer>15</answer>"


def watcher(*lines: str) -> Watcher:
    return Watcher(*lines, protocol=TAGS)


@pytest.mark.parametrize(
    ("text", "think", "action"),
    [
        ("<think>why</think>\n<search> ships </search>", "why", AddSearchNode(id="", parent_ids=(), query="ships")),
        ("<search>ships</search>", "", AddSearchNode(id="", parent_ids=(), query="ships")),
        ("<think>cut off <answer>4</answer>", "cut off", AddAnswerNode(parent_ids=(), answer="4")),
        ("<think>a</think><answer>four tonnes", "a", AddAnswerNode(parent_ids=(), answer="four tonnes")),
        ("<think>a</think><bbox>[10, 20, 30.5, 40]</bbox>", "a", Crop(bbox=(10, 20, 30.5, 40))),
        ("<think>a</think><bbox>x1=10, y1: -2 (30 40)</bbox>", "a", None),
        ("<think>a</think><bbox>(10 -2 30 40)</bbox>", "a", Crop(bbox=(10, -2, 30, 40))),
        ("<think>a</think><search>x</search><answer>y</answer>", "a", AddSearchNode(id="", parent_ids=(), query="x")),
        ("<think>a</think><bbox>[1, 2, 3]</bbox>", "a", None),
        ("<think>a</think><search> </search>", "a", None),
        ("just words", "just words", None),
        ("", "", None),
    ],
)
def test_replies_are_read_as_the_checkpoint_means_them(text: str, think: str, action: object) -> None:
    reply = TAGS.parse(text)
    assert reply.action == action
    assert (reply.problem == "") is (action is not None)
    assert reply.think == think


def test_a_tag_inside_the_thoughts_ends_them_because_models_forget_to_close_them() -> None:
    reply = TAGS.parse("<think>I could <answer>guess</answer></think><search>x</search>")
    assert (reply.think, reply.action) == ("I could", AddAnswerNode(parent_ids=(), answer="guess"))


@given(st.text())
def test_any_text_is_an_action_or_a_problem_in_words(text: str) -> None:
    for framed in (text, f"<search>{text}", f"<bbox>{text}</bbox>", f"<think>{text}<answer>"):
        reply = TAGS.parse(framed)
        assert (reply.action is None) == bool(reply.problem)


def test_a_search_shows_one_picture_of_the_trained_size_alone_in_a_user_message() -> None:
    policy = watcher(SEARCH, ANSWER)
    run, _ = run_to_end(policy, library())
    first, second = policy.chats
    assert [message.role for message in second] == [Role.USER, Role.ASSISTANT, Role.USER]
    assert second[0] == first[0]
    assert "Question: What was North in 2022?" in first[0].text
    assert second[1].text == SEARCH
    assert [type(part) for part in second[2].parts] == [ImagePart]
    [(width, height)] = pictures_in(second)
    assert 256 * AREA <= width * height <= 512 * AREA
    assert width % 28 == height % 28 == 0
    record = run.record()
    assert (record.status, record.answer) == (RunStatus.ANSWERED, "15")
    assert [node.id for node in record.graph.nodes] == ["root", "s1", "answer"]
    assert record.citations[0].title == "Annual report"


def test_a_crop_of_a_crop_is_the_right_place_of_the_raw_page() -> None:
    policy = watcher(SEARCH, "<think></think><bbox>[0, 0, 1, 1]</bbox>", ANSWER)
    run_to_end(policy, library())
    [(width, height)] = pictures_in(policy.chats[1])
    # The lower right quarter of the page, then the upper half of that picture.
    quarter = f"<bbox>[{width // 2}, {height // 2}, {width}, {height}]</bbox>"
    shelf = library()
    probe = watcher(SEARCH, quarter, ANSWER)
    run_to_end(probe, shelf)
    crop_width, crop_height = pictures_in(probe.chats[2])[1]
    half = f"<bbox>[0, 0, {crop_width}, {crop_height // 2}]</bbox>"
    policy = watcher(SEARCH, quarter, half, ANSWER)
    _, events = run_to_end(policy, library())
    outer, inner = [event.place.bbox for event in events if isinstance(event, CropEvent)]
    assert outer is not None and inner is not None
    assert outer == pytest.approx((0.5 - CROP_MARGIN, 0.5 - CROP_MARGIN, 1, 1), abs=0.04)
    middle = outer[1] + (outer[3] - outer[1]) / 2
    assert inner == pytest.approx((outer[0] - CROP_MARGIN, outer[1] - CROP_MARGIN, 1, middle + CROP_MARGIN), abs=0.02)
    sizes = pictures_in(policy.chats[3])
    assert len(sizes) == 3
    assert all(256 * AREA <= w * h <= 512 * AREA for w, h in sizes)


@pytest.mark.parametrize(
    ("box", "clamped"),
    [("[-50, -50, 99999, 99999]", True), ("[300, 300, 100, 100]", True), ("[100, 100, 100, 400]", False)],
)
def test_a_box_that_is_off_the_picture_is_clamped_and_one_without_area_is_corrected(box: str, clamped: bool) -> None:
    _, events = run_to_end(watcher(SEARCH, f"<bbox>{box}</bbox>", ANSWER), library())
    corrections = [event.message for event in events if isinstance(event, CorrectionEvent)]
    crops = [event for event in events if isinstance(event, CropEvent)]
    assert (len(crops), len(corrections)) == ((1, 0) if clamped else (0, 1))
    assert clamped or "no area" in corrections[0]


def test_a_box_before_any_picture_is_answered_with_the_request_to_search_first() -> None:
    policy = watcher("<bbox>[1, 2, 3, 4]</bbox>", ANSWER)
    run_to_end(policy, library())
    assert "search first" in policy.chats[1][-1].text


def test_a_search_shows_the_best_unseen_page_until_all_were_seen() -> None:
    shelf = Shelf()
    for name in ("one", "two"):
        shelf.add(name, put(50, 50, f"harbour {name}"))
    policy = watcher(*(f"<search>{words}</search>" for words in ("harbour", "the harbour", "a harbour")), ANSWER)
    _, events = run_to_end(policy, shelf)
    shown = [[item.title for item in event.results] for event in events if isinstance(event, SearchDoneEvent)]
    assert sorted(title for titles in shown for title in titles) == ["one", "two"]
    assert shown[2] == []
    assert policy.chats[3][-1].text == ALL_SEEN


def test_a_search_that_finds_nothing_says_so() -> None:
    policy = watcher("<search>zeppelin</search>", ANSWER)
    run, _ = run_to_end(policy, library())
    assert policy.chats[1][-1].text == NOTHING_FOUND
    assert run.record().status is RunStatus.ANSWERED


def test_several_results_a_turn_are_an_option() -> None:
    policy = Watcher("<search>boat workshop oil museum</search>", ANSWER, protocol=TagsProtocol(shows=3))
    run_to_end(policy, library())
    seen = policy.chats[1][-1]
    assert len(seen.parts) == 3


def test_plain_text_is_shown_in_words() -> None:
    policy = watcher("<search>oak hulls oiled spring</search>", ANSWER)
    _, events = run_to_end(policy, library())
    [item] = [event.results[0] for event in events if isinstance(event, SearchDoneEvent)]
    assert item.kind is PassageKind.TEXT
    assert "oil needs 48 hours" in policy.chats[1][-1].text


def test_the_last_step_asks_for_the_answer_and_takes_nothing_else() -> None:
    policy = watcher(SEARCH)
    run, _ = run_to_end(policy, library(), config=AgentConfig(max_steps=3))
    assert [ANSWER_NOW in chat[-1].text for chat in policy.chats] == [False, False, True]
    assert run.record().status is RunStatus.MAX_STEPS


def test_a_refused_reply_leaves_the_chat_and_its_correction_stands_in_the_next_prompt_alone() -> None:
    policy = watcher("I would rather not", SEARCH, ANSWER)
    run_to_end(policy, library())
    first, corrected, third = policy.chats
    assert [message.role for message in corrected] == [Role.USER]
    assert corrected[0].text.startswith(first[0].text)
    assert "no action" in corrected[0].text.removeprefix(first[0].text)
    assert [message.role for message in third] == [Role.USER, Role.ASSISTANT, Role.USER]
    assert third[0] == first[0]


def test_the_same_search_again_is_corrected_and_the_next_reply_cannot_be_a_search() -> None:
    policy = watcher(SEARCH, SEARCH, "not an action", ANSWER)
    run, _ = run_to_end(policy, library())
    assert ["made already" in chat[-1].text for chat in policy.chats] == [False, False, True, False]
    assert run.record().corrections == 2
    forms = [TagsProtocol().reply_form(prompt).rules for prompt in policy.prompts]
    assert ["search ::=" in rules for rules in forms] == [True, True, False, True]
    assert ["answer ::=" in rules for rules in forms] == [False, True, True, True]


pieces = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [SEARCH, ANSWER, "<search>boat</search>", "<bbox>[1, 1, 400, 400]</bbox>", "<bbox>[9, 9]</bbox>", "<answer>"]
    ),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(pieces, max_size=3).map("".join), min_size=1, max_size=6))
def test_whatever_a_model_writes_the_run_ends_within_its_budget(lines: list[str]) -> None:
    policy = watcher(*lines)
    run, events = run_to_end(policy, library(), config=AgentConfig(max_steps=7))
    record = run.record()
    assert record.steps <= 7
    assert events[-1].kind == "answer"
    assert len(policy.chats) == record.steps
