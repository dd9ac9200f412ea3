"""Model text sorted while it comes: however it is cut, the outcome is the same and nothing is lost."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from vrag_ray.serving.openai.reasoning_parser import Piece, ReasoningParser
from vrag_ray.serving.openai.responses import CalledFunction

TAGS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<",
    ">",
    "\n",
    " ",
    "word",
    '{"name": "f", "arguments": {}}',
)
MODEL_TEXT = st.lists(st.sampled_from(TAGS) | st.text(max_size=4), max_size=12).map("".join)


def _sorted(pieces: list[str], *, calls: bool = True) -> tuple[str, str, list[CalledFunction]]:
    parser = ReasoningParser(calls_functions=calls)
    output: list[Piece] = [*map(parser.feed, pieces), parser.end()]
    return "".join(piece.think for piece in output), "".join(piece.content for piece in output), parser.calls


@given(MODEL_TEXT)
def test_letter_by_letter_calls_and_thoughts_are_those_of_the_whole_text(text: str):
    think, content, calls = _sorted([text])
    by_letter = _sorted(list(text))
    assert (by_letter[0], by_letter[2]) == (think, calls)
    # White space beside a call may be sent or not, as it came before or after the call was known.
    assert by_letter[1].split() == content.split()


# Hypothesis takes strings of the code under test for its texts, whole tags among them.
@given(st.text().filter(lambda text: "<think>" not in text and "<tool_call>" not in text))
@example("a <tool_ca")
@example(" <thin")
def test_text_without_tags_comes_out_as_it_went_in(text: str):
    assert _sorted(list(text)) == ("", text, [])


@given(st.text(min_size=1), st.dictionaries(st.text(), st.integers() | st.text()))
@example("</tool_call>", {"quoted": 'a "page" \\ </tool_call>'})
def test_every_call_that_can_be_written_is_read(name: str, arguments: dict[str, int | str]):
    text = f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
    _, content, calls = _sorted(list(text))
    assert content == ""
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [(name, arguments)]


@given(MODEL_TEXT)
def test_without_functions_all_after_the_thoughts_is_content(text: str):
    think, content, calls = _sorted(list(text), calls=False)
    assert not calls
    thought = text.lstrip().startswith("<think>")
    assert content == (
        text if not thought else text.lstrip()[len("<think>") + len(think) + len("</think>") :].lstrip("\n")
    )
