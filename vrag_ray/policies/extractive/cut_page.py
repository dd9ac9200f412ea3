"""A page cut into what can be scored: sentences, captions of a clip, visual rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from vrag_ray.corpus.elements import grids_of
from vrag_ray.corpus.tables import Table, is_figure, tables
from vrag_ray.policies.extractive.layout import LEADERS, Row, Span, cut_at_stops, rows, sentences, text_sentences
from vrag_ray.policies.extractive.lexicon import stems
from vrag_ray.policies.extractive.sheets import Sheet, laid_out_sheets, written_sheets
from vrag_ray.policies.extractive.stem_index import StemIndex
from vrag_ray.types import Cue, PageText, PassageKind
from vrag_ray.types.captions import captions
from vrag_ray.types.documents import NOTES_MARK
from vrag_ray.types.elements import ElementKind
from vrag_ray.types.page_breaks import crossing_text

LEAST_COLUMNS = 3
"""Of a table whose first row is believed to name them: two columns may be names and what they name."""


_CURRENCY = (
    r"[$€£¥]|\b(?:EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|euros?|dollars?|pounds?|francs?|cents?|kron(?:er|or))\b"
)
_PRICE = re.compile(rf"\d[.,]\d|\d\s?%|{_CURRENCY}", re.IGNORECASE)
_OF_PRICES = re.compile(
    rf"{_CURRENCY}|\b(?:prices?|pricing|price ?list|fees?|tariffs?|menu|preise?|preisliste|speisekarte|prix|tarifs?"
    r"|carte|precios?|tarifas?|prezzi|listino)\b",
    re.IGNORECASE,
)
"""What the title of a list of prices has, or a line above or below it."""
_CONTENTS = re.compile(
    r"\W*(?:table of |list of )?(?:contents|figures|tables|inhalt(?:sverzeichnis)?|sommaire|table des matières|índice"
    r"|contenido|indice|sommario|index)\b.*|(?:.*\s)?(?:pages?|seite|página|pagina)(?: no\.?)?\W*",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\W*(?:\d+(?:\.\d+)*|[ivxl]+|[a-z])[.):]?\s|(?:chapter|section|part|item|appendix|annex)\b", re.IGNORECASE
)
MOST_PRICES = 20
"""Lines of a list of whole prices that rise: a longer one is a table of contents."""
NEAR_LINES = 3
"""Lines above and below a list that say of what it is."""
MOST_FALLS = 0.2
"""Share of the numbers of pages that are less than those before them, at most."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What names the columns of a table: the words of each head, as stems, by the number of the column."""

    heads: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class CutPage:
    """``captions`` are the times of the first of ``spans``; ``stems`` are those of all words of the page.

    ``headings`` has for each of ``spans`` the place of the heading above it, -1 where there is none. ``in_spans`` and
    ``in_rows`` are the places of words. ``units`` has for the places of rows of figures the text above all of them,
    as "in millions". ``margins`` are the places of the spans in headers and footers. ``columns`` has for the places of
    rows of a table with heads its columns, and that of each of the row's cells; ``ruled`` are the places of rows of
    tables that ruling lines alone show, whose cells may be long; ``head_rows`` and ``head_spans`` are
    the places of these heads, and whether they are heads for sure, because figures stand below them. ``contents`` are
    the places of the rows of a table of contents; ``led_spans`` those of spans whose dots lead to a page, or to a price
    that a row has too. ``sheets`` are the tables of which no part can be elsewhere.
    """

    spans: tuple[Span, ...]
    headings: tuple[int, ...]
    captions: tuple[Cue, ...]
    rows: tuple[Row, ...]
    stems: frozenset[str]
    in_spans: StemIndex
    in_rows: StemIndex
    units: Mapping[int, str]
    margins: frozenset[int]
    columns: Mapping[int, tuple[Columns, tuple[int, ...]]]
    ruled: frozenset[int]
    head_rows: Mapping[int, bool]
    head_spans: Mapping[int, bool]
    contents: Set[int]
    led_spans: Set[int]
    sheets: tuple[Sheet, ...]


