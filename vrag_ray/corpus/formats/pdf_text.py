"""The words of a PDF page that a person can see and read, in reading order: its text layer, OCR where that fails.

A text layer is believed where the page's pixels bear it out. Words that are not drawn (render mode 3, white on white,
no opacity, below 2 points, under a bar or a picture) are left out, unless they are the text of a scan beneath them.
Words in each other's place, and under what is drawn later, are held against their own glyphs (see ``pdf_ink``).
Lines whose letters mean nothing, as after a wrong ToUnicode table, and pictures that fill the page are read by OCR.
So is a scan whose text was read badly by another OCR before, where ours reads it better.
Measured: 6 ms a page beside 3 for the text alone; drawing the page small in grey is most of it. A page with words in
doubt takes some 20 ms more.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import pymupdf
from numpy.typing import NDArray

from vrag_ray.corpus.elements import DOTS, LIST_SIGNS
from vrag_ray.corpus.formats.pdf_fields import is_in, place_values, shown_fields, struck_boxes, without_passwords
from vrag_ray.corpus.formats.pdf_ink import shown
from vrag_ray.corpus.formats.pdf_objects import fonts_without_letters, undecoded_pictures
from vrag_ray.corpus.formats.symbol_fonts import signs_of
from vrag_ray.corpus.formats.unseen import struck_notice
from vrag_ray.corpus.line_numbers import without_line_numbers
from vrag_ray.corpus.model import UNREADABLE, TextLine, clean, letters_in
from vrag_ray.corpus.reading_order import arranged, is_right_to_left, text_of
from vrag_ray.corpus.windows import CJK
from vrag_ray.types import Box, Word, around, upright
from vrag_ray.types.superscripts import superscript

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText

# Ligatures come apart, blanks are normalised, text outside the page is dropped.
LAYER_FLAGS = pymupdf.TEXT_CLIP
LOOK_DPI = 72.0
MOST_LOOK_PIXELS = 2_000_000
LEAST_INK = 12
"""Grey levels by which ink differs from what is around it, at least."""
LEAST_SHARE_OF_INK = 0.15
"""The same, as a share of the difference between the word's colour and its ground: small type is drawn faintly."""
CLEAR_SHARE_OF_INK = 0.3
"""The same, from which on the word is seen without a closer look."""
LEAST_GROUND = 0.2
"""Share of a word's box that must not have the colour of the word."""
LEAST_EVEN = 0.52
"""Share of a word's box that is of one colour, its ground; below it something with colours of its own may lie over."""
SMALL, LEAST_EVEN_SMALL = 7.0, 0.3
"""Points below which type fills more of its box at this size of the page, and the share of its ground there."""
NEAR = 2.0
"""Heights of a hidden word within which others are looked at closely."""
COLOURED = 32
"""Levels by which the channels of a colour differ: such a word may differ from its ground in hue alone."""
INK_OF_A_SCAN = 40
OFF_THE_INK = 0.6
"""Heights of a word by which the text of a scan may stand beside its ink."""
STROKES_OF_A_LETTER = 0.3
"""Strokes beside each other that a word has for each letter, at least, also where small type runs together."""
LEAST_WITH_STROKES = 0.8
"""Share of the words of a scan that have so many: others are too faint or too small."""
SAME_PLACE = 0.5
"""Shares of height and width in which two words of one place agree."""
SAME_WORD = 0.75
"""Share of its box in which a word is drawn again where it is to look bold, or to throw a shadow."""
INITIAL = 1.6
"""Times the height of other words from which on a letter is an initial."""
LEAST_COLUMN = 3
"""Letters below each other that are a column of Chinese or Japanese."""
LEAST_DRAWN = 0.7
"""Share of the letters of the text that stands in place of glyphs, from which on the glyphs are read themselves."""
EVEN = 40
"""Grey levels within which pixels count as of one colour."""
LEAST_SIZE = 2.0
"""Points."""
LEAST_RISE, MOST_RISE, SUPERSCRIPT_SIZE = 0.2, 0.9, 0.9
"""Shares of the size of the type beside it: how far a superscript stands above the line, and its own size at most."""
LONGEST_SUPERSCRIPT = 12
"""Characters: more beside a letter that stands lower and is larger are the line behind an initial."""
LEAST_SPACED, LEAST_SPACED_WORD, LONGEST_SPACED_WORD = 5, 4, 24
"""Letters of a line that is set letter by letter; of its longest word."""
EVEN_GAPS, SAME_GAPS, WORD_GAP, MOST_GAP = 0.1, 0.01, 1.6, 3.0
"""Heights by which the gaps between the letters of a word differ at most, and those that are the same; how many times
these a gap between words is at least; heights of the largest gap within a line."""
PICTURE_SHARE = 0.5
"""A page of which pictures cover more is a scan where words cover less than ``LITTLE_TEXT``."""
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
BAD_SHARE = 0.03
"""Share of a page's characters in lines that cannot be read, from which on the page is read by OCR."""
LEAST_JUDGED = 40
"""Latin letters that a page must have for their sequence to be judged."""
LEAST_OF_A_NAME = 10
LEAST_VOWELS, MOST_VOWELS = 0.22, 0.65
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
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_VOWELS = frozenset("aeiouy")
_OTHER_VOWELS = (
    (re.compile("[\u0400-\u04ff]"), frozenset("аеиоуыэюяіѣўѵѫү")),
    (re.compile("[\u0370-\u03ff]"), frozenset("αεηιουω")),
)
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_MIXED = re.compile(
    r"[a-z][A-Z]|[A-Za-z]\d+[A-Za-z]|\d[A-Z]{2}|[A-Za-z][!\"#$%*+:;<=>?\\^_`{|}~]+[A-Za-z]|^[!#%*+,.:;<=>?]+[A-Z]"
)
_BULLET = re.compile(rf"[{LIST_SIGNS}{DOTS}\uf000-\uf0ff](?=\w)")
"""The last are those of fonts of signs that are not known."""
_LOST = f"{UNREADABLE.pattern}{{1,2}}"
_LIGATURE = re.compile(rf"[^\W\d_]{_LOST}[a-z]{{2}}|[a-z]{{2}}{_LOST}[a-z]")
_INITIAL_LIGATURE = re.compile(rf"(?![\uf020-\uf0ff]){_LOST}[a-z]{{2}}")
"""What is left out are signs of fonts of symbols; before the first word of a line, any of these is a bullet."""
_THREE_LETTERS = re.compile(r"[^\W\d_]{3}")
SPACELESS_OR_SIGN = re.compile(rf"[{CJK}\u3000-\u303f\uff00-\uffef]")
_MISNAMED_FF = re.compile("(?<=[a-z])\u21b5|\u21b5(?=[a-z])")
"""The arrow as which some printers to PDF name TeX's ligature of two f."""
_COMBINING = {
    "\u00a8": "\u0308", "\u00b4": "\u0301", "`": "\u0300", "\u02c6": "\u0302", "\u02dc": "\u0303",
    "\u02c7": "\u030c", "\u02da": "\u030a", "\u00b8": "\u0327", "\u02d8": "\u0306", "\u00af": "\u0304",
    "\u02d9": "\u0307", "\u02dd": "\u030b", "\u02db": "\u0328",
}  # fmt: skip
"""Accents that are characters of their own, and those that belong to the letter before them."""
_ACCENT = re.compile(f"[{''.join(_COMBINING)}]")
_DOTLESS = {"\u0131": "i", "\u0237": "j"}
_JOINED = "\u2060"
WITHIN_LETTER = 0.15
"""Share of a letter's breadth beside which, at both ends, the middle of its accent stands."""
_NOISY = re.compile(
    r"[A-Za-z][«»*^~|<>=©®£§;:!?\\{}#$%+_\"][A-Za-z]|^[*^~|<>=©®£§;:!?\\}#%+_]+[A-Za-z]|[A-Za-z][*^«~|<>=©£§\\{}]"
    r"|[a-z][A-Z](?:[a-z]|[A-Z])|[A-Za-z]\d+[A-Za-z]|\d[a-z]{3}"
)
"""Words as bad OCR leaves them."""
_IN_SPACED = frozenset(".,:;!?'’&-")  # noqa: RUF001
_OF_ANSWERS = frozenset("abcdefgtun")
"""Options of an answer, and bases of DNA and RNA."""
_MONTHS = "jfmamjjasond"
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
_PRESENTATION = re.compile("[\ufb1d-\ufdff\ufe70-\ufeff]+")

