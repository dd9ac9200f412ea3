"""Rows, cells and sentences of a page, from the boxes of its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise, takewhile, zip_longest
from statistics import median

from vrag_ray.corpus.elements import BULLET, DOTS, LIST_SIGNS, TICKS
from vrag_ray.corpus.reading_order import is_right_to_left, regions
from vrag_ray.corpus.tables import CELL_GAP, LONGEST_LABEL, MAX_CELL_WORDS, Table, cells, is_figure
from vrag_ray.imaging.coordinates import holds_centre
from vrag_ray.policies.extractive.lexicon import NUMBERED_NAMES, is_function_word, stems
from vrag_ray.policies.extractive.synonyms import without_marks
from vrag_ray.types import Box, PageText, Word, around, joined, undivided, upright
from vrag_ray.types.elements import Element, ElementKind
from vrag_ray.types.months import MONTHS
from vrag_ray.types.page_breaks import continued, crossing_paragraph
from vrag_ray.types.superscripts import SUPERSCRIPTS

MAX_SENTENCE_WORDS = 60
MAX_HEADING_WORDS = 10
NEAR_LINES = 3
"""Lines on either side that say how far a line may reach."""
LINE_GAP, COLUMN_GAP = 0.8, 3.0
"""Heights of a line between two lines of one sentence, at most; widths of a column of vertical Chinese or Japanese."""
LARGE = 1.15
"""Heights of most lines from which on a line is a headline, which is broken where it looks well."""

BETWEEN_ITEMS = 3
"""Sentences of one item of a list, at most, before the mark of the next."""
LONGEST_LIST = 700
"""Characters of the items that are quoted with the line above them."""

LOWEST = 0.8
"""Share of the height of a page below which a table or list that nothing follows may go on on the next page."""
FOOT = 0.92
"""Share of the height of a page below which a footer stands, that ends no table or list."""

LEADERS = re.compile(r"(?:\.\s?){4,}|(?:…\s?){2,}|(?:·\s?){4,}")
"""Dots from a name to its page or its price."""
LEAST_DOTS = 6
"""Of dots that lead to words: fewer may be an ellipsis."""
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_DOTS = re.compile(r"[.…·]+")
_UNIT_OF_ALL = re.compile(r"\s*\((?:[\w$€£]+ )?in [^()]*\)", re.IGNORECASE)
"""``(in millions, except per share data)`` stands over several columns and names none of them."""
_SENTENCE_ENDS = tuple(".!?。！？")  # noqa: RUF001 - full-width marks end sentences too
_PROSE = (ElementKind.PARAGRAPH, ElementKind.LIST_ITEM, ElementKind.NOTE)
_OPENING = '"“‘«([–*#' + LIST_SIGNS  # noqa: RUF001
_CLOSING = "\"”')]" + SUPERSCRIPTS
_NO_HEADING_ENDS = (*_SENTENCE_ENDS, ",", ";", ":")
_ABBREVIATION = re.compile(
    r"^[\"“'(\[]*(?:[A-Za-z]\.)*(?:[A-Za-z]|e\.g|i\.e|cf|figs?|nos?|nr|vs|etc|approx|ca|dr|mr|mrs|ms|messrs|prof|st|ltd|co|inc"
    r"|corp|jr|sr|rev|gen|col|capt|sgt|vol|pp|art|sec|ed|est|bzw|vgl)\.$",
    re.IGNORECASE,
)
_CAPTION_NUMBER = re.compile(rf"(?:{NUMBERED_NAMES})\.? \d[\w.-]*\.", re.IGNORECASE)
"""``Figure 2.`` is the beginning of its caption."""
_ORDINAL = re.compile(r"^\d{1,2}\.$")
"""``12. März``, or the number of an item."""
_BEFORE_ORDINAL = re.compile(r"(?:am|zum|vom|der|die|das|den|dem|des|im|ab|bis|beim|und|seit|vor|nach)$")
"""``zum 30. April``, ``die 2. Etage``"""
_UNSPACED_END = re.compile(r"(?<=[。！？])(?=[^」』”’）)\s])")  # noqa: RUF001
_NAMED_ROW = re.compile(r"[^:.!?]{1,60}: [^:]*[^:\s], [^:,.!?]{1,60}: ")
"""``crane: Odin, tonnes: 73``"""
_ITEM = re.compile(
    rf"[-*+–>|{LIST_SIGNS}{DOTS}]\s"  # noqa: RUF001
    r"|\d{1,3}[.)]\s|\((?:\d{1,2}|[a-z]|[ivx]{1,4})\)\s|(?:[A-Z0-9][^\s:]*)(?: [^\s:]+){0,3}: \S"
    r"|\[?\d{4}-\d\d-\d\d\b|\[?\d\d:\d\d:\d\d\b"
)
"""The first line of an item of a list, of what stands behind a label, of an entry of a log."""
_ITEM_NUMBER = re.compile(r"\(?(\d{1,3})[.)]")
_INTRODUCES = re.compile(r"[^:]*(?::|\b(?:following|as follows)\b[^.:]*\.?)\W*", re.IGNORECASE)
_MEASURED = re.compile(r"\W*\d[\d.,]*\s?\S{1,4}")
"""``14 h``"""
_BOXES = frozenset((*TICKS, "\ufffd"))
"""The last is a sign for which its font has no letter."""
LONGEST_CHOICE = 4
"""Letters of what stands beside a box to tick, as "yes" and "nein"."""
_KEY = re.compile(r"[\w.\"'-]{1,40}(?::| =)(?:\s|$)")
"""``port: 8471`` where the line above is one too."""


@dataclass(frozen=True)
class Span:
    """A stretch of words: a sentence, a line or a cell. ``words`` is empty where the text has no geometry.

    ``along`` is where a cell begins and ends along the direction in which it is read, in page widths.
    """

    text: str
    words: tuple[Word, ...] = ()
    along: tuple[float, float] = (0.0, 0.0)

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems(self.text)

    @cached_property
    def label_stems(self) -> frozenset[str]:
        """The words of a cell as a label. "195 min" is a value, and no label for a duration; the head "EUR" is one."""
        return without_marks(self.stems) if any(map(str.isdigit, self.text)) else self.stems

    @cached_property
    def is_measured(self) -> bool:
        """Whether it is a figure with a unit and nothing else, as "14 h"."""
        return _MEASURED.fullmatch(self.text) is not None and without_marks(self.stems) != self.stems

    @cached_property
    def box(self) -> Box | None:
        return around([word.box for word in self.words])

    @cached_property
    def is_heading(self) -> bool:
        words = self.text.split()
        return (
            0 < len(words) <= MAX_HEADING_WORDS
            and not words[-1].endswith(_NO_HEADING_ENDS)
            and not words[0][0].islower()
            and not any(is_figure(word) for word in words[1:])
        )

    @cached_property
    def area(self) -> Box:
        """The box of a span that has words, as every cell has."""
        return box_of(self.words)


@dataclass(frozen=True)
class Row:
    """What stands on one height of the page, from left to right. ``text`` has its words in reading order, as they can
    be quoted: the second line of a wrapped label may stand behind the values. That of heads which stand on the page
    before is empty, and their cells have no words."""

    cells: tuple[Span, ...]
    text: str

    @cached_property
    def box(self) -> Box:
        return box_of([word for cell in self.cells for word in cell.words])

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems(self.text)

    @cached_property
    def is_prose(self) -> bool:
        """Whether a cell is longer than those of a table. The name of a row of figures may be long."""
        label, *others = self.cells
        named = any(is_figure(word.text) for cell in others for word in cell.words[-1:])
        longest = LONGEST_LABEL if named else MAX_CELL_WORDS
        return len(label.words) > longest or any(len(cell.words) > MAX_CELL_WORDS for cell in others)

    @cached_property
    def has_named_figures(self) -> bool:
        """Whether figures stand behind a name. Years behind one are heads: ``As of December 31, 2021 2020``."""
        label, *others = self.cells
        figures = [cell.text for cell in others if cell.words and is_figure(cell.words[-1].text)]
        return bool(figures) and any(map(str.isalpha, label.text)) and not all(map(_YEAR.fullmatch, figures))


def box_of(words: Sequence[Word]) -> Box:
    """The smallest box around ``words``, of which there is at least one."""
    box = around([word.box for word in words])
    assert box is not None
    return box


def rows(page: PageText, tables: Sequence[Table] = ()) -> list[Row]:
    """Visual rows in reading order, cut into cells at wide gaps and between the figures of a tight table.

    A row lies in one column, along the direction in which its words are read. Those of the page's ``tables`` have their
    wrapped labels whole, and come under the heads that stand on the page before.
    """
    aspect = page.aspect
    table_of = {id(word): table for table in tables for row in table.rows for cell in row for word in cell.words}
    lines = [[page.words[place] for place in row] for region in regions(page.words, aspect) for row in region.rows]
    place_of = {id(word): place for place, word in enumerate(word for line in lines for word in line)}
    ordered: list[Row] = []
    done: set[int] = set()
    for line in lines:
        table = table_of.get(id(line[0]))
        if table is not None and id(table) not in done:
            done.add(id(table))
            ordered.extend(_rows_of(table, aspect, place_of))
        if outside := [word for word in line if id(word) not in table_of]:
            parts = _parted_at_leaders(cells(outside, aspect))
            ordered.append(_row([_cell(part, aspect) for part in parts], place_of, outside))
    return ordered


def _rows_of(table: Table, aspect: float, place_of: Mapping[int, int]) -> Iterator[Row]:
    edges = [(u0 / aspect, u1 / aspect) for u0, u1 in table.edges]
    if table.head_rows == 0 and any(table.heads):
        heads = (_UNIT_OF_ALL.sub("", head) for head in table.heads)
        yield Row(tuple(Span(head, (), edge) for head, edge in zip(heads, edges, strict=True)), "")
    turn = table.rows[-1][0].words[0].turn
    for row in table.rows:
        # Turned heads stand over the columns that they name.
        spans = [
            _cell(cell.words, aspect) if cell.words[0].turn == turn else Span(cell.text, cell.words, edges[cell.column])
            for cell in row
        ]
        if len(row) == 1 and len(parts := _parted_at_leaders([row[0].words])) > 1:
            spans = [_cell(part, aspect) for part in parts]
        yield _row(spans, place_of, [word for cell in row for word in cell.words])


def _row(spans: Sequence[Span], place_of: Mapping[int, int], words: Sequence[Word]) -> Row:
    return Row(tuple(spans), joined(sorted(words, key=lambda word: place_of[id(word)])))


def _parted_at_leaders(row: Sequence[Sequence[Word]]) -> Sequence[Sequence[Word]]:
    """The cells of a row, parted where dots lead from a name to its page or its price, and without these dots."""
    if not _leads([word.text for cell in row for word in cell]):
        return row
    cut = [(number, part) for number, cell in enumerate(row) for word in cell for part in _cut_at_leaders(word)]
    dots = _in_leaders([word.text for _, word in cut])
    grouped = groupby(enumerate(cut), key=lambda pair: (pair[1][0], pair[0] in dots))
    return [[word for _, (_, word) in words] for (_, are_dots), words in grouped if not are_dots] or row


def _cut_at_leaders(word: Word) -> list[Word]:
    """The dots of ``word`` and what stands on both sides of them, each with its share of the box."""
    dots = LEADERS.search(word.text) if word.turn == 0 else None
    if dots is None:
        return [word]
    wide = (word.box.x1 - word.box.x0) / len(word.text)
    bounds = [0, *dots.span(), len(word.text)]
    return [
        Word(word.text[a:b], replace(word.box, x0=word.box.x0 + wide * a, x1=word.box.x0 + wide * b))
        for a, b in pairwise(bounds)
        if a < b
    ]


def _in_leaders(texts: Sequence[str]) -> Set[int]:
    """The places of the words that are nothing but dots which lead to a page or a price."""
    runs = (list(places) for _, places in groupby(range(len(texts)), key=lambda at: bool(_DOTS.fullmatch(texts[at]))))
    return {
        place
        for run in runs
        if _DOTS.fullmatch(texts[run[0]]) and LEADERS.search(" ".join(texts[at] for at in run))
        for place in run
    }


def _leads(texts: Sequence[str]) -> bool:
    """Whether dots lead from the beginning of a line to its end: to a figure, or over more than an ellipsis. Those that
    lead to nothing are a place to write in."""
    line = " ".join(texts)
    parts = LEADERS.split(line)
    name, end = parts[0], parts[-1]
    if len(parts) == 1 or not name or not end:
        return False
    dots = line[len(name) : -len(end)].replace(" ", "")
    return any(map(str.isdigit, end)) or len(dots) >= LEAST_DOTS


def sentences(page: PageText, tables: Sequence[Table] = ()) -> list[Span]:
    """Sentences and lines in reading order; a wide gap, a change of column, block or letter size ends one.

    None goes from one row of the page's ``tables`` to the next, or out of a cell among its elements.
    """
    if not page.words:
        return _over_page_end(text_sentences(page.text), page)
    aspect = page.aspect
    body = (row for table in tables for row in table.body)
    row_of = {id(word): number for number, row in enumerate(body) for cell in row for word in cell.words}
    spans: list[Span] = []
    columns = [
        list(_cell_by_cell([[page.words[place] for place in row] for row in region.rows], page.elements))
        for region in regions(page.words, aspect)
    ]
    for number, column in enumerate(columns):
        before = len(spans)
        for lines in column:
            spans += _of_lines(lines, row_of, aspect, page.elements)
        if number > 0 and len(column) == len(columns[number - 1]) == 1 and _goes_on(spans[before - 1], spans[before]):
            spans[before - 1 : before + 1] = [_over_column_end(spans[before - 1], spans[before])]
    return _over_page_end(spans, page)


def _of_lines(
    lines: Sequence[Sequence[Word]], row_of: Mapping[int, int], aspect: float, elements: Sequence[Element]
) -> Iterator[Span]:
    """The sentences of a column. ``row_of`` has the rows of tables that words stand in."""
    prose = [element for element in elements if element.kind in _PROSE and _is_ended(element.text)]
    prose_of = [next((e.number for e in prose if holds_centre(e.box, line[0].box)), None) for line in lines]
    last = {id(lines[place][-1]) for place in _ended_lines(lines, aspect, prose_of)}
    led = [line for line in lines if _leads([word.text for word in line])]
    last |= {id(line[-1]) for line in led}
    within = {id(word) for line in led for word in line[:-1]}
    words = [word for line in lines for word in line]
    current: list[Word] = []
    for place, (word, following) in enumerate(zip(words, [*words[1:], None], strict=True)):
        current.append(word)
        is_choice = _is_choice(words[max(0, place - 1) : place + 1], words[place + 1 : place + 4])
        if is_choice and following is not None and _on_one_line(word, following, aspect):
            continue
        after = following.text if following is not None else ""
        ends = _ends_sentence(word.text, after) and not _ORDINAL.match(word.text)
        ends = ends and not _is_caption_number([part.text for part in current[:3]])
        if (
            following is None
            or ((ends or len(current) >= MAX_SENTENCE_WORDS) and id(word) not in within)
            or id(word) in last
            or row_of.get(id(word)) != row_of.get(id(following))
            or _breaks(word, following, aspect)
        ):
            yield Span(joined(current), tuple(current))
            current = []


def _is_choice(before: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether ``words`` begin with an answer to tick, ``Yes ☒`` or ``☒ Yes ☐``: it belongs to the sentence ``before``
    it, of which the last two words are enough."""
    first, second, third = ([word.text for word in words] + ["", "", ""])[:3]
    if first in _BOXES:
        return len(second) <= LONGEST_CHOICE and (third in _BOXES or any(word.text in _BOXES for word in before))
    return second in _BOXES and first.isalpha() and len(first) <= LONGEST_CHOICE


