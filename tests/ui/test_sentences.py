"""The sentences of an answer as HTML: each with its source, and nothing of a document or a model that could run."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ui_stories import story
from ui.sentences import answer_html, can_be_pointed_at
from vrag_ray.agent.events import AnswerEvent
from vrag_ray.agent.support import Source, checked


def event_of(answer: str) -> AnswerEvent:
    [event] = [candidate for candidate in story(answer=answer) if isinstance(candidate, AnswerEvent)]
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


def test_markdown_is_shown_and_its_sentences_have_their_sources():
    answer = "## Sales\n\n- **40** were sold [1]\n- 2 were not [1]\n\n1. Ola Hansen took 77 [1]\n\n> 40 were sold [1]"
    event = event_of(answer)
    html = answer_html(event, answer, {})
    sold = '<span class="vrag-sentence" tabindex="0"><strong>40</strong> were sold [1]<span class="vrag-source"'
    assert f"<ul>\n<li>{sold}" in html and "<h2>Sales" in html
    assert '<ol>\n<li><span class="vrag-sentence unsupported"' in html
    assert '<blockquote>\n<p><span class="vrag-sentence"' in html
    assert html.count('class="vrag-sentence') == 4
    parser = Nesting()
    parser.feed(html.partition("</style>")[2])
    assert not parser.open
    assert can_be_pointed_at(event, answer)


def test_a_row_of_a_table_has_its_sources_in_its_first_cell_with_words():
    answer = "| | Port | Sold |\n|---|---|---|\n| | North \\| East | 40 were sold [1] |\n| **South** | - | 77 [1] |\n"
    event = event_of(answer)
    html = answer_html(event, answer, {})
    assert '<td><span class="vrag-sentence" tabindex="0">North | East<span class="vrag-source"' in html
    assert '<td><span class="vrag-sentence unsupported" tabindex="0"><strong>South</strong><span' in html
    assert html.count("<td>") == 6 and html.count('class="vrag-sentence') == 3, "the head has words of its source"
    assert "Not in its sources: “77”" in html
    parser = Nesting()
    parser.feed(html.partition("</style>")[2])
    assert not parser.open


@pytest.mark.parametrize(
    "answer",
    [
        "| a | b |\n|---|---|\n| 40 sold | [1] |",
        "**40 were sold [1]. 2 were not [1].**",
        "```\n40 were sold [1]\n``` and `40 were sold [1]",
    ],
)
def test_marks_never_cross_the_tags_of_markdown(answer: str):
    html = answer_html(event_of(answer), answer, {})
    parser = Nesting()
    parser.feed(html.partition("</style>")[2])
    assert not parser.open and not set(html) & set("\ue000\ue001\ue002")


PIECES = ("40 were sold [1]. ", "**", "*", "`", "```", "- ", "\n", "> ", "| ", "1. ", "<b>", "\ue000")


@given(st.lists(st.sampled_from(PIECES)))
def test_any_markdown_gives_tags_that_nest(pieces: list[str]):
    answer = "".join(pieces) or "Nothing."
    event = event_of("2 were not sold [1].").model_copy(
        update={"answer": answer, "sentences": checked(answer, {1: Source("40 were sold")})}
    )
    parser = Nesting()
    parser.feed(answer_html(event, answer, {}).partition("</style>")[2])
    assert not parser.open


@pytest.mark.parametrize(
    "answer",
    [
        "![x](http://far/a.png) 40 were sold [1].",
        "[40 were sold](javascript:alert(1)) [1].",
        "<http://far/> 40 sold [1].",
    ],
)
def test_nothing_is_loaded_and_nothing_leads_away(answer: str):
    html = answer_html(event_of(answer), answer, {})
    assert "<img" not in html and "href" not in html and "src=" not in html


def test_sentences_without_sources_are_left_to_markdown():
    sourceless = event_of("Nothing.").model_copy(update={"sentences": ()})
    assert not can_be_pointed_at(sourceless, "Nothing.")


class Nesting(HTMLParser):
    """``open`` are the elements that have not been closed; a closing tag must be of the last of them, and a sentence
    holds no block, which would end its paragraph."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "span" not in self.open or tag in ("span", "b", "strong", "em", "code", "br", "img")
        if tag not in ("br", "img", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("br", "hr")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