Grey = NDArray[np.uint8]
Ocr = Callable[["Box | None"], "OcrText"]
"""Reads the drawn page, or a box of it."""


@dataclass(frozen=True, slots=True)
class PageRead:
    """``text`` holds ``words`` line by line, halves of divided words joined; ``lines`` says where each line stands.

    ``ocr`` says that OCR read some of the words, with ``confidence`` from 0 to 1. ``undecoded`` counts the pictures of
    a page of few words that cannot be decoded.
    """

    text: str
    words: tuple[Word, ...]
    lines: tuple[TextLine, ...]
    ocr: bool = False
    notices: tuple[str, ...] = ()
    confidence: float = 1.0
    undecoded: int = 0


@dataclass(slots=True, eq=False)
class _Line:
    """A line of the text layer: its words, the characters that MuPDF gave for them, and the font of the first."""

    words: list[Word]
    raw: str
    font: str


def read_page(page: pymupdf.Page, *, min_chars: int, ocr: Ocr | None, believed: set[str]) -> PageRead:
    """What a person reads on ``page``.

    A page whose layer has fewer than ``min_chars`` readable characters is read by ``ocr``, if anything is drawn on it.
    ``ocr`` reads the drawn page, or a box of it; None where OCR is off. ``believed`` has the fonts of the document
    whose letters OCR has borne out; those of this page join them.
    """
    aspect = page.rect.width / page.rect.height
    lines, hidden = _seen_lines(page)
    lines = _with_spaced_words(lines, aspect)
    notices: list[str] = []
    struck, concealed, lines = _with_annotations(page, lines)
    if hidden := hidden + concealed:
        notices.append(f"{hidden} words that are not visible on the page are left out")
    if struck:
        notices.append(struck_notice(struck))
    unreadable = [line for line in lines if _is_unreadable(line.raw)]
    total, lost = (sum(len(line.raw) for line in some) for some in (lines, unreadable))
    readable = sum(len(UNREADABLE.sub("", line.raw)) for line in lines) - lost
    if lost < BAD_SHARE * total:
        unreadable = []
    too_little = readable < min_chars and (bool(lines) or bool(page.get_bboxlog()))
    doubtful, unread = _unbelieved(_doubtful(lines, aspect) | _without_letters(page, lines), ocr, believed)
    notices += unread
    texts = [word.text for word in _words_of(lines)]
    badly_read = ocr is not None and is_badly_read(page, texts)
    is_scan = _is_scan(page, lines, aspect)
    undecoded = undecoded_pictures(page) if page.parent.is_pdf and (is_scan or readable < min_chars) else []
    of_them = "a picture" if len(undecoded) == 1 else f"{len(undecoded)} pictures"
    undrawn = f"{of_them} on it cannot be decoded: damaged, or compressed in an unknown way"
    notices += [undrawn] if undecoded else []
    if ocr is None:
        if unreadable or doubtful:
            notices.append("its text cannot be read as it stands in the file, and OCR is off")
    elif is_scan or too_little or unreadable or doubtful or badly_read:
        seen = _without(ocr(None), _places_of(page, undecoded))
        remaining = [line for line in lines if line not in unreadable]
        if badly_read and 2 * _noise([word.text for word in seen.words]) < _noise(texts):
            remaining = [line for line in remaining if not _there(seen.words, line)]
        if doubtful:
            remaining = [line for line in remaining if line not in doubtful or _bears_out(seen.words, line)]
        if dropped := len(lines) - len(remaining):
            out_of_reach = [
                line for line in lines if line not in remaining and not _is_read(_there(seen.words, line), line)
            ]
            if 2 * len(out_of_reach) > dropped:
                notices.append(f"{dropped} lines cannot be read as they stand in the file, nor by OCR")
                places = [word.box for line in out_of_reach for word in line.words]
                seen = _without(seen, places)
            # Nothing better was read: what there is stays.
            elif not seen.words:
                remaining = lines
                notices.append("its text cannot be read as it stands in the file, and OCR read nothing")
            else:
                notices.append(f"{dropped} lines cannot be read as they stand in the file: OCR read them")
        notices.extend(seen.notices)
        marks = _watermarks(remaining, aspect) if is_scan else {}
        added = _not_displaced(
            _beside(seen.words, _words_of(remaining), marks), seen.words, _words_of(remaining), aspect
        )
        return replace(
            composed([*_words_of(remaining), *added], aspect, ocr=bool(added), notices=notices),
            confidence=seen.confidence,
            undecoded=len(undecoded),
        )
    return replace(composed(_words_of(lines), aspect, notices=notices), undecoded=len(undecoded))


