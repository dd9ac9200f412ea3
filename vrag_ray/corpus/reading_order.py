"""The order in which a person reads the words of a page: column by column, each line along its own direction.

Pure geometry on word boxes, about 3 ms for a page of 600 words. A page is cut where a strip without words stands beside
a common left edge, as long as what stands on both sides of it reads as text; a table is not cut but read by its rows.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from vrag_ray.corpus.model import CHECKED, UNCHECKED
from vrag_ray.corpus.windows import SPACELESS
from vrag_ray.types import Word, joined, undivided, upright

SEGMENT_GAP = 0.9
"""Words of one height further apart than this share of the height of their line stand in different segments."""
LEVEL = 0.5
"""Share of the smaller height by which the middles of two words of a row differ at most."""
GUTTER = 0.7
"""Least width of the strip between two columns, in heights of a line."""
EDGE_SLACK = 0.5
"""Line heights by which lines that begin at one edge may differ."""
INDENT = 4.0
"""Times the slack of an edge by which the lines of a list are set in under the line above them."""
LEAST_ROWS = 2
"""Rows on each side of a gutter, at least; one more on one of the sides."""
PROSE_WORDS, PROSE_FILL = 3, 0.5
"""Words of a line of text, and the share of its column that it fills: medians, at least."""
NARROW_WORDS, NARROW_FILL, NARROW_GOES_ON = 2, 0.7, 0.4
"""The same in a narrow column, of which this many lines begin with a small letter: cells of a table seldom do."""
PROSE_LETTERS = 12
"""Of a line in a script without spaces."""
LONGEST_NAME = 4
"""Words of a line of a wrapped name of a row, in the median, at most."""
MOST_FIGURES = 0.5
"""Share of words that are figures, above which lines are those of a table."""
PART_GAP = 0.4
"""Heights of a line between the parts of a band of columns, at least: paragraphs, tables, a line at the edge."""
UNEVEN = 0.3
"""Share by which the distances of two rows of one table differ at most."""
EDGE_OF_PAGE = 0.08
"""Share of the page at its top and its bottom where the line with its number stands."""
HEADER_WORDS, HEADER_APART = 8, 1.2
"""Words of a header or a footer over or under one column, at most; heights of a line between it and the text."""
ROWS_APART = 1.6
"""Heights of a line from which on lines are rows of a table rather than of a text."""
SMALL_BEGINNINGS, FILLED = 0.2, 0.7
"""Shares of the rows of a table whose first cell begins with a small letter, at most; that have a cell, at least."""
ALIGNED = 0.6
"""Share of rows of the shorter side that stand level with a row of the other, from which on it may be a table."""

_BOXES = frozenset((CHECKED, UNCHECKED, *"☐☑☒□■✓✔✗✘"))
_TYPED_BOX = re.compile(r"(?<!\S)\[ ?[x✓✔✗✘]? ?\](?!\S)")
"""``[x]`` or ``[ ]`` in small letters, of one word or of several."""


@dataclass(frozen=True, slots=True)
class Region:
    """Rows that are read from the first to the last before anything else: a column, a table, a piece between them.

    ``rows`` hold the places of words in the sequence that was arranged, in reading order. ``turn``: see ``Word``.
    """

    rows: tuple[tuple[int, ...], ...]
    turn: int


@dataclass(slots=True)
class _Segment:
    """Neighbouring words of one line, upright: ``u`` along the line, ``v`` down the page, both in page heights."""

    places: list[int]
    u0: float
    v0: float
    u1: float
    v1: float
    words: list[str]

    @property
    def middle(self) -> float:
        return (self.v0 + self.v1) / 2

    @property
    def height(self) -> float:
        return self.v1 - self.v0

    @property
    def is_right_to_left(self) -> bool:
        return is_right_to_left("".join(self.words))


def regions(words: Sequence[Word], aspect: float) -> list[Region]:
    """``words`` in the order in which a person reads them.

    ``aspect`` is the page's width over its height. The given order counts as evidence: sides of a gutter that follow
    each other in it are columns, also where their lines are short. So what was arranged once keeps its order.
    """
    turns: dict[int, list[_Segment]] = {}
    for turn, segment in _segments(words, aspect):
        turns.setdefault(turn, []).append(segment)
    ordered: list[Region] = []
    # What most of the page is written in comes first; then turned side notes, stamps and labels of axes.
    for turn in sorted(turns, key=lambda turn: (-sum(len(s.places) for s in turns[turn]), turn)):
        for region in _cut(turns[turn]):
            rows = tuple(tuple(place for segment in row for place in segment.places) for row in region)
            ordered.append(Region(rows, turn))
    return ordered


def arranged(words: Sequence[Word], aspect: float) -> tuple[list[Word], list[list[list[Word]]]]:
    """``words`` in reading order, and the same as regions of rows."""
    grouped = [[[words[place] for place in row] for row in region.rows] for region in regions(words, aspect)]
    return [word for region in grouped for row in region for word in row], grouped


def text_of(regions: Sequence[Sequence[Sequence[Word]]]) -> str:
    """Regions of rows of words as text, a line a row; a word that the end of a column divides is one word."""
    text = ""
    last: Word | None = None
    for words in ([word for row in region for word in row] for region in regions):
        lines, first = joined(words, "\n"), words[0]
        if last is None:
            text = lines
        elif last.turn == first.turn and (whole := undivided(last.text, first.text)) is not None:
            text = text.removesuffix(last.text) + whole + lines.removeprefix(first.text)
        else:
            text += "\n" + lines
        last = words[-1]
    return text


def is_right_to_left(text: str) -> bool:
    """Whether most letters of ``text`` belong to a script that is written from right to left."""
    if text.isascii():
        return False
    directions = [unicodedata.bidirectional(character) for character in text if character.isalpha()]
    return 2 * sum(direction in ("R", "AL") for direction in directions) > len(directions)


def _segments(words: Sequence[Word], aspect: float) -> Iterator[tuple[int, _Segment]]:
    turn, segment = 0, None
    for place, word in enumerate(words):
        u0, v0, u1, v1 = upright(word, aspect)
        if segment is not None and turn == word.turn:
            smaller = min(segment.height, v1 - v0)
            level = abs(segment.middle - (v0 + v1) / 2) < LEVEL * smaller
            # Right-to-left scripts go on to the left.
            gap = max(u0 - segment.u1, segment.u0 - u1)
            if (
                level
                and gap < SEGMENT_GAP * max(segment.height, v1 - v0)
                and (u1 > segment.u0 or is_right_to_left(word.text) or segment.is_right_to_left)
            ):
                segment.places.append(place)
                segment.words.append(word.text)
                segment.u0, segment.u1 = min(segment.u0, u0), max(segment.u1, u1)
                segment.v0, segment.v1 = min(segment.v0, v0), max(segment.v1, v1)
                continue
        if segment is not None:
            yield turn, segment
        turn, segment = word.turn, _Segment([place], u0, v0, u1, v1, [word.text])
    if segment is not None:
        yield turn, segment


def _rows(segments: Sequence[_Segment]) -> list[list[_Segment]]:
    """From top to bottom, each from left to right, or from right to left where most of its letters do."""
    rows: list[list[_Segment]] = []
    total = lowest = 0.0
    for segment in sorted(segments, key=lambda segment: segment.middle):
        middle, height = segment.middle, segment.height
        if rows and abs(middle - total / len(rows[-1])) < LEVEL * min(lowest, height):
            rows[-1].append(segment)
            total, lowest = total + middle, min(lowest, height)
        else:
            rows.append([segment])
            total, lowest = middle, height
    for row in rows:
        leftward = is_right_to_left("".join(word for segment in row for word in segment.words))
        row.sort(key=lambda segment: -segment.u1 if leftward else segment.u0)
    return rows


def _cut(segments: list[_Segment]) -> list[list[list[_Segment]]]:
    """Regions in reading order, as rows of segments."""
    if not segments:
        return []
    gutter = _best_gutter(segments)
    if gutter is None:
        return [_rows(segments)]
    top, bottom, left, right = gutter
    above = [s for s in segments if s.middle <= top]
    below = [s for s in segments if s.middle >= bottom]
    leftward = is_right_to_left("".join(word for segment in (*left, *right) for word in segment.words))
    sides = (right, left) if leftward else (left, right)
    return [*_cut(above), *_cut(sides[0]), *_cut(sides[1]), *_cut(below)]


_Gutter = tuple[float, float, list[_Segment], list[_Segment]]
"""The heights between which a strip is free of words, and what stands left and right of it."""


def _best_gutter(segments: Sequence[_Segment]) -> _Gutter | None:
    """The gutter with the most rows on its shorter side, of those between columns of text."""
    if len(segments) < 2 * LEAST_ROWS + 1:
        return None
    height = median(segment.height for segment in segments)
    segments = sorted(segments, key=lambda segment: segment.middle)
    middles = [segment.middle for segment in segments]
    best: _Gutter | None = None
    most = 0
    for edge in _edges(segments, EDGE_SLACK * height):
        strip = edge - GUTTER * height
        slack = EDGE_SLACK * height / 2
        crossing = [s.middle for s in segments if s.u0 < edge - slack and s.u1 > strip]
        for top, bottom in zip([float("-inf"), *crossing], [*crossing, float("inf")], strict=True):
            band = segments[bisect_right(middles, top) : bisect_left(middles, bottom)]
            if len(band) < 2 * max(most, LEAST_ROWS):
                continue
            left = [s for s in band if s.u1 <= strip]
            right = [s for s in band if s.u0 >= edge - slack]
            if len(left) + len(right) < len(band) or min(len(left), len(right)) <= max(most, LEAST_ROWS - 1):
                continue
            rows_left, rows_right = _rows(left), _rows(right)
            fewer, more = sorted((len(rows_left), len(rows_right)))
            if fewer < LEAST_ROWS or more < LEAST_ROWS + 1 or fewer <= most:
                continue
            if _are_columns(rows_left, rows_right):
                first, last = _without_tables(band, strip, top, bottom, height)
                left, right = ([s for s in side if first < s.middle < last] for side in (left, right))
                fewer = min(len(_rows(left)), len(_rows(right)))
                if fewer > most:
                    best, most = (first, last, left, right), fewer
    return best


def _without_tables(
    band: Sequence[_Segment], strip: float, top: float, bottom: float, height: float
) -> tuple[float, float]:
    """The longest part of a band of columns between tables and the header or footer of the page: what stands level
    on both sides, row by row, belongs together there, and such a line to neither column."""
    rows = _rows(band)
    edges = ((rows[0], rows[1]), (rows[-1], rows[-2]))
    outer = {id(s) for row, beside in edges if _is_furniture(row, beside, strip, height) for s in row}
    runs: list[list[_Segment]] = [[]]
    for part, has_rows in _parts([s for s in band if id(s) not in outer], strip, PART_GAP * height):
        if has_rows and _is_table(part, strip):
            runs.append([])
        else:
            runs[-1] += part
    run = max(runs, key=len)
    if not run or len(run) == len(band):
        return top, bottom
    first, last = min(s.middle for s in run), max(s.middle for s in run)
    above = max((s.middle for s in band if s.middle < first), default=top)
    below = min((s.middle for s in band if s.middle > last), default=bottom)
    return max(top, above), min(bottom, below)


def _parts(band: Sequence[_Segment], strip: float, gap: float) -> list[tuple[list[_Segment], bool]]:
    """``band`` from top to bottom, divided where nothing stands on either side of the strip for more than ``gap``. Rows
    that follow each other at even distances, each with one line on both sides, are one part, and marked as rows."""
    parts: list[list[_Segment]] = []
    reached = float("-inf")
    for segment in sorted(band, key=lambda segment: segment.v0):
        if segment.v0 - reached > gap:
            parts.append([])
        parts[-1].append(segment)
        reached = max(reached, segment.v1)
    divided: list[tuple[list[_Segment], bool]] = []
    pitch = 0.0
    for part in parts:
        is_row = len(_rows(part)) == 1 and len({segment.u1 <= strip for segment in part}) == 2
        apart = part[0].middle - divided[-1][0][-1].middle if divided else 0.0
        if is_row and divided and divided[-1][1] and (not pitch or abs(apart - pitch) < UNEVEN * pitch):
            divided[-1][0].extend(part)
            pitch = apart
        else:
            divided.append((part, is_row))
            pitch = 0.0
    return divided


def _is_table(part: Sequence[_Segment], strip: float) -> bool:
    """Whether the rows of a part of a band, on both sides of the strip, are read across."""
    left, right = _rows([s for s in part if s.u1 <= strip]), _rows([s for s in part if s.u1 > strip])
    return min(len(left), len(right)) > LEAST_ROWS and _are_level(left, right) and not _are_columns(left, right)


def _is_furniture(row: Sequence[_Segment], beside: Sequence[_Segment], strip: float, height: float) -> bool:
    """Whether a line at the top or at the bottom of the page begins or ends with a figure, or is a few words over or
    under a single column, apart from the row ``beside`` it."""
    words = [word for segment in row for word in segment.words]
    if not (row[0].v1 < EDGE_OF_PAGE or row[0].v0 > 1 - EDGE_OF_PAGE):
        return False
    apart = max(
        min(segment.v0 for segment in beside) - max(segment.v1 for segment in row),
        min(segment.v0 for segment in row) - max(segment.v1 for segment in beside),
    )
    is_over_one = len({segment.u1 <= strip for segment in row}) == 1
    is_header = is_over_one and len(words) <= HEADER_WORDS and apart > HEADER_APART * height
    has_number = words[0].isdigit() or words[-1].isdigit()
    return is_header or (has_number and apart > (PART_GAP if is_over_one else HEADER_APART) * height)


def _edges(segments: Sequence[_Segment], slack: float) -> list[float]:
    """Left edges that at least two segments share, the most common first, but that of the page's text itself.

    So is that of a single line over a list that is set in, as on slides.
    """
    groups: list[tuple[float, int]] = []
    starts = sorted(segment.u0 for segment in segments)
    first = group = starts[0]
    count = 0
    for start in [*starts, float("inf")]:
        if start - group > slack:
            groups.append((group, count))
            group, count = start, 0
        count += 1
    edges: list[tuple[int, float]] = []
    for place, (edge, shared) in enumerate(groups):
        behind, indented = groups[place + 1] if place + 1 < len(groups) else (float("inf"), 0)
        if edge - first > slack and (
            shared >= LEAST_ROWS or (behind - edge < INDENT * slack and indented >= LEAST_ROWS)
        ):
            edges.append((-shared, edge))
    return [edge for _, edge in sorted(edges)]


def _are_columns(left: Sequence[Sequence[_Segment]], right: Sequence[Sequence[_Segment]]) -> bool:
    """Whether the rows on the two sides of a strip are read one side after the other, not across."""
    if (is_form := _are_ticked_rows(left, right)) or _apart(left, right):
        return not is_form
    # What stands directly beside the strip: there may be more columns on either side.
    beside = [row[-1] if row[-1].u1 >= row[0].u1 else row[0] for row in left]
    behind = [row[0] if row[0].u0 <= row[-1].u0 else row[-1] for row in right]
    left_is_prose, right_is_prose = _is_prose(beside), _is_prose(behind)
    both = left_is_prose and right_is_prose
    if not (left_is_prose or right_is_prose) or (both and _are_rows_apart(left, right)):
        return False
    left_has_figures, right_has_figures = _has_figures(left), _has_figures(right)
    if both and not left_has_figures and not right_has_figures:
        return True
    is_level = _are_level(left, right)
    if (right_has_figures and _are_names(left, is_level)) or (left_has_figures and _are_names(right, is_level)):
        return False
    if both:
        return True
    return not is_level and not (_name_figures(right, left) if left_is_prose else _name_figures(left, right))


def _are_rows_apart(left: Sequence[Sequence[_Segment]], right: Sequence[Sequence[_Segment]]) -> bool:
    """Whether the rows of two sides are those of a table of phrases: each row of the shorter side is level with one of
    the other, rows are farther apart than lines of a text, the first side seldom begins with a small letter, and
    neither is a list with marks."""
    fewer, more = sorted((left, right), key=len)
    is_list = any(not any(map(str.isalnum, side[0][0].words[0])) for side in (left, right))
    if is_list or len(fewer) < FILLED * len(more) or not all(_are_level([row], more) for row in fewer):
        return False
    distances = [below[0].middle - above[0].middle for above, below in pairwise(more)]
    height = median(row[0].height for row in more)
    begins_small = sum(row[0].words[0][:1].islower() for row in left)
    return min(distances) > ROWS_APART * height and begins_small <= SMALL_BEGINNINGS * len(left)


def _are_ticked_rows(left: Sequence[Sequence[_Segment]], right: Sequence[Sequence[_Segment]]) -> bool:
    """Whether one side has boxes to tick in each of its rows, and the other has beside each what they are about."""
    ticked, others = (left, right) if any(map(_has_boxes, left)) else (right, left)
    return all(map(_has_boxes, ticked)) and not any(map(_has_boxes, others)) and _are_level(ticked, others)


def _has_boxes(row: Sequence[_Segment]) -> bool:
    words = [word.lower().rstrip(":") for segment in row for word in segment.words]
    return not _BOXES.isdisjoint(words) or _TYPED_BOX.search(" ".join(words)) is not None


def _are_level(left: Sequence[Sequence[_Segment]], right: Sequence[Sequence[_Segment]]) -> bool:
    """Whether most rows of the shorter side have one of the other beside them."""
    others = sorted((row[0].middle, row[0].height) for row in right)
    level = 0
    for row in left:
        middle, height = row[0].middle, row[0].height
        slack = LEVEL / 2 * height
        near = others[bisect_left(others, (middle - slack,)) : bisect_right(others, (middle + slack,))]
        level += any(abs(middle - other) < LEVEL / 2 * min(height, other_height) for other, other_height in near)
    return level >= ALIGNED * min(len(left), len(right))


def _has_figures(rows: Sequence[Sequence[_Segment]]) -> bool:
    return 2 * sum(any(map(_is_figure, row)) for row in rows) >= len(rows)


def _are_names(rows: Sequence[Sequence[_Segment]], is_level: bool) -> bool:
    """Whether one side may name the rows of a table whose figures stand on the other. Figures that stand beside the
    middle of wrapped names are not level with them."""
    if not is_level:
        return median(sum(len(segment.words) for segment in row) for row in rows) <= LONGEST_NAME
    return sum(row[0].words[0][:1].islower() for row in rows) < NARROW_GOES_ON * len(rows)


def _name_figures(names: Sequence[Sequence[_Segment]], others: Sequence[Sequence[_Segment]]) -> bool:
    """Whether a row of ``names`` has nothing but figures beside it: the first row of a table, under its title."""
    return any(_are_figures(row) and _are_level([row], names) for row in others)


def _are_figures(row: Sequence[_Segment]) -> bool:
    """Whether a row has figures and nothing else but their signs."""
    spoken = [segment for segment in row if any(character.isalnum() for word in segment.words for character in word)]
    return bool(spoken) and all(map(_is_figure, spoken))


def _is_figure(segment: _Segment) -> bool:
    words = [word for word in segment.words if any(map(str.isalnum, word))]
    return 2 * sum(word[:1].isdigit() or word[1:2].isdigit() for word in words) > len(words)


def _apart(left: Sequence[Sequence[_Segment]], right: Sequence[Sequence[_Segment]]) -> bool:
    """Whether all words of one side come before all of the other in the order that was given."""
    first = [place for row in left for segment in row for place in segment.places]
    second = [place for row in right for segment in row for place in segment.places]
    return max(first) < min(second) or max(second) < min(first)


def _is_prose(segments: Sequence[_Segment]) -> bool:
    words = [word for segment in segments for word in segment.words]
    if sum(word[:1].isdigit() or word[1:2].isdigit() for word in words) > MOST_FIGURES * len(words):
        return False
    fill = median(segment.u1 - segment.u0 for segment in segments) / max(s.u1 - s.u0 for s in segments)
    length = median(len(segment.words) for segment in segments)
    if fill >= PROSE_FILL and (length >= PROSE_WORDS or median(map(_spaceless_letters, segments)) >= PROSE_LETTERS):
        return True
    goes_on = sum(segment.words[0][:1].islower() for segment in segments)
    return length >= NARROW_WORDS and fill >= NARROW_FILL and goes_on >= NARROW_GOES_ON * len(segments)


def _spaceless_letters(segment: _Segment) -> int:
    return len(SPACELESS.findall("".join(segment.words)))