def introduces(text: str) -> bool:
    """Whether ``text`` says that a list follows, and is not followed on its line by what it announces."""
    return _INTRODUCES.fullmatch(text) is not None


def items_below(spans: Sequence[Span], place: int) -> Sequence[Span]:
    """The items of the list right below the span at ``place``, with all of their sentences; at least two, or none.

    All items have marks of one kind, as bullets, or numbers that rise; items within items belong to them. An item of a
    list has no items of its own kind, and what introduces another list ends one.
    """
    kind = _mark(spans[place + 1]) if place + 1 < len(spans) else ""
    if not kind or _mark(spans[place]) == kind:
        return ()
    ends, number, length = [place + 1], _number(spans[place + 1]), len(spans[place + 1].text)
    for at in range(place + 2, len(spans)):
        span, mark = spans[at], _mark(spans[at])
        length += len(span.text) + 1
        is_next = mark == kind and (number is None or (_number(span) or 0) > number)
        is_other = not mark and (span.is_heading or introduces(span.text))
        if is_other or (mark == kind and not is_next) or at > ends[-1] + BETWEEN_ITEMS or length > LONGEST_LIST:
            break
        if is_next:
            ends.append(at)
            number = _number(span)
    return spans[place + 1 : ends[-1] + 1] if len(ends) > 1 else ()


