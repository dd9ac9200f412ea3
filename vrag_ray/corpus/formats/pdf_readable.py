"""What of a PDF's text layer can be read: lines whose letters mean nothing, as after a wrong ToUnicode table, fonts in
doubt, scans whose text another OCR read badly, watermarks; and what OCR reads in their place."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from vrag_ray.corpus.formats.pdf_drawn import PICTURE_SHARE, area_of, overlap
from vrag_ray.corpus.formats.pdf_letters import LATIN, LEAST_VOWELS, MOST_VOWELS, OTHER_VOWELS, VOWELS
from vrag_ray.corpus.formats.pdf_lines import Line, Upright, words_of
from vrag_ray.corpus.formats.pdf_objects import fonts_without_letters
from vrag_ray.corpus.model import UNREADABLE, letters_in
from vrag_ray.types import Box, Word, around, upright

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText

LITTLE_TEXT = 0.04
LARGE_TYPE = 0.04
"""Height of a word in longer sides of the page, from which on its letters count, not how large they are: a watermark,
or a stamp."""
MOST_ASKEW = 10
"""Degrees by which the text of a scan may be askew; what is more so lies across it, as a watermark does."""
DISPLACED = 4.0
"""Heights of a word by which the text of a scan may stand beside it along its line."""
REPEATED = 4
"""Lines of the same words on a scan, from which on they are a pattern over it."""
LEAST_COMMON_RUN, ALIKE, AS_HIGH = 3, 0.6, 0.7
"""Letters in a run that a word that OCR reads in the place of a watermark shares with it; the share of its letters in
such runs, and of the watermark's height, from which on it is the watermark, and not the scan beneath."""
BAD_LETTERS = 0.1
"""Share of characters that say nothing (controls, U+FFFD, private use), from which on a line cannot be read."""
LEAST_BAD = 5
"""Such characters in a line of nothing else, at least."""
LEAST_LOST = 3
"""U+FFFD in a line, at least, that is more of these than of what can be read."""
LEAST_JUDGED = 40
"""Latin letters that a page must have for their sequence to be judged."""
LEAST_OF_A_NAME = 10
NARROW = 0.62
"""Widths of a Chinese character in heights of its line: what is narrower on the whole is another script."""
LEAST_READ = 0.4
"""Share of the characters of lines that OCR must read for it to judge them: it knows no Cyrillic, for one."""
MOST_MIXED = 0.3
"""Share of words that mix letters with digits or signs, or small letters with capitals."""
MOST_NOISE, LEAST_NOISY = 0.03, 3
"""Share and number of words of a scan with signs where letters belong, from which on its text is read anew. Text that
was read well has a share of at most 0.013 (public reports and papers), text that was read badly from 0.04 on."""
SAMPLED_LINES = 3
SAME = 0.5
"""Likeness of a line of the layer to what OCR reads in its place, from which on the layer is believed."""
MOST_ACCENTED = 0.5
LEAST_COMMON = 0.05
"""Share of words of a page that are the small words of some language, below which letters may have been exchanged."""
_SMALL_WORDS = """
the of and to in is for on by at with as or be are was from this that
der die das und ist den von zu mit im auf ein eine für des dem nicht
le la les et de des du un une est dans pour que en au par sur
el los las una del por con para se su al es como
il lo gli di che per non da nel alla della sono con
os um uma no na do dos das em ao mais não com
het een van voor niet met op te zijn aan dat
och att det som på av är den ett til og på ikke av for jeg er et
ja on ei se että oli kun mutta ovat
na je se ve ze že do za by si jak nie to się jest od co po przez
az és egy nem hogy meg van ez
ve bir bu da için ile çok ne gibi
și din la cu pe nu mai este care
i su za od sa kao što koji
yang dan di ini itu untuk dengan dari ke
và của là có các không được cho trong một
ya wa na kwa ni katika
ta ir ar un ka no par kas
"""
"""Of languages in Latin script."""
_COMMON = frozenset(_SMALL_WORDS.split())
_AROUND_WORDS = ".,;:!?()[]\"'“”‘’«»"  # noqa: RUF001
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_MIXED = re.compile(
    r"[a-z][A-Z]|[A-Za-z]\d+[A-Za-z]|\d[A-Z]{2}|[A-Za-z][!\"#$%*+:;<=>?\\^_`{|}~]+[A-Za-z]|^[!#%*+,.:;<=>?]+[A-Z]"
)
_LOST = f"{UNREADABLE.pattern}{{1,2}}"
_LIGATURE = re.compile(rf"[^\W\d_]{_LOST}[a-z]{{2}}|[a-z]{{2}}{_LOST}[a-z]")
_INITIAL_LIGATURE = re.compile(rf"(?![\uf020-\uf0ff]){_LOST}[a-z]{{2}}")
"""What is left out are signs of fonts of symbols; before the first word of a line, any of these is a bullet."""
_THREE_LETTERS = re.compile(r"[^\W\d_]{3}")
_NOISY = re.compile(
    r"[A-Za-z][«»*^~|<>=©®£§;:!?\\{}#$%+_\"][A-Za-z]|^[*^~|<>=©®£§;:!?\\}#%+_]+[A-Za-z]|[A-Za-z][*^«~|<>=©£§\\{}]"
    r"|[a-z][A-Z](?:[a-z]|[A-Z])|[A-Za-z]\d+[A-Za-z]|\d[a-z]{3}"
)
"""Words as bad OCR leaves them."""
_SIGNS = frozenset("!\"#$%&'*+<=>?@^_`{|}~")
LEAST_SIGNS = 3
"""Different signs in a word without letters, from which on letters may have been exchanged for them."""
_BOX_DRAWING = re.compile("[\u2500-\u257f]")
_SYMBOL = re.compile("[\u2190-\u23ff\u25a0-\u27bf]")
LEAST_PAIRS, BROKEN = 5, 0.2
"""Neighbouring signs of box drawing, at least, and the share of which one has a line to the other that this has not,
from which on they draw nothing."""
LEAST_SYMBOLS = 12
"""Different symbols that no text has in its words: chessmen are as many."""
Ocr = Callable[["Box | None"], "OcrText"]
"""Reads the drawn page, or a box of it."""