def composed(words: Sequence[Word], aspect: float, *, ocr: bool = False, notices: Sequence[str] = ()) -> PageRead:
    """``words`` in reading order, as text and as places."""
    ordered, regions = arranged(_with_initials(without_line_numbers(words, aspect)), aspect)
    lines = [
        TextLine(letters_in("".join(word.text for word in row)), around([word.box for word in row]))
        for region in regions
        for row in region
    ]
    return PageRead(text_of(regions), tuple(ordered), tuple(lines), ocr, tuple(notices))


def _with_annotations(page: pymupdf.Page, lines: Sequence[_Line]) -> tuple[int, int, list[_Line]]:
    """How many words annotations strike out, how many are passwords, and ``lines`` without these, with the values of
    fields at their labels."""
    if not page.parent.is_pdf:
        return 0, 0, [*lines]
    upright = Upright(page)
    boxes = [box for rect in struck_boxes(page) if (box := upright.box(rect.x0, rect.y0, rect.x1, rect.y1)) is not None]
    struck = concealed = 0
    if boxes:
        for line in lines:
            remaining = [word for word in line.words if not any(is_in(word, box) for box in boxes)]
            struck += len(line.words) - len(remaining)
            line.words = remaining
    further: list[list[Word]] = []
    if page.first_widget is not None:
        words, fields = [line.words for line in lines], shown_fields(page, upright.box)
        concealed = without_passwords(fields, words)
        further = place_values(page, fields, words)
    whole = [*lines, *(_Line(words, " ".join(word.text for word in words), "") for words in further)]
    return struck, concealed, [line for line in whole if line.words]


def _with_initials(words: Sequence[Word]) -> Sequence[Word]:
    """``words`` with each initial that stands over several lines in the first of them, before what it begins."""
    large = [word for word in words if len(word.text) == 1 and word.turn == 0 and word.text.isupper()]
    if not large:
        return words
    usual = float(np.median([word.box.y1 - word.box.y0 for word in words]))
    arranged_words = list(words)
    for initial in large:
        box = initial.box
        if box.y1 - box.y0 < INITIAL * usual:
            continue
        beside = [
            word
            for word in words
            if word.turn == 0
            and word.box.y1 - word.box.y0 < (box.y1 - box.y0) / INITIAL
            and box.y0 < (word.box.y0 + word.box.y1) / 2 < box.y1
            and -0.5 * (box.x1 - box.x0) < word.box.x0 - box.x1 < box.x1 - box.x0
        ]
        beside.sort(key=lambda word: word.box.y0)
        if len(beside) < 2:
            continue
        first = beside[0]
        arranged_words.remove(initial)
        place = next(number for number, word in enumerate(arranged_words) if word is first)
        if first.text[0].islower():
            whole = Box(box.x0, first.box.y0, first.box.x1, first.box.y1)
            arranged_words[place] = Word(initial.text + first.text, whole, 0)
        else:
            upper = Box(box.x0, first.box.y0, min(box.x1, first.box.x0), first.box.y1)
            arranged_words.insert(place, Word(initial.text, upper, 0))
    return arranged_words


def turn_of(direction: tuple[float, float]) -> int:
    """Whole degrees clockwise of a line's direction, (1, 0) from left to right with y down; one degree is no turn."""
    turn = round(math.degrees(math.atan2(direction[1], direction[0]))) % 360
    return 0 if turn in (359, 0, 1) else turn


