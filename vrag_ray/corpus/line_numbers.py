"""Numbers of lines at the edge of a text, as manuscripts, pleadings, transcripts and patents have them. Pure geometry.

They are no part of what the lines say: read with it, they stand within sentences and answer questions for numbers. In
doubt a number stays: a list of years, steps or seats would lose what it says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from vrag_ray.types import Word, upright

LEAST_LINES = 20
"""Numbers on a page, where each line has one: shorter columns are more often the numbers of a list."""
LEAST_STEPS = 4
"""The same, where each fifth or tenth line has one."""
STEPS = (1, 2, 4, 5, 10)
MOST = 1000
"""Numbers from here on are years, extensions or articles."""
SAME_EDGE = 0.4
"""Heights by which the edges of the numbers differ at most."""
LEVEL = 0.5
"""Share of a height by which the middles of a number and of its line differ at most."""
LEAST_FULL = 0.6
"""Share of the lines that are full, at least, where each has a number: entries of lists end anywhere."""
LEAST_RUNNING_ON = 0.3
"""Share of the lines that begin with a small letter and end with a letter, at least."""
WIDEST_BLANK = 1.5
"""Heights between two words of a line, at most: what stands farther apart is a cell or a column."""
LEAST_GAP = 0.45
"""Heights between a number and its line, at least: words of one line are closer."""
MOST_BETWEEN = 0.2
"""Share of the numbers with a line without a number below them, where each line has one."""
_NUMBER = re.compile(r"\d{1,4}$")


def without_line_numbers(words: Sequence[Word], aspect: float) -> Sequence[Word]:
    """``words`` without those that number lines. ``aspect`` is the page's width over its height."""
    numbers = [word for word in words if word.turn == 0 and _NUMBER.match(word.text)]
    if len(numbers) < LEAST_STEPS:
        return words
    dropped: set[int] = set()
    for column in _columns(numbers, aspect):
        if _counts(column) and _number_a_text(column, words, aspect):
            dropped |= {id(word) for word in column}
    return [word for word in words if id(word) not in dropped] if dropped else words


def _columns(numbers: Sequence[Word], aspect: float) -> Iterator[list[Word]]:
    """Numbers whose right or left edges stand below each other, from top to bottom."""
    for edge in (2, 0):
        ordered = sorted(numbers, key=lambda word: upright(word, aspect)[edge])
        column: list[Word] = []
        for word in ordered:
            height = word.box.y1 - word.box.y0
            if column and upright(word, aspect)[edge] - upright(column[0], aspect)[edge] > SAME_EDGE * height:
                yield sorted(column, key=lambda word: word.box.y0)
                column = []
            column.append(word)
        yield sorted(column, key=lambda word: word.box.y0)


def _counts(column: Sequence[Word]) -> bool:
    """Whether the numbers rise by one step from each to the next."""
    values = [int(word.text) for word in column]
    steps = Counter(after - before for before, after in pairwise(values))
    if len(steps) != 1:
        return False
    step = next(iter(steps))
    return (
        step in STEPS
        and len(column) >= (LEAST_LINES if step == 1 else LEAST_STEPS)
        and values[0] % step == 0
        and values[-1] < MOST
    )


def _number_a_text(column: Sequence[Word], words: Sequence[Word], aspect: float) -> bool:
    """Whether lines of a text stand beside the numbers, apart from them, and nothing else in their column."""
    own = {id(word) for word in column}
    left, right = min(word.box.x0 for word in column), max(word.box.x1 for word in column)
    top, bottom = column[0].box.y0, column[-1].box.y1
    others = [word for word in words if id(word) not in own and word.turn == 0]
    if any(word.box.x0 < right and word.box.x1 > left and top < word.box.y0 < bottom for word in others):
        return False
    is_every_line = int(column[1].text) - int(column[0].text) == 1
    if is_every_line and _lines_between(column, others) > MOST_BETWEEN * len(column):
        # Notes at the foot of a page, of several lines each.
        return False
    lines: list[list[Word]] = []
    for number in column:
        height, middle = number.box.y1 - number.box.y0, (number.box.y0 + number.box.y1) / 2
        level = [word for word in others if abs((word.box.y0 + word.box.y1) / 2 - middle) < LEVEL * height]
        after = sorted((word for word in level if word.box.x0 >= number.box.x1), key=lambda word: word.box.x0)
        before = sorted((word for word in level if word.box.x1 <= number.box.x0), key=lambda word: -word.box.x1)
        gaps = [word.box.x0 - number.box.x1 for word in after[:1]] + [
            number.box.x0 - word.box.x1 for word in before[:1]
        ]
        if min(gaps, default=1.0) * aspect < LEAST_GAP * height:
            return False
        if line := _unbroken(after or before, WIDEST_BLANK * height / aspect):
            lines.append(line)
    return 2 * len(lines) >= len(column) and _run_on(lines) and (not is_every_line or _are_full(lines))


def _unbroken(words: Sequence[Word], most: float) -> list[Word]:
    """The first of ``words`` of one line, up to a gap of more than ``most`` page widths, from left to right."""
    unbroken = list(words[:1])
    for word in words[1:]:
        if max(word.box.x0 - unbroken[-1].box.x1, unbroken[-1].box.x0 - word.box.x1) > most:
            break
        unbroken.append(word)
    return sorted(unbroken, key=lambda word: word.box.x0)


def _run_on(lines: Sequence[Sequence[Word]]) -> bool:
    """Whether many lines end within a sentence and begin within another."""
    running_on = sum(line[-1].text[-1:].isalpha() and line[0].text[:1].islower() for line in lines)
    return running_on >= LEAST_RUNNING_ON * len(lines)


def _are_full(lines: Sequence[Sequence[Word]]) -> bool:
    """Whether most lines end where the first word of the next finds no room, as those of a text do."""
    edge = max(line[-1].box.x1 for line in lines)
    pairs = list(pairwise(lines))
    full = sum(line[-1].box.x1 + following[0].box.x1 - following[0].box.x0 > edge for line, following in pairs)
    return full >= LEAST_FULL * len(pairs)


def _lines_between(column: Sequence[Word], others: Sequence[Word]) -> int:
    """How many numbers have a line without a number below them, before the next one."""
    count = 0
    for number, following in pairwise(column):
        start, end = number.box.y1, following.box.y0
        count += any(start <= (word.box.y0 + word.box.y1) / 2 <= end for word in others)
    return count