def is_unreadable(raw: str) -> bool:
    """Whether characters that say nothing stand among the letters of a line, or in place of all of them.

    A bullet or a dotted line of such characters beside words that can be read is decoration.
    """
    words = raw.split()
    if _lacks_letters(words):
        return True
    mixed = sum(len(UNREADABLE.findall(word)) for word in words if UNREADABLE.sub("", word))
    if mixed:
        return mixed > 1 and mixed > BAD_LETTERS * len(raw)
    return len(raw) >= LEAST_BAD and not UNREADABLE.sub("", "".join(words))


def _lacks_letters(words: Sequence[str]) -> bool:
    """Whether words of a line lack a letter, as for a ligature that has no name, or the line lacks words."""
    if any(_LIGATURE.search(word) for word in words) or any(_INITIAL_LIGATURE.match(word) for word in words[1:]):
        return True
    lost = [word for word in words if not UNREADABLE.sub("", word) and "\ufffd" in word]
    # A dotted line is one word, or many of one dot.
    if len({len(word) for word in lost if len(word) > 1}) > 1:
        return True
    whole = "".join(words)
    bad = whole.count("\ufffd")
    return bad >= LEAST_LOST and 2 * bad > len(whole) > bad and not any(map(_THREE_LETTERS.search, words))


def doubtful_lines(lines: Sequence[Line], aspect: float) -> dict[str, list[Line]]:
    """The lines of each font whose letters spell no language: it is the table of a font that goes wrong."""
    fonts: dict[str, list[Line]] = {}
    for line in lines:
        fonts.setdefault(line.font, []).append(line)
    return {
        font: group
        for font, group in fonts.items()
        if not _spells_a_language(" ".join(word.text for word in words_of(group))) or _is_narrow(group, aspect)
    }


def _is_narrow(lines: Sequence[Line], aspect: float) -> bool:
    """Whether Chinese characters are narrower than any font has them: other letters stand there."""
    words = [word for line in lines for word in line.words if word.turn == 0 and _IDEOGRAPH.match(word.text)]
    words = [word for word in words if len(_IDEOGRAPH.findall(word.text)) == len(word.text)]
    if sum(len(word.text) for word in words) < LEAST_JUDGED:
        return False
    ratios = [
        aspect * (word.box.x1 - word.box.x0) / (word.box.y1 - word.box.y0) / len(word.text)
        for word in words
        if len(word.text) > 1
    ]
    return bool(ratios) and float(np.median(ratios)) < NARROW


