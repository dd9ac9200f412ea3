"""The elements of a page, from the boxes of its words alone: for text layers and OCR alike; and those of a clip.

A page is divided into columns and tables (``reading_order``, ``tables``); what is left is divided into blocks of lines,
each of which is a heading, a paragraph, an item of a list, a caption, a note, or a line in the margin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from statistics import median

from vrag_ray.corpus.ruled import Field, Grid, grid_of_cells
from vrag_ray.corpus.tables import Cell, Table, pieces
from vrag_ray.types import FULL_PAGE, Box, Cue, PageText, Word, around, joined, upright
from vrag_ray.types.elements import Element, ElementKind
from vrag_ray.types.superscripts import SUPERSCRIPTS

LINE_GAP, WIDE_GAP = 0.8, 2.0
"""Line heights between two lines of one block, at most: usually, and where a full line goes on in mid-sentence."""
WIDER_GAP = 0.3
"""Line heights by which the gap between two paragraphs exceeds that between their lines."""
OTHER_TYPE = 1.2
"""Ratio of the heights of two lines that are set in different type."""
FULL_LINE = 0.85
"""Share of its column that a line fills at least, which goes on in the next one."""
SHORT_LINE = 0.8
"""Share of its column that the last line of a paragraph fills at most, where the next one begins without a gap."""
HEADING_FILL = 0.7
"""Share of its column that a heading fills at most, which is set in the type of the text that follows without a gap."""
LARGE, LARGEST = 1.15, 1.5
"""Heights of a section's heading and of a title, as ratios to the text of the page."""
SMALL = 0.92
"""Height of a note, as a ratio to the text of the page, at most."""
LONGEST_HEADING = 14
"""Words."""
HEADING_LINES = 3
MARGIN = 0.1
"""Share of the page at its top and at its bottom where headers and footers stand."""
NOTES_BELOW = 0.6
"""Share of the page below which notes stand."""
MARGIN_LINES, LONGEST_FURNITURE = 2, 24
"""Lines and words of a header or a footer."""
GAP_OF_MARGIN = 0.8
"""Line heights between a header or a footer and the text, at least."""

BULLET_SIGNS = "•⁃▪▫●○■□◦‣▶►▸➢➤➔◆◇❖❑❒"  # noqa: RUF001
TICKS = "☐☑☒✓✔"
LIST_SIGNS = f"{BULLET_SIGNS}{TICKS}"
"""Signs before the items of lists: bullets, which mean nothing, and ticks."""
DOTS = "·∙"
"""Bullets that stand between words of a line too."""
BULLET = re.compile(rf"^(?:[{LIST_SIGNS}{DOTS}–*\-\uf000-\uf0ff]|\(?(?:\d{{1,2}}|[a-zA-Z]|[ivx]{{1,4}})[.)])$")  # noqa: RUF001
"""The mark or the number before an item of a list."""
_CAPTION = re.compile(
    r"^(?:[Tt]able|TABLE|[Ff]igure|FIGURE|[Ff]ig\.?|[Cc]hart|[Ee]xhibit|[Pp]late|[Mm]ap|[Dd]iagram)\s+"
    r"(?:\d[\w.-]*|[A-Z]\b[\w.-]*)(?:\s*[:.|\u2013\u2014-]|\s+[^a-z\s]|\s*$)"
)
"""Its number, and then what it shows: after a comma or a verb the line speaks of the figure, as one of a paragraph."""
_NUMBERED = re.compile(
    r"^(?:(?:\d+\.)+\d*|\d+|[A-Z]\.|(?:Item|ITEM|Note|NOTE|Part|PART|Chapter|Section)\s+\w+\W?)\s*[A-Z]"
)
_NOTE = re.compile(rf"^(?:\(?[\d{SUPERSCRIPTS}]{{1,2}}\)?|[*†‡§]+|\([a-z]\)|note[s:])\s?", re.IGNORECASE)
MOST_SHOWN = 0.7
"""Share of a table in which the words alone show tables too, from which on they show it."""
_PAGE_NUMBER = re.compile(
    r"(?:page )?\W{0,2}(?:\d{1,4}|[ivxlc]{1,6}|[A-Z]{1,2}-\d{1,3})\W{0,2}(?: of \d+)?", re.IGNORECASE
)
_NO_HEADING_ENDS = tuple(".!?,;:")


