"""The characters of a PDF's text layer as a reader sees them: accented letters, superscripts, signs, marks of lists.

Ligatures come apart and forms of print become letters; an accent that is drawn over a letter is part of it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import pymupdf

from vrag_ray.corpus.elements import DOTS, LIST_SIGNS
from vrag_ray.corpus.formats.symbol_fonts import signs_of
from vrag_ray.types import Word
from vrag_ray.types.superscripts import superscript

LEAST_RISE, MOST_RISE, SUPERSCRIPT_SIZE = 0.2, 0.9, 0.9
"""Shares of the size of the type beside it: how far a superscript stands above the line, and its own size at most."""
LONGEST_SUPERSCRIPT = 12
"""Characters: more beside a letter that stands lower and is larger are the line behind an initial."""
LEAST_VOWELS, MOST_VOWELS = 0.22, 0.65
LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
VOWELS = frozenset("aeiouy")
OTHER_VOWELS = (
    (re.compile("[\u0400-\u04ff]"), frozenset("аеиоуыэюяіѣўѵѫү")),
    (re.compile("[\u0370-\u03ff]"), frozenset("αεηιουω")),
)
_BULLET = re.compile(rf"[{LIST_SIGNS}{DOTS}\uf000-\uf0ff](?=\w)")
"""The last are those of fonts of signs that are not known."""
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
JOINED = "\u2060"
WITHIN_LETTER = 0.15
"""Share of a letter's breadth beside which, at both ends, the middle of its accent stands."""
_PRESENTATION = re.compile("[\ufb1d-\ufdff\ufe70-\ufeff]+")


def turn_of(direction: tuple[float, float]) -> int:
    """Whole degrees clockwise of a line's direction, (1, 0) from left to right with y down; one degree is no turn."""
    turn = round(math.degrees(math.atan2(direction[1], direction[0]))) % 360
    return 0 if turn in (359, 0, 1) else turn


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
    as the old fonts of TeX do; in place of the accent stands ``JOINED``. None where no accent is.

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
            if not 0 <= beside < len(drawn) or forms[beside] == JOINED:
                continue
            x0, _, x1, _ = drawn[beside]["bbox"]
            slack = WITHIN_LETTER * (x1 - x0)
            whole = unicodedata.normalize("NFC", _DOTLESS.get(forms[beside], forms[beside]) + combining)
            if len(whole) == 1 and whole.isalpha() and x0 + slack < middle < x1 - slack:
                forms[beside], forms[number] = whole, JOINED
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


def as_seen(line: TypeLine, letters: LetterLine | None) -> tuple[str, str]:
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
    drawn, written = as_seen(line, letters)
    # A part of the line may have been taken out.
    return written.replace(JOINED, "") if drawn == text else text


def without_bullet(word: Word) -> list[Word]:
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