def lines_without_letters(page: pymupdf.Page, lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of each font whose letters the file does not state, where these do not spell a known language either.

    They do in the fonts of TeX, whose codes are letters."""
    fonts = fonts_without_letters(page) if page.parent.is_pdf and lines else set()
    group = [line for line in lines if line.font in fonts]
    text = " ".join(word.text for word in words_of(group))
    is_long = len(LATIN.findall(text)) >= LEAST_JUDGED
    if len(text) < LEAST_OF_A_NAME or (is_long and has_common_words(text) and is_plausible(text)):
        return {}
    return {font: [line for line in group if line.font == font] for font in {line.font for line in group}}


def lines_not_believed(
    doubtful: Mapping[str, Sequence[Line]], ocr: Ocr | None, believed: set[str]
) -> tuple[list[Line], list[str]]:
    """Lines of fonts that are doubtful, and not borne out by OCR here or earlier in the document; and notices."""
    unbelieved: list[Line] = []
    notices: list[str] = []
    for font, group in doubtful.items():
        if font in believed:
            continue
        borne_out = None if ocr is None else _borne_out(group, ocr)
        if borne_out is False or ocr is None:
            unbelieved += group
            continue
        believed.add(font)
        if borne_out is None:
            notices.append(f"{len(group)} lines spell no language as they stand in the file, and OCR cannot read them")
    return unbelieved, notices


def _borne_out(doubtful: Sequence[Line], ocr: Ocr) -> bool | None:
    """Whether OCR of the longest lines reads what the layer says there: a tenth of the cost of the page.

    None where it reads next to nothing of another script than Latin, as of one that it does not know.
    """
    longest = sorted(doubtful, key=lambda line: -len(line.raw))[:SAMPLED_LINES]
    agreed, unread = 0, 0
    for line in longest:
        place = around([word.box for word in line.words])
        assert place is not None
        slack = (place.y1 - place.y0) / 2
        seen = ocr(place.padded(slack, slack)).words
        agreed += _likeness(line, seen) >= SAME
        unread += not is_read(seen, line)
    text = "".join(word.text for line in longest for word in line.words)
    if 2 * unread > len(longest) and 2 * len(LATIN.findall(text)) < letters_in(text):
        return None
    return 2 * agreed > len(longest)


def is_read(seen: Sequence[Word], line: Line) -> bool:
    """Whether OCR read enough there, ``seen``, for it to tell whether the layer is right."""
    length = sum(len(word.text) for word in line.words)
    return sum(letters_in(word.text) for word in seen) >= LEAST_READ * length


def _likeness(line: Line, seen: Sequence[Word]) -> float:
    layer = "".join(word.text for word in line.words).casefold()
    return SequenceMatcher(None, layer, "".join(word.text for word in seen).casefold(), False).ratio()


def is_plausible(text: str) -> bool:
    """False for letters that follow one another as in no language written in Latin, Cyrillic or Greek script.

    Other scripts are believed: exchanged letters of theirs go unnoticed.
    """
    for script, open_letters in OTHER_VOWELS:
        letters = script.findall(text)
        if len(letters) >= LEAST_JUDGED:
            plain = [unicodedata.normalize("NFD", letter)[0].lower() for letter in letters]
            if not LEAST_VOWELS <= sum(letter in open_letters for letter in plain) / len(plain) <= MOST_VOWELS:
                return False
    letters = LATIN.findall(text)
    if len(letters) < LEAST_JUDGED:
        # A name alone in its font: without any vowel in all its words it is none.
        if _is_of_signs(text):
            return False
        plain = [letter for word in text.split() if len(word) >= 4 for letter in LATIN.findall(word.lower())]
        return len(plain) < LEAST_OF_A_NAME or any(
            unicodedata.normalize("NFD", letter)[0] in VOWELS for letter in plain
        )
    plain = [unicodedata.normalize("NFD", letter)[0].lower() for letter in letters]
    vowels = sum(letter in VOWELS for letter in plain) / len(plain)
    words = [word for word in text.split() if LATIN.search(word)]
    mixed = sum(_MIXED.search(word) is not None for word in words) / len(words)
    accented = sum(ord(letter) > 127 for letter in letters) / len(letters)
    return LEAST_VOWELS <= vowels <= MOST_VOWELS and mixed <= MOST_MIXED and accented <= MOST_ACCENTED


def _spells_a_language(text: str) -> bool:
    """Whether ``text`` is plausible and has small words of a language that is known here: any other is in doubt."""
    long, common = _common_words(text)
    has_common = long < LEAST_JUDGED or common >= LEAST_COMMON * long
    return is_plausible(text) and (has_common or len(LATIN.findall(text)) < LEAST_JUDGED)


def has_common_words(text: str) -> bool:
    """Whether small words of a language that is known here are among the words of ``text``, as often as in prose."""
    long, common = _common_words(text)
    return 0 < common >= LEAST_COMMON * long


def _common_words(text: str) -> tuple[int, int]:
    """How many words of ``text`` have two letters or more, and how many of these are small words of a language."""
    long = [word for word in text.split() if len(word) > 1 and LATIN.search(word)]
    return len(long), sum(word.strip(_AROUND_WORDS).casefold() in _COMMON for word in long)


def _is_of_signs(text: str) -> bool:
    """Whether most of ``text`` are words of signs that nobody writes together, as of letters that lost their names."""
    words = [word for word in text.split() if not any(map(str.isalpha, word))]
    odd = [word for word in words if len(set(word) & _SIGNS) >= LEAST_SIGNS]
    return 2 * sum(map(len, odd)) > len("".join(text.split())) or _is_broken_drawing(text) or _is_of_symbols(words)


def _is_broken_drawing(text: str) -> bool:
    """Whether most of ``text`` are signs of box drawing whose lines do not meet, as those of a drawn table do."""
    pairs = [pair for pair in itertools.pairwise(text) if all(map(_BOX_DRAWING.match, pair))]
    broken = sum(_reaches(left, "RIGHT") != _reaches(right, "LEFT") for left, right in pairs)
    most = 2 * len(_BOX_DRAWING.findall(text)) > len("".join(text.split()))
    return most and len(pairs) >= LEAST_PAIRS and broken >= BROKEN * len(pairs)


def _reaches(sign: str, side: str) -> bool:
    """Whether a sign of box drawing has a line to that side."""
    name = unicodedata.name(sign)
    return side in name or "HORIZONTAL" in name


def _is_of_symbols(words: Sequence[str]) -> bool:
    """Whether ``words`` without letters are mostly words of many different symbols."""
    inside = [sign for word in words for sign in _SYMBOL.findall(word) if len(_SYMBOL.findall(word)) >= LEAST_SIGNS]
    return len(inside) >= LEAST_JUDGED and len(set(inside)) > LEAST_SYMBOLS and 2 * len(inside) > sum(map(len, words))


def shows_a_scan(page: pymupdf.Page, lines: Sequence[Line], aspect: float) -> bool:
    """Whether pictures cover most of the page and its words little of it, as a stamp, a page number or a watermark on a
    scan.

    A word counts once, however often it is repeated, and with no larger type than that of a heading.
    """
    areas: dict[str, float] = {}
    for word in words_of(lines):
        if _lies_across(word):
            continue
        u0, v0, u1, v1 = upright(word, aspect)
        most = LARGE_TYPE * max(1.0, aspect)
        shrunk = min(1.0, most / (v1 - v0)) ** 2
        key = word.text.casefold()
        areas[key] = max(areas.get(key, 0.0), (u1 - u0) * (v1 - v0) * shrunk / aspect)
    return sum(areas.values()) <= LITTLE_TEXT and _is_filled(page)


@dataclass(frozen=True, slots=True)
class _Mark:
    """What lies over a scan: the letters of its line, and its height in heights of the page."""

    letters: str
    height: float

    def is_read_as(self, word: Word) -> bool:
        """Whether what OCR saw in its place is the mark, or a piece of it."""
        letters = word.text.casefold()
        blocks = SequenceMatcher(None, self.letters, letters, False).get_matching_blocks()
        # Single letters and pairs are common to all words.
        common = sum(block.size for block in blocks if block.size >= min(LEAST_COMMON_RUN, len(letters)))
        return word.box.y1 - word.box.y0 >= AS_HIGH * self.height and common >= ALIKE * len(letters)


def watermarks(lines: Sequence[Line], aspect: float) -> dict[int, _Mark]:
    """By the id of the word: those that lie across a scan, are large, or stand in lines that are repeated.

    The scan shows beneath them, and between them.
    """
    texts = ["".join(word.text for word in line.words).casefold() for line in lines]
    times = Counter(texts)
    most = LARGE_TYPE * max(1.0, aspect)
    marks: dict[int, _Mark] = {}
    for line, text in zip(lines, texts, strict=True):
        for word in line.words:
            _, v0, _, v1 = upright(word, aspect)
            if _lies_across(word) or v1 - v0 > most or times[text] >= REPEATED:
                marks[id(word)] = _Mark(text, min(v1 - v0, most))
    return marks


def _lies_across(word: Word) -> bool:
    return abs((word.turn + 45) % 90 - 45) > MOST_ASKEW


def is_badly_read(page: pymupdf.Page, words: Sequence[str]) -> bool:
    """Whether ``words``, the text of a scan, are those of an OCR that could not read it."""
    return share_of_noise(words) >= MOST_NOISE and _is_filled(page)


def share_of_noise(words: Sequence[str]) -> float:
    """The share of ``words`` in which signs stand where letters belong."""
    latin = [word for word in words if LATIN.search(word)]
    noisy = sum(_NOISY.search(text) is not None for text in latin)
    return noisy / len(latin) if noisy >= LEAST_NOISY else 0.0


def _is_filled(page: pymupdf.Page) -> bool:
    """Whether pictures cover most of the page."""
    if not page.get_images():
        return False
    area: float = page.rect.width * page.rect.height
    pictures = sum(area_of(info["bbox"]) for info in page.get_image_info())
    return pictures > PICTURE_SHARE * area


def bears_out(seen: Sequence[Word], line: Line) -> bool:
    """Whether OCR reads in the line's place what the layer says there, or nothing."""
    there = words_there(seen, line)
    return not there or _likeness(line, there) >= SAME


def words_there(seen: Sequence[Word], line: Line) -> list[Word]:
    """The words of ``seen`` in the place of a line."""
    place = around([word.box for word in line.words])
    assert place is not None
    return [word for word in seen if overlap(word.box, place) > 0.5]


def without_words_at(seen: OcrText, places: Sequence[Box]) -> OcrText:
    """What OCR read, but for the words at ``places``, in page fractions."""
    return replace(seen, words=tuple(word for word in seen.words if not _is_at(word, places))) if places else seen


def places_of(page: pymupdf.Page, sizes: Collection[tuple[int, int]]) -> list[Box]:
    """Where pictures of these widths and heights in pixels stand on the page."""
    if not sizes:
        return []
    upright = Upright(page)
    boxes = [upright.box(*info["bbox"]) for info in page.get_image_info() if (info["width"], info["height"]) in sizes]
    return [box for box in boxes if box is not None]


def _is_at(word: Word, places: Sequence[Box]) -> bool:
    return any(_stand_together(word.box, place) for place in places)


def words_beside(seen: Sequence[Word], readable: Sequence[Word], marks: Mapping[int, _Mark]) -> list[Word]:
    """The words that OCR saw where no word of the layer stands, or only a mark that is another."""
    places = [(word.box, marks.get(id(word))) for word in readable]
    return [
        word
        for word in seen
        if not any((mark is None or mark.is_read_as(word)) and _stand_together(word.box, box) for box, mark in places)
    ]


def not_displaced(added: Sequence[Word], seen: Sequence[Word], readable: Sequence[Word], aspect: float) -> list[Word]:
    """``added`` without the words that the layer has a little further along the same line, as the text of a scan does
    whose type is not as broad as its ink."""

    def near(word: Word, others: Sequence[Word]) -> int:
        """How many of ``others`` are the word, in its line."""
        reach = DISPLACED * (word.box.y1 - word.box.y0) / aspect
        middle = (word.box.y0 + word.box.y1) / 2
        return sum(
            other.text == word.text
            and other.box.y0 < middle < other.box.y1
            and max(other.box.x0 - word.box.x1, word.box.x0 - other.box.x1) < reach
            for other in others
        )

    return [word for word in added if not 0 < near(word, seen) <= near(word, readable)]


def _stand_together(box: Box, other: Box) -> bool:
    return overlap(box, other) > 0.3 or overlap(other, box) > 0.5
