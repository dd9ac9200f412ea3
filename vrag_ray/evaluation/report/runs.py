"""The run behind an answer: the pages it stands on, what it cites, what it remembered, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path

from vrag_ray.agent.citations import Citation
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
from vrag_ray.training.data.gold_places import GoldPlace
from vrag_ray.types import VragError
from vrag_ray.types.redaction import scrub

LEGEND = "Solid red lines: cited. Dashed blue lines: where the answer stands."
MOST_LINES, LINE_CHARS = 200, 320
QUOTE_CHARS = 600


@dataclass(frozen=True, slots=True)
class _Page:
    """What of one run is about one page, or one moment of a video."""

    shown: Shown
    cited: tuple[Citation, ...]
    gold: tuple[GoldPlace, ...]

    @property
    def cited_boxes(self) -> list[Corners]:
        return [one.bbox for one in self.cited if one.bbox is not None]

    @property
    def gold_boxes(self) -> list[Corners]:
        return [one.box for one in self.gold if one.box is not None]

    @property
    def told(self) -> str:
        """``report.pdf, page 3: cited by [1] in a box; the answer stands here``."""
        _, page, seconds = self.shown
        title = self.cited[0].title if self.cited else self.gold[0].name.rpartition("#")[0]
        where = f"page {page}" if page is not None else f"the frame at {seconds:.1f} s"
        parts = []
        if self.cited:
            marks = ", ".join(f"[{one.number}]" for one in self.cited)
            # Of a clip one frame is shown, and all its seconds are cited.
            how = (
                " in a box" if self.cited_boxes else " as a whole" if page is not None else f", {place(self.cited[0])}"
            )
            parts.append(f"cited by {marks}{how}")
        if self.gold:
            parts.append("the answer stands here" + (" in a dashed box" if self.gold_boxes else ""))
        return f"{title}, {where}: {'; '.join(parts)}"


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
    return "".join(
        (
            *_cited(record),
            *_pictures([*_pages(record.citations, row.gold_places)], album),
            *_memory(record, label),
            *_steps(record),
        )
    )


def _cited(record: RunRecord) -> Iterator[str]:
    if not record.citations:
        return
    yield '<h3>Cited</h3><ul class="cited">'
    for one in record.citations:
        quote = f"<q>{escape(shortened(one.quote, QUOTE_CHARS))}</q>" if one.quote else ""
        yield f"<li>[{one.number}] {escape(one.title)}, {escape(place(one))}{': ' if quote else ''}{quote}</li>"
    yield "</ul>"


def _pages(citations: Sequence[Citation], gold: Sequence[GoldPlace]) -> Iterator[_Page]:
    """Each once, in the order of the citations; right ones that are not cited come last. Plain text has none."""
    for shown in dict.fromkeys((*map(shown_of_citation, citations), *map(shown_of_gold, gold))):
        _, page, seconds = shown
        if page is not None or seconds is not None:
            yield _Page(
                shown,
                tuple(one for one in citations if shown_of_citation(one) == shown),
                tuple(one for one in gold if shown_of_gold(one) == shown),
            )


def _pictures(pages: Sequence[_Page], album: Album) -> Iterator[str]:
    if not pages:
        return
    figures, missing = [], []
    for page in pages:
        name, told = shot_name(*page.shown), page.told
        picture = album.shown(name, told, page.cited_boxes, page.gold_boxes)
        if picture:
            figures.append(f"<figure>{picture}<figcaption>{escape(told)}</figcaption></figure>")
        else:
            missing.append(f'<p class="tag">No picture of {escape(told)}: {escape(album.why_not(name))}</p>')
    yield "<h3>Pages</h3>"
    if figures:
        boxed = any(page.cited_boxes or page.gold_boxes for page in pages)
        yield f'<p class="tag">{LEGEND}</p>' if boxed else ""
        yield f'<div class="shots">{"".join(figures)}</div>'
    yield from missing


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
