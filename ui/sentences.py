"""An answer whose sentences show what they cite, where the pointer or the keyboard is. Pure: HTML that loads and runs
nothing.

Markdown is rendered here, with a mark before and behind each sentence that becomes its element in the HTML.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping
from functools import cache

from markdown_it import MarkdownIt

from ui.words import where
from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import AnswerEvent
from vrag_ray.agent.support import CheckedSentence, Support

SHOWN = 2
"""Sources of one sentence that are shown."""
_BLOCK = re.compile(r"(?:(?:[-*+>]|#{1,6}|\d{1,3}[.)])\s+)*")
"""What makes a line an item of a list, a quotation or a heading: the sentence begins behind it."""
_CELL = re.compile(r"\|(?:\s*\|)*\s*(?P<words>(?:\\.|[^|\\])*[^|\\\s])")
"""The first cell with words of a row of a table. Its sources stand in this cell."""
_OPEN, _NUMBER_END, _CLOSE = "\ue000", "\ue001", "\ue002"
"""Marks around a sentence, which no text holds: letters of private use are replaced in it."""
_PRIVATE = re.compile(r"[\ue000-\ue002]")
_MARKED = re.compile(f"{_OPEN}(?P<place>\\d+){_NUMBER_END}(?P<words>[^{_OPEN}{_CLOSE}]*){_CLOSE}")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>\w+)[^<>]*>")
_LOADS = ("image", "link", "autolink", "html_block", "html_inline", "reference")
"""What of Markdown would load something, lead away, or be HTML."""
STYLE = """
<style>
.vrag-answer { line-height: 1.6; }
.vrag-sentence { position: relative; border-bottom: 1px dotted #3a6ebe; cursor: help; }
.vrag-sentence.unsupported { border-bottom: 2px dashed #b3261e; }
.vrag-sentence:hover, .vrag-sentence:focus { background: rgba(58, 110, 190, 0.15); outline: none; }
.vrag-source { display: none; position: absolute; left: 0; top: 100%; z-index: 1000; width: min(32rem, 80vw);
  padding: 0.6rem; background: #ffffff; color: #1f2430; border: 1px solid #b9c0cc; border-radius: 0.5rem;
  box-shadow: 0 4px 18px rgba(0, 0, 0, 0.25); font-size: 0.85rem; line-height: 1.4; cursor: default; }
.vrag-place { display: block; }
.vrag-source img { display: block; max-width: 100%; max-height: 18rem; margin: 0.3rem 0; border: 1px solid #d5dae2; }
.vrag-sentence:hover > .vrag-source, .vrag-sentence:focus > .vrag-source,
.vrag-answer tr:hover .vrag-source { display: block; }
</style>
"""


def can_be_pointed_at(event: AnswerEvent, text: str) -> bool:
    """Whether ``text`` is the beginning of the answer, and some sentences of it have a source."""
    return event.answer.startswith(text) and any(map(_has_sources, event.sentences))


def answer_html(event: AnswerEvent, text: str, pictures: Mapping[int, bytes]) -> str:
    """``text``, the beginning of the answer, with the sources of each sentence; ``pictures`` are PNG by the numbers of
    the citations, of those that have one. A row of a table shows them as a whole; sentences that begin or end within
    emphasis show none.
    """
    by_number = {citation.number: citation for citation in event.citations}
    text = _PRIVATE.sub("\ufffd", text)
    parts: list[str] = []
    end = 0
    for place, sentence in enumerate(event.sentences):
        block = _BLOCK.match(text, sentence.start, sentence.end)
        start = block.end() if block is not None else sentence.start
        if start < end or sentence.end > len(text) or not _has_sources(sentence):
            continue
        stop = sentence.end
        if text[start] == "|":
            cell = _CELL.match(text, start, stop)
            if cell is None:
                continue
            start, stop = cell.span("words")
        parts += [text[end:start], f"{_OPEN}{place}{_NUMBER_END}", text[start:stop], _CLOSE]
        end = stop
    rendered = _renderer().render("".join([*parts, text[end:]]))
    # In the name of a code block's language they stand within a tag.
    rendered = _TAG.sub(lambda tag: _PRIVATE.sub("", tag[0]), rendered)

    def element(marked: re.Match[str]) -> str:
        sentence, words = event.sentences[int(marked["place"])], marked["words"]
        if not _nests(words):
            return words
        kind = " unsupported" if sentence.support is Support.UNSUPPORTED else ""
        sources = _sources(sentence, by_number, pictures)
        return f'<span class="vrag-sentence{kind}" tabindex="0">{words}{sources}</span>'

    with_sources = _PRIVATE.sub("", _MARKED.sub(element, rendered))
    return f'{STYLE}<div class="vrag-answer">{with_sources}</div>'


def _has_sources(sentence: CheckedSentence) -> bool:
    return bool(sentence.citations or sentence.missing)


def _nests(words: str) -> bool:
    """Whether every tag that begins in ``words`` ends in it too, and the other way round."""
    open_tags: list[str] = []
    for tag in _TAG.finditer(words):
        if tag["name"] in ("br", "hr"):
            continue
        if not tag["end"]:
            open_tags.append(tag["name"])
        elif not open_tags or open_tags.pop() != tag["name"]:
            return False
    return not open_tags


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable(_LOADS)


def _sources(sentence: CheckedSentence, by_number: Mapping[int, Citation], pictures: Mapping[int, bytes]) -> str:
    cited = [by_number[number] for number in sentence.citations if number in by_number]
    sources = [_source(citation, pictures.get(citation.number)) for citation in cited[:SHOWN]]
    if sentence.missing:
        missing = ", ".join(f"“{fact}”" for fact in sentence.missing)
        sources.append(f"Not in its sources: {html.escape(missing)}")
    if sentence.entailed is False:
        sources.append("The model finds that its sources do not say this.")
    # A block element would end the paragraph that the sentence stands in.
    shown = "".join(f'<span class="vrag-place">{source}</span>' for source in sources)
    return f'<span class="vrag-source" role="tooltip">{shown}</span>'


def _source(citation: Citation, png: bytes | None) -> str:
    name = f"[{citation.number}] {citation.title}, {where(citation)}"
    quote = f"<br>“{html.escape(citation.quote)}”" if citation.quote else ""
    if png is None:
        return f"<b>{html.escape(name)}</b>{quote}"
    data = base64.b64encode(png).decode("ascii")
    alt = html.escape(f"Cited here: {name}", quote=True)
    return f'<b>{html.escape(name)}</b><img src="data:image/png;base64,{data}" alt="{alt}">'