def _seen_lines(page: pymupdf.Page) -> tuple[list[_Line], int]:
    """The lines of the text layer that are drawn, and how many words are not."""
    layer = _layer(page)
    spans = {
        (block["number"], number): line
        for block in layer.extractDICT()["blocks"]
        for number, line in enumerate(block.get("lines", ()))
    }
    letters = letters_with_accents(layer)
    upright = Upright(page)
    lines: list[_Line] = []
    looks: list[_Look] = []
    places: list[tuple[float, float, float, float]] = []
    goes_back: list[bool] = []
    for (block, number), group in itertools.groupby(layer.extractWORDS(), key=lambda word: (word[5], word[6])):
        line = spans.get((block, number))
        turn = (turn_of(line["dir"]) + int(page.rotation)) % 360 if line is not None else 0
        visible = _Line([], "", str(line["spans"][0]["font"]) if line is not None and line["spans"] else "")
        reached, back = float("-inf"), False
        drawn, written = _as_seen(line, letters.get((block, number))) if line is not None else ("", "")
        at = 0
        for x0, y0, x1, y1, raw, *_ in group:
            back, reached = back or x0 < reached - 1, max(reached, x1)
            box = upright.box(x0, y0, x1, y1)
            form = raw
            if drawn and (place := drawn.find(raw, at)) >= 0:
                at = place + len(raw)
                form = written[place:at].replace(_JOINED, "")
            text = readable_form(clean(form)).strip()
            # What a font has no letter for at the edge of a word is a tab or a bullet.
            text = text.strip("\ufffd") or text
            if box is None or not text:
                continue
            if raw.endswith("\xad"):
                # What divides a word here is seen.
                text += "-"
            for word in _without_bullet(Word(text, box, turn)):
                looks.append(_look(word, line["spans"] if line is not None else (), (x0 + x1) / 2, (y0 + y1) / 2))
                visible.words.append(word)
            visible.raw += f"{form} "
        if visible.words:
            lines.append(visible)
            places.append(line["bbox"] if line is not None else (0.0, 0.0, 0.0, 0.0))
            goes_back.append(back)
    if not looks:
        return [], 0
    crowded = _crowded(places, goes_back)
    in_crowd = {id(word) for number in crowded for word in lines[number].words}
    twice, in_one_place = _in_one_place(
        [look for look in looks if id(look.word) in in_crowd and look.alpha and letters_in(look.word.text)]
    )
    # The text of a scan may have been laid over it more than once, each time without being drawn.
    twice |= _in_one_place([look for look in looks if id(look.word) in in_crowd and not look.alpha])[0]
    hidden = _hidden(page, [look for look in looks if id(look.word) not in twice], in_one_place - twice)
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


class LetterLine(TypedDict):
    """What is read of MuPDF's lines of single characters."""

    spans: list[_LetterSpan]
    dir: tuple[float, float]


class _LetterSpan(TypedDict):
    chars: list[_DrawnLetter]


class _DrawnLetter(TypedDict):
    c: str
    bbox: tuple[float, float, float, float]


def letters_with_accents(layer: pymupdf.TextPage) -> dict[tuple[int, int], LetterLine]:
    """The lines of a text layer by the numbers of their block and of themselves in it; none where no accent stands by
    itself."""
    if _ACCENT.search(layer.extractText()) is None:
        return {}
    return {
        (block["number"], number): line
        for block in layer.extractRAWDICT()["blocks"]
        for number, line in enumerate(block.get("lines", ()))
    }


def _with_accents(line: LetterLine, written: str) -> tuple[str, str] | None:
    """The characters of a line, and the same with an accented letter where an accent is drawn over or under a letter,
    as the old fonts of TeX do; in place of the accent stands ``_JOINED``. None where no accent is.

    ``written`` are the characters in another form, as many; "" where they have none. An accent beside a letter, which
    some type for an apostrophe, stays one.
    """
    drawn = [letter for span in line["spans"] for letter in span["chars"]]
    if turn_of(line["dir"]) or _ACCENT.search("".join(letter["c"] for letter in drawn)) is None:
        return None
    text = "".join(letter["c"] for letter in drawn)
    forms = list(written if len(written) == len(text) else text)
    for number, mark in enumerate(drawn):
        if (combining := _COMBINING.get(mark["c"])) is None:
            continue
        middle = (mark["bbox"][0] + mark["bbox"][2]) / 2
        for beside in (number + 1, number - 1):
            if not 0 <= beside < len(drawn) or forms[beside] == _JOINED:
                continue
            x0, _, x1, _ = drawn[beside]["bbox"]
            slack = WITHIN_LETTER * (x1 - x0)
            whole = unicodedata.normalize("NFC", _DOTLESS.get(forms[beside], forms[beside]) + combining)
            if len(whole) == 1 and whole.isalpha() and x0 + slack < middle < x1 - slack:
                forms[beside], forms[number] = whole, _JOINED
                break
    return text, "".join(forms)


class TypeSpan(TypedDict):
    """What is read of MuPDF's spans: characters of one font and size. ``origin`` is a point on the line of the type."""

    text: str
    size: float
    font: str
    origin: tuple[float, float]


class TypeLine(TypedDict):
    """What is read of MuPDF's lines. ``dir`` is the direction of the line, of length 1, y down."""

    spans: list[TypeSpan]
    dir: tuple[float, float]


def _as_seen(line: TypeLine, letters: LetterLine | None) -> tuple[str, str]:
    """The characters of a line and the same as they are seen: ``_as_signs``, and ``_with_accents`` by its ``letters``.
    Empty where they are the same."""
    signs = _as_signs(line["spans"], line["dir"])
    return (_with_accents(letters, signs[1]) if letters is not None else None) or signs


