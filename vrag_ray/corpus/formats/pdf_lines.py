"""The lines of a PDF's text layer that a person can see, with spaced and vertical letters put together to words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pymupdf

from vrag_ray.corpus.formats.pdf_drawn import (
    SAME_PLACE,
    SAME_WORD,
    Look,
    crowded_lines,
    hidden_words,
    look_of,
    words_in_one_place,
)
from vrag_ray.corpus.formats.pdf_letters import (
    JOINED,
    LATIN,
    LEAST_VOWELS,
    MOST_VOWELS,
    OTHER_VOWELS,
    VOWELS,
    as_seen,
    letters_with_accents,
    readable_form,
    turn_of,
    without_bullet,
)
from vrag_ray.corpus.model import UNREADABLE, clean, letters_in
from vrag_ray.corpus.reading_order import is_right_to_left
from vrag_ray.corpus.windows import CJK
from vrag_ray.types import Box, Word, around, upright

# Ligatures come apart, blanks are normalised, text outside the page is dropped.
LAYER_FLAGS = pymupdf.TEXT_CLIP
LEAST_COLUMN = 3
"""Letters below each other that are a column of Chinese or Japanese."""
LEAST_DRAWN = 0.7
"""Share of the letters of the text that stands in place of glyphs, from which on the glyphs are read themselves."""
LEAST_SPACED, LEAST_SPACED_WORD, LONGEST_SPACED_WORD = 5, 4, 24
"""Letters of a line that is set letter by letter; of its longest word."""
EVEN_GAPS, SAME_GAPS, WORD_GAP, MOST_GAP = 0.1, 0.01, 1.6, 3.0
"""Heights by which the gaps between the letters of a word differ at most, and those that are the same; how many times
these a gap between words is at least; heights of the largest gap within a line."""
SPACELESS_OR_SIGN = re.compile(rf"[{CJK}\u3000-\u303f\uff00-\uffef]")
_IN_SPACED = frozenset(".,:;!?'’&-")  # noqa: RUF001
_OF_ANSWERS = frozenset("abcdefgtun")
"""Options of an answer, and bases of DNA and RNA."""
_MONTHS = "jfmamjjasond"


@dataclass(slots=True, eq=False)
class Line:
    """A line of the text layer: its words, the characters that MuPDF gave for them, and the font of the first."""

    words: list[Word]
    raw: str
    font: str


def seen_lines(page: pymupdf.Page) -> tuple[list[Line], int]:
    """The lines of the text layer that are drawn, and how many words are not."""
    layer = _layer(page)
    spans = {
        (block["number"], number): line
        for block in layer.extractDICT()["blocks"]
        for number, line in enumerate(block.get("lines", ()))
    }
    letters = letters_with_accents(layer)
    upright = Upright(page)
    lines: list[Line] = []
    looks: list[Look] = []
    places: list[tuple[float, float, float, float]] = []
    goes_back: list[bool] = []
    for (block, number), group in itertools.groupby(layer.extractWORDS(), key=lambda word: (word[5], word[6])):
        line = spans.get((block, number))
        turn = (turn_of(line["dir"]) + int(page.rotation)) % 360 if line is not None else 0
        visible = Line([], "", str(line["spans"][0]["font"]) if line is not None and line["spans"] else "")
        reached, back = float("-inf"), False
        drawn, written = as_seen(line, letters.get((block, number))) if line is not None else ("", "")
        at = 0
        for x0, y0, x1, y1, raw, *_ in group:
            back, reached = back or x0 < reached - 1, max(reached, x1)
            box = upright.box(x0, y0, x1, y1)
            form = raw
            if drawn and (place := drawn.find(raw, at)) >= 0:
                at = place + len(raw)
                form = written[place:at].replace(JOINED, "")
            text = readable_form(clean(form)).strip()
            # What a font has no letter for at the edge of a word is a tab or a bullet.
            text = text.strip("\ufffd") or text
            if box is None or not text:
                continue
            if raw.endswith("\xad"):
                # What divides a word here is seen.
                text += "-"
            for word in without_bullet(Word(text, box, turn)):
                looks.append(look_of(word, line["spans"] if line is not None else (), (x0 + x1) / 2, (y0 + y1) / 2))
                visible.words.append(word)
            visible.raw += f"{form} "
        if visible.words:
            lines.append(visible)
            places.append(line["bbox"] if line is not None else (0.0, 0.0, 0.0, 0.0))
            goes_back.append(back)
    if not looks:
        return [], 0
    crowded = crowded_lines(places, goes_back)
    in_crowd = {id(word) for number in crowded for word in lines[number].words}
    twice, in_one_place = words_in_one_place(
        [look for look in looks if id(look.word) in in_crowd and look.alpha and letters_in(look.word.text)]
    )
    # The text of a scan may have been laid over it more than once, each time without being drawn.
    twice |= words_in_one_place([look for look in looks if id(look.word) in in_crowd and not look.alpha])[0]
    hidden = hidden_words(page, [look for look in looks if id(look.word) not in twice], in_one_place - twice)
    if not hidden and not twice:
        return _with_columns(lines), 0
    # An empty box of a form or an invisible dash is no word that anybody misses.
    count = sum(any(map(str.isalnum, look.word.text)) for look in looks if id(look.word) in hidden)
    for number, line in enumerate(lines):
        line.words = [word for word in line.words if id(word) not in hidden and id(word) not in twice]
        if number in crowded and line.words and line.words[0].turn == 0 and not is_right_to_left(line.raw):
            # What was written over a part of it comes last in the file.
            line.words.sort(key=lambda word: word.box.x0)
    return _with_columns([line for line in lines if line.words]), count


def _with_columns(lines: list[Line]) -> list[Line]:
    """``lines`` with those of one letter below each other put together: programs without vertical type write so, and
    MuPDF gives a line for each letter of vertical type."""
    if not any(len(line.words) == 1 and _is_letter_of_column(line.words[0]) for line in lines):
        return lines
    whole: list[Line] = []
    run: list[Line] = []
    for line in [*lines, None]:
        letter = line if line is not None and len(line.words) == 1 and _is_letter_of_column(line.words[0]) else None
        if letter is not None and (not run or _stands_below(run[-1].words[0].box, letter.words[0].box)):
            run.append(letter)
            continue
        if len(run) >= LEAST_COLUMN:
            letters = [of_run.words[0] for of_run in run]
            box = around([word.box for word in letters])
            assert box is not None
            column = Word("".join(word.text for word in letters), box, 90)
            whole.append(Line([column], column.text, run[0].font))
        else:
            whole += run
        run = [letter] if letter is not None else []
        if line is not None and letter is None:
            whole.append(line)
    return whole


def with_spaced_words(lines: list[Line], aspect: float) -> list[Line]:
    """``lines`` with each word that is set letter by letter, as in headings, in one piece.

    MuPDF takes distant letters for words, and more distant ones for lines of their own.
    """
    runs: list[list[_Letter]] = [[]]
    for line in lines:
        for word in line.words:
            if len(word.text) != 1 or not (word.text.isalnum() or word.text in _IN_SPACED):
                runs.append([])
                continue
            letter = _Letter(word, *upright(word, aspect))
            if runs[-1] and not letter.follows(runs[-1][-1]):
                runs.append([])
            runs[-1].append(letter)
    runs = [run for run in runs if len(run) >= LEAST_SPACED]
    whole: dict[int, Word | None] = {}
    for place, run in enumerate(runs):
        for group in _spaced_words(run, [*runs[max(0, place - 1) : place], *runs[place + 1 : place + 2]]):
            words = [letter.word for letter in group]
            box = around([word.box for word in words])
            assert box is not None
            whole |= dict.fromkeys(map(id, words))
            whole[id(words[0])] = replace(words[0], text="".join(word.text for word in words), box=box)
    if not whole:
        return lines
    for line in lines:
        line.words = [joined for word in line.words if (joined := whole.get(id(word), word)) is not None]
    return [line for line in lines if line.words]


@dataclass(frozen=True, slots=True)
class _Letter:
    """A word of one character, with its upright edges in heights of the page."""

    word: Word
    u0: float
    v0: float
    u1: float
    v1: float

    def follows(self, before: _Letter) -> bool:
        height = before.v1 - before.v0
        is_level = abs(self.v0 - before.v0) + abs(self.v1 - before.v1) < EVEN_GAPS * height
        return self.word.turn == before.word.turn and is_level and 0 < self.u0 - before.u1 < MOST_GAP * height


def _spaced_words(run: Sequence[_Letter], others: Sequence[Sequence[_Letter]]) -> list[list[_Letter]]:
    """The letters of each word of ``run``, if that is text and no list or table of letters.

    The gaps of a word are even, whatever the widths of its letters; in a table their places are. Gaps between words
    are larger. ``others`` are the runs before and behind.
    """
    height = run[0].v1 - run[0].v0
    gaps = [letter.u0 - before.u1 for before, letter in itertools.pairwise(run)]
    ordered = sorted(gaps)
    widest = next((gap for gap, larger in itertools.pairwise(ordered) if larger > WORD_GAP * gap), ordered[-1])
    pitches = [b.u0 - a.u0 for (a, b), gap in zip(itertools.pairwise(run), gaps, strict=True) if gap <= widest]
    spread = widest - ordered[0]
    words = [[run[0]]]
    for letter, gap in zip(run[1:], gaps, strict=True):
        if gap > widest or (words[-1][-1].word.text.islower() and letter.word.text.isupper()):
            words.append([])
        words[-1].append(letter)
    texts = ["".join(letter.word.text for letter in word) for word in words]
    evenly_placed = spread > max(pitches) - min(pitches) + SAME_GAPS * height
    if evenly_placed or spread > EVEN_GAPS * height or not _are_spaced_words(texts):
        return []
    near = SAME_PLACE * EVEN_GAPS * height
    in_columns = any(2 * sum(any(abs(a.u0 - b.u0) < near for b in other) for a in run) > len(run) for other in others)
    return [] if in_columns else words


def _are_spaced_words(texts: Sequence[str]) -> bool:
    """Whether ``texts`` can be words of Latin, Cyrillic or Greek letters: not initials, options, answers or names of
    months."""
    letters = [unicodedata.normalize("NFD", letter)[0] for text in texts for letter in text.lower() if letter.isalpha()]
    longest = max(map(letters_in, texts))
    if len(letters) < LEAST_SPACED or not LEAST_SPACED_WORD <= longest <= LONGEST_SPACED_WORD:
        return False
    vowels = VOWELS.union(*(of_script for _, of_script in OTHER_VOWELS))
    in_order = sum(0 <= ord(after) - ord(letter) <= 1 for letter, after in itertools.pairwise(letters))
    return (
        all(LATIN.match(letter) or any(script.match(letter) for script, _ in OTHER_VOWELS) for letter in letters)
        and LEAST_VOWELS <= sum(letter in vowels for letter in letters) / len(letters) <= MOST_VOWELS
        and not set(letters) <= _OF_ANSWERS
        and 2 * in_order < len(letters)
        and "".join(letters) not in 2 * _MONTHS
    )


def _is_letter_of_column(word: Word) -> bool:
    return len(word.text) == 1 and word.turn in (0, 90) and SPACELESS_OR_SIGN.match(word.text) is not None


def _stands_below(box: Box, below: Box) -> bool:
    height = box.y1 - box.y0
    common = min(box.x1, below.x1) - max(box.x0, below.x0)
    return common > SAME_WORD * (box.x1 - box.x0) and -0.3 * height < below.y0 - box.y1 < 0.5 * height


def _layer(page: pymupdf.Page) -> pymupdf.TextPage:
    """The text layer: what its glyphs say; what the file puts in their place only where they say nothing."""
    layer = page.get_textpage(flags=LAYER_FLAGS)
    if not page.parent.is_pdf or b"/ActualText" not in page.read_contents():
        return layer
    drawn = page.get_textpage(flags=LAYER_FLAGS | pymupdf.TEXT_IGNORE_ACTUALTEXT)
    given, glyphs = layer.extractText(), drawn.extractText()
    fewest = LEAST_DRAWN * letters_in(given)
    return (
        drawn
        if letters_in(glyphs) >= fewest and len(UNREADABLE.findall(glyphs)) <= len(UNREADABLE.findall(given))
        else layer
    )


class Upright:
    """Rectangles of a page as MuPDF gives them, unturned, to fractions of the upright page.

    The page's matrix is read once: asking MuPDF for it at every rectangle took three quarters of decoding.
    """

    def __init__(self, page: pymupdf.Page) -> None:
        turn = page.rotation_matrix
        self._turn = (turn.a, turn.b, turn.c, turn.d, turn.e, turn.f)
        self._width, self._height = page.rect.width, page.rect.height

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Box | None:
        """None where nothing of the rectangle is on the page."""
        a, b, c, d, e, f = self._turn
        xs = (a * x0 + c * y0 + e) / self._width, (a * x1 + c * y1 + e) / self._width
        ys = (b * x0 + d * y0 + f) / self._height, (b * x1 + d * y1 + f) / self._height
        left, right = max(min(xs), 0.0), min(max(xs), 1.0)
        top, bottom = max(min(ys), 0.0), min(max(ys), 1.0)
        return Box(left, top, right, bottom) if left < right and top < bottom else None


def words_of(lines: Sequence[Line]) -> list[Word]:
    """The words of all lines, in order."""
    return [word for line in lines for word in line.words]
