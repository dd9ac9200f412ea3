"""The grammar of a step takes every reply that the episode would take there, and none that it would refuse."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.agent_pages import library
from tests.support.scripted_agent import Watcher, run_to_end
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig, EvidenceForm, Marks

xgrammar = pytest.importorskip("xgrammar", reason="comes with vLLM: `make setup`")

SEARCH = AddSearchNode(id="a", parent_ids=("root",), query='units "sold" by région')
ENTRY = MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4, quote="North 12")
KEEP = SummarizeAndMemorize(summarize="North sold 12", memorize=(ENTRY,))
CROP = Crop(information_id="Picture 1", bbox=(1, 2, 3.5, 400))
ANSWER = AddAnswerNode(parent_ids=("a",), answer="12 [1]", citations=("a#1",), abstain=False)
LAST = ANSWER.model_copy(update={"parent_ids": ("root",), "citations": ()})


def accepts(form: ReplyForm, *, opened: bool = False) -> Callable[[str], bool]:
    from xgrammar.testing import _is_grammar_accept_string

    grammar = xgrammar.Grammar.from_ebnf(form.grammar(opened=opened))
    return lambda reply: bool(_is_grammar_accept_string(grammar, reply))


def prompts(protocol: WireProtocol, *lines: str | Action, max_steps: int = 12) -> list[Prompt]:
    policy = Watcher(*lines, protocol=protocol)
    run_to_end(policy, library(), config=AgentConfig(search_top_k=1, max_steps=max_steps))
    return policy.prompts


@pytest.fixture(scope="module")
def steps() -> list[Prompt]:
    """Before the search, with its results open, after they were remembered, and the last step."""
    return prompts(GraphProtocol(), SEARCH, KEEP, ANSWER)[:3] + prompts(GraphProtocol(), SEARCH, max_steps=2)[1:2]


@pytest.mark.parametrize(
    ("action", "possible"),
    [
        (SEARCH, [True, False, True, False]),
        (SEARCH.model_copy(update={"id": "b", "parent_ids": ("a",)}), [False, False, True, False]),
        (SEARCH.model_copy(update={"id": "a#1"}), [False] * 4),
        (SEARCH.model_copy(update={"query": ""}), [False] * 4),
        (SEARCH.model_copy(update={"parent_ids": ("nowhere",)}), [False] * 4),
        (KEEP, [False, True, False, False]),
        (KEEP.model_copy(update={"memorize": ()}), [False, True, False, False]),
        (
            KEEP.model_copy(update={"memorize": (ENTRY.model_copy(update={"information_id": "Text 9"}),)}),
            [False] * 4,
        ),
        (CROP, [False, True, False, False]),
        (CROP.model_copy(update={"information_id": "a#1"}), [False, False, True, False]),
        (ANSWER, [False, False, True, False]),
        (ANSWER.model_copy(update={"citations": ("Picture 1",)}), [False, True, False, True]),
        (LAST, [False, True, True, True]),
        (LAST.model_copy(update={"parent_ids": ()}), [False] * 4),
    ],
)
def test_the_calls_of_a_step_are_those_that_are_possible_with_names_that_exist(
    action: Action, possible: list[bool], steps: list[Prompt]
) -> None:
    protocol = GraphProtocol()
    reply = protocol.render(action)
    assert [accepts(protocol.reply_form(prompt))(reply) for prompt in steps] == possible
    assert protocol.parse(reply).action == action


@pytest.mark.parametrize(
    ("elements", "possible"), [((1,), True), ((1, 1), True), ((99,), False), ((), False), ((1,) * 7, False)]
)
def test_what_is_remembered_of_a_numbered_page_names_its_numbers(elements: tuple[int, ...], possible: bool) -> None:
    protocol = GraphProtocol(evidence=EvidenceForm.TEXT, marks=Marks.WORDS)
    prompt = prompts(protocol, SEARCH, LAST)[1]
    assert prompt.observation is not None
    [shown] = prompt.observation.sightings
    assert [element.number for element in shown.elements][:1] == [1]
    entry = MemorizeEntry(information_id="Text 1", is_useful=True, priority_score=4, elements=elements)
    reply = protocol.render(KEEP.model_copy(update={"memorize": (entry,)}))
    assert accepts(protocol.reply_form(prompt))(reply) is possible
    for cited, is_known in (("Text 1:1", True), ("Text 1", True), ("Text 1:99", False)):
        answer = LAST.model_copy(update={"parent_ids": ("a",), "citations": (cited,)})
        assert accepts(protocol.reply_form(prompt))(protocol.render(answer)) is is_known


def test_thoughts_may_stand_before_the_reply_and_nothing_else(steps: list[Prompt]) -> None:
    form, reply = GraphProtocol().reply_form(steps[0]), GraphProtocol().render(SEARCH)
    takes, goes_on = accepts(form), accepts(form, opened=True)
    assert takes(f"<think>is 1 < 2?</think>\n\n{reply}")
    assert not takes(f"I will search. {reply}") and not takes(f"{reply} ") and not takes("<think></think>")
    assert goes_on(f"is 1 < 2?</think>{reply}") and not goes_on(reply)


def test_a_model_without_eyes_is_given_no_crop(steps: list[Prompt]) -> None:
    rules = GraphProtocol(evidence=EvidenceForm.TEXT).reply_form(steps[1]).rules
    assert "crop" not in rules and "summarize_and_memorize" in rules


def test_the_schema_names_the_same_calls_and_forbids_what_it_does_not_name(steps: list[Prompt]) -> None:
    form = GraphProtocol().reply_form(steps[1])
    schema = json.loads(form.schema_json)
    assert schema["properties"]["name"]["enum"] == ["summarize_and_memorize", "crop", "add_answer_node"]
    assert all(choice["additionalProperties"] is False for choice in schema["properties"]["arguments"]["anyOf"])
    assert all(
        set(choice["required"]) == set(choice["properties"]) for choice in schema["properties"]["arguments"]["anyOf"]
    )


@pytest.mark.parametrize(
    ("reply", "possible"),
    [
        ("<think>Look it up.</think>\n<search>units sold</search>", [True, True, False]),
        ("<search></search>", [False] * 3),
        ("<think>small</think><bbox>[1, 2, 30, 40.5]</bbox>", [False, True, False]),
        ("<bbox>[1, 2, 3]</bbox>", [False] * 3),
        ("<think>so</think>\n<answer>fewer than < 12</answer>", [False, True, True]),
        ("<answer>12", [False] * 3),
        ("12", [False] * 3),
    ],
)
def test_tags_take_a_box_once_there_is_a_picture_and_an_answer_once_there_was_a_search(
    reply: str, possible: list[bool]
) -> None:
    protocol = TagsProtocol()
    every = prompts(protocol, "<search>units sold</search>", "<answer>12</answer>")[:2]
    every += prompts(protocol, "<search>units sold</search>", max_steps=2)[1:2]
    assert [accepts(protocol.reply_form(prompt))(reply) for prompt in every] == possible