def counted_items(spans: Sequence[Span], items: Sequence[Span]) -> Sequence[str]:
    """The words of each of the ``items`` of a list among ``spans``, without those within them; none where the list may
    have others."""
    kind, end = _mark(items[0]), spans.index(items[-1]) + 1
    rest = takewhile(lambda span: _mark(span) or not (span.is_heading or introduces(span.text)), spans[end:])
    follows = any(span.box is None or span.box.y0 < FOOT for span in spans[end:])
    is_cut_off = not follows and items[-1].box is not None and items[-1].box.y1 > LOWEST
    if is_cut_off or any(_mark(span) == kind for span in rest):
        return ()
    return [item.text.split(maxsplit=1)[1] for item in items if _mark(item) == kind]


def _number(span: Span) -> int | None:
    """The number that an item of a list begins with."""
    match = _ITEM_NUMBER.match(span.text)
    return int(match[1]) if match is not None else None


def _mark(span: Span) -> str:
    """The kind of mark that an item of a list begins with: a bullet, ``1`` or ``a``; "" where it begins with none."""
    mark = span.text.split(maxsplit=1)[0]
    if not BULLET.match(mark) or mark == span.text:
        return ""
    label = mark.strip("().")
    return "1" if label.isdigit() else "a" if label.isalpha() else mark


