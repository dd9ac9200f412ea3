"""The graph protocol reads what models write, and never raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.protocols.graph import MAX_REPLY_CHARS, GraphProtocol

PARSE = GraphProtocol().parse
SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="cost of boats")
ARGUMENTS = '{"id": "a", "parent_ids": ["root"], "query": "cost of boats"}'
BODY = f'{{"name": "add_search_node", "arguments": {ARGUMENTS}}}'


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{BODY}</tool_call>",
        f"<tool_call>\n{BODY}",
        f"I will search.\n<tool_call>{BODY}</tool_call> and then more <tool_call>{{}}</tool_call>",
        f"<think>hm {{}}</think>{BODY}",
        f"```json\n{BODY}\n```",
        f"<tool_call>```json\n{BODY}\n```</tool_call>",
        "<tool_call>" + BODY.replace('"cost of boats"', '"cost of boats",') + "</tool_call>",
        f"<tool_call>{BODY} trailing words</tool_call>",
        "<tool_call>" + str(json.loads(BODY)) + "</tool_call>",
        "<tool_call>" + json.dumps({"name": "add_search_node", "arguments": json.dumps(json.loads(BODY)["arguments"])}),
        "<tool_call>" + BODY.replace('["root"]', '"root"') + "</tool_call>",
        "<tool_call>" + BODY.replace('"id"', '"extra": 1, "id"') + "</tool_call>",
        f"add_search_node: {ARGUMENTS}",
        f"<tool_call>add_search_node({ARGUMENTS})</tool_call>",
        'add_search_node(id="a", parent_ids=["root"], query="cost of boats")',
        f'{{"add_search_node": {ARGUMENTS}}}',
        f'{{"function": {{"name": "add_search_node", "arguments": {ARGUMENTS}}}}}',
        f'[{{"tool": "add_search_node", "args": {ARGUMENTS}}}]',
        '{"name": "add_search_node", "id": "a", "parent_ids": ["root"], "query": "cost of boats"}',
        '<tool_call><function=add_search_node><parameter=id>a</parameter><parameter=parent_ids>["root"]</parameter>'
        "<parameter=query>cost of boats</parameter></function></tool_call>",
    ],
)
def test_sloppy_but_clear_calls_are_understood(text: str) -> None:
    reply = PARSE(text)
    assert reply.problem == ""
    assert reply.action == SEARCH


def test_a_comma_too_many_is_left_out_and_those_in_strings_stay() -> None:
    body = BODY.replace('"cost of boats"', '"a, ] b, } c",')
    assert PARSE(f"<tool_call>{body}</tool_call>").action == SEARCH.model_copy(update={"query": "a, ] b, } c"})


def test_thoughts_are_kept_apart_from_the_call() -> None:
    assert PARSE(f"<think>one</think> two <tool_call>{BODY}</tool_call>").think == "one\n two"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no tool call"),
        ("The answer is 42.", "no tool call"),
        ("<tool_call></tool_call>", "no tool call"),
        ("<tool_call>[1]</tool_call>", "not a JSON object"),
        ('<tool_call>{"name": "rm", "arguments": {}}</tool_call>', "no tool 'rm'"),
        ('<tool_call>{"arguments": {}}</tool_call>', "no tool 'None'"),
        ('<tool_call>{"name": "crop", "arguments": 3}</tool_call>', "arguments of crop"),
        (
            '<tool_call>{"name": "crop", "arguments": {"information_id": "Picture 1", "bbox": [1, 2]}}',
            "crop: argument bbox",
        ),
        (
            '<tool_call>{"name": "crop", "arguments": {"information_id": "x", "bbox": [1, 2, NaN, 4]}}',
            "crop: argument bbox",
        ),
        ('<tool_call>{"name": "add_search_node", "arguments": {"id": "a"}}', "query"),
        ("add_search_node: look for the cost of boats", "no tool call"),
        (
            '<tool_call>{"name": "summarize_and_memorize", "arguments": {"summarize": "", "memorize": '
            '[{"information_id": "Text 1", "is_useful": true, "priority_score": 9}]}}',
            "priority_score",
        ),
        ("x" * (MAX_REPLY_CHARS + 1), "characters"),
    ],
)
def test_a_reply_without_an_action_is_a_problem_in_words(text: str, says: str) -> None:
    reply = PARSE(text)
    assert reply.action is None
    assert says in reply.problem


@pytest.mark.parametrize(
    "action",
    [
        SEARCH,
        Crop(information_id="Picture 1", bbox=(1, 2, 3, 4)),
        AddAnswerNode(parent_ids=("a",), answer='“quoted” </tool_call> {"', citations=("a#1",), abstain=True),
        SummarizeAndMemorize(
            summarize="ä \n \\ é",
            memorize=(
                MemorizeEntry(
                    information_id="Video 1", is_useful=True, priority_score=5, key_timestamp=(1.5,), quote="q"
                ),
                MemorizeEntry(information_id="Text 1", is_useful=False),
            ),
        ),
    ],
)
def test_rendering_is_undone_by_parsing(action: Action) -> None:
    assert PARSE(GraphProtocol().render(action)).action == action


PIECES = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "{",
        "}",
        '"',
        "\\",
        "[",
        "]",
        ",",
        ":",
        "name",
        "arguments",
        BODY,
        "'",
        "```",
    ]
)


@given(st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=5))).map("".join)))
def test_any_text_is_an_action_or_a_problem(text: str) -> None:
    reply = PARSE(text)
    assert (reply.action is None) == bool(reply.problem)


@pytest.mark.parametrize(
    "text", ["{" * 100_000, "[" * 100_000, "<tool_call>" + "[" * 50_000, "(" * 50_000, "<think>" * 20_000]
)
def test_deep_nesting_does_no_harm(text: str) -> None:
    assert PARSE(text).action is None
