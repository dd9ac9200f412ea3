"""An answer whose sentences show what they cite, where the pointer or the keyboard is. Pure: HTML that loads and runs
nothing."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping

from ui.words import where
from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import AnswerEvent
from vrag_ray.agent.support import CheckedSentence, Support

SHOWN = 2
"""Sources of one sentence that are shown."""
_STRUCTURE = re.compile(r"^\s*(?:[-*+>|#]|\d{1,3}[.)]\s)|\*\*|`|^\s{4}", re.MULTILINE)
"""Lists, tables, headings, emphasis: Markdown shows those better than sentences on their own."""
STYLE = """
<style>
.vrag-answer { line-height: 1.6; }
.vrag-sentence { position: relative; border-bottom: 1px dotted #3a6ebe; cursor: help; }
.vrag-sentence.unsupported { border-bottom: 2px dashed #b3261e; }
.vrag-sentence:hover, .vrag-sentence:focus { background: rgba(58, 110, 190, 0.15); outline: none; }
.vrag-source { display: none; position: absolute; left: 0; top: 100%; z-index: 1000; width: min(32rem, 80vw);
  padding: 0.6rem; background: #ffffff; color: #1f2430; border: 1px solid #b9c0cc; border-radius: 0.5rem;
  box-shadow: 0 4px 18px rgba(0, 0, 0, 0.25); font-size: 0.85rem; line-height: 1.4; cursor: default; }
.vrag-source img { display: block; max-width: 100%; max-height: 18rem; margin: 0.3rem 0; border: 1px solid #d5dae2; }
.vrag-sentence:hover > .vrag-source, .vrag-sentence:focus > .vrag-source { display: block; }
</style>
"""


def can_be_pointed_at(event: AnswerEvent, text: str) -> bool:
    """Whether ``text``, the beginning of the answer, is plain sentences, some of which have a source."""
    is_plain = event.answer.startswith(text) and _STRUCTURE.search(text) is None
    return is_plain and any(sentence.citations or sentence.missing for sentence in event.sentences)


def answer_html(event: AnswerEvent, text: str, pictures: Mapping[int, bytes]) -> str:
    """``text``, the beginning of the answer, with the sources of each sentence; ``pictures`` are PNG by the numbers of
    the citations, of those that have one."""
    by_number = {citation.number: citation for citation in event.citations}
    parts: list[str] = []
    end = 0
    for sentence in event.sentences:
        if sentence.start < end or sentence.end > len(text):
            continue
        parts.append(_escaped(text[end : sentence.start]))
        parts.append(_sentence(sentence, text[sentence.start : sentence.end], by_number, pictures))
        end = sentence.end
    parts.append(_escaped(text[end:]))
    return f'{STYLE}<div class="vrag-answer">{"".join(parts)}</div>'


def _sentence(
    sentence: CheckedSentence, words: str, by_number: Mapping[int, Citation], pictures: Mapping[int, bytes]
) -> str:
    cited = [by_number[number] for number in sentence.citations if number in by_number]
    if not cited and not sentence.missing:
        return _escaped(words)
    kind = " unsupported" if sentence.support is Support.UNSUPPORTED else ""
    sources = [_source(citation, pictures.get(citation.number)) for citation in cited[:SHOWN]]
    if sentence.missing:
        missing = ", ".join(f"“{fact}”" for fact in sentence.missing)
        sources.append(f"Not in its sources: {html.escape(missing)}")
    shown = "".join(f"<div>{source}</div>" for source in sources)
    return (
        f'<span class="vrag-sentence{kind}" tabindex="0">{_escaped(words)}'
        f'<span class="vrag-source" role="tooltip">{shown}</span></span>'
    )


def _source(citation: Citation, png: bytes | None) -> str:
    name = f"[{citation.number}] {citation.title}, {where(citation)}"
    quote = f"<br>“{html.escape(citation.quote)}”" if citation.quote else ""
    if png is None:
        return f"<b>{html.escape(name)}</b>{quote}"
    data = base64.b64encode(png).decode("ascii")
    alt = html.escape(f"Cited here: {name}", quote=True)
    return f'<b>{html.escape(name)}</b><img src="data:image/png;base64,{data}" alt="{alt}">'


def _escaped(words: str) -> str:
    return html.escape(words).replace("\n", "<br>")