def cut_page(page: PageText, kind: PassageKind, passage_text: str) -> CutPage:
    """``passage_text`` is the window that matched: all there is of a page without words, and of a clip what was read
    from its frames. A pure function of its arguments, and slow enough to be remembered: some tens of milliseconds."""
    if not page.words and not page.text.strip():
        page = replace(page, text=passage_text)
    page = replace(page, words=cut_at_stops(page.words))
    timed = captions(page.text, page.locator) if kind is PassageKind.CLIP else []
    shown = tables(page.words, page.aspect)
    in_ruled: set[int] = set()
    if ruled := grids_of(page, shown):
        by_words, shown = set(shown), tables(page.words, page.aspect, ruled)
        in_ruled = {id(row[0].words[0]) for table in shown if table not in by_words for row in table.rows}
    with_heads = [table.with_heads_in(page.text) for table in shown]
    spans = sentences(page, with_heads)
    if timed:
        # The name of the file, and in an old collection what is read from the frames, have no time but the clip's.
        known = "\n".join(caption.text for caption in timed)
        others = "\n".join(line for line in passage_text.splitlines() if line.strip() not in known)
        spans = [*(Span(caption.text) for caption in timed), *text_sentences(others)]
    elif page.words and page.notes:
        # Noted to the page: in its text, and in no place on it.
        spans = [*spans, *text_sentences(page.notes.removeprefix(NOTES_MARK))]
    held = stems(page.text) | stems(crossing_text(page)) | stems(" ".join(word.text for word in page.words))
    lines = tuple(rows(page, with_heads))
    headed = [table for table in with_heads if table.head_rows and len(table.edges) >= LEAST_COLUMNS]
    heads = {
        id(word): is_sure
        for table in headed
        for is_sure in [any(is_figure(cell.words[-1].text) for row in table.body for cell in row if cell.column)]
        for row in table.rows[: table.head_rows]
        for cell in row
        for word in cell.words
    }
    return CutPage(
        tuple(spans),
        tuple(_headings(spans)),
        tuple(timed),
        lines,
        held,
        StemIndex(span.stems for span in spans),
        StemIndex(row.stems for row in lines),
        _units(with_heads, lines),
        frozenset(_margins(page, spans)),
        _columns(headed, lines),
        frozenset(place for place, row in enumerate(lines) if {id(word) for word in row.cells[0].words[:1]} & in_ruled),
        _beginning_in(heads, [row.cells[0] for row in lines]),
        _beginning_in(heads, spans),
        _contents([row.text for row in lines]),
        # Where words have places, the rows of the page answer for prices.
        {place for place, span in enumerate(spans) if LEADERS.search(span.text)}
        if lines
        else _contents([span.text for span in spans]),
        tuple(laid_out_sheets(with_heads, lines) if lines else written_sheets(spans)),
    )


def _contents(lines: Sequence[str]) -> Set[int]:
    """The places of the lines of a table of contents: dots lead to numbers of pages, which fall where a list of figures
    begins. Those of a list of prices fall more often, have decimals or a currency, or are few and called prices."""
    led = [place for place, line in enumerate(lines) if LEADERS.search(line)]
    ends = [LEADERS.split(lines[place])[-1].strip() for place in led]
    numbers = [int(end) for end in ends if end.isdecimal()]
    has_prices = len(numbers) < len(ends) and any(_PRICE.search(end) for end in ends)
    falls = sum(after < before for before, after in pairwise(numbers))
    if not led or has_prices or falls > MOST_FALLS * max(0, len(numbers) - 1):
        return frozenset()
    above, below = lines[max(0, led[0] - NEAR_LINES) : led[0]], lines[led[-1] + 1 : led[-1] + 1 + NEAR_LINES]
    numbered = sum(_NUMBERED.match(lines[place]) is not None for place in led)
    is_list = 0 < len(numbers) <= MOST_PRICES and 2 * numbered < len(led) and not any(map(_CONTENTS.fullmatch, above))
    return frozenset() if is_list and any(map(_OF_PRICES.search, [*above, *below])) else frozenset(led)


def _beginning_in(heads: Mapping[int, bool], spans: Sequence[Span]) -> Mapping[int, bool]:
    return {
        place: heads[id(span.words[0])]
        for place, span in enumerate(spans)
        if heads and span.words and id(span.words[0]) in heads
    }


def _columns(tables: Sequence[Table], rows: Sequence[Row]) -> Mapping[int, tuple[Columns, tuple[int, ...]]]:
    of_word = {
        id(row[0].words[0]): (columns, tuple(cell.column for cell in row))
        for table in tables
        for columns in [Columns(tuple(map(stems, table.heads)))]
        for row in table.body
    }
    return {
        place: known
        for place, row in enumerate(rows)
        if row.cells[0].words
        and (known := of_word.get(id(row.cells[0].words[0]))) is not None
        and len(known[1]) == len(row.cells)
    }


def _units(tables: Sequence[Table], rows: Sequence[Row]) -> Mapping[int, str]:
    units = {
        id(word): table.unit
        for table in tables
        if table.unit
        for row in table.body
        for cell in row
        for word in cell.words
    }
    return {
        place: units[id(word)]
        for place, row in enumerate(rows)
        for word in row.cells[-1].words[-1:]
        if units and id(word) in units
    }


def _margins(page: PageText, spans: Sequence[Span]) -> Iterator[int]:
    edges = [part.box for part in page.elements if part.kind in (ElementKind.HEADER, ElementKind.FOOTER)]
    for place, span in enumerate(spans if edges else ()):
        if span.box is not None and any(edge.union(span.box) == edge for edge in edges):
            yield place


def _headings(spans: Sequence[Span]) -> Iterator[int]:
    above = -1
    for place, span in enumerate(spans):
        yield above
        above = place if span.is_heading else above