def _goes_on(span: Span, following: Span) -> bool:
    """Whether the end of a column divides a word between the last sentence of one and the first of the next."""
    before, after = span.words[-1], following.words[0]
    return before.turn == after.turn and undivided(before.text, after.text) is not None


def _over_column_end(span: Span, following: Span) -> Span:
    """One sentence of both: its box is that of its longer part, for one around both would hold most of both columns."""
    longer = max(span, following, key=lambda part: len(part.words))
    return replace(longer, text=continued(span.text, following.text))


def cut_at_stops(words: Sequence[Word]) -> tuple[Word, ...]:
    """``words``, those of scripts without blanks cut behind each full stop inside of them: such a word is a whole line.

    Their letters are of one width, so each part has its share of the box.
    """
    cut: list[Word] = []
    for word in words:
        parts = _UNSPACED_END.split(word.text)
        if len(parts) == 1 or word.turn not in (0, 90):
            cut.append(word)
            continue
        box, start = word.box, 0
        for part in parts:
            first, last = start / len(word.text), (start + len(part)) / len(word.text)
            wide, high = box.x1 - box.x0, box.y1 - box.y0
            own = (
                replace(box, x0=box.x0 + wide * first, x1=box.x0 + wide * last)
                if word.turn == 0
                else replace(box, y0=box.y0 + high * first, y1=box.y0 + high * last)
            )
            cut.append(Word(part, own, word.turn))
            start += len(part)
    return tuple(cut)