@dataclass(slots=True)
class _Line:
    """``height`` is that of most of its words: on a scan a few are taken for taller ones."""

    words: list[Word]
    u0: float
    v0: float
    u1: float
    v1: float
    height: float

    @property
    def text(self) -> str:
        return joined(self.words)


def elements(
    words: Sequence[Word], aspect: float, grids: Sequence[Grid] = (), pictures: Sequence[Box] = ()
) -> tuple[Element, ...]:
    """The elements of a page in reading order.

    ``words`` are in reading order, ``aspect`` is the page's width over its height, ``grids`` are those of its ruling
    lines, and ``pictures`` the boxes of its pictures in page fractions.
    """
    blocks: list[Table | list[_Line]] = []
    for rows, table in pieces(words, aspect, grids):
        if table is not None:
            blocks.append(table)
        else:
            blocks.extend(_blocks([_line(row, aspect) for row in rows]))
    lines = [line for block in blocks if not isinstance(block, Table) for line in block]
    body = _body_height(lines)
    boxes = [block.box if isinstance(block, Table) else _box(block) for block in blocks]
    parts: list[tuple[ElementKind, Box, str, Table | None]] = []
    for (block, following), box in zip(pairwise([*blocks, None]), boxes, strict=True):
        assert block is not None
        if isinstance(block, Table):
            parts.append((ElementKind.TABLE, box, block.markdown(), block))
            continue
        text = joined([word for line in block for word in line.words], "\n")
        leads = _leads(block, following)
        kind = (None if leads else _in_margin(block, box, boxes)) or _kind(block, box, body, leads)
        if kind is ElementKind.TITLE and any(earlier is ElementKind.TITLE for earlier, _, _, _ in parts):
            kind = ElementKind.SECTION
        parts.append((kind, box, text, None))
    for picture in pictures:
        parts.insert(_place(picture, [box for _, box, _, _ in parts]), (ElementKind.PICTURE, picture, "", None))
    return tuple(_numbered(parts, _cell_boxes([block for block in blocks if isinstance(block, Table)], aspect, grids)))


def elements_of_clip(cues: Sequence[Cue], shots: Sequence[tuple[float, float]]) -> tuple[Element, ...]:
    """Shots, what is written in them, and what is spoken, in the order in which they begin."""
    parts = [
        *((start, -end, ElementKind.SHOT, FULL_PAGE, "") for start, end in shots),
        *(
            (
                cue.start,
                -cue.end,
                ElementKind.CUE if cue.box is None else ElementKind.PARAGRAPH,
                cue.box or FULL_PAGE,
                cue.text,
            )
            for cue in cues
        ),
    ]
    # A shot comes before what is written in it: lines of a picture have its times, and keep their order.
    ordered = sorted(parts, key=lambda part: (part[0], part[1], part[2] is not ElementKind.SHOT))
    return tuple(
        Element(number, kind, box, text, t_start=start, t_end=-end)
        for number, (start, end, kind, box, text) in enumerate(ordered, 1)
    )


def _cell_boxes(tables: Sequence[Table], aspect: float, grids: Sequence[Grid]) -> dict[int, Box]:
    """The box of each cell by its id: what ruling lines enclose around a cell that stands alone between them, else its
    share of the table, half way to its neighbours. Of a turned table, what its words fill."""
    boxes: dict[int, Box] = {}
    for table in tables:
        if all(word.turn == 0 for row in table.body for cell in row for word in cell.words):
            boxes |= _shares_of(table, aspect)
    cells_of: dict[tuple[int, Field], list[Cell]] = {}
    for cell in (cell for table in tables for row in table.rows for cell in row):
        fields = {_field_of(word, aspect, grids) for word in cell.words}
        place = fields.pop()
        if place is not None and not fields:
            cells_of.setdefault(place, []).append(cell)
    for (number, field), (cell, *others) in cells_of.items():
        if not others:
            xs, ys = grids[number].xs, grids[number].ys
            left, right = xs[field.column] / aspect, xs[field.column + field.columns] / aspect
            top, bottom = ys[field.row], ys[field.row + field.rows]
            boxes[id(cell)] = Box(max(0.0, left), max(0.0, top), min(1.0, right), min(1.0, bottom)).union(cell.box)
    return boxes