def _as_signs(spans: Sequence[TypeSpan], direction: tuple[float, float]) -> tuple[str, str]:
    """The characters of a line, and the same with superscript digits where digits stand higher than others, and signs
    where a font has signs in the places of letters.

    Empty where they are the same: most lines are of one size, and are not looked at closely. Digits that stand by
    themselves stay what they are, as the number of a note in front of it, and so do those in brackets, which keep them
    apart.
    """
    if not spans:
        return "", ""
    texts = [span["text"] for span in spans]
    written = [signs_of(span["font"], text) for span, text in zip(spans, texts, strict=True)]
    ground = spans[0]
    for number, (span, text) in enumerate(zip(spans, texts, strict=True)):
        if number and _is_superscript(span, ground, direction):
            before, other = texts[number - 1][-1:], ground
        else:
            ground = span
            if number + 1 == len(spans) or texts[number + 1][:1].isspace():
                continue
            # What begins a line, or a word, is compared with what follows.
            before, other = "", spans[number + 1]
        stands_alone = not before.strip() and (number + 1 == len(spans) or not texts[number + 1][:1].strip())
        is_in_brackets = before in ("[", "(") or text.lstrip().startswith(("[", "("))
        if not (stands_alone or is_in_brackets) and (before or _is_superscript(span, other, direction)):
            written[number] = superscript(written[number])
    return ("".join(texts), "".join(written)) if written != texts else ("", "")


def _is_superscript(span: TypeSpan, beside: TypeSpan, direction: tuple[float, float]) -> bool:
    (x, y), (along, down) = span["origin"], direction
    rise = (x - beside["origin"][0]) * down - (y - beside["origin"][1]) * along
    size = beside["size"]
    if len(span["text"].strip()) > LONGEST_SUPERSCRIPT:
        return False
    return LEAST_RISE * size <= rise <= MOST_RISE * size and span["size"] <= SUPERSCRIPT_SIZE * size


def text_as_seen(line: TypeLine, letters: LetterLine | None = None) -> str:
    """The characters of a line that MuPDF gives, with its superscript digits, signs and accented letters as such."""
    text = "".join(span["text"] for span in line["spans"])
    drawn, written = _as_seen(line, letters)
    # A part of the line may have been taken out.
    return written.replace(_JOINED, "") if drawn == text else text


def _with_columns(lines: list[_Line]) -> list[_Line]:
    """``lines`` with those of one letter below each other put together: programs without vertical type write so, and
    MuPDF gives a line for each letter of vertical type."""
    if not any(len(line.words) == 1 and _is_letter_of_column(line.words[0]) for line in lines):
        return lines
    whole: list[_Line] = []
    run: list[_Line] = []
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
            whole.append(_Line([column], column.text, run[0].font))
        else:
            whole += run
        run = [letter] if letter is not None else []
        if line is not None and letter is None:
            whole.append(line)
    return whole