def _over_page_end(spans: list[Span], page: PageText) -> list[Span]:
    """``spans`` with the sentence whole that goes on on the next page: its box is that of its part on this one."""
    paragraph = crossing_paragraph(page)
    if paragraph is None:
        return spans
    text = " ".join(paragraph.text.split())
    ends = [place for place, span in enumerate(spans) if span.text and text.endswith(span.text)]
    if not ends:
        return spans
    last = max(ends, key=lambda place: len(spans[place].text))
    whole = continued(spans[last].text, text_sentences(page.continuation)[0].text)
    return [*spans[:last], replace(spans[last], text=whole), *spans[last + 1 :]]


def _cell_by_cell(lines: Sequence[Sequence[Word]], elements: Sequence[Element]) -> Iterator[list[list[Word]]]:
    """``lines``, those of each cell of a table by themselves: a line goes across all cells of a row."""
    cells = [element.box for element in elements if element.table is not None]
    if not cells:
        yield [list(line) for line in lines]
        return
    parts: dict[tuple[int, int], list[list[Word]]] = {}
    outside = 0
    for line in lines:
        begun: set[tuple[int, int]] = set()
        for word in line:
            cell = next((number for number, box in enumerate(cells) if holds_centre(box, word.box)), -1)
            key = (cell, 0 if cell >= 0 else outside)
            if key not in begun:
                parts.setdefault(key, []).append([])
                begun.add(key)
            parts[key][-1].append(word)
        outside += any(cell >= 0 for cell, _ in begun)
    yield from parts.values()


