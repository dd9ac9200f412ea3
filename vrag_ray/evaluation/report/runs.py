"""The run behind an answer: the pages it stands on, what it cites, what it remembered, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from pathlib import Path

from vrag_ray.agent.events import Event, ThinkEvent
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.event_text import event_lines, place, shortened
from vrag_ray.client.run_view.graph_picture import LIGHT, described, svg
from vrag_ray.client.run_view.view import view_of
from vrag_ray.evaluation.answers import run_file
from vrag_ray.evaluation.folder import Row
from vrag_ray.evaluation.page_shots import Shown, shot_name, shown_of_citation, shown_of_gold
from vrag_ray.evaluation.report.album import Album
from vrag_ray.training.data.examples import Corners
from vrag_ray.types import VragError
from vrag_ray.types.redaction import scrub

LEGEND = "Solid red lines: cited. Dashed blue lines: where the answer stands."
MOST_LINES, LINE_CHARS = 200, 320
QUOTE_CHARS = 600


@dataclass(slots=True)
class _Page:
    """What there is to say of one page, in one run."""

    title: str
    shown: Shown
    numbers: list[int] = field(default_factory=list)
    cited: list[Corners] = field(default_factory=list)
    is_gold: bool = False
    gold: list[Corners] = field(default_factory=list)


def run_section(root: Path, row: Row, album: Album) -> str:
    """Of the run kept for ``row``. A run that is not there, or is none, is told."""
    path = run_file(root, row.system, row.uid, row.sample)
    if not path.is_file():
        return '<p class="tag">Its run is not in the folder.</p>'
    try:
        record = RunRecord.from_json(path.read_text(encoding="utf-8"))
    except VragError as error:
        return f'<p class="tag">Its run cannot be shown: {escape(str(error))}</p>'
    label = f"{row.system}, {row.uid}" + (f", sample {row.sample + 1}" if row.sample else "")
    return "".join((*_cited(record), *_pictures(_pages(record, row), album), *_memory(record, label), *_steps(record)))


def _cited(record: RunRecord) -> Iterator[str]:
    if not record.citations:
        return
    yield '<h3>Cited</h3><ul class="cited">'
    for one in record.citations:
        quote = f"<q>{escape(shortened(one.quote, QUOTE_CHARS))}</q>" if one.quote else ""
        yield f"<li>[{one.number}] {escape(one.title)}, {escape(place(one))}{': ' if quote else ''}{quote}</li>"
    yield "</ul>"


def _pages(record: RunRecord, row: Row) -> Sequence[_Page]:
    """Each once, in the order of the citations; right ones that are not cited come last."""
    pages: dict[str, _Page] = {}

    def page(shown: Shown, title: str) -> _Page:
        return pages.setdefault(shot_name(*shown), _Page(title, shown))

    for one in record.citations:
        found = page(shown_of_citation(one), one.title)
        found.numbers.append(one.number)
        found.cited += [one.bbox] if one.bbox is not None else []
    for gold in row.gold_places:
        found = page(shown_of_gold(gold), gold.name.rpartition("#")[0])
        found.is_gold = True
        found.gold += [gold.box] if gold.box is not None else []
    # Plain text has no picture, and no name of one.
    return [found for name, found in pages.items() if name]


def _pictures(pages: Sequence[_Page], album: Album) -> Iterator[str]:
    if not pages:
        return
    figures, missing = [], []
    for page in pages:
        name, told = shot_name(*page.shown), _told(page)
        picture = album.shown(name, told, page.cited, page.gold)
        if picture:
            figures.append(f"<figure>{picture}<figcaption>{escape(told)}</figcaption></figure>")
        else:
            missing.append(f'<p class="tag">No picture of {escape(told)}: {escape(album.why_not(name))}</p>')
    yield "<h3>Pages</h3>"
    if figures:
        boxed = any(page.cited or page.gold for page in pages)
        yield f'<p class="tag">{LEGEND}</p>' if boxed else ""
        yield f'<div class="shots">{"".join(figures)}</div>'
    yield from missing


def _told(page: _Page) -> str:
    """``report.pdf, page 3: cited by [1] in a box; the right page``."""
    _, number, seconds = page.shown
    where = f"page {number}" if number is not None else f"at {seconds:.1f} s"
    parts = []
    if page.numbers:
        marks = ", ".join(f"[{one}]" for one in page.numbers)
        parts.append(f"cited by {marks}" + (" in a box" if page.cited else " as a whole"))
    if page.is_gold:
        parts.append("the answer stands here" + (" in a dashed box" if page.gold else ""))
    return f"{page.title}, {where}: {'; '.join(parts)}"


def _memory(record: RunRecord, label: str) -> Iterator[str]:
    # Only the record knows what the answer rests on beyond its citations.
    view = replace(view_of(record.events), graph=record.graph)
    yield (
        f'<h3>Memory</h3><div class="wide graph" tabindex="0" role="region" '
        f'aria-label="{escape(f"Memory graph: {label}")}"><div role="img" aria-label="{escape(described(view))}">'
        f"{svg(view, LIGHT)}</div></div>"
    )


def _steps(record: RunRecord) -> Iterator[str]:
    lines = [line for event in _whole_thoughts(record.events) for line in event_lines(event)]
    told = [scrub(line[:LINE_CHARS] + (" …" if len(line) > LINE_CHARS else "")) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        told.append(f"and {len(lines) - MOST_LINES:,} lines more")
    # A block a line, so that what is wrapped hangs below its own words.
    spans = "".join(f"<span>{escape(line)}</span>" for line in told)
    yield f'<h3>Steps</h3><pre class="steps">{spans}</pre>'


def _whole_thoughts(events: Sequence[Event]) -> Iterator[Event]:
    """Thoughts that came in pieces as one each."""
    for (_, is_thought), some in groupby(events, key=lambda event: (event.step, isinstance(event, ThinkEvent))):
        if not is_thought:
            yield from some
            continue
        pieces = [one for one in some if isinstance(one, ThinkEvent)]
        yield pieces[0].model_copy(update={"content": "".join(one.content for one in pieces)})
