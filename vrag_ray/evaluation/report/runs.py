"""The run behind an answer: the pages it stands on, what it cites, what it remembered, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import Event, ThinkEvent
from vrag_ray.agent.record import RunRecord
from vrag_ray.evaluation.answers import run_file
from vrag_ray.evaluation.folder import Row
from vrag_ray.evaluation.page_shots import Shown, shot_name, shown_of_citation, shown_of_gold
from vrag_ray.evaluation.report.album import Album, Shot
from vrag_ray.questions.examples import Corners
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.redaction import scrub
from vrag_ray.views.graph_picture import LIGHT, described, svg
from vrag_ray.views.run_view import view_of
from vrag_ray.views.words import event_lines, place, shortened

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
        return [citation.bbox for citation in self.cited if citation.bbox is not None]

    @property
    def gold_boxes(self) -> list[Corners]:
        return [place.box for place in self.gold if place.box is not None]

    @property
    def caption(self) -> str:
        """``report.pdf, page 3: cited by [1] in a box; the answer stands here``."""
        _, page, seconds = self.shown
        title = self.cited[0].title if self.cited else self.gold[0].name.rpartition("#")[0]
        where = f"page {page}" if page is not None else f"the frame at {seconds:.1f} s"
        parts = []
        if self.cited:
            marks = ", ".join(f"[{citation.number}]" for citation in self.cited)
            # Of a clip one frame is shown, and all its seconds are cited.
            how = (
                " in a box" if self.cited_boxes else " as a whole" if page is not None else f", {place(self.cited[0])}"
            )
            parts.append(f"cited by {marks}{how}")
        if self.gold:
            parts.append("the answer stands here" + (" in a dashed box" if self.gold_boxes else ""))
        return f"{title}, {where}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Source:
    """A citation: its number, document and place, and its quote, "" without."""

    place: str
    quote: str


@dataclass(frozen=True, slots=True)
class PageView:
    """A page with its picture, or with the reason why there is none."""

    caption: str
    shot: Shot | None
    why_not: str


@dataclass(frozen=True, slots=True)
class RunView:
    """What the report shows of a run; ``problem`` alone where it cannot be shown."""

    problem: str = ""
    label: str = ""
    sources: tuple[Source, ...] = ()
    pages: tuple[PageView, ...] = ()
    has_boxes: bool = False
    graph_svg: str = ""
    graph_description: str = ""
    steps: tuple[str, ...] = ()


def run_view(root: Path, row: Row, album: Album) -> RunView:
    """Of the run stored for ``row``. The pictures that it shows are added to ``album``."""
    path = run_file(root, row.system, row.uid, row.sample)
    if not path.is_file():
        return RunView("Its run is not in the folder.")
    try:
        record = RunRecord.from_json(path.read_text(encoding="utf-8"))
    except VragError as error:
        return RunView(f"Its run cannot be shown: {error}")
    pages = [*_pages(record.citations, row.gold_places)]
    shots = [(page, album.shot(shot_name(*page.shown), page.cited_boxes, page.gold_boxes)) for page in pages]
    # Only the record knows what the answer rests on beyond its citations.
    view = replace(view_of(record.events), graph=record.graph)
    return RunView(
        label=f"{row.system}, {row.uid}" + (f", sample {row.sample + 1}" if row.sample else ""),
        sources=tuple(
            Source(
                f"[{citation.number}] {citation.title}, {place(citation)}",
                shortened(citation.quote, QUOTE_CHARS) if citation.quote else "",
            )
            for citation in record.citations
        ),
        pages=tuple(
            PageView(page.caption, shot, "" if shot is not None else album.why_not(shot_name(*page.shown)))
            for page, shot in shots
        ),
        has_boxes=any(shot is not None and shot.boxes for _, shot in shots),
        graph_svg=svg(view, LIGHT),
        graph_description=described(view),
        steps=tuple(_steps(record)),
    )


def _pages(citations: Sequence[Citation], gold: Sequence[GoldPlace]) -> Iterator[_Page]:
    """Each once, in the order of the citations; right ones that are not cited come last. Plain text has none."""
    for shown in dict.fromkeys((*map(shown_of_citation, citations), *map(shown_of_gold, gold))):
        _, page, seconds = shown
        if page is not None or seconds is not None:
            yield _Page(
                shown,
                tuple(citation for citation in citations if shown_of_citation(citation) == shown),
                tuple(place for place in gold if shown_of_gold(place) == shown),
            )


def _steps(record: RunRecord) -> Iterator[str]:
    lines = [line for event in _whole_thoughts(record.events) for line in event_lines(event)]
    for line in lines[:MOST_LINES]:
        yield scrub(line[:LINE_CHARS] + (" …" if len(line) > LINE_CHARS else ""))
    if len(lines) > MOST_LINES:
        yield f"and {len(lines) - MOST_LINES:,} lines more"


def _whole_thoughts(events: Sequence[Event]) -> Iterator[Event]:
    """Thoughts that came in pieces as one each."""
    for (_, is_thought), some in groupby(events, key=lambda event: (event.step, isinstance(event, ThinkEvent))):
        if not is_thought:
            yield from some
            continue
        pieces = [event for event in some if isinstance(event, ThinkEvent)]
        yield with_changes(pieces[0], {"content": "".join(piece.content for piece in pieces)})