def text_sentences(text: str) -> list[Span]:
    """The same for plain text: sentence ends, blank lines, headings, items of lists, rows of tables and lines that end
    before they must cut; other line breaks do not."""
    blocks: list[list[str]] = [[]]
    lines = [line.strip() for line in text.splitlines()]
    needs = [
        len(line) + len(following.split(maxsplit=1)[0]) + 1.0
        if line and following and _may_begin(following, line)
        else None
        for line, following in pairwise(lines)
    ]
    ended = set(_meant_ends([float(len(line)) for line in lines], needs, _prose_of(lines)))
    for place, line in enumerate(lines):
        is_whole = line.startswith("#") or _NAMED_ROW.match(line) is not None
        above = lines[place - 1] if place else ""
        is_keyed = _KEY.match(line) is not None and _KEY.match(above) is not None and not above.endswith(":")
        is_led = _leads(line.split())
        if not line or is_whole or is_keyed or (is_led and not line[0].islower()) or _ITEM.match(line):
            blocks.append([])
        blocks[-1].append(line)
        if is_whole or is_led or place in ended:
            blocks.append([])
    spans: list[Span] = []
    for block in blocks:
        words = _UNSPACED_END.sub(" ", " ".join(block)).split()
        is_led = _leads(words)
        current: list[str] = []
        for word, following in zip_longest(words, words[1:], fillvalue=""):
            current.append(word)
            begins = not following.lstrip(_OPENING + "'([")[:1].islower()
            is_mark = _ORDINAL.match(word) is not None and (
                len(current) == 1 or _BEFORE_ORDINAL.match(current[-2]) or following.rstrip(",.;:").casefold() in MONTHS
            )
            ends = begins and _ends_sentence(word, following) and not (is_mark or _is_caption_number(current[:3]))
            if not following or ((ends or len(current) >= MAX_SENTENCE_WORDS) and not is_led):
                spans.append(Span(" ".join(current)))
                current = []
    return spans


def _prose_of(lines: Sequence[str]) -> list[int | None]:
    """The number of the paragraph or item that each line of a plain text is part of, where that ends in a full stop."""
    starts = [
        place for place, line in enumerate(lines) if place == 0 or not (line and lines[place - 1]) or _ITEM.match(line)
    ]
    return [
        start if _is_ended(lines[end - 1]) else None
        for start, end in pairwise([*starts, len(lines)])
        for _ in range(start, end)
    ]


def _ends_sentence(word: str, following: str) -> bool:
    """Whether ``word`` ends a sentence before ``following``. An abbreviation does where a word of grammar begins the
    next: ``He moved to hall B. The rent …``, and not ``built by J. K. Berg``."""
    if not _is_ended(word):
        return False
    return not _ABBREVIATION.match(word) or (following[:1].isupper() and is_function_word(following.rstrip(",.:;")))


