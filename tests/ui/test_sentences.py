"""The sentences of an answer as HTML: each with its source, and nothing of a document or a model that could run."""

from __future__ import annotations

import pytest

from tests.support.ui_stories import story
from ui.sentences import answer_html, can_be_pointed_at
from vrag_ray.agent.events import AnswerEvent


def event_of(answer: str) -> AnswerEvent:
    [event] = [one for one in story(answer=answer) if isinstance(one, AnswerEvent)]
    return event


def test_a_sentence_shows_the_picture_of_its_source_and_what_is_not_in_it():
    event = event_of("2 were not sold [1]. Ola Hansen took 77 [1].")
    html = answer_html(event, event.answer, {1: b"\x89PNG"})
    assert html.count('class="vrag-sentence') == 2
    assert html.count('class="vrag-sentence unsupported"') == 1
    assert html.count('<img src="data:image/png;base64,iVBORw==" alt="Cited here: [1] report, page 2"') == 2
    assert "Not in its sources: “Ola Hansen”, “77”" in html
    assert can_be_pointed_at(event, event.answer)


def test_a_source_without_a_picture_is_named_with_its_quote():
    event = event_of("2 were not sold [1].")
    quoted = event.model_copy(update={"citations": (event.citations[0].model_copy(update={"quote": "two & more"}),)})
    html = answer_html(quoted, quoted.answer, {})
    assert "<img" not in html
    assert "<b>[1] report, page 2</b><br>“two &amp; more”" in html


def test_words_stay_words():
    evil = "<img src=x onerror=alert(1)> 40 were sold [1]. <script>alert(2)</script>"
    event = event_of(evil)
    html = answer_html(event, event.answer, {})
    assert "<script" not in html and "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html and "&lt;script&gt;" in html


@pytest.mark.parametrize(
    "answer",
    ["- 40 were sold [1]\n- 2 were not", "| a | b |\n|---|---|\n| 40 | [1] |", "**40** were sold [1].", "Nothing."],
)
def test_markdown_and_sentences_without_sources_are_left_to_markdown(answer: str):
    event = event_of(answer)
    sourceless = event.model_copy(update={"sentences": ()}) if answer == "Nothing." else event
    assert not can_be_pointed_at(sourceless, answer)