def _field_of(word: Word, aspect: float, grids: Sequence[Grid]) -> tuple[int, Field] | None:
    """The number of the grid and the field of it in which a word stands."""
    if word.turn != 0:
        return None
    x, y = (word.box.x0 + word.box.x1) / 2 * aspect, (word.box.y0 + word.box.y1) / 2
    fields = ((number, grid.field_at(x, y)) for number, grid in enumerate(grids))
    return next(((number, field) for number, field in fields if field is not None), None)


def _shares_of(table: Table, aspect: float) -> dict[int, Box]:
    whole = table.box
    between = [(left[1] + right[0]) / 2 / aspect for left, right in pairwise(table.edges)]
    xs = [whole.x0, *between, whole.x1]
    heights = [(min(c.box.y0 for c in row), max(c.box.y1 for c in row)) for row in table.rows]
    ys = [whole.y0, *((above[1] + below[0]) / 2 for above, below in pairwise(heights)), whole.y1]
    shares: dict[int, Box] = {}
    for row, (top, bottom) in zip(table.rows, pairwise(ys), strict=True):
        for cell in row:
            # Rows and columns that overlap leave a cell no share of its own.
            left, right = sorted((xs[cell.column], xs[cell.column + cell.span]))
            own = cell.box
            shares[id(cell)] = Box(
                min(left, own.x0), min(top, bottom, own.y0), max(right, own.x1), max(top, bottom, own.y1)
            )
    return shares


def grids_of(page: PageText, known: Sequence[Table]) -> list[Grid]:
    """The grids that the cells of the tables of ``page`` make, of those with a cell of several lines that the words of
    the page alone, which show ``known`` tables, do not show: ruling lines did."""
    cells = {Box(*corners) for corners in page.cells} | {part.box for part in page.elements if part.table is not None}
    wrapped = {part.table for part in page.elements if part.table is not None and "\n" in part.text}
    inside = (
        sorted((box for box in cells if table.box.union(box) == table.box), key=Box.as_tuple)
        for table in page.elements
        if table.number in wrapped and sum(table.box.shared(shown.box) for shown in known) < MOST_SHOWN * table.box.area
    )
    return [grid_of_cells([(b.x0 * page.aspect, b.y0, b.x1 * page.aspect, b.y1) for b in boxes]) for boxes in inside]


def _numbered(
    parts: Sequence[tuple[ElementKind, Box, str, Table | None]], cell_boxes: Mapping[int, Box]
) -> list[Element]:
    numbered: list[Element] = []
    section = ""
    for kind, box, text, table in parts:
        number = len(numbered) + 1
        cells = [] if table is None else [cell for row in table.rows for cell in row]
        whole = reduce(Box.union, (cell_boxes.get(id(cell), cell.box) for cell in cells), box)
        numbered.append(Element(number, kind, whole, text, section))
        if kind in (ElementKind.TITLE, ElementKind.SECTION):
            section = " ".join(text.split())
        numbered.extend(
            Element(
                number + place,
                ElementKind.TABLE_CELL,
                cell_boxes.get(id(cell), cell.box),
                joined(cell.words, "\n"),
                section,
                table=number,
            )
            for place, cell in enumerate(cells, 1)
        )
    return numbered


def _box(block: Sequence[_Line]) -> Box:
    box = around([word.box for line in block for word in line.words])
    assert box is not None
    return box


def _line(words: Sequence[Word], aspect: float) -> _Line:
    boxes = [upright(word, aspect) for word in words]
    return _Line(
        list(words),
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
        median(box[3] - box[1] for box in boxes),
    )