def _with_spaced_words(lines: list[_Line], aspect: float) -> list[_Line]:
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
    vowels = _VOWELS.union(*(of_script for _, of_script in _OTHER_VOWELS))
    in_order = sum(0 <= ord(after) - ord(letter) <= 1 for letter, after in itertools.pairwise(letters))
    return (
        all(_LATIN.match(letter) or any(script.match(letter) for script, _ in _OTHER_VOWELS) for letter in letters)
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


def _without_bullet(word: Word) -> list[Word]:
    """``word``, the mark of a list at its beginning as a word of its own: the blank behind one is often a distance."""
    if word.turn or _BULLET.match(word.text) is None:
        return [word]
    box = word.box
    middle = box.x0 + (box.x1 - box.x0) / len(word.text)
    mark, rest = replace(box, x1=middle), replace(box, x0=middle)
    return [Word(word.text[0], mark), Word(word.text[1:], rest)]


def readable_form(text: str) -> str:
    """Letters in place of the forms that they take in print, which nobody types: ligatures, Arabic and Hebrew forms."""
    if "\u21b5" in text:
        text = _MISNAMED_FF.sub("ff", text)
    return _PRESENTATION.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


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


# What is drawn ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """A word and how the file says it is drawn: ``grey`` from 0 (black) to 255, ``alpha`` likewise, ``size`` in points.

    ``x`` and ``y`` are its middle on the unturned page, in points. ``coloured`` says that it is no grey.
    """

    word: Word
    grey: float
    coloured: bool
    alpha: int
    size: float
    x: float
    y: float


def _look(word: Word, spans: Sequence[dict[str, object]], x: float, y: float) -> _Look:
    if not spans:
        return _Look(word, 0.0, False, 255, 12.0, x, y)
    span = spans[0]
    if len(spans) > 1:
        span = next((span for span in spans if _holds(span["bbox"], x, y)), span)
    colour = int(str(span["color"]))
    red, green, blue = colour >> 16 & 255, colour >> 8 & 255, colour & 255
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    coloured = max(red, green, blue) - min(red, green, blue) > COLOURED
    return _Look(word, grey, coloured, int(str(span["alpha"])), float(str(span["size"])), x, y)


def _holds(bbox: object, x: float, y: float) -> bool:
    assert isinstance(bbox, tuple)
    return bool(bbox[0] <= x <= bbox[2] and bbox[1] <= y <= bbox[3])


def _hidden(page: pymupdf.Page, looks: Sequence[_Look], in_one_place: Collection[int]) -> set[int]:
    """The ids of the words that no reader of the page sees. ``in_one_place`` are those of words that share theirs."""
    grey = _grey(page)
    drawn: list[_Look] = []
    undrawn: list[_Look] = []
    unseen: list[_Look] = []
    hidden: set[int] = set()
    doubtful: set[int] = set()
    for look in looks:
        if look.size < LEAST_SIZE:
            hidden.add(id(look.word))
        elif look.alpha == 0:
            undrawn.append(look)
        elif (shows := _shows(grey, look)) is False:
            hidden.add(id(look.word))
            unseen.append(look)
        else:
            drawn.append(look)
            if shows is None or id(look.word) in in_one_place:
                doubtful.add(id(look.word))
    over, scanned = _under_pictures(page, drawn, doubtful)
    doubtful = (doubtful | over) - scanned
    # Leaders and dashes are no words that anybody misses.
    judged = [look.word for look in drawn if id(look.word) in doubtful and letters_in(look.word.text)]
    hidden |= _covered(page, judged)
    # What lies over some words may lie over those beside them.
    lost = [look.word.box for look in drawn if id(look.word) in hidden and _is_word(look)]
    lost += [look.word.box for look in unseen if _is_word(look)]
    if lost:
        near = [box.padded(NEAR * (box.y1 - box.y0), NEAR * (box.y1 - box.y0)) for box in lost]
        rest = [look.word for look in drawn if id(look.word) not in doubtful | scanned]
        hidden |= _covered(page, [word for word in rest if any(_overlap(word.box, box) > 0 for box in near)])
    # The text of a scan is not drawn itself: its pixels show the words, and no other words stand there.
    taken = [look.word.box for look in drawn if id(look.word) not in hidden] if undrawn else []
    inked: list[tuple[_Look, bool]] = []
    for look in undrawn:
        box = look.word.box
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        # OCR of old scans puts words a little beside their ink.
        slack = OFF_THE_INK * min(box.x1 - box.x0, box.y1 - box.y0)
        pixels = _pixels(grey, box.padded(slack, slack))
        has_ink = pixels.size and int(pixels.max()) - int(pixels.min()) >= INK_OF_A_SCAN
        if not has_ink or any(b.x0 <= x <= b.x1 and b.y0 <= y <= b.y1 for b in taken):
            hidden.add(id(look.word))
        else:
            along = pixels.T if look.word.turn % 180 else pixels
            inked.append((look, _has_strokes(along, len(look.word.text))))
    # Lines and edges of boxes are ink too, on a page that is no scan.
    if sum(has_strokes for _, has_strokes in inked) < LEAST_WITH_STROKES * len(inked):
        hidden |= {id(look.word) for look, has_strokes in inked if not has_strokes}
    return hidden


def _has_strokes(pixels: Grey, count: int) -> bool:
    """Whether ``pixels``, of which the rows lie along a word of ``count`` letters, hold as many strokes beside each
    other as these have: lines and edges of boxes that stand around a word are fewer."""
    ink = np.abs(pixels.astype(np.int16) - int(np.median(pixels))) >= INK_OF_A_SCAN
    strokes = int(np.count_nonzero(np.diff(ink.astype(np.int8), axis=1, prepend=0) == 1, axis=1).max())
    return strokes >= max(2, STROKES_OF_A_LETTER * count) if count > 1 else strokes > 0


def _covered(page: pymupdf.Page, words: Sequence[Word]) -> set[int]:
    return {id(word) for word, seen in zip(words, shown(page, words), strict=True) if not seen} if words else set()


def _grey(page: pymupdf.Page) -> Grey:
    scale = LOOK_DPI / 72.0
    scale *= min(1.0, math.sqrt(MOST_LOOK_PIXELS / max(1.0, page.rect.width * page.rect.height * scale * scale)))
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csGRAY, alpha=False)
    return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)[:, : pixmap.width]


def _pixels(grey: Grey, box: Box) -> Grey:
    height, width = grey.shape
    top, bottom = int(box.y0 * height), math.ceil(box.y1 * height)
    left, right = int(box.x0 * width), math.ceil(box.x1 * width)
    return grey[top:bottom, left:right]


def _shows(grey: Grey, look: _Look) -> bool | None:
    """Whether the pixels of a word's box show ink of its colour on another ground; None where they leave it open."""
    pixels = _pixels(grey, look.word.box)
    if not pixels.size:
        return False
    low, high = int(pixels.min()), int(pixels.max())
    if look.grey < 128 and high - low > 96 and look.grey - low > -96:
        # The usual case, dark on light, at once.
        ground = np.count_nonzero(pixels > max(high - EVEN, look.grey + LEAST_INK))
        least_even = LEAST_EVEN if look.size >= SMALL else LEAST_EVEN_SMALL
        return True if ground >= least_even * pixels.size or not _is_word(look) else None
    middle = float(np.median(pixels))
    other = np.abs(pixels.astype(np.int16) - round(look.grey)) > LEAST_INK
    least = max(LEAST_INK, LEAST_SHARE_OF_INK * abs(look.grey - middle))
    if np.count_nonzero(other) < LEAST_GROUND * pixels.size or max(high - middle, middle - low) < least:
        return None if look.coloured and high > low else False
    towards = middle - low if look.grey < middle else high - middle
    if towards < CLEAR_SHARE_OF_INK * abs(look.grey - middle):
        return None
    even = np.count_nonzero(np.abs(pixels.astype(np.int16) - round(middle)) < EVEN)
    return True if even >= LEAST_EVEN * pixels.size or not _is_word(look) else None


def _is_word(look: _Look) -> bool:
    """False for signs, dashes and single letters, which may fill most of their box."""
    return len(look.word.text) > 2 and look.word.text.isalnum()


def _crowded(places: Sequence[tuple[float, float, float, float]], goes_back: Sequence[bool]) -> set[int]:
    """The numbers of the lines that stand in the place of others, or go back over their own words."""
    left, top, right, bottom = np.array(places).T
    wide = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    high = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    letter = np.minimum(right - left, bottom - top)
    common = (wide > 0) & (high > 0) & (wide * high > SAME_PLACE * np.minimum.outer(letter, letter) ** 2)
    np.fill_diagonal(common, False)
    return set(np.flatnonzero(common.any(axis=0) | np.array(goes_back)).tolist())


def _in_one_place(looks: Sequence[_Look]) -> tuple[set[int], set[int]]:
    """The ids of the words that are drawn again in their place, as for bold type; of those that share theirs."""
    twice: set[int] = set()
    shared: set[int] = set()
    if not looks:
        return twice, shared
    left, top, right, bottom = np.array([look.word.box.as_tuple() for look in looks]).T
    middle, height, width = (top + bottom) / 2, bottom - top, right - left
    for number in range(len(looks) - 1):
        rest = slice(number + 1, None)
        level = np.abs(middle[rest] - middle[number]) < SAME_PLACE * np.minimum(height[rest], height[number])
        common = np.minimum(right[rest], right[number]) - np.maximum(left[rest], left[number])
        for other in np.flatnonzero(level & (common > SAME_PLACE * np.minimum(width[rest], width[number]))):
            word, over = looks[number].word, looks[number + 1 + int(other)].word
            shared |= {id(word), id(over)}
            if word.text == over.text and _overlap(word.box, over.box) > SAME_WORD < _overlap(over.box, word.box):
                twice.add(id(word))
    return twice, shared


def _under_pictures(page: pymupdf.Page, looks: Sequence[_Look], doubtful: Collection[int]) -> tuple[set[int], set[int]]:
    """The ids of the words over which a picture is drawn later that lets nothing through; of those under a scan.

    A scan fills the page, and its pixels show the words.
    """
    if not page.get_images():
        return set(), set()
    log = page.get_bboxlog()
    texts = [(place, bbox) for place, (kind, bbox) in enumerate(log) if kind in ("fill-text", "stroke-text")]
    opaque = [info["bbox"] for info in page.get_image_info() if not info["has-mask"]]
    area = page.rect.width * page.rect.height
    covered: set[int] = set()
    scanned: set[int] = set()
    for place, (kind, bbox) in enumerate(log):
        if kind != "fill-image":
            continue
        is_scan = _area(bbox) > PICTURE_SHARE * area
        if not any(all(abs(a - b) < 1 for a, b in zip(bbox, info, strict=True)) for info in opaque):
            continue
        for look in looks:
            if is_scan and id(look.word) not in doubtful:
                continue
            if _holds(bbox, look.x, look.y):
                drawn_at = [at for at, box in texts if _holds(box, look.x, look.y)]
                if drawn_at and max(drawn_at) < place:
                    (scanned if is_scan else covered).add(id(look.word))
    return covered, scanned


def _area(bbox: Sequence[float]) -> float:
    return max(0.0, bbox[2] - bbox[0]) * max(0.0, bbox[3] - bbox[1])


# What can be read --------------------------------------------------------------------------------------------------


def _is_unreadable(raw: str) -> bool:
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


def _doubtful(lines: Sequence[_Line], aspect: float) -> dict[str, list[_Line]]:
    """The lines of each font whose letters spell no language: it is the table of a font that goes wrong."""
    fonts: dict[str, list[_Line]] = {}
    for line in lines:
        fonts.setdefault(line.font, []).append(line)
    return {
        font: group
        for font, group in fonts.items()
        if not _spells_a_language(" ".join(word.text for word in _words_of(group))) or _is_narrow(group, aspect)
    }


def _is_narrow(lines: Sequence[_Line], aspect: float) -> bool:
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


def _without_letters(page: pymupdf.Page, lines: Sequence[_Line]) -> dict[str, list[_Line]]:
    """The lines of each font whose letters the file does not state, where these do not spell a known language either.

    They do in the fonts of TeX, whose codes are letters."""
    fonts = fonts_without_letters(page) if page.parent.is_pdf and lines else set()
    group = [line for line in lines if line.font in fonts]
    text = " ".join(word.text for word in _words_of(group))
    is_long = len(_LATIN.findall(text)) >= LEAST_JUDGED
    if len(text) < LEAST_OF_A_NAME or (is_long and has_common_words(text) and is_plausible(text)):
        return {}
    return {font: [line for line in group if line.font == font] for font in {line.font for line in group}}


def _unbelieved(
    doubtful: Mapping[str, Sequence[_Line]], ocr: Ocr | None, believed: set[str]
) -> tuple[list[_Line], list[str]]:
    """Lines of fonts that are doubtful, and not borne out by OCR here or earlier in the document; and notices."""
    unbelieved: list[_Line] = []
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


def _borne_out(doubtful: Sequence[_Line], ocr: Ocr) -> bool | None:
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
        unread += not _is_read(seen, line)
    text = "".join(word.text for line in longest for word in line.words)
    if 2 * unread > len(longest) and 2 * len(_LATIN.findall(text)) < letters_in(text):
        return None
    return 2 * agreed > len(longest)


def _is_read(seen: Sequence[Word], line: _Line) -> bool:
    length = sum(len(word.text) for word in line.words)
    return sum(letters_in(word.text) for word in seen) >= LEAST_READ * length


def _likeness(line: _Line, seen: Sequence[Word]) -> float:
    layer = "".join(word.text for word in line.words).casefold()
    return SequenceMatcher(None, layer, "".join(word.text for word in seen).casefold(), False).ratio()


def is_plausible(text: str) -> bool:
    """False for letters that follow one another as in no language written in Latin, Cyrillic or Greek script.

    Other scripts are believed: exchanged letters of theirs go unnoticed.
    """
    for script, open_letters in _OTHER_VOWELS:
        letters = script.findall(text)
        if len(letters) >= LEAST_JUDGED:
            plain = [unicodedata.normalize("NFD", letter)[0].lower() for letter in letters]
            if not LEAST_VOWELS <= sum(letter in open_letters for letter in plain) / len(plain) <= MOST_VOWELS:
                return False
    letters = _LATIN.findall(text)
    if len(letters) < LEAST_JUDGED:
        # A name alone in its font: without any vowel in all its words it is none.
        if _is_of_signs(text):
            return False
        plain = [letter for word in text.split() if len(word) >= 4 for letter in _LATIN.findall(word.lower())]
        return len(plain) < LEAST_OF_A_NAME or any(
            unicodedata.normalize("NFD", letter)[0] in _VOWELS for letter in plain
        )
    plain = [unicodedata.normalize("NFD", letter)[0].lower() for letter in letters]
    vowels = sum(letter in _VOWELS for letter in plain) / len(plain)
    words = [word for word in text.split() if _LATIN.search(word)]
    mixed = sum(_MIXED.search(word) is not None for word in words) / len(words)
    accented = sum(ord(letter) > 127 for letter in letters) / len(letters)
    return LEAST_VOWELS <= vowels <= MOST_VOWELS and mixed <= MOST_MIXED and accented <= MOST_ACCENTED


def _spells_a_language(text: str) -> bool:
    """Whether ``text`` is plausible and has small words of a language that is known here: any other is in doubt."""
    long, common = _common_words(text)
    has_common = long < LEAST_JUDGED or common >= LEAST_COMMON * long
    return is_plausible(text) and (has_common or len(_LATIN.findall(text)) < LEAST_JUDGED)


def has_common_words(text: str) -> bool:
    """Whether small words of a language that is known here are among the words of ``text``, as often as in prose."""
    long, common = _common_words(text)
    return 0 < common >= LEAST_COMMON * long


def _common_words(text: str) -> tuple[int, int]:
    """How many words of ``text`` have two letters or more, and how many of these are small words of a language."""
    long = [word for word in text.split() if len(word) > 1 and _LATIN.search(word)]
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


def _is_scan(page: pymupdf.Page, lines: Sequence[_Line], aspect: float) -> bool:
    """Whether pictures cover most of the page and its words little of it, as a stamp, a page number or a watermark on a
    scan.

    A word counts once, however often it is repeated, and with no larger type than that of a heading.
    """
    areas: dict[str, float] = {}
    for word in _words_of(lines):
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


def _watermarks(lines: Sequence[_Line], aspect: float) -> dict[int, _Mark]:
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
    return _noise(words) >= MOST_NOISE and _is_filled(page)


def _noise(words: Sequence[str]) -> float:
    """The share of ``words`` in which signs stand where letters belong."""
    latin = [word for word in words if _LATIN.search(word)]
    noisy = sum(_NOISY.search(text) is not None for text in latin)
    return noisy / len(latin) if noisy >= LEAST_NOISY else 0.0


def _is_filled(page: pymupdf.Page) -> bool:
    """Whether pictures cover most of the page."""
    if not page.get_images():
        return False
    area: float = page.rect.width * page.rect.height
    pictures = sum(_area(info["bbox"]) for info in page.get_image_info())
    return pictures > PICTURE_SHARE * area


def _words_of(lines: Sequence[_Line]) -> list[Word]:
    return [word for line in lines for word in line.words]


def _bears_out(seen: Sequence[Word], line: _Line) -> bool:
    """Whether OCR reads in the line's place what the layer says there, or nothing."""
    there = _there(seen, line)
    return not there or _likeness(line, there) >= SAME


def _there(seen: Sequence[Word], line: _Line) -> list[Word]:
    place = around([word.box for word in line.words])
    assert place is not None
    return [word for word in seen if _overlap(word.box, place) > 0.5]


def _without(seen: OcrText, places: Sequence[Box]) -> OcrText:
    return replace(seen, words=tuple(word for word in seen.words if not _is_at(word, places))) if places else seen


def _places_of(page: pymupdf.Page, sizes: Collection[tuple[int, int]]) -> list[Box]:
    """Where pictures of these widths and heights in pixels stand on the page."""
    if not sizes:
        return []
    upright = Upright(page)
    boxes = [upright.box(*info["bbox"]) for info in page.get_image_info() if (info["width"], info["height"]) in sizes]
    return [box for box in boxes if box is not None]


def _is_at(word: Word, places: Sequence[Box]) -> bool:
    return any(_stand_together(word.box, place) for place in places)


def _beside(seen: Sequence[Word], readable: Sequence[Word], marks: Mapping[int, _Mark]) -> list[Word]:
    """The words that OCR saw where no word of the layer stands, or only a mark that is another."""
    places = [(word.box, marks.get(id(word))) for word in readable]
    return [
        word
        for word in seen
        if not any((mark is None or mark.is_read_as(word)) and _stand_together(word.box, box) for box, mark in places)
    ]


def _not_displaced(added: Sequence[Word], seen: Sequence[Word], readable: Sequence[Word], aspect: float) -> list[Word]:
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
    return _overlap(box, other) > 0.3 or _overlap(other, box) > 0.5


def _overlap(box: Box, other: Box) -> float:
    """The share of ``box`` that lies in ``other``."""
    return box.shared(other) / box.area