def _is_caption_number(texts: Sequence[str]) -> bool:
    return len(texts) == 2 and _CAPTION_NUMBER.fullmatch(" ".join(texts)) is not None


def _ended_lines(lines: Sequence[Sequence[Word]], aspect: float, prose_of: Sequence[int | None]) -> Iterator[int]:
    """The places of lines whose ends are meant, as in a list, because the next word would have found room.
    ``prose_of`` has the paragraph of each line, as in ``_meant_ends``.

    A next word with a small letter, farther in or of a script from the right goes on; headlines are broken where they
    look well.
    """
    edges = [(upright(line[0], aspect), upright(line[-1], aspect)) for line in lines]
    heights = [last[3] - last[1] for _, last in edges]
    usual = median(heights) if heights else 0.0
    reaches = [last[2] for _, last in edges]
    needs: list[float | None] = []
    for place, following in enumerate(lines[1:]):
        u0, _, u1, _ = upright(following[0], aspect)
        goes_on = (
            heights[place] > LARGE * usual
            or u0 > edges[place][0][0] + heights[place]
            or is_right_to_left(following[0].text)
            or not _may_begin(following[0].text, lines[place][-1].text)
        )
        needs.append(None if goes_on else reaches[place] + (u1 - u0) + heights[place])
    return _meant_ends(reaches, needs, prose_of)


def _meant_ends(
    reaches: Sequence[float], needs: Sequence[float | None], prose_of: Sequence[int | None]
) -> Iterator[int]:
    """The places of lines whose ends are meant, of lines that reach so far and would reach as far as they need with the
    first word of the next one; None where that goes on. So do the longest of lines that mostly end early.

    ``prose_of`` has the paragraph of each line that stands in one which ends in a full stop, otherwise None. Lines
    outside of it, as the short items of a list below, say nothing about its own.
    """

    def mostly(places: Sequence[int]) -> bool:
        return 2 * sum(early[place] for place in places) >= len(places)

    early = [
        need is not None and need < max(reaches[max(0, place - NEAR_LINES) : place + NEAR_LINES + 1])
        for place, need in enumerate(needs)
    ]
    within = [before if before is not None and before == after else None for before, after in pairwise(prose_of)]
    for place, need in enumerate(needs):
        near = range(max(0, place - NEAR_LINES), min(len(needs), place + NEAR_LINES + 1))
        own = [other for other in near if within[place] in (None, within[other])]
        if early[place] or (need is not None and mostly(near) and mostly(own)):
            yield place


def _is_ended(text: str) -> bool:
    return text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)


def _may_begin(text: str, before: str) -> bool:
    """Whether what ``text`` begins can be something new after ``before``."""
    return not text[0].islower() and (text[0].isalnum() or text[0] in _OPENING) and not before.endswith((",", "-", "&"))


def _on_one_line(word: Word, following: Word, aspect: float) -> bool:
    _, top, _, bottom = upright(word, aspect)
    _, next_top, _, next_bottom = upright(following, aspect)
    middle = (top + bottom) / 2
    return next_top < middle < next_bottom


def _breaks(word: Word, following: Word, aspect: float) -> bool:
    u0, top, u1, bottom = upright(word, aspect)
    next_u0, next_top, next_u1, next_bottom = upright(following, aspect)
    height, other = bottom - top, next_bottom - next_top
    if _on_one_line(word, following, aspect):
        return max(next_u0 - u1, u0 - next_u1) > 2 * CELL_GAP * height
    is_vertical = word.turn == following.turn == 90 and not word.text[-1:].isascii()
    if next_bottom <= top or next_top - bottom > (COLUMN_GAP if is_vertical else LINE_GAP) * height:
        return True
    return max(height, other) > 1.3 * min(height, other) or following.text[:1] in f"–*{LIST_SIGNS}"  # noqa: RUF001


def _cell(words: Sequence[Word], aspect: float) -> Span:
    edges = [upright(word, aspect) for word in words]
    along = min(u0 for u0, _, _, _ in edges) / aspect, max(u1 for _, _, u1, _ in edges) / aspect
    return Span(joined(words), tuple(words), along)