def _blocks(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Lines that follow each other as one paragraph, heading or item of a list."""
    left = min((line.u0 for line in lines), default=0.0)
    right = max((line.u1 for line in lines), default=0.0)
    gaps = [line.v0 - last.v1 for last, line in pairwise(lines) if abs(line.v0 - last.v1) < LINE_GAP * line.height]
    usual = median(gaps) if gaps else 0.0
    blocks: list[list[_Line]] = []
    for line in lines:
        last = blocks[-1][-1] if blocks else None
        if last is None or _begins(line, last, (left, right), usual):
            blocks.append([line])
        else:
            blocks[-1].append(line)
    return blocks


def _begins(line: _Line, last: _Line, column: tuple[float, float], usual: float) -> bool:
    """Whether ``line`` begins a block of its own under ``last``. ``usual`` is the gap between two lines of a block."""
    left, right = column
    height = min(line.height, last.height)
    gap = line.v0 - last.v1
    fill = (last.u1 - left) / (right - left)
    ended = last.words[-1].text.rstrip("\"”')").endswith((".", "!", "?", ":"))
    if line.v1 <= last.v0 or gap > WIDE_GAP * height:
        return True
    goes_on = not ended and fill >= FULL_LINE and line.words[0].text[:1].islower()
    if not goes_on and (gap > LINE_GAP * height or gap > usual + WIDER_GAP * height):
        return True
    if max(line.height, last.height) > OTHER_TYPE * height:
        return True
    if BULLET.match(line.words[0].text) or _CAPTION.match(line.text):
        return True
    is_set_in = line.u0 - left > height and last.u0 - left < height
    return (ended and (is_set_in or fill < SHORT_LINE)) or (fill < HEADING_FILL and line.words[0].text[:1].isupper())


def _body_height(lines: Sequence[_Line]) -> float:
    """The height in which most words of the page are set."""
    heights = [line.height for line in lines for _ in line.words]
    return median(heights) if heights else 0.0


def _in_margin(block: Sequence[_Line], box: Box, boxes: Sequence[Box]) -> ElementKind | None:
    """Whether lines are a header or a footer: alone at the edge of the page, or its number under all that is on it."""
    words = [word.text for line in block for word in line.words]
    if len(block) > MARGIN_LINES or len(words) > LONGEST_FURNITURE:
        return None
    room = GAP_OF_MARGIN * median(line.height for line in block)
    text = " ".join(words)
    is_number = bool(_PAGE_NUMBER.fullmatch(text))
    if _NUMBERED.match(text) and not is_number:
        return None
    below = min((other.y0 for other in boxes if other.y0 >= box.y1), default=None)
    above = max((other.y1 for other in boxes if other.y1 <= box.y0), default=None)
    if box.y1 <= MARGIN and (is_number or (below is not None and below - box.y1 > room)):
        return ElementKind.HEADER
    is_last = all(other.y1 <= box.y1 for other in boxes)
    if (is_number and is_last) or (box.y0 >= 1 - MARGIN and above is not None and box.y0 - above > room):
        return ElementKind.FOOTER
    return None


def _kind(block: Sequence[_Line], box: Box, body: float, leads: bool) -> ElementKind:
    words = [word.text for line in block for word in line.words]
    text = " ".join(words)
    height = median(line.height for line in block)
    if _CAPTION.match(text):
        return ElementKind.CAPTION
    if BULLET.match(words[0]) and len(words) > 1:
        return ElementKind.LIST_ITEM
    if height <= SMALL * body and box.y0 >= NOTES_BELOW and _NOTE.match(text):
        return ElementKind.NOTE
    if len(words) <= LONGEST_HEADING and len(block) <= HEADING_LINES and not text.endswith(_NO_HEADING_ENDS):
        if height >= LARGEST * body:
            return ElementKind.TITLE
        if height >= LARGE * body or (len(block) == 1 and (_NUMBERED.match(text) or text.isupper() or leads)):
            return ElementKind.SECTION
    return ElementKind.PARAGRAPH


def _leads(block: Sequence[_Line], following: Table | list[_Line] | None) -> bool:
    """Whether a short line stands right above a longer block, at the same left edge, as a heading in bold does."""
    if following is None or isinstance(following, Table) or not block[0].words[0].text[:1].isupper():
        return False
    line, below = block[0], following[0]
    is_above = below.v0 - line.v1 + line.height >= 0 and below.v0 - line.v1 < WIDE_GAP * line.height
    return is_above and abs(below.u0 - line.u0) < line.height and len(following) > 1


def _place(picture: Box, boxes: Sequence[Box]) -> int:
    """Where a picture is read among ``boxes``: before the first below its top in its column."""
    for place, box in enumerate(boxes):
        if box.y0 >= picture.y0 and min(box.x1, picture.x1) > max(box.x0, picture.x0):
            return place
    return len(boxes)
